import { createHash } from "node:crypto";
import { describe, expect, it, vi } from "vitest";
import { newId } from "../../src/domain/ids.ts";
import { voidVoucher } from "../../src/services/admin/void-voucher.ts";
import { sealVoucher } from "../../src/services/chain/seal-events.ts";
import { send } from "../support/client.ts";
import { verifyServedChain } from "../support/independent-verifier.ts";
import { appendPending as appendPendingEvents } from "../support/pending-events.ts";
import { dumpRows } from "../support/row-dump.ts";
import { issueVoucher, issueVouchers, provisioning } from "../support/supply.ts";
import { useService } from "../support/use-service.ts";

const HASH = /^[0-9a-f]{64}$/;
const TIMESTAMP = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

const { api, servers, partner, stranger, keys, foreign, issue, till } = useService();

const voidIt = (code: string, reason: string | null = null) =>
  voidVoucher(provisioning(servers.db), partner.organizationId, code, reason);
const publicly = (id: string, query = "", options: { headers?: Record<string, string> } = {}) =>
  send("GET", `${api.url}/integrity/events/VoucherInstance/${id}${query}`, options);

const appendPending = (voucherId: string, count: number) => appendPendingEvents(servers.db, voucherId, count);

describe("GET /partner/vouchers/{codeOrTicket}/events", () => {
  it("reads only the page from the database once it has found the voucher; constants are read once per process", async () => {
    const { code, id } = await issue();
    await publicly(id);
    const asked = vi.spyOn(api.ctx.pool, "query");
    try {
      const pages = [await till.events(code), await till.events(code), await publicly(id)];
      const names = asked.mock.calls.map(([statement]) => (statement as unknown as { name: string }).name);
      expect(names.filter((name) => !name.includes("key"))).toEqual([
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

  it("serves a new voucher's chain: an envelope with one sealed event whose previous hash is zeros", async () => {
    const voucher = await issue();
    const { rows } = await servers.db.query("SELECT canon_preserved_since FROM deployment");
    const { status, body } = await till.events(voucher.code);
    expect(status).toBe(200);
    expect(body).toStrictEqual({
      entityType: "VoucherInstance",
      entityId: voucher.id,
      anchorNamespace: "VoucherInstance:events",
      events: [
        {
          sequence: 1,
          eventType: "voucher.instance.issued",
          code: "VCH001",
          occurredAt: expect.stringMatching(TIMESTAMP),
          sealStatus: "Sealed",
          logIndex: null,
          recordHash: expect.stringMatching(HASH),
          previousHash: "0".repeat(64),
          payload: expect.any(String),
          actorConnectedId: null,
          actorIsEmployee: null,
        },
      ],
      canonPreservedSinceUtc: rows[0].canon_preserved_since.toISOString(),
      hasMore: false,
    });
    expect(body.canonPreservedSinceUtc).toMatch(TIMESTAMP);
    expect(verifyServedChain(body.events)).toBeNull();
  });

  it("serves every payload as it was hashed, saying what the event says", async () => {
    const voucher = await issue();
    const { ticket } = (await till.reserve(voucher.code)).body;
    const note = 'Tisch 4 "ü" \u2028 😀';
    await till.redeem({ ticket, externalRef: "chain", note });
    const { body } = await till.events(voucher.code);
    expect(body.events).toHaveLength(2);
    for (const event of body.events) {
      expect(createHash("sha256").update(event.payload, "utf8").digest("hex")).toBe(event.recordHash);
      const said = JSON.parse(event.payload);
      expect(Object.keys(said)).toEqual(Object.keys(said).sort());
      expect(said).toStrictEqual({
        v: 1,
        entityType: "VoucherInstance",
        entityId: voucher.id,
        sequence: event.sequence,
        eventType: event.eventType,
        code: event.code,
        occurredAt: event.occurredAt,
        previousHash: event.previousHash,
        actorConnectedId: event.actorConnectedId,
        actorIsEmployee: event.actorIsEmployee,
        data: said.data,
      });
      expect(said.data.nonce).toMatch(/^[0-9a-f]{32}$/);
    }
    const [issued, redeemed] = body.events;
    expect(redeemed).toMatchObject({
      eventType: "voucher.instance.redeemed",
      code: "VCH004",
      previousHash: issued.recordHash,
      actorConnectedId: keys.till.id,
      actorIsEmployee: null,
    });
    expect(JSON.parse(redeemed.payload).data).toMatchObject({ note, externalRef: "chain", ticket });
    expect(JSON.parse(issued.payload).data.nonce).not.toBe(JSON.parse(redeemed.payload).data.nonce);
    expect(verifyServedChain(body.events)).toBeNull();
  });

  it("answers the same by code in any spelling and by a ticket, live or ended", async () => {
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

  it("serves a Pending event with nulls for its hash, its link and its payload, and completes it once it is sealed", async () => {
    const voucher = await issue();
    await voidIt(voucher.code, "printed twice");
    const pending = (await till.events(voucher.code)).body.events;
    expect(pending).toHaveLength(2);
    expect(pending[1]).toStrictEqual({
      sequence: 2,
      eventType: "voucher.instance.voided",
      code: "VCH005",
      occurredAt: expect.stringMatching(TIMESTAMP),
      sealStatus: "Pending",
      logIndex: null,
      recordHash: null,
      previousHash: null,
      payload: null,
      actorConnectedId: null,
      actorIsEmployee: null,
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
    expect(JSON.parse(sealed[1].payload).data).toMatchObject({ reason: "printed twice", voucherCode: voucher.code });
    expect(verifyServedChain(sealed)).toBeNull();
    // A late seal job finds nothing to do.
    expect(await sealVoucher({ pool: servers.db }, voucher.id)).toBe(0);
    expect((await till.events(voucher.code)).body.events).toEqual(sealed);
  });

  it("serves Pending events that a redeem found as sealed, before its own", async () => {
    const voucher = await issue();
    await appendPending(voucher.id, 2);
    expect((await till.redeem({ code: voucher.code, externalRef: "after-pending" })).status).toBe(200);
    const { events } = (await till.events(voucher.code)).body;
    expect(events.map((event: { code: string }) => event.code)).toEqual(["VCH001", "VCH002", "VCH003", "VCH004"]);
    expect(new Set(events.map((event: { sealStatus: string }) => event.sealStatus))).toEqual(new Set(["Sealed"]));
    expect(events[1]).toMatchObject({ actorConnectedId: "user|0", actorIsEmployee: true });
    expect(events[2]).toMatchObject({ actorConnectedId: "user|1", actorIsEmployee: false });
    expect(verifyServedChain(events)).toBeNull();
  });

  it("pages by after and limit, in order of sequence, and tells in hasMore whether there are more", async () => {
    const voucher = await issue();
    await appendPending(voucher.id, 6);
    await sealVoucher({ pool: servers.db }, voucher.id);
    const all = (await till.events(voucher.code)).body;
    expect(all.events.map((event: { sequence: number }) => event.sequence)).toEqual([1, 2, 3, 4, 5, 6, 7]);
    expect(all.hasMore).toBe(false);

    for (const limit of [1, 2, 3, 6, 7, 1000]) {
      const events: { sequence: number }[] = [];
      for (let more = true; more; ) {
        const { status, body } = await till.events(
          voucher.code,
          `?after=${events.at(-1)?.sequence ?? 0}&limit=${limit}`,
        );
        expect(status).toBe(200);
        expect({ ...body, events: [], hasMore: false }).toEqual({ ...all, events: [] });
        expect(body.events.length).toBe(Math.min(limit, 7 - events.length));
        events.push(...body.events);
        more = body.hasMore;
        expect(more).toBe(events.length < 7);
      }
      expect(events).toEqual(all.events);
    }
  });

  it("serves an empty page after the last event", async () => {
    const voucher = await issue();
    for (const query of ["?after=1", "?after=2147483647", "?after=5&limit=1"]) {
      const { status, body } = await till.events(voucher.code, query);
      expect({ status, events: body.events, hasMore: body.hasMore }).toEqual({
        status: 200,
        events: [],
        hasMore: false,
      });
    }
  });

  it.each([
    ["after", "-1"],
    ["after", "1.5"],
    ["after", "x"],
    ["after", ""],
    ["after", "2147483648"],
    ["after", "99999999999999999999"],
    ["after", "0x1"],
    ["after", "1&after=2"],
    ["limit", "0"],
    ["limit", "1001"],
    ["limit", "-5"],
    ["limit", "1e2"],
    ["limit", "%00"],
    ["limit", "%20"],
    ["limit", "1&limit=1"],
  ])("answers 400 naming %s when it is %j, to partners and to the public alike", async (name, value) => {
    const voucher = await issue();
    for (const { status, body } of [
      await till.events(voucher.code, `?${name}=${value}`),
      await till.events("7Q4K-9MZX-2HTB-W8RC", `?${name}=${value}`),
      await publicly(voucher.id, `?${name}=${value}`),
    ]) {
      expect({ status, code: body.code }).toEqual({ status: 400, code: "invalid_request" });
      expect(body.error).toContain(name);
    }
  });

  it("ignores query parameters that it does not know", async () => {
    const voucher = await issue();
    const plain = (await till.events(voucher.code)).body;
    expect((await till.events(voucher.code, "?before=1&order=desc&after[x]=1&__proto__=1")).body).toEqual(plain);
  });

  it("answers the common 404 for foreign and unknown vouchers", async () => {
    const theirs = await issueVoucher(servers.db, stranger);
    const { ticket } = (await foreign.reserve(theirs.code)).body;
    const bodies = new Set<string>();
    for (const named of [theirs.code, ticket, theirs.id, "7Q4K-9MZX-2HTB-W8RC", newId("rsv"), "?", "\0"]) {
      const { status, body } = await till.events(named);
      expect({ status, code: body.code }).toEqual({ status: 404, code: "voucher_not_found" });
      const { requestId: _, ...rest } = body;
      bodies.add(JSON.stringify(rest));
    }
    expect(bodies.size).toBe(1);
  });

  it("changes nothing, not even a Pending event", async () => {
    const voucher = await issue();
    await appendPending(voucher.id, 1);
    const before = await dumpRows(servers.db);
    await till.events(voucher.code);
    await publicly(voucher.id);
    expect(await dumpRows(servers.db)).toEqual(before);
    await sealVoucher({ pool: servers.db }, voucher.id);
  });
});

describe("GET /integrity/events/{entityType}/{entityId}", () => {
  it("serves the chain without payloads and actors to anyone, without a key", async () => {
    const voucher = await issue();
    await till.redeem({ code: voucher.code, externalRef: "public" });
    const full = (await till.events(voucher.code)).body;
    const { status, body, headers } = await publicly(voucher.id);
    expect(status).toBe(200);
    expect(headers.get("content-type")).toBe("application/json; charset=utf-8");
    expect(body).toStrictEqual({
      ...full,
      events: full.events.map(
        ({ payload: _p, actorConnectedId: _c, actorIsEmployee: _e, ...shown }: Record<string, unknown>) => shown,
      ),
    });
  });

  it("lets the links be checked: each previousHash is the recordHash before, the first one zeros", async () => {
    const voucher = await issue();
    await appendPending(voucher.id, 3);
    await sealVoucher({ pool: servers.db }, voucher.id);
    const { events } = (await publicly(voucher.id)).body;
    let previous = "0".repeat(64);
    for (const event of events) {
      expect(event.previousHash).toBe(previous);
      previous = event.recordHash;
    }
    expect(events).toHaveLength(4);
  });

  it("contains no code, reference, note, ticket, key or actor", async () => {
    const [voucher] = await issueVouchers(servers.db, partner, 1, { codes: ["PRINTED-SECRET-77"] });
    const { ticket } = (await till.reserve("PRINTED-SECRET-77")).body;
    const { redeemCode } = (await till.redeem({ ticket, externalRef: "public-secret-ref", note: "public-secret-note" }))
      .body;
    const voided = await issue();
    await voidIt(voided.code, "public-secret-reason");
    const text = JSON.stringify([
      (await publicly(voucher?.id ?? "")).body,
      (await publicly(voided.id)).body,
    ]).toLowerCase();
    expect(text).toContain("voucher.instance.redeemed");
    expect(text).toContain("pending");
    for (const secret of [
      "printed-secret-77",
      "printedsecret77",
      voided.code,
      voided.code.replaceAll("-", ""),
      redeemCode,
      ticket,
      keys.till.id,
      keys.till.key,
      "public-secret",
      "nonce",
      "payload",
      "actor",
    ]) {
      expect(text).not.toContain(secret.toLowerCase());
    }
  });

  it("serves a Pending event with nulls, and the same event sealed later", async () => {
    const voucher = await issue();
    await voidIt(voucher.code);
    expect((await publicly(voucher.id)).body.events[1]).toStrictEqual({
      sequence: 2,
      eventType: "voucher.instance.voided",
      code: "VCH005",
      occurredAt: expect.stringMatching(TIMESTAMP),
      sealStatus: "Pending",
      logIndex: null,
      recordHash: null,
      previousHash: null,
    });
    await sealVoucher({ pool: servers.db }, voucher.id);
    expect((await publicly(voucher.id)).body.events[1]).toMatchObject({
      sealStatus: "Sealed",
      recordHash: expect.stringMatching(HASH),
      previousHash: expect.stringMatching(HASH),
    });
  });

  it("pages like the partners' endpoint", async () => {
    const voucher = await issue();
    await appendPending(voucher.id, 2);
    await sealVoucher({ pool: servers.db }, voucher.id);
    const all = (await publicly(voucher.id)).body;
    const first = (await publicly(voucher.id, "?limit=2")).body;
    expect(first).toEqual({ ...all, events: all.events.slice(0, 2), hasMore: true });
    expect((await publicly(voucher.id, "?limit=2&after=2")).body).toEqual({ ...all, events: all.events.slice(2) });
  });

  it("answers the same with any key or none", async () => {
    const voucher = await issue();
    const plain = (await publicly(voucher.id)).body;
    for (const key of ["pvk_nonsense", keys.till.key, ""]) {
      const { status, body } = await publicly(voucher.id, "", { headers: { "x-api-key": key } });
      expect({ status, body }).toEqual({ status: 200, body: plain });
    }
  });

  it("answers 404 in JSON for an unknown id and for an unknown type, and never for a code or a ticket", async () => {
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
      "VoucherInstance/%C3%A9",
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

  it("answers the same 404 for an id or a type that cannot be decoded", async () => {
    const voucher = await issue();
    for (const path of ["VoucherInstance/%zz", "VoucherInstance/%ff", `%zz/${voucher.id}`]) {
      const { status, body } = await send("GET", `${api.url}/integrity/events/${path}`);
      expect({ status, code: body.code }, path).toEqual({ status: 404, code: "entity_not_found" });
    }
  });
});
