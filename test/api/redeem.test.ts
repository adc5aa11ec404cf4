import { describe, expect, it, vi } from "vitest";
import { newId } from "../../src/domain/ids.ts";
import { voidVoucher } from "../../src/services/admin/void-voucher.ts";
import { type PartnerClient, partnerClient, type Reply } from "../support/client.ts";
import { dumpRows } from "../support/row-dump.ts";
import { BASE_URL } from "../support/service.ts";
import { issueVoucher, provisioning } from "../support/supply.ts";
import { until } from "../support/until.ts";
import { useService } from "../support/use-service.ts";

// Reservations of the second API end after one second.
const service = useService({ apis: [{}, { RESERVATION_SECONDS: "1" }] });
const { api, servers, partner, stranger, keys, foreign, issue, till, rival: shop } = service;
const hasty = service.apis[1];

async function readReservation(ticket: string) {
  const { rows } = await servers.db.query("SELECT * FROM reservations WHERE ticket = $1", [ticket]);
  return rows[0];
}

/** The data of the event by which a voucher was redeemed. */
async function readRedeem(code: string) {
  const { body } = await till.events(code);
  const event = body.events.find((one: { eventType: string }) => one.eventType === "voucher.instance.redeemed");
  return JSON.parse(event.payload).data;
}

function expectRefused({ status, body }: Reply, code: string): void {
  expect({ status, body }).toEqual({
    status: 409,
    body: { error: expect.stringMatching(/^[A-Z].*\.$/), code, requestId: expect.any(String) },
  });
}

/** Expects that a redeem is refused, writes nothing at all, and leaves its reference free for another voucher. */
async function expectRefusedForNow(client: PartnerClient, body: Record<string, unknown>, code: string): Promise<void> {
  const before = await dumpRows(servers.db);
  expectRefused(await client.redeem(body), code);
  expect(await dumpRows(servers.db)).toEqual(before);
  const other = await issue();
  const later = await client.redeem({ code: other.code, externalRef: body.externalRef });
  expect({ status: later.status, body: later.body }).toMatchObject({
    status: 200,
    body: { alreadyConfirmed: false, voucherInstanceId: other.id },
  });
}

async function redeem(code: string, externalRef: string) {
  const { status, body } = await till.redeem({ code, externalRef });
  expect(status).toBe(200);
  return body;
}

/** A reservation of the shop whose time is over; its row still says Live. */
async function reservationUntilOver(code: string): Promise<{ ticket: string; token: string }> {
  const { body } = await partnerClient(hasty.url, keys.rival.key).reserve(code);
  await until(async () => (await shop.lookUp(code)).body.reservation === null);
  return body;
}

