import { expect, it } from "vitest";
import { type PartnerClient, partnerClient, type Reply } from "../../support/client.ts";
import { countOutcomes } from "../../support/marketplace.ts";
import { monitorRedis } from "../../support/redis-monitor.ts";
import { dumpRows } from "../../support/row-dump.ts";
import { issueVoucher, issueVouchers, makeKey } from "../../support/supply.ts";
import { useService } from "../../support/use-service.ts";

const LIMIT = 20;

const service = useService({ apis: [{}, {}], env: { MISS_LIMIT_PER_MINUTE: String(LIMIT) } });
const { api, servers, partner } = service;
const other = service.apis[1];

/** Codes that belong to no voucher, because they lack a symbol. */
const UNKNOWN = "7Q4K-9MZX-2HTB-W8R";

it("a key may try unknown codes up to the limit, and then the service looks up none of its codes", async () => {
  const [client] = await newClients();
  const { code } = await service.issue();
  await useUp(client);
  const before = await dumpRows(servers.db);
  for (const call of callsWith(client)) {
    const { status, headers, body } = await call(code);
    expect(status).toBe(429);
    expect(body).toStrictEqual({
      error: expect.stringMatching(/^[A-Z].*\.$/),
      code: "too_many_misses",
      requestId: expect.any(String),
    });
    const seconds = Number(headers.get("retry-after"));
    expect(seconds).toBeGreaterThan(0);
    expect(seconds).toBeLessThanOrEqual(60);
  }
  expect(await dumpRows(servers.db)).toEqual(before);
});

it("a text that cannot be a code does not count as an unknown code", async () => {
  const [client] = await newClients();
  const { code } = await service.issue();
  const replies = await Promise.all(Array.from({ length: 3 * LIMIT }, () => client.lookUp(`${code}\u0301`)));
  expect(countOutcomes(replies)).toEqual({ "404 voucher_not_found": 3 * LIMIT });
  expect((await client.lookUp(`${code}\r\n`)).status).toBe(200);
});

it("a scanner with another keyboard layout finds vouchers, and counts no unknown code", async () => {
  const [client] = await newClients();
  const scan = (code: string) =>
    Array.from(code, (symbol) => ({ Y: "Z", Z: "Y", "-": "\u00df" })[symbol] ?? symbol).join("");
  const [first, ...others] = await issueVouchers(servers.db, partner, LIMIT + 1);
  for (const { id, code } of others) expect((await client.lookUp(scan(code))).body.voucher?.id).toBe(id);
  // Two keyboard layouts turn `YZAW00YMQZYA1234` into different valid codes.
  const [ambiguous] = await issueVouchers(servers.db, partner, 1, { codes: ["YWQZ00YMAWYQ1234"] });
  expect((await client.lookUp("YZAW00YMQZYA1234")).body.voucher?.id).toBe(ambiguous?.id);
  const order = { code: scan(first?.code ?? ""), externalRef: "scanned" };
  const redeemed = await client.redeem(order);
  expect(redeemed.body).toMatchObject({ redeemed: true, voucherInstanceId: first?.id });
  const theirs = scan((await issueVoucher(servers.db, service.stranger)).code);
  for (let i = 0; i < LIMIT; i++) expect((await client.lookUp(theirs)).body.code).toBe("voucher_not_found");
  expect((await client.lookUp(theirs)).body.code).toBe("too_many_misses");
  expect((await client.redeem(order)).body).toEqual({ ...redeemed.body, alreadyConfirmed: true });
});

it("every route reports a keyboard layout that makes a code unreadable, and counts no unknown code", async () => {
  const [client] = await newClients();
  for (let round = 0; round < LIMIT; round++)
    for (const call of callsWith(client))
      expect((await call("SALE\u00df2026")).body).toMatchObject({
        code: "voucher_not_found",
        error: expect.stringMatching(/keyboard layout of this device differs from that of the scanner/),
      });
  expect((await client.lookUp(UNKNOWN)).body.error).toMatch(/^None of your vouchers has this code/);
});

it("unknown codes count on every route, and so do other organizations' codes", async () => {
  const [client] = await newClients();
  const calls = callsWith(client);
  const foreign = await issueVouchers(servers.db, service.stranger, LIMIT);
  for (const [i, { code }] of foreign.entries()) {
    expect((await calls[i % calls.length]?.(i % 8 < 4 ? code : UNKNOWN))?.status).toBe(404);
  }
  for (const call of calls) expect((await call(UNKNOWN)).body.code).toBe("too_many_misses");
});

