import { createHash } from "node:crypto";
import { expect, it, vi } from "vitest";
import { newId } from "../../../src/core/voucher/ids.ts";
import { send } from "../../support/client.ts";
import { verifyServedChain } from "../../support/independent-verifier.ts";
import { appendPending as appendPendingEvents } from "../../support/pending-events.ts";
import { dumpRows } from "../../support/row-dump.ts";
import { sealVoucher } from "../../support/seal-voucher.ts";
import { issueVouchers, provisioning } from "../../support/supply.ts";
import { useService } from "../../support/use-service.ts";
import { voidVoucher } from "../../support/void-voucher.ts";

const HASH = /^[0-9a-f]{64}$/;
const TIMESTAMP = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

const { api, servers, partner, keys, issue, till } = useService();

const appendPending = (voucherId: string, count: number) => appendPendingEvents(servers.db, voucherId, count);

it("a request for a voucher's events runs two statements: one for the voucher, one for the page", async () => {
  const { code, id } = await issue();
  // A process reads the id and other constants of the deployment only once: here, before the test counts.
  await publicly(id);
  const asked = vi.spyOn(api.ctx.pool, "query");
  try {
    const pages = [await till.events(code), await till.events(code), await publicly(id)];
    const names = asked.mock.calls.map(([statement]) => (statement as unknown as { name: string }).name);
    // The process also reads keys, marks, the clock and its server's identity from time to time.
    expect(names.filter((name) => !/key|observe_|mark/.test(name))).toEqual([
      ...["resolve_vouchers", "select_events_page"],
      ...["resolve_vouchers", "select_events_page"],
      ...["find_voucher_sandbox", "select_events_page"],
    ]);
    const { rows } = await servers.db.query("SELECT canon_preserved_since FROM deployment");
    for (const { body } of pages) {
      expect(body.canonPreservedSinceUtc).toBe(rows[0].canon_preserved_since.toISOString());
    }
  } finally {
    asked.mockRestore();
  }
});

/** The fields of every new event, sealed or not. */
const UNNOTED = {
  occurredAt: expect.stringMatching(TIMESTAMP),
  logIndex: null,
  actorConnectedId: null,
  actorIsEmployee: null,
};

it("a new voucher has one sealed event, whose previousHash is 64 zeros", async () => {
  const voucher = await issue();
  const { status, body } = await till.events(voucher.code);
  expect(status).toBe(200);
  expect(body).toStrictEqual({
    entityType: "VoucherInstance",
    entityId: voucher.id,
    anchorNamespace: "VoucherInstance:events",
    events: [
      {
        ...UNNOTED,
        sequence: 1,
        eventType: "voucher.instance.issued",
        code: "VCH001",
        sealStatus: "Sealed",
        recordHash: expect.stringMatching(HASH),
        previousHash: "0".repeat(64),
        payload: expect.any(String),
      },
    ],
    canonPreservedSinceUtc: expect.stringMatching(TIMESTAMP),
    hasMore: false,
  });
  expect(verifyServedChain(body.events)).toBeNull();
});

it("an event's payload is the text that was hashed, and contains the event's values", async () => {
  const voucher = await issue();
  const { ticket } = (await till.reserve(voucher.code)).body;
  const note = 'Tisch 4 "ü" \u2028 😀';
  await till.redeem({ ticket, externalRef: "chain", note });
  const { events } = (await till.events(voucher.code)).body;
  expect(events).toHaveLength(2);
  const nonces = new Set<string>();
  for (const { payload, recordHash, sealStatus: _s, logIndex: _l, ...event } of events) {
    expect(createHash("sha256").update(payload, "utf8").digest("hex")).toBe(recordHash);
    const said = JSON.parse(payload);
    expect(Object.keys(said)).toEqual(Object.keys(said).sort());
    const entity = { v: 1, entityType: "VoucherInstance", entityId: voucher.id };
    expect(said).toStrictEqual({ ...entity, ...event, data: said.data });
    expect(said.data.nonce).toMatch(/^[0-9a-f]{32}$/);
    nonces.add(said.data.nonce);
  }
  expect(nonces.size).toBe(2);
  const [issued, redeemed] = events;
  expect(redeemed).toMatchObject({
    eventType: "voucher.instance.redeemed",
    code: "VCH004",
    previousHash: issued.recordHash,
    actorConnectedId: keys.till.id,
    actorIsEmployee: null,
  });
  expect(JSON.parse(redeemed.payload).data).toMatchObject({ note, externalRef: "chain", ticket });
  expect(verifyServedChain(events)).toBeNull();
});