describe("POST /partner/vouchers/redeem", () => {
  it("reads Postgres once to answer a retry of a redeemed reference, and then waits for the standbys", async () => {
    const voucher = await issue();
    const order = { code: voucher.code, externalRef: "read-once" };
    await till.redeem(order);
    const confirmed = vi.spyOn(api.ctx.referenceEnds, "submit");
    const reads = vi.spyOn(api.ctx.voucherReads, "submit");
    expect(await till.redeem(order)).toMatchObject({ status: 200, body: { alreadyConfirmed: true } });
    expect([reads.mock.calls.length, confirmed.mock.calls]).toEqual([1, [[null]]]);
    vi.restoreAllMocks();
  });

  it("redeems a voucher by its code and answers with every documented field", async () => {
    const voucher = await issue();
    const { status, body } = await till.redeem({ code: voucher.code, externalRef: "by-code", note: "Tisch 4" });
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
    const chain = await till.events(voucher.code);
    const redeemed = JSON.parse(chain.body.events[1].payload);
    expect(redeemed).toMatchObject({
      eventType: "voucher.instance.redeemed",
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

  it("redeems a voucher by its code in another spelling", async () => {
    const voucher = await issue();
    const { body } = await till.redeem({ code: voucher.code.toLowerCase().replaceAll("-", " "), externalRef: "spelt" });
    expect(body).toMatchObject({ alreadyConfirmed: false, voucherInstanceId: voucher.id });
  });

  it("redeems a voucher by its live ticket, consumes the reservation, and records the ticket in redemption and event", async () => {
    const voucher = await issue();
    const { ticket } = (await shop.reserve(voucher.code)).body;
    const { status, body } = await shop.redeem({ ticket, externalRef: "by-ticket" });
    expect({ status, body }).toMatchObject({
      status: 200,
      body: { alreadyConfirmed: false, voucherInstanceId: voucher.id },
    });
    const reservation = await readReservation(ticket);
    expect(reservation.state).toBe("Consumed");
    expect(reservation.ended_at.toISOString()).toBe(body.redeemedAt);
    const { rows } = await servers.db.query("SELECT ticket, key_id FROM redemptions WHERE voucher_id = $1", [
      voucher.id,
    ]);
    expect(rows).toEqual([{ ticket, key_id: keys.rival.id }]);
    expect(await readRedeem(voucher.code)).toMatchObject({ ticket });
    expect((await shop.lookUp(voucher.code)).body.reservation).toBeNull();
  });

  it("takes a ticket in the code field", async () => {
    const voucher = await issue();
    const { ticket } = (await shop.reserve(voucher.code)).body;
    const { status, body } = await shop.redeem({ code: ticket, externalRef: "ticket-as-code" });
    expect({ status, id: body.voucherInstanceId }).toEqual({ status: 200, id: voucher.id });
    expect(await readReservation(ticket)).toMatchObject({ state: "Consumed" });
  });

  it("deletes the lease of a consumed reservation", async () => {
    const voucher = await issue();
    const { ticket } = (await shop.reserve(voucher.code)).body;
    expect(await servers.redis.exists(servers.leaseKey(voucher.id))).toBe(1);
    expect((await shop.redeem({ ticket, externalRef: "gives-lease-back" })).status).toBe(200);
    await until(async () => (await servers.redis.exists(servers.leaseKey(voucher.id))) === 0);
  });

  it("stores a note of up to 500 arbitrary characters unchanged, and stores no note if none was sent", async () => {
    const notes = ["ü".repeat(500), "😀".repeat(500), '\u0001\n\t"\\\u2028'.padEnd(500, "\u001f"), " kept as is ", ""];
    for (const [index, note] of notes.entries()) {
      const { code } = await issue();
      const { status } = await till.redeem({ code, externalRef: `note-${index}`, note });
      expect(status).toBe(200);
      expect((await readRedeem(code)).note).toBe(note);
    }
    const { code } = await issue();
    await till.redeem({ code, externalRef: "no-note" });
    expect(await readRedeem(code)).not.toHaveProperty("note");
  });

  it("takes null for every optional field as for none", async () => {
    const voucher = await issue();
    const { status } = await till.redeem({
      code: voucher.code,
      ticket: null,
      token: null,
      note: null,
      externalRef: "nulls",
    });
    expect(status).toBe(200);
    expect(await readRedeem(voucher.code)).not.toHaveProperty("note");
  });
});

describe("POST /partner/vouchers/redeem with a reference that is confirmed", () => {
  it("answers the original result with alreadyConfirmed and writes nothing", async () => {
    const voucher = await issue();
    const first = await redeem(voucher.code, "retried");
    const before = await dumpRows(servers.db);
    for (let i = 0; i < 3; i++) {
      const { status, body } = await till.redeem({ code: voucher.code, externalRef: "retried", note: "another note" });
      expect({ status, body }).toEqual({ status: 200, body: { ...first, alreadyConfirmed: true } });
    }
    expect(await dumpRows(servers.db)).toEqual(before);
  });

  it("does so for another, an unknown, a foreign and a malformed code, for any ticket, token and key", async () => {
    const [voucher, other] = [await issue(), await issue()];
    const theirs = await issueVoucher(servers.db, stranger);
    const held = (await shop.reserve((await issue()).code)).body;
    const first = {
      ...(await redeem(voucher.code, "retried-with-others")),
      alreadyConfirmed: true,
      otherVoucher: true,
    };
    const before = await dumpRows(servers.db);
    const retries: Record<string, unknown>[] = [
      { code: other.code },
      { code: "7Q4K-9MZX-2HTB-W8RC" },
      { code: theirs.code },
      { code: "?" },
      { code: newId("rsv") },
      { ticket: held.ticket },
      { ticket: newId("rsv") },
      { code: other.code, token: "no token of anything" },
    ];
    for (const retry of retries) {
      for (const client of [till, shop]) {
        const { status, body } = await client.redeem({ ...retry, externalRef: "retried-with-others" });
        expect({ status, body }, JSON.stringify(retry)).toEqual({ status: 200, body: first });
      }
    }
    expect(await dumpRows(servers.db)).toEqual(before);
    expect((await till.redeem({ code: other.code, externalRef: "of-its-own" })).body.alreadyConfirmed).toBe(false);
  });

  it("does so by the consumed ticket", async () => {
    const voucher = await issue();
    const { ticket } = (await shop.reserve(voucher.code)).body;
    const first = (await shop.redeem({ ticket, externalRef: "ticket-retried" })).body;
    const { status, body } = await shop.redeem({ ticket, externalRef: "ticket-retried" });
    expect({ status, body }).toEqual({ status: 200, body: { ...first, alreadyConfirmed: true } });
  });

  it("does so for the reference with white space around it", async () => {
    const voucher = await issue();
    const first = await redeem(voucher.code, "  trimmed\n");
    expect((await readRedeem(voucher.code)).externalRef).toBe("trimmed");
    const { body } = await till.redeem({ code: voucher.code, externalRef: "\t trimmed" });
    expect(body).toEqual({ ...first, alreadyConfirmed: true });
  });

  it("distinguishes references that differ in case, in width or in composition", async () => {
    const ids = new Set<string>();
    for (const externalRef of ["Order-é", "order-é", "Order-e\u0301", "Ｏrder-é"]) {
      ids.add((await redeem((await issue()).code, externalRef)).voucherInstanceId);
    }
    expect(ids.size).toBe(4);
  });
});

describe("POST /partner/vouchers/redeem refuses, writes nothing and leaves the reference free,", () => {
  it("with 409 voucher_used a voucher that another reference redeemed", async () => {
    const voucher = await issue();
    await redeem(voucher.code, "used-first");
    await expectRefusedForNow(till, { code: voucher.code, externalRef: "used-second" }, "voucher_used");
  });

  it("with 409 voucher_voided a voided voucher", async () => {
    const voucher = await issue();
    await voidVoucher(provisioning(servers.db), partner.organizationId, voucher.code, null);
    await expectRefusedForNow(till, { code: voucher.code, externalRef: "voided" }, "voucher_voided");
  });

  it("with 409 voucher_expired an expired voucher", async () => {
    const voucher = await issue({ validUntil: new Date(Date.now() - 1) });
    await expectRefusedForNow(till, { code: voucher.code, externalRef: "expired" }, "voucher_expired");
  });

  it("with 409 voucher_reserved a voucher that another key of the organization has reserved", async () => {
    const voucher = await issue();
    const { ticket } = (await shop.reserve(voucher.code)).body;
    await expectRefusedForNow(till, { code: voucher.code, externalRef: "reserved-by-code" }, "voucher_reserved");
    await expectRefusedForNow(till, { ticket, externalRef: "reserved-by-ticket" }, "voucher_reserved");
    expect(await readReservation(ticket)).toMatchObject({ state: "Live" });
  });

  it("with 409 reservation_ended a released ticket, for the holder as for the others", async () => {
    const voucher = await issue();
    const { ticket } = (await shop.reserve(voucher.code)).body;
    await shop.release(ticket);
    await expectRefusedForNow(shop, { ticket, externalRef: "released-holder" }, "reservation_ended");
    await expectRefusedForNow(till, { code: ticket, externalRef: "released-other" }, "reservation_ended");
  });

  it("with 409 reservation_ended an ended ticket while the same key has a newer one", async () => {
    const voucher = await issue();
    const first = (await shop.reserve(voucher.code)).body;
    await shop.release(first.ticket);
    const second = (await shop.reserve(voucher.code)).body;
    await expectRefusedForNow(shop, { ticket: first.ticket, externalRef: "older-ticket" }, "reservation_ended");
    expect(await readReservation(second.ticket)).toMatchObject({ state: "Live" });
  });

  it("with 409 token_mismatch a token that is not the reservation's, for the holder too", async () => {
    const voucher = await issue();
    const { ticket, token } = (await shop.reserve(voucher.code)).body;
    const other = (await shop.reserve((await issue()).code)).body;
    const wrong = ["", "wrong", `${token} `, token.slice(0, -1), token.toLowerCase(), ticket, other.token];
    for (const [index, bad] of wrong.entries()) {
      const before = await dumpRows(servers.db);
      for (const client of [shop, till]) {
        expectRefused(await client.redeem({ ticket, token: bad, externalRef: `token-${index}` }), "token_mismatch");
        expectRefused(
          await client.redeem({ code: voucher.code, token: bad, externalRef: `token-${index}` }),
          "token_mismatch",
        );
      }
      expect(await dumpRows(servers.db)).toEqual(before);
    }
    await expectRefusedForNow(shop, { ticket, token: "wrong", externalRef: "token-holder" }, "token_mismatch");
  });

  it("with 409 token_mismatch any token for a voucher that is not reserved", async () => {
    const voucher = await issue();
    await expectRefusedForNow(till, { code: voucher.code, token: "x", externalRef: "no-hold" }, "token_mismatch");
    const { ticket, token } = (await shop.reserve(voucher.code)).body;
    await shop.release(ticket);
    await expectRefusedForNow(shop, { code: voucher.code, token, externalRef: "old-token" }, "token_mismatch");
  });

  it("and redeems the same voucher under the same reference once the obstacle is gone", async () => {
    const voucher = await issue();
    const { ticket } = (await shop.reserve(voucher.code)).body;
    expectRefused(await till.redeem({ code: voucher.code, externalRef: "later" }), "voucher_reserved");
    await shop.release(ticket);
    const { status, body } = await till.redeem({ code: voucher.code, externalRef: "later" });
    expect({ status, confirmed: body.alreadyConfirmed }).toEqual({ status: 200, confirmed: false });
  });
});

describe("POST /partner/vouchers/redeem after a reservation's time", () => {
  it("refuses its ticket with 409 reservation_ended and its token with token_mismatch, and redeems nothing", async () => {
    const voucher = await issue();
    const { ticket, token } = await reservationUntilOver(voucher.code);
    const tables = ["vouchers", "voucher_events", "redemptions"] as const;
    const before = await dumpRows(servers.db, tables);
    expectRefused(await shop.redeem({ ticket, externalRef: "overdue" }), "reservation_ended");
    expectRefused(await shop.redeem({ ticket, token, externalRef: "overdue" }), "reservation_ended");
    expectRefused(await till.redeem({ code: voucher.code, token, externalRef: "overdue" }), "token_mismatch");
    expect(await dumpRows(servers.db, tables)).toEqual(before);
  });

  it("redeems the voucher by its code for any key, and records the reservation as Expired, not Consumed", async () => {
    const voucher = await issue();
    const { ticket } = await reservationUntilOver(voucher.code);
    const { status } = await till.redeem({ code: voucher.code, externalRef: "after-overdue" });
    expect(status).toBe(200);
    const reservation = await readReservation(ticket);
    expect(reservation).toMatchObject({ state: "Expired" });
    expect(reservation.ended_at).toEqual(reservation.expires_at);
    expect(await readRedeem(voucher.code)).toMatchObject({ ticket: null });
  });
});

// Every order of refusals is tried by the unit test of decideRedeem.
describe("POST /partner/vouchers/redeem with several possible refusals", () => {
  it("returns reservation_ended rather than token_mismatch or voucher_reserved", async () => {
    const voucher = await issue();
    const ended = (await shop.reserve(voucher.code)).body.ticket;
    await shop.release(ended);
    const { token } = (await shop.reserve(voucher.code)).body;
    expectRefused(await till.redeem({ ticket: ended, token: "wrong", externalRef: "order-4" }), "reservation_ended");
    // The token of the live reservation does not help an ended ticket.
    expectRefused(await till.redeem({ ticket: ended, token, externalRef: "order-4" }), "reservation_ended");
  });
});

describe("POST /partner/vouchers/redeem of a reserved voucher", () => {
  it("needs no token from the holder, by code or ticket, and consumes the reservation", async () => {
    for (const by of ["code", "ticket"] as const) {
      const voucher = await issue();
      const { ticket } = (await shop.reserve(voucher.code)).body;
      const named = by === "code" ? { code: voucher.code } : { ticket };
      const { status } = await shop.redeem({ ...named, externalRef: `holder-by-${by}` });
      expect(status).toBe(200);
      expect(await readReservation(ticket)).toMatchObject({ state: "Consumed" });
      expect(await readRedeem(voucher.code)).toMatchObject({ ticket });
    }
  });

  it("takes the matching token from the holder as well", async () => {
    const { ticket, token } = (await shop.reserve((await issue()).code)).body;
    expect((await shop.redeem({ ticket, token, externalRef: "holder-with-token" })).status).toBe(200);
  });

  it("takes the matching token from another key of the organization, by ticket as by code", async () => {
    for (const by of ["code", "ticket"] as const) {
      const voucher = await issue();
      const { ticket, token } = (await shop.reserve(voucher.code)).body;
      const named = by === "code" ? { code: voucher.code } : { ticket };
      const { status, body } = await till.redeem({ ...named, token, externalRef: `other-by-${by}` });
      expect({ status, id: body.voucherInstanceId }).toEqual({ status: 200, id: voucher.id });
      expect(await readReservation(ticket)).toMatchObject({ state: "Consumed", key_id: keys.rival.id });
      const { rows } = await servers.db.query("SELECT key_id, ticket FROM redemptions WHERE voucher_id = $1", [
        voucher.id,
      ]);
      expect(rows).toEqual([{ key_id: keys.till.id, ticket }]);
    }
  });

  it("answers 404 to another organization even with ticket and token, and changes nothing", async () => {
    const voucher = await issue();
    const { ticket, token } = (await shop.reserve(voucher.code)).body;
    const before = await dumpRows(servers.db);
    for (const named of [{ ticket }, { code: ticket }, { code: voucher.code }]) {
      const { status, body } = await foreign.redeem({ ...named, token, externalRef: "foreign" });
      expect({ status, code: body.code }).toEqual({ status: 404, code: "voucher_not_found" });
    }
    expect(await dumpRows(servers.db)).toEqual(before);
  });

  it("carries neither token nor code through the queue", async () => {
    const voucher = await issue();
    const { ticket, token } = (await shop.reserve(voucher.code)).body;
    expect((await till.redeem({ ticket, token, externalRef: "queue-carries" })).status).toBe(200);
    const jobs = [];
    const { prefix } = servers.shardOf(voucher.id);
    for (const key of await servers.redis.keys(`${prefix}:redeem:*`)) {
      if ((await servers.redis.type(key)) === "hash") jobs.push(key, JSON.stringify(await servers.redis.hgetall(key)));
      if ((await servers.redis.type(key)) === "stream")
        jobs.push(JSON.stringify(await servers.redis.xrange(key, "-", "+")));
    }
    const all = jobs.join("\n");
    expect(all).toContain("queue-carries");
    expect(all).not.toContain(token);
    expect(all).not.toContain(voucher.code);
    // A job's id begins with its voucher's.
    expect(all).toContain(`${prefix}:redeem:${voucher.id}`);
  });
});

describe("POST /partner/vouchers/redeem answers 404 voucher_not_found", () => {
  it("with the same body for unknown and foreign codes and tickets, and leaves the reference free", async () => {
    const theirs = await issueVoucher(servers.db, stranger);
    const { ticket } = (await foreign.reserve(theirs.code)).body;
    const bodies = new Set<string>();
    const before = await dumpRows(servers.db);
    for (const named of [
      { code: "7Q4K-9MZX-2HTB-W8RC" },
      { code: theirs.code },
      { code: "??" },
      { code: "Ünïcödé" },
      { ticket },
      { code: ticket },
      { ticket: newId("rsv") },
    ]) {
      const { status, body } = await till.redeem({ ...named, externalRef: "not-found" });
      expect(status).toBe(404);
      const { requestId, ...rest } = body;
      expect(requestId).toEqual(expect.any(String));
      bodies.add(JSON.stringify(rest));
    }
    expect(bodies.size).toBe(1);
    expect([...bodies][0]).toContain('"voucher_not_found"');
    expect(await dumpRows(servers.db)).toEqual(before);
    expect((await redeem((await issue()).code, "not-found")).alreadyConfirmed).toBe(false);
  });
});

describe("POST /partner/vouchers/redeem takes as externalRef", () => {
  it.each([
    ["one character", "x"],
    ["128 characters", "r".repeat(128)],
    ["128 characters with white space around them", `  ${"s".repeat(128)}\n`],
    ["128 code points outside the basic plane", "😀".repeat(128)],
    ["line separators, quotes and markup, which are not control characters", "\u2028'\"<b>&\\ ø"],
  ])("%s", async (_what, externalRef) => {
    const voucher = await issue();
    const first = await redeem(voucher.code, externalRef);
    expect((await readRedeem(voucher.code)).externalRef).toBe(externalRef.trim());
    const { body } = await till.redeem({ code: voucher.code, externalRef });
    expect(body).toEqual({ ...first, alreadyConfirmed: true });
  });

  it.each([
    ["an empty string", ""],
    ["white space alone", " \t\n\u00a0 "],
    ["a line break inside", "a\nb"],
    ["a tab inside", "a\tb"],
    ["DEL inside", "a\u007fb"],
    ["a C1 control character inside", "a\u0085b"],
  ])("not %s: 400 naming externalRef, and nothing is written", async (_what, externalRef) => {
    const voucher = await issue();
    const before = await dumpRows(servers.db);
    const { status, body } = await till.redeem({ code: voucher.code, externalRef });
    expect({ status, code: body.code }).toEqual({ status: 400, code: "invalid_request" });
    expect(body.error).toContain("externalRef");
    expect(await dumpRows(servers.db)).toEqual(before);
  });
});

describe("POST /partner/vouchers/redeem answers 400", () => {
  it("'code or ticket is required' when neither is given", async () => {
    for (const neither of [{}, { code: null }, { ticket: null }, { code: null, ticket: null }]) {
      const { status, body } = await till.redeem({ ...neither, externalRef: "neither" });
      expect({ status, code: body.code }).toEqual({ status: 400, code: "invalid_request" });
      expect(body.error).toContain("code or ticket is required");
    }
  });

  it("naming both code and ticket when both are given, even if they name the same voucher", async () => {
    const voucher = await issue();
    const { ticket } = (await shop.reserve(voucher.code)).body;
    const before = await dumpRows(servers.db);
    const { status, body } = await shop.redeem({ code: voucher.code, ticket, externalRef: "both" });
    expect({ status, code: body.code }).toEqual({ status: 400, code: "invalid_request" });
    expect(body.error).toContain("code and ticket");
    expect(await dumpRows(servers.db)).toEqual(before);
  });

  it("for a bad shape even when the reference is confirmed and the voucher unknown", async () => {
    await redeem((await issue()).code, "shape-first");
    const { status, body } = await till.redeem({ code: "unknown-code", externalRef: "shape-first", note: 5 });
    expect({ status, error: body.error }).toEqual({ status: 400, error: expect.stringContaining("note") });
  });
});
