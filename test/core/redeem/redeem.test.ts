import { expect, it, vi } from "vitest";
import { type PartnerClient, partnerClient, type Reply } from "../../support/client.ts";
import { dumpRows } from "../../support/row-dump.ts";
import { BASE_URL } from "../../support/service.ts";
import { until } from "../../support/until.ts";
import { useService } from "../../support/use-service.ts";

// Reservations of the second API end after one second.
const service = useService({ apis: [{}, { RESERVATION_SECONDS: "1" }] });
const { api, servers, keys, issue, till, rival: shop } = service;

it("a retry of a redeemed reference reads Postgres once, then waits for the standbys", async () => {
  const order = { code: (await issue()).code, externalRef: "read-once" };
  await till.redeem(order);
  const confirmed = vi.spyOn(api.ctx.confirmations, "submit");
  const reads = vi.spyOn(api.ctx.voucherReads, "submit");
  expect(await till.redeem(order)).toMatchObject({ status: 200, body: { alreadyConfirmed: true } });
  expect([reads.mock.calls.length, confirmed.mock.calls]).toEqual([1, [[api.ctx.deployment.serverId]]]);
  vi.restoreAllMocks();
});

it("redeem accepts a code in any spelling, and returns and stores every documented field", async () => {
  const voucher = await issue();
  const code = voucher.code.toLowerCase().replaceAll("-", " ");
  const { status, body } = await till.redeem({ code, externalRef: "by-code", note: "Tisch 4" });
  expect(status).toBe(200);
  expect(body).toStrictEqual({
    redeemed: true,
    alreadyConfirmed: false,
    voucherInstanceId: voucher.id,
    redeemCode: expect.stringMatching(/^[0-9A-HJKMNP-TV-Z]{4}(-[0-9A-HJKMNP-TV-Z]{4}){2}$/),
    serial: voucher.serial,
    productName: "Pass",
    productKey: "pass",
    discountPriceUsd: 40.25,
    benefitMonths: 6,
    redeemedAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
    verifyUrl: `${BASE_URL}/integrity/events/VoucherInstance/${voucher.id}`,
  });
  expect(await readRedeem(voucher.code)).toMatchObject({
    code: "VCH004",
    occurredAt: body.redeemedAt,
    actorConnectedId: keys.till.id,
    actorIsEmployee: null,
    data: {
      note: "Tisch 4",
      externalRef: "by-code",
      redeemCode: body.redeemCode,
      ticket: null,
      voucherCode: voucher.code,
      serial: voucher.serial,
      retailPriceUsd: 50,
      priceUsd: 40.25,
      nonce: expect.stringMatching(/^[0-9a-f]{32}$/),
    },
  });
  expect((await till.lookUp(voucher.code)).body.voucher).toMatchObject({
    status: "Redeemed",
    redeemedAt: body.redeemedAt,
  });
});

type Held = Awaited<ReturnType<typeof hold>>;

it.each<[string, "till" | "rival", (held: Held) => Record<string, string>]>([
  ["the holder by ticket", "rival", ({ ticket }) => ({ ticket })],
  ["the holder by ticket in the field of codes", "rival", ({ ticket }) => ({ code: ticket })],
  ["the holder by code", "rival", ({ code }) => ({ code })],
  ["the holder by ticket and token", "rival", ({ ticket, token }) => ({ ticket, token })],
  ["another key by ticket and token", "till", ({ ticket, token }) => ({ ticket, token })],
  ["another key by code and token", "till", ({ code, token }) => ({ code, token })],
])("redeem of a reserved voucher ends the reservation and deletes its lease: %s", async (how, caller, name) => {
  const held = await hold();
  expect(await servers.redis.exists(servers.leaseKey(held.id))).toBe(1);
  const { status, body } = await service[caller].redeem({ ...name(held), externalRef: how });
  expect({ status, id: body.voucherInstanceId }).toEqual({ status: 200, id: held.id });
  const reservation = await readReservation(held.ticket);
  expect(reservation).toMatchObject({ state: "Consumed", key_id: keys.rival.id });
  expect(reservation.ended_at.toISOString()).toBe(body.redeemedAt);
  const { rows } = await servers.db.query("SELECT ticket, key_id FROM redemptions WHERE voucher_id = $1", [held.id]);
  expect(rows).toEqual([{ ticket: held.ticket, key_id: keys[caller].id }]);
  expect((await readRedeem(held.code)).data).toMatchObject({ ticket: held.ticket });
  await until(async () => (await servers.redis.exists(servers.leaseKey(held.id))) === 0);
});