it("a voucher's events are the same for its code in any spelling and for its ticket", async () => {
  const voucher = await issue();
  const { ticket } = (await till.reserve(voucher.code)).body;
  const byCode = (await till.events(voucher.code)).body;
  expect((await till.events(voucher.code.toLowerCase().replaceAll("-", " "))).body).toEqual(byCode);
  expect((await till.events(ticket)).body).toEqual(byCode);
  await till.release(ticket);
  const ended = await till.events(ticket);
  expect({ status: ended.status, body: ended.body }).toEqual({ status: 200, body: byCode });
  const again = (await till.reserve(voucher.code)).body.ticket;
  await till.redeem({ ticket: again, externalRef: "events-by-ticket" });
  expect((await till.events(again)).body.events).toHaveLength(2);
});

it("a Pending event has null for hashes and payload until it is sealed", async () => {
  const voucher = await issue();
  await appendPendingEvents(servers.db, voucher.id, 1);
  const pending = (await till.events(voucher.code)).body.events;
  expect(pending).toHaveLength(2);
  expect(pending[1]).toStrictEqual({
    ...UNNOTED,
    actorConnectedId: "user|0",
    actorIsEmployee: true,
    sequence: 2,
    eventType: "voucher.instance.claimed",
    code: "VCH002",
    sealStatus: "Pending",
    recordHash: null,
    previousHash: null,
    payload: null,
  });
  expect(verifyServedChain(pending)).toBeNull();

  expect(await sealVoucher({ pool: servers.db }, voucher.id)).toBe(1);
  const sealed = (await till.events(voucher.code)).body.events;
  expect(sealed[0]).toEqual(pending[0]);
  expect(sealed[1]).toStrictEqual({
    ...pending[1],
    sealStatus: "Sealed",
    recordHash: expect.stringMatching(HASH),
    previousHash: sealed[0].recordHash,
    payload: expect.any(String),
  });
  expect(JSON.parse(sealed[1].payload).data).toMatchObject({ note: "secret 0" });
  expect(verifyServedChain(sealed)).toBeNull();
});

it("a voucher's events come in pages by `after` and `limit`, in order of sequence, with hasMore", async () => {
  const voucher = await issue();
  await appendPending(voucher.id, 6);
  await sealVoucher({ pool: servers.db }, voucher.id);
  const all = (await till.events(voucher.code)).body;
  expect(all.events.map((event: { sequence: number }) => event.sequence)).toEqual([1, 2, 3, 4, 5, 6, 7]);
  expect(all.events[1]).toMatchObject({ actorConnectedId: "user|0", actorIsEmployee: true });
  expect(all.events[2]).toMatchObject({ actorConnectedId: "user|1", actorIsEmployee: false });
  expect(verifyServedChain(all.events)).toBeNull();
  expect(all.hasMore).toBe(false);

  for (const limit of [1, 2, 3, 6, 7, 1000]) {
    const events: { sequence: number }[] = [];
    for (let more = true; more; ) {
      const { status, body } = await till.events(voucher.code, `?after=${events.at(-1)?.sequence ?? 0}&limit=${limit}`);
      expect(status).toBe(200);
      expect({ ...body, events: [], hasMore: false }).toEqual({ ...all, events: [] });
      expect(body.events.length).toBe(Math.min(limit, 7 - events.length));
      events.push(...body.events);
      more = body.hasMore;
      expect(more).toBe(events.length < 7);
    }
    expect(events).toEqual(all.events);
  }
  for (const query of ["?after=7", "?after=2147483647", "?after=9&limit=1"]) {
    expect((await till.events(voucher.code, query)).body).toEqual({ ...all, events: [] });
  }
});

it("a wrong `after` or `limit` gets a 400 that names the parameter, and unknown parameters are ignored", async () => {
  const voucher = await issue();
  const queries = ["-1", "1.5", "", "2147483648", "1&after=2"].map((value) => ["after", value] as const);
  for (const [name, value] of [...queries, ...["0", "1001", "1e2", "%00"].map((value) => ["limit", value] as const)]) {
    for (const { status, body } of [
      await till.events(voucher.code, `?${name}=${value}`),
      await till.events("7Q4K-9MZX-2HTB-W8RC", `?${name}=${value}`),
      await publicly(voucher.id, `?${name}=${value}`),
    ]) {
      expect([status, body.code, body.error], value).toEqual([400, "invalid_request", expect.stringContaining(name)]);
    }
  }
  const plain = (await till.events(voucher.code)).body;
  expect((await till.events(voucher.code, "?before=1&order=desc&after[x]=1&__proto__=1")).body).toEqual(plain);
});

