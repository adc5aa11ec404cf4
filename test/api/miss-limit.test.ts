import { describe, expect, it } from "vitest";
import { type PartnerClient, partnerClient, type Reply } from "../support/client.ts";
import { countOutcomes } from "../support/marketplace.ts";
import { monitorRedis } from "../support/redis-monitor.ts";
import { itOnOneRedis } from "../support/servers.ts";
import { startApi } from "../support/service.ts";
import { issueVoucher, issueVouchers, makeKey, makePartner } from "../support/supply.ts";
import { openTcpProxy } from "../support/tcp-proxy.ts";
import { useService } from "../support/use-service.ts";

const LIMIT = 20;

const service = useService({ apis: [{}, {}], env: { MISS_LIMIT_PER_MINUTE: String(LIMIT) } });
const { api, servers, partner } = service;
const other = service.apis[1];

/** Codes that name nothing: they lack a symbol. */
const UNKNOWN = "7Q4K-9MZX-2HTB-W8R";

/** The clients of one new key at both processes. */
async function newClients(): Promise<[PartnerClient, PartnerClient]> {
  const { key } = await makeKey(servers.db, partner.organizationId);
  return [partnerClient(api.url, key), partnerClient(other.url, key)];
}

/** Misses until look-ups by code are refused. */
async function useUp(client: PartnerClient): Promise<void> {
  const replies = await Promise.all(Array.from({ length: 3 * LIMIT }, () => client.lookUp(UNKNOWN)));
  expect(countOutcomes(replies)["404 voucher_not_found"]).toBe(LIMIT);
}

function withoutId({ status, headers, body }: Reply) {
  const { requestId, ...rest } = body;
  const fields = Object.fromEntries(headers);
  return { status, rest, fields: { ...fields, date: null, "x-request-id": null, "retry-after": null } };
}

describe("codes that do not exist", () => {
  it("may be tried up to the limit by a key; then no code is looked up for it", async () => {
    const [client] = await newClients();
    const { code } = await issueVoucher(servers.db, partner);
    await useUp(client);
    const calls: [string, () => Promise<Reply>][] = [
      ["look-up", () => client.lookUp(code)],
      ["events", () => client.events(code)],
      ["reserve", () => client.reserve(code)],
      ["redeem", () => client.redeem({ code, externalRef: "over" })],
    ];
    for (const [what, call] of calls) {
      const { status, headers, body } = await call();
      expect({ what, status, code: body.code }).toEqual({ what, status: 429, code: "too_many_misses" });
      expect(body).toStrictEqual({
        error: expect.stringMatching(/^[A-Z].*\.$/),
        code: "too_many_misses",
        requestId: expect.any(String),
      });
      const seconds = Number(headers.get("retry-after"));
      expect(seconds).toBeGreaterThan(0);
      expect(seconds).toBeLessThanOrEqual(60);
    }
  });

  it("count on every route", async () => {
    const [client] = await newClients();
    const calls = [
      () => client.lookUp(UNKNOWN),
      () => client.events(UNKNOWN),
      () => client.reserve(UNKNOWN),
      () => client.redeem({ code: UNKNOWN, externalRef: "way" }),
    ];
    for (let i = 0; i < LIMIT; i++) expect((await calls[i % calls.length]?.())?.status).toBe(404);
    for (const call of calls) expect((await call()).body.code).toBe("too_many_misses");
  });

  it("count alike whether they are unknown or another organization's", async () => {
    const stranger = await makePartner(servers.db);
    const foreign = await issueVouchers(servers.db, stranger, LIMIT);
    const [client] = await newClients();
    for (const { code } of foreign) expect((await client.lookUp(code)).status).toBe(404);
    expect((await client.lookUp(UNKNOWN)).body.code).toBe("too_many_misses");
  });

  it("get the same answer over the limit as those that exist, byte for byte", async () => {
    const [client] = await newClients();
    const { code } = await issueVoucher(servers.db, partner);
    const stranger = await issueVoucher(servers.db, await makePartner(servers.db));
    await useUp(client);
    for (const call of [
      (name: string) => client.lookUp(name),
      (name: string) => client.events(name),
      (name: string) => client.reserve(name),
      (name: string) => client.redeem({ code: name, externalRef: "oracle" }),
    ]) {
      const answers = [await call(code), await call(stranger.code), await call(UNKNOWN)].map(withoutId);
      expect(answers[1]).toEqual(answers[0]);
      expect(answers[2]).toEqual(answers[0]);
    }
  });

  it("count against the guessing key only: other keys of the organization still work", async () => {
    const [guesser] = await newClients();
    const [honest] = await newClients();
    const { code } = await issueVoucher(servers.db, partner);
    await useUp(guesser);
    expect((await guesser.lookUp(code)).status).toBe(429);
    expect((await honest.lookUp(code)).status).toBe(200);
    expect((await honest.redeem({ code, externalRef: "honest" })).status).toBe(200);
  });

  it("do not slip through in a burst, at one process or at two", async () => {
    const clients = await newClients();
    const replies = await Promise.all(
      clients.flatMap((client) => Array.from({ length: 150 }, () => client.lookUp(UNKNOWN))),
    );
    expect(countOutcomes(replies)).toEqual({ "404 voucher_not_found": LIMIT, "429 too_many_misses": 300 - LIMIT });
    const { code } = await issueVoucher(servers.db, partner);
    for (const client of clients) expect((await client.lookUp(code)).status).toBe(429);
  });

  it("after the limit is reached at one process, the other process refuses the key from its first miss on, without revealing that miss", async () => {
    const [here, there] = await newClients();
    const { code } = await issueVoucher(servers.db, partner);
    await useUp(here);
    expect((await there.lookUp(code)).status).toBe(200);
    expect((await there.lookUp(UNKNOWN)).body.code).toBe("too_many_misses");
    expect((await there.lookUp(code)).body.code).toBe("too_many_misses");
  });

  it("do not reveal a code that follows them in a burst", async () => {
    const [client] = await newClients();
    const { code } = await issueVoucher(servers.db, partner);
    const names = Array.from({ length: 200 }, (_, n) => (n === 150 ? code : UNKNOWN));
    const replies = await Promise.all(names.map((name) => client.reserve(name)));
    const { "404 voucher_not_found": misses, "200": hits = 0 } = countOutcomes(replies);
    expect(misses).toBe(LIMIT);
    // The server may meet them in any order, but a hit is answered only before the last permitted miss.
    if (hits === 0) expect(replies[150]?.body.code).toBe("too_many_misses");
    const { rows } = await servers.db.query(
      "SELECT count(*)::int AS reservations FROM reservations AS r JOIN vouchers AS v ON v.id = r.voucher_id WHERE v.code = $1",
      [code],
    );
    expect(rows).toEqual([{ reservations: hits }]);
  });

  itOnOneRedis("are counted while Redis is away, by each process for itself", async () => {
    const proxy = await openTcpProxy(servers.redisUrl);
    const cut = await startApi({ ...servers, redisUrl: proxy.url }, { MISS_LIMIT_PER_MINUTE: String(LIMIT) });
    try {
      const { code } = await issueVoucher(servers.db, partner);
      for (const fault of ["cut", "jam"] as const) {
        const { key } = await makeKey(servers.db, partner.organizationId);
        const client = partnerClient(cut.url, key);
        proxy[fault]();
        expect((await client.lookUp(code)).status).toBe(200);
        await useUp(client);
        expect((await client.lookUp(code)).status).toBe(429);
        proxy.mend();
      }
    } finally {
      proxy.mend();
      await cut.close();
      await proxy.close();
    }
  });
});