it("redeem stores a note of up to 500 characters unchanged, and stores none for null", async () => {
  const notes = ["ü".repeat(500), "😀".repeat(500), '\u0001\n\t"\\\u2028'.padEnd(500, "\u001f"), " kept as is ", ""];
  for (const [index, note] of [...notes, null, undefined].entries()) {
    const { code } = await issue();
    const optional = note === null ? { ticket: null, token: null } : {};
    expect((await till.redeem({ ...optional, code, externalRef: `note-${index}`, note })).status).toBe(200);
    const { data } = await readRedeem(code);
    if (typeof note === "string") expect(data.note).toBe(note);
    else expect(data).not.toHaveProperty("note");
  }
});

it("a repeated redeem of a reference gets the first result with each API key of the organization", async () => {
  const voucher = await issue();
  const first = await redeem(voucher.code, "retried");
  const before = await dumpRows(servers.db);
  for (const client of [till, shop]) {
    const { status, body } = await client.redeem({ code: voucher.code, externalRef: "retried", note: "another note" });
    expect({ status, body }).toEqual({ status: 200, body: { ...first, alreadyConfirmed: true } });
  }
  expect(await dumpRows(servers.db)).toEqual(before);
});

/**
 * Each refusal: the case, the code, and the caller with the request. reference-calls.test.ts causes the other refusals,
 * and the unit test of decideRedeem tries every combination.
 */
const REFUSALS: [string, string, () => Promise<[PartnerClient, Record<string, unknown>]>][] = [
  ["another key's reservation, by code", "voucher_reserved", async () => [till, { code: (await hold()).code }]],
  [
    "a released ticket of its holder, with its token",
    "reservation_ended",
    async () => {
      const { ticket, token } = await hold({ released: true });
      return [shop, { ticket, token }];
    },
  ],
  [
    "another reservation's token, for the holder too",
    "token_mismatch",
    async () => [shop, { ticket: (await hold()).ticket, token: (await hold()).token }],
  ],
];

it.each(
  REFUSALS,
)("redeem refuses %s with %s, writes nothing and leaves the reference unused", async (title, code, make) => {
  const [client, named] = await make();
  const before = await dumpRows(servers.db);
  expectRefused(await client.redeem({ ...named, externalRef: title }), code);
  expect(await dumpRows(servers.db)).toEqual(before);
  const other = await issue();
  expect(await redeem(other.code, title)).toMatchObject({ alreadyConfirmed: false, voucherInstanceId: other.id });
});

it("redeem refuses an expired reservation's ticket and token, but another key can redeem the code", async () => {
  const { code, ticket, token } = await hold({ overdue: true });
  const tables = ["vouchers", "voucher_events", "redemptions"] as const;
  const before = await dumpRows(servers.db, tables);
  expectRefused(await shop.redeem({ ticket, externalRef: "overdue" }), "reservation_ended");
  expectRefused(await shop.redeem({ ticket, token, externalRef: "overdue" }), "reservation_ended");
  expectRefused(await till.redeem({ code, token, externalRef: "overdue" }), "token_mismatch");
  expect(await dumpRows(servers.db, tables)).toEqual(before);
  await redeem(code, "overdue");
  const reservation = await readReservation(ticket);
  expect(reservation).toMatchObject({ state: "Expired", ended_at: reservation.expires_at });
  expect((await readRedeem(code)).data).toMatchObject({ ticket: null });
});