it("a request for a voucher's events changes no row, not even a Pending event's", async () => {
  const voucher = await issue();
  await appendPending(voucher.id, 1);
  const before = await dumpRows(servers.db);
  await till.events(voucher.code);
  await publicly(voucher.id);
  expect(await dumpRows(servers.db)).toEqual(before);
  await sealVoucher({ pool: servers.db }, voucher.id);
});

it("the public events equal the partner's events without payloads and actors, with any key or none", async () => {
  const voucher = await issue();
  await appendPending(voucher.id, 3);
  for (const query of ["", "?after=1&limit=2"]) {
    const { events, ...envelope } = (await till.events(voucher.code, query)).body;
    const shown = events.map(
      ({ payload, actorConnectedId: _c, actorIsEmployee: _e, ...rest }: Record<string, unknown>) => ({
        ...rest,
        payloadKept: payload !== null,
      }),
    );
    for (const key of ["pvk_nonsense", keys.till.key, ""]) {
      const { status, body, headers } = await publicly(voucher.id, query, { headers: { "x-api-key": key } });
      expect([status, headers.get("content-type")]).toEqual([200, "application/json; charset=utf-8"]);
      expect(body).toStrictEqual({ ...envelope, events: shown });
    }
    await sealVoucher({ pool: servers.db }, voucher.id);
  }
});

const voidIt = (code: string, reason: string | null = null) =>
  voidVoucher(provisioning(servers.db), partner.organizationId, code, reason);

it("the public events contain no code, reference, note, ticket, key or actor", async () => {
  const [voucher] = await issueVouchers(servers.db, partner, 1, { codes: ["PRINTED-SECRET-77"] });
  const { ticket } = (await till.reserve("PRINTED-SECRET-77")).body;
  const redeem = { ticket, externalRef: "public-secret-ref", note: "public-secret-note" };
  const { redeemCode } = (await till.redeem(redeem)).body;
  const voided = await issue();
  await voidIt(voided.code, "public-secret-reason");
  const bodies = [(await publicly(voucher?.id ?? "")).body, (await publicly(voided.id)).body];
  const text = JSON.stringify(bodies).toLowerCase();
  expect(text).toContain("voucher.instance.redeemed");
  expect(text).toContain("voucher.instance.voided");
  for (const secret of [
    ...["printed-secret-77", "printedsecret77", voided.code, voided.code.replaceAll("-", ""), redeemCode, ticket],
    ...[keys.till.id, keys.till.key, "public-secret", "nonce", '"payload"', "actor"],
  ]) {
    expect(text).not.toContain(secret.toLowerCase());
  }
});

it("the public events answer 404 in JSON to an unknown id or entity type, and to a code or ticket as id", async () => {
  const voucher = await issue();
  const { ticket } = (await till.reserve(voucher.code)).body;
  const { rows } = await servers.db.query("SELECT batch_id FROM vouchers WHERE id = $1", [voucher.id]);
  for (const path of [
    `VoucherInstance/${newId("vch")}`,
    `VoucherInstance/${voucher.code}`,
    `VoucherInstance/${ticket}`,
    `VoucherInstance/${rows[0].batch_id}`,
    `VoucherInstance/${voucher.id.toUpperCase()}`,
    `VoucherInstance/${voucher.id}x`,
    `VoucherInstance/${"x".repeat(5_000)}`,
    "VoucherInstance/%00",
    "VoucherInstance/%zz",
    `%ff/${voucher.id}`,
    `voucherinstance/${voucher.id}`,
    `Voucher/${voucher.id}`,
    `%00/${voucher.id}`,
    `__proto__/${voucher.id}`,
  ]) {
    const { status, body } = await send("GET", `${api.url}/integrity/events/${path}`);
    expect({ status, body }, path).toEqual({
      status: 404,
      body: { error: expect.any(String), code: "entity_not_found", requestId: expect.any(String) },
    });
  }
});

const publicly = (id: string, query = "", options: { headers?: Record<string, string> } = {}) =>
  send("GET", `${api.url}/integrity/events/VoucherInstance/${id}${query}`, options);