it("over the limit of unknown codes, existing codes get the same bytes as unknown codes", async () => {
  const [client] = await newClients();
  const codes = [(await service.issue()).code, (await issueVoucher(servers.db, service.stranger)).code, UNKNOWN];
  await useUp(client);
  for (const call of callsWith(client)) {
    const answers = new Set<string>();
    for (const code of codes) {
      const { status, headers, body } = await call(code);
      const kept = [...headers].filter(([name]) => !["date", "x-request-id", "retry-after"].includes(name));
      answers.add(JSON.stringify([status, kept, { ...body, requestId: "" }]));
    }
    expect(answers.size).toBe(1);
  }
});

it("unknown codes count only for the key that sends them", async () => {
  const [[guesser], [honest]] = [await newClients(), await newClients()];
  const { code } = await service.issue();
  await useUp(guesser);
  expect((await guesser.lookUp(code)).status).toBe(429);
  expect((await honest.redeem({ code, externalRef: "honest" })).status).toBe(200);
});

it("a burst of unknown codes does not reveal a valid code after them", async () => {
  const [client] = await newClients();
  const { code } = await service.issue();
  const names = Array.from({ length: 200 }, (_, n) => (n === 150 ? code : UNKNOWN));
  const replies = await Promise.all(names.map((name) => client.reserve(name)));
  const { "404 voucher_not_found": misses, "200": hits = 0 } = countOutcomes(replies);
  expect(misses).toBe(LIMIT);
  // The server may process the calls in any order, so the valid code may come after the last permitted miss.
  if (hits === 0) expect(replies[150]?.body.code).toBe("too_many_misses");
  const { rows } = await servers.db.query(
    `SELECT count(*)::int AS reservations
       FROM reservations AS r JOIN vouchers AS v ON v.id = r.voucher_id WHERE v.code = $1`,
    [code],
  );
  expect(rows).toEqual([{ reservations: hits }]);
});

it("a key over the limit of unknown codes can use tickets to look up, read events, redeem and release", async () => {
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

it("existing codes never count as unknown, even if redeemed, and cause no count in Redis", async () => {
  const monitor = await monitorRedis(servers.redisUrl);
  const [client] = await newClients();
  const { code } = await service.issue();
  const replies = await Promise.all(Array.from({ length: 10 * LIMIT }, () => client.lookUp(code)));
  expect(countOutcomes(replies)).toEqual({ "200": 10 * LIMIT });
  expect(await monitor.count("limit:")).toBe(0);
  await client.redeem({ code, externalRef: "hit" });
  for (let i = 0; i < 2 * LIMIT; i++) {
    expect((await client.redeem({ code, externalRef: `again ${i}` })).body.code).toBe("voucher_used");
  }
  monitor.close();
});

it("neither an unknown ticket nor a retry of a redeemed reference counts as an unknown code", async () => {
  const [client] = await newClients();
  const { code } = await service.issue();
  await client.redeem({ code, externalRef: "confirmed" });
  for (let i = 0; i < 2 * LIMIT; i++) {
    expect((await client.lookUp(`rsv_${i}`)).status).toBe(404);
    expect((await client.redeem({ code: UNKNOWN, externalRef: "confirmed" })).status).toBe(200);
  }
  expect((await client.lookUp(code)).status).toBe(200);
});

it("MISS_LIMIT_PER_MINUTE=0 disables the limit of unknown codes", async () => {
  const off = await service.startApi({ MISS_LIMIT_PER_MINUTE: "0" });
  const client = partnerClient(off.url, (await makeKey(servers.db, partner.organizationId)).key);
  const replies = await Promise.all(Array.from({ length: 200 }, () => client.lookUp(UNKNOWN)));
  expect(countOutcomes(replies)).toEqual({ "404 voucher_not_found": 200 });
});

async function newClients(): Promise<[PartnerClient, PartnerClient]> {
  const { key } = await makeKey(servers.db, partner.organizationId);
  return [partnerClient(api.url, key), partnerClient(other.url, key)];
}

/** Returns every call that looks up a code. */
const callsWith = (client: PartnerClient): ((code: string) => Promise<Reply>)[] => [
  client.lookUp,
  client.events,
  client.reserve,
  (code) => client.redeem({ code, externalRef: "by code" }),
];

/** Looks up unknown codes until the API refuses look-ups by code. */
async function useUp(client: PartnerClient): Promise<void> {
  const replies = await Promise.all(Array.from({ length: 3 * LIMIT }, () => client.lookUp(UNKNOWN)));
  expect(countOutcomes(replies)["404 voucher_not_found"]).toBe(LIMIT);
}