it("redeem puts no reservation token and no voucher code into the queue", async () => {
  const { id, code, ticket, token } = await hold();
  expect((await till.redeem({ ticket, token, externalRef: "queue-carries" })).status).toBe(200);
  const jobs = [];
  const { prefix } = servers.shardOf(id);
  for (const key of await servers.redis.keys(`${prefix}:redeem:*`)) {
    const type = await servers.redis.type(key);
    if (type === "hash") jobs.push(key, JSON.stringify(await servers.redis.hgetall(key)));
    if (type === "stream") jobs.push(JSON.stringify(await servers.redis.xrange(key, "-", "+")));
  }
  const all = jobs.join("\n");
  expect(all).not.toContain(token);
  expect(all).not.toContain(code);
  // A job's id begins with the id of its voucher.
  expect(all).toContain(`${prefix}:redeem:${id}`);
});

it("redeem stores any visible externalRef exactly, but without surrounding white space", async () => {
  const ids = new Set<string>();
  for (const externalRef of ["x", `  ${"s".repeat(128)}\n`, "\u2028'\"<b>&\\ ø", "Order-é", "order-é", "Ｏrder-é"]) {
    const { code } = await issue();
    const first = await redeem(code, externalRef);
    expect((await readRedeem(code)).data.externalRef).toBe(externalRef.trim());
    const { body } = await till.redeem({ code, externalRef: `\t ${externalRef}` });
    expect(body).toEqual({ ...first, alreadyConfirmed: true });
    ids.add(body.voucherInstanceId);
  }
  expect(ids.size).toBe(6);
});

it("redeem answers 400 for a wrong externalRef, code or ticket, and names the wrong field", async () => {
  const { code, ticket } = await hold();
  const before = await dumpRows(servers.db);
  const refs = ["", " \t\n\u00a0 ", "a\nb", "a\tb", "a\u007fb", "a\u0085b"];
  for (const [named, sentence] of [
    ...refs.map((externalRef) => [{ code, externalRef }, "externalRef"] as const),
    [{}, "code or ticket is required"],
    [{ code: null, ticket: null }, "code or ticket is required"],
    [{ code, ticket }, "code and ticket"],
    // The API refuses a bad note even if the reference is confirmed.
    [{ code: "unknown", externalRef: "read-once", note: 5 }, "note"],
  ] as const) {
    const { status, body } = await shop.redeem({ externalRef: "bad-shape", ...named });
    expect({ status, code: body.code }).toEqual({ status: 400, code: "invalid_request" });
    expect(body.error).toContain(sentence);
  }
  expect(await dumpRows(servers.db)).toEqual(before);
});

async function readReservation(ticket: string) {
  const { rows } = await servers.db.query("SELECT * FROM reservations WHERE ticket = $1", [ticket]);
  return rows[0];
}

async function readRedeem(code: string) {
  const { body } = await till.events(code);
  const event = body.events.find((one: { eventType: string }) => one.eventType === "voucher.instance.redeemed");
  return JSON.parse(event.payload);
}

function expectRefused({ status, body }: Reply, code: string): void {
  expect({ status, body }).toEqual({
    status: 409,
    body: { error: expect.stringMatching(/^[A-Z].*\.$/), code, requestId: expect.any(String) },
  });
}

async function redeem(code: string, externalRef: string) {
  const { status, body } = await till.redeem({ code, externalRef });
  expect(status).toBe(200);
  return body;
}

/** Makes a new voucher and a reservation of it by the shop. */
async function hold(options: { released?: true; overdue?: true } = {}) {
  const voucher = await issue();
  const holder = options.overdue ? partnerClient(service.apis[1].url, keys.rival.key) : shop;
  const { ticket, token } = (await holder.reserve(voucher.code)).body;
  if (options.released) await shop.release(ticket);
  // The reservation is over, but its row still has the state Live.
  if (options.overdue) await until(async () => (await shop.lookUp(voucher.code)).body.reservation === null);
  return { ...voucher, ticket: String(ticket), token: String(token) };
}