describe("a key that has missed too often", () => {
  it("still uses tickets: look-up, events, redeem and release", async () => {
    const [client] = await newClients();
    const [kept, given] = await issueVouchers(servers.db, partner, 2);
    const held = [(await client.reserve(kept?.code ?? "")).body, (await client.reserve(given?.code ?? "")).body];
    await useUp(client);
    const [ticket, spare] = held.map((reservation) => reservation.ticket);
    expect((await client.lookUp(ticket)).status).toBe(200);
    expect((await client.events(ticket)).status).toBe(200);
    expect((await client.reserve(ticket)).body).toEqual(held[0]);
    expect((await client.redeem({ ticket, externalRef: "by ticket" })).status).toBe(200);
    expect((await client.release(spare)).body).toEqual({ released: true });
    expect((await client.lookUp("rsv_unknown")).status).toBe(404);
  });

  it("still gets retries of its redemptions confirmed, by any code", async () => {
    const [client] = await newClients();
    const { code } = await issueVoucher(servers.db, partner);
    const first = await client.redeem({ code, externalRef: "redeemed before" });
    expect(first.status).toBe(200);
    await useUp(client);
    const retry = async (name: string) => (await client.redeem({ code: name, externalRef: "redeemed before" })).body;
    expect(await retry(code)).toEqual({ ...first.body, alreadyConfirmed: true });
    expect(await retry(UNKNOWN)).toEqual({ ...first.body, alreadyConfirmed: true, otherVoucher: true });
  });

  it("redeems nothing by code until the minute is over", async () => {
    const [client] = await newClients();
    const { code, id } = await issueVoucher(servers.db, partner);
    await useUp(client);
    expect((await client.redeem({ code, externalRef: "too early" })).status).toBe(429);
    const { rows } = await servers.db.query("SELECT status FROM vouchers WHERE id = $1", [id]);
    expect(rows).toEqual([{ status: "Active" }]);
  });
});

describe("what is not a miss", () => {
  it("look-ups of existing codes never count as misses in any status of the voucher, and make no Redis call", async () => {
    const monitor = await monitorRedis(servers.redisUrl);
    const [client] = await newClients();
    const { code } = await issueVoucher(servers.db, partner);
    const replies = await Promise.all(Array.from({ length: 10 * LIMIT }, () => client.lookUp(code)));
    expect(countOutcomes(replies)).toEqual({ "200": 10 * LIMIT });
    expect(await monitor.count("limit:")).toBe(0);
    await client.redeem({ code, externalRef: "hit" });
    for (let i = 0; i < 2 * LIMIT; i++) {
      expect((await client.redeem({ code, externalRef: `again ${i}` })).body.code).toBe("voucher_used");
    }
    monitor.close();
  });

  it("is an unknown ticket, or a retry of a confirmed reference with an unknown code", async () => {
    const [client] = await newClients();
    const { code } = await issueVoucher(servers.db, partner);
    await client.redeem({ code, externalRef: "confirmed" });
    for (let i = 0; i < 2 * LIMIT; i++) {
      expect((await client.lookUp(`rsv_${i}`)).status).toBe(404);
      expect((await client.redeem({ code: UNKNOWN, externalRef: "confirmed" })).status).toBe(200);
    }
    expect((await client.lookUp(code)).status).toBe(200);
  });

  it("MISS_LIMIT_PER_MINUTE=0 turns the miss limit off", async () => {
    const off = await startApi(servers);
    const client = partnerClient(off.url, (await makeKey(servers.db, partner.organizationId)).key);
    const replies = await Promise.all(Array.from({ length: 200 }, () => client.lookUp(UNKNOWN)));
    expect(countOutcomes(replies)).toEqual({ "404 voucher_not_found": 200 });
    await off.close();
  });
});
