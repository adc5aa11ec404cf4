import { describe, expect, it } from "vitest";
import type { AcquisitionOutcome, AcquisitionRequest } from "../../src/marketplace/decide-acquisitions.ts";
import { partnerClient, type Reply, untilDecided } from "../support/client.ts";
import { assertInvariants } from "../support/invariants.ts";
import {
  countOutcomes,
  inSeconds,
  type MarketClient,
  makeContract,
  makeOffer,
  makeReferral,
  newPayment,
  newUser,
  type Offered,
  offerBatch,
  outcome,
  readAcquisitions,
  signedIn,
} from "../support/marketplace.ts";
import {
  besideTransaction,
  bypassTriggers,
  databaseTime,
  LOCK_WAIT_MS,
  lockRows,
  untilPast,
  untilWaiting,
  untilWaitingOr,
  whileLocked,
} from "../support/outside-transaction.ts";
import { readRecorded } from "../support/recorded.ts";
import { dumpRows } from "../support/row-dump.ts";
import type { TestApi } from "../support/service.ts";
import { makeKey, makePartner, provisioning, type TestPartner } from "../support/supply.ts";
import { inTime, until } from "../support/until.ts";
import { useService } from "../support/use-service.ts";
import { voidVoucher } from "../support/void-voucher.ts";

const service = useService({ apis: [{}, {}], users: true });
const { servers, api, apis, issuer: key } = service;

/** Returns the client of a user. The clients use the two APIs in turn. */
let turn = 0;
const as = (userId?: string) => signedIn((apis[turn++ % 2] as TestApi).url, key, userId);

/** Runs `work` while an offer's rows are locked. Returns null if that took longer than a claim waits for a lock. */
const whileBrieflyLocked = <T>(offer: Offered, work: () => Promise<T>) =>
  inTime(LOCK_WAIT_MS, () => whileLocked(servers.db, idsOf(offer), work));

const idsOf = ({ vouchers }: Offered) => vouchers.map(({ id }) => id);

describe("simultaneous claims and buys of many users", () => {
  it("100 simultaneous buyers get each of 20 vouchers once, and the other 80 get 409 sold_out", async () => {
    const offer = await makeOffer(servers.db, 20);
    const buyers = await crowd(100);
    const replies = await Promise.all(
      buyers.map((buyer) => {
        const payment = { paymentRef: newPayment() };
        return untilDecided(() => buyer.buyListing(offer.listingId, payment));
      }),
    );
    expect(countOutcomes(replies)).toEqual({ "200": 20, "409 sold_out": 80 });
    expect(acquired(replies).toSorted()).toEqual(idsOf(offer).toSorted());
    const acquisitions = await readAcquisitions(servers.db, idsOf(offer));
    expect(acquisitions).toHaveLength(20);
    expect(new Set(acquisitions.map(({ userId }) => userId)).size).toBe(20);
  });

  it("simultaneous claims and buys give out each voucher once, the earliest expiry first", async () => {
    const partner = await makePartner(servers.db);
    const late = await offerBatch(servers.db, partner, 20, { validUntil: inSeconds(7_200) });
    const soon = await offerBatch(servers.db, partner, 40, { validUntil: inSeconds(3_600) });
    const { code } = await makeReferral(servers.db, partner);
    const users = await crowd(30);
    const first = await Promise.all(
      users.map((user, n) => {
        const payment = { paymentRef: newPayment() };
        return untilDecided(() =>
          n % 3 === 0
            ? user.claimByLink(code)
            : n % 3 === 1
              ? user.claimProduct(partner.productId)
              : user.buyProduct(partner.productId, payment),
        );
      }),
    );
    expect(countOutcomes(first)).toEqual({ "200": 30 });
    expect(new Set(acquired(first)).size).toBe(30);
    for (const id of acquired(first)) expect(idsOf(soon)).toContain(id);
    const payments = (await crowd(50)).map((user) => ({ user, payment: { paymentRef: newPayment() } }));
    const buy = ({ user, payment }: (typeof payments)[number]) =>
      untilDecided(() => user.buyProduct(partner.productId, payment));
    const rest = await Promise.all(payments.map(buy));
    expect(countOutcomes(rest)).toEqual({ "200": 30, "409 sold_out": 20 });
    expect([...acquired(first), ...acquired(rest)].toSorted()).toEqual([...idsOf(soon), ...idsOf(late)].toSorted());
  });
});

describe("simultaneous calls of one user", () => {
  it.each([
    "claims of one product",
    "buys with one payment",
  ])("50 simultaneous %s of one user give one voucher, and all but one answer alreadyConfirmed", async (what) => {
    const offer = await makeOffer(servers.db, 50);
    const another = { ...offer, ...(await offerBatch(servers.db, offer, 50)) };
    const { code } = await makeReferral(servers.db, offer);
    const user = newUser();
    const clients = [await as(user), await as(user)];
    const body = { paymentRef: newPayment() };
    const replies = await Promise.all(
      Array.from({ length: 50 }, (_, n) => {
        const client = clients[n % 2] as MarketClient;
        const { listingId, productId } = n % 4 < 2 ? offer : another;
        return untilDecided(() => {
          if (what.startsWith("claims"))
            return n % 5 === 0 ? client.claimByLink(code) : client.claimProduct(offer.productId);
          return n % 2 === 0 ? client.buyListing(listingId, body) : client.buyProduct(productId, body);
        });
      }),
    );
    expect(countOutcomes(replies)).toEqual({ "200": 50 });
    expect(new Set(acquired(replies)).size).toBe(1);
    expect(replies.filter(({ body }) => !body.alreadyConfirmed)).toHaveLength(1);
    expect(await readAcquisitions(servers.db, [...idsOf(offer), ...idsOf(another)])).toHaveLength(1);
  });

  it("a repeated claim waits for the first claim and gets the same voucher, even if no other is left", async () => {
    const user = newUser();
    const [one, other] = [await as(user), await as(user)];
    const { offer, calls } = await until(async () => {
      const offer = await makeOffer(servers.db, 1);
      return whileBrieflyLocked(offer, async () => {
        const calls = [one.claimProduct(offer.productId), other.claimProduct(offer.productId)];
        return (await untilWaitingOr(Promise.race(calls), servers.db, 2, "api")) && { offer, calls };
      });
    });
    const replies = await Promise.all(calls);
    expect(acquired(replies)).toEqual([...idsOf(offer), ...idsOf(offer)]);
    expect(replies.map(({ body }) => body.alreadyConfirmed).toSorted()).toEqual([false, true]);
  });

  it("a buy that waits for another call with the same payment gets a voucher if that call rolls back", async () => {
    const offer = await makeOffer(servers.db, 1, { audience: "ReferrerOnly" });
    const another = await offerBatch(servers.db, offer, 1, { windows: {} });
    const user = newUser();
    const client = await as(user);
    const body = { paymentRef: newPayment() };
    await makeContract(servers.db, offer.brandId, user);
    const { calls } = await besideTransaction(servers.db, async (outside) => {
      await outside.query(
        "INSERT INTO purchases (organization_id, user_id, payment_ref, voucher_id) VALUES ($1, $2, $3, $4)",
        [offer.organizationId, user, body.paymentRef, another.vouchers[0]?.id],
      );
      const calls = [client.buyListing(offer.listingId, body)];
      await untilWaiting(servers.db, 1, "api");
      return { calls };
    });
    expect(await calls[0]).toMatchObject({ status: 200, body: { alreadyConfirmed: false } });
  });
});

describe("a reserve and a buy of the same voucher", () => {
  it.each([
    1, 2,
  ])("a buy that waits for a voucher's reservation gets the next of %i vouchers, if any", async (count) => {
    const buyer = await as();
    const { offer, reserve, buy } = await until(async () => {
      const offer = await makeOffer(servers.db, count);
      const till = await makeTill(offer);
      return whileBrieflyLocked(offer, async () => {
        const reserve = till.reserve(offer.vouchers[0]?.code ?? "");
        if (!(await untilWaitingOr(reserve, servers.db, 1, "api"))) return null;
        const buy = buyer.buyListing(offer.listingId);
        return (await untilWaitingOr(Promise.race([reserve, buy]), servers.db, 2, "api")) && { offer, reserve, buy };
      });
    });
    const [voucher, next] = offer.vouchers;
    expect(await reserve).toMatchObject({ status: 200 });
    if (next === undefined) expect(outcome(await buy)).toBe("409 sold_out");
    else expect((await buy).body.voucher.id).toBe(next.id);
    expect((await readRecorded(servers.db, voucher?.id ?? "")).liveTicket).toBe((await reserve).body.ticket);
  });

  it("a buy never gets a voucher that a simultaneous call has reserved", async () => {
    const offers = await Promise.all(Array.from({ length: 10 }, () => makeOffer(servers.db, 1)));
    const tills = await Promise.all(offers.map(makeTill));
    const buyers = await crowd(10);
    await Promise.all(
      offers.map(async (offer, n) => {
        const calls = [
          () => tills[n]?.reserve(offer.vouchers[0]?.code ?? "") as Promise<Reply>,
          () => buyers[n]?.buyListing(offer.listingId) as Promise<Reply>,
        ];
        const replies = await Promise.all((n % 2 === 0 ? calls : calls.toReversed()).map((call) => call()));
        const [reserve, buy] = n % 2 === 0 ? replies : replies.toReversed();
        // A till may reserve a bought voucher, so a reserve always succeeds here.
        expect(reserve?.status).toBe(200);
        expect(["200", "409 sold_out"]).toContain(outcome(buy as Reply));
      }),
    );
    // The invariants forbid an acquisition of a reserved voucher.
    await assertInvariants(servers.db);
  });
});

it("a claim or purchase has the same time as its event", async () => {
  const offer = await makeOffer(servers.db, 2);
  const user = await as();
  expect(await user.claimProduct(offer.productId)).toMatchObject({ status: 200 });
  expect(await user.buyListing(offer.listingId)).toMatchObject({ status: 200 });
  const { rows } = await servers.db.query(
    `SELECT a.at = e.occurred_at AS equal
       FROM (SELECT voucher_id, claimed_at AS at FROM claims UNION ALL SELECT voucher_id, bought_at FROM purchases) AS a
       JOIN voucher_events AS e ON e.voucher_id = a.voucher_id AND e.sequence = 2
      WHERE a.voucher_id = ANY ($1)`,
    [idsOf(offer)],
  );
  expect(rows).toEqual([{ equal: true }, { equal: true }]);
});

it("a buy skips locked vouchers while unlocked vouchers are left", async () => {
  const offer = await makeOffer(servers.db, 3);
  const ids = idsOf(offer);
  await whileLocked(servers.db, ids.slice(0, 2), async () => {
    expect(acquired([await (await as()).buyListing(offer.listingId)])).toEqual(ids.slice(2));
  });
});

it("a buy that finds only locked vouchers waits, and gets the first voucher that is unlocked", async () => {
  const offer = await makeOffer(servers.db, 1);
  const buyer = await as();
  const { buy } = await whileLocked(servers.db, idsOf(offer), async () => {
    const buy = buyer.buyListing(offer.listingId);
    await untilWaiting(servers.db, 1, "api");
    return { buy };
  });
  expect(acquired([await buy])).toEqual(idsOf(offer));
});

it("a buy that waits for locked vouchers answers sold_out if other calls acquire these vouchers", async () => {
  const offer = await makeOffer(servers.db, 2);
  const buyer = await as();
  const buy = await besideTransaction(servers.db, async (outside) => {
    await lockRows(outside, idsOf(offer));
    await outside.query("UPDATE vouchers SET status = 'Voided', pickable = false WHERE id = ANY ($1)", [idsOf(offer)]);
    const buy = { reply: buyer.buyListing(offer.listingId) };
    await untilWaiting(servers.db, 1, "api");
    await outside.query("COMMIT");
    return buy;
  });
  expect(outcome(await buy.reply)).toBe("409 sold_out");
});

it("a buy answers 503 voucher_busy and writes nothing if the last vouchers stay locked", async () => {
  const offer = await makeOffer(servers.db, 1);
  const buyer = await as();
  const body = { paymentRef: newPayment() };
  const before = await dumpRows(servers.db);
  await whileLocked(servers.db, idsOf(offer), async () => {
    const reply = await buyer.buyListing(offer.listingId, body);
    expect(outcome(reply)).toBe("503 voucher_busy");
    expect(Number(reply.headers.get("retry-after"))).toBeGreaterThan(0);
  });
  expect((await dumpRows(servers.db, ["purchases", "voucher_events"])).purchases).toEqual(before.purchases);
  expect(await buyer.buyListing(offer.listingId, body)).toMatchObject({
    status: 200,
    body: { alreadyConfirmed: false },
  });
});

describe("many buyers that wait for one locked row", () => {
  it.each([
    "buy",
    "sold_out",
  ])("many buyers that wait for one locked row do not delay another product's answer: %s", async (kind) => {
    const [buyer, first, ...waiting] = await Promise.all(Array.from({ length: 10 }, () => signedIn(api.url, key)));
    const { locked, waitingBuys, reply, answeredBefore } = await until(async () => {
      const [locked, other] = [await makeOffer(servers.db, 1), await makeOffer(servers.db, 1)];
      if (kind === "sold_out") await first?.buyListing(other.listingId);
      let answered = 0;
      return whileBrieflyLocked(locked, async () => {
        const waitingBuys = waiting.map((user) => user.buyListing(locked.listingId).finally(() => answered++));
        if (!(await untilWaitingOr(Promise.all(waitingBuys), servers.db, 1, "api"))) return null;
        const reply = await buyer?.buyListing(other.listingId);
        return { locked, waitingBuys, reply: reply as Reply, answeredBefore: answered };
      });
    });
    expect(acquired(await Promise.all(waitingBuys))).toEqual(idsOf(locked));
    expect({ answeredBefore, outcome: outcome(reply) }).toEqual({
      answeredBefore: 0,
      outcome: kind === "buy" ? "200" : "409 sold_out",
    });
  });
});

describe("claims and buys that one transaction decides", () => {
  const claims = ({ productId }: TestPartner, users: readonly string[]) =>
    users.map((userId) => ({ userId, way: "product", id: productId, paymentRef: null }) as const);
  const users = (count: number) => Array.from({ length: count }, () => newUser());
  /** Submits the requests to one API in the same turn of its event loop. */
  const submit = (requests: readonly AcquisitionRequest[]) =>
    requests.map((request) => api.ctx.acquisitions.submit(request));
  const vouchersOf = (outcomes: readonly AcquisitionOutcome[]) =>
    outcomes.flatMap((one) => (one.kind === "acquired" ? [one.voucher.id] : []));

  it("concurrent claims and buys share one transaction, and each gets a different voucher", async () => {
    const partner = await makePartner(servers.db);
    const [soon, late] = [
      await offerBatch(servers.db, partner, 5, { validUntil: inSeconds(3_600) }),
      await offerBatch(servers.db, partner, 30),
    ];
    const { code } = await makeReferral(servers.db, partner);
    const outcomes = await Promise.all(
      submit(
        users(20).map((userId, n) =>
          n % 4 === 0
            ? { userId, way: "link", id: code, paymentRef: null }
            : n % 4 === 1
              ? { userId, way: "listing", id: late.listingId, paymentRef: newPayment() }
              : { userId, way: "product", id: partner.productId, paymentRef: n % 4 === 2 ? newPayment() : null },
        ),
      ),
    );
    const given = vouchersOf(outcomes);
    expect(new Set(given).size).toBe(20);
    expect(given).toEqual(expect.arrayContaining(idsOf(soon)));
    const { rows } = await servers.db.query(
      `SELECT xmin::text FROM vouchers WHERE id = ANY ($1)
        UNION SELECT xmin::text FROM claims WHERE voucher_id = ANY ($1)
        UNION SELECT xmin::text FROM purchases WHERE voucher_id = ANY ($1)
        UNION SELECT xmin::text FROM voucher_events WHERE voucher_id = ANY ($1) AND sequence = 2`,
      [given],
    );
    expect(rows).toHaveLength(1);
  });

  it("a claim or buy that the database refuses fails alone in its transaction", async () => {
    const offer = await makeOffer(servers.db, 20);
    const all = users(20);
    await servers.db.query(
      `CREATE TRIGGER poison BEFORE INSERT ON claims FOR EACH ROW WHEN (NEW.user_id = '${all[7]}')
         EXECUTE FUNCTION reject_change('poison')`,
    );
    try {
      const settled = await Promise.allSettled(submit(claims(offer, all)));
      expect(settled.flatMap(({ status }, n) => (status === "rejected" ? [n] : []))).toEqual([7]);
      expect(await readAcquisitions(servers.db, idsOf(offer))).toHaveLength(19);
    } finally {
      await servers.db.query("DROP TRIGGER poison ON claims");
    }
  });

  it("a claim that waits for another transaction's claim does not delay concurrent requests", async () => {
    const offer = await makeOffer(servers.db, 20);
    const another = await offerBatch(servers.db, offer, 1, { windows: {} });
    const all = users(20);
    const { slow } = await besideTransaction(servers.db, async (outside) => {
      await outside.query("INSERT INTO claims (user_id, product_id, voucher_id) VALUES ($1, $2, $3)", [
        all[7],
        offer.productId,
        another.vouchers[0]?.id,
      ]);
      const submitted = submit(claims(offer, all));
      const [slow] = submitted.splice(7, 1);
      expect(new Set(vouchersOf(await Promise.all(submitted))).size).toBe(19);
      await untilWaiting(servers.db, 1, "api");
      return { slow };
    });
    expect(await slow).toMatchObject({ kind: "acquired", alreadyConfirmed: false });
  });

  it("concurrent claims are decided again if another transaction has added one of these claims", async () => {
    const offer = await makeOffer(servers.db, 20);
    const another = await offerBatch(servers.db, offer, 1, { windows: {} });
    const taken = another.vouchers[0]?.id ?? "";
    const all = users(20);
    const submitted = await besideTransaction(servers.db, async (outside) => {
      await outside.query("INSERT INTO claims (user_id, product_id, voucher_id) VALUES ($1, $2, $3)", [
        all[7],
        offer.productId,
        taken,
      ]);
      const submitted = submit(claims(offer, all));
      await untilWaiting(servers.db, 1, "api");
      await outside.query("COMMIT");
      return { outcomes: Promise.all(submitted) };
    });
    const outcomes = await submitted.outcomes;
    expect(outcomes[7]).toMatchObject({ kind: "acquired", voucher: { id: taken }, alreadyConfirmed: true });
    expect(new Set(vouchersOf(outcomes)).size).toBe(20);
    // Adds the event, because the file ends with a check that each claim has an event.
    await recordClaim(taken, all[7] ?? "");
  });

  it("a transaction of claims and buys answers repeats and sold_out without a voucher's lock", async () => {
    const offer = await makeOffer(servers.db, 10);
    const owners = users(10);
    await Promise.all(submit(claims(offer, owners)));
    const outcomes = await besideTransaction(servers.db, async (outside) => {
      await outside.query("LOCK TABLE vouchers IN EXCLUSIVE MODE");
      return Promise.all(submit(claims(offer, [...owners, ...users(10)])));
    });
    expect(outcomes.slice(0, 10).map((one) => one.kind === "acquired" && one.alreadyConfirmed)).toEqual(
      owners.map(() => true),
    );
    expect(outcomes.slice(10)).toEqual(owners.map(() => ({ kind: "refused", code: "sold_out" })));
  });

  it("concurrent claims and buys break no invariant during reserves and voids of their vouchers", async () => {
    const partner = await makePartner(servers.db);
    const batches = await Promise.all(
      [3_600, 7_200, 10_800, 14_400].map((seconds, n) =>
        // Even if the link's 25 users got all 15 vouchers of the first batch, they take all 10 of the second.
        offerBatch(servers.db, partner, n === 1 ? 10 : 15, {
          validUntil: inSeconds(seconds),
          audience: n === 1 ? "ReferrerOnly" : "OpenToAll",
        }),
      ),
    );
    const { code } = await makeReferral(servers.db, partner);
    const till = await makeTill(partner);
    const outside = batches.flatMap(({ vouchers }) => vouchers.filter((_, n) => n % 6 === 0));
    const people = await crowd(100);
    const payments = people.map(() => ({ paymentRef: newPayment() }));
    const ask = (n: number) => {
      const user = people[n] as MarketClient;
      if (n % 4 === 0) return user.claimByLink(code);
      if (n % 4 === 1) return user.claimProduct(partner.productId);
      if (n % 4 === 2) return user.buyProduct(partner.productId, payments[n]);
      return user.buyListing(batches[n % 3 === 0 ? 0 : 3]?.listingId ?? "", payments[n]);
    };
    const [replies] = await Promise.all([
      Promise.all(
        [...people.keys()].map((n) =>
          Promise.all(Array.from({ length: n % 5 === 0 ? 2 : 1 }, () => untilDecided(() => ask(n)))),
        ),
      ),
      Promise.all(
        outside.map(({ code: voucherCode }, n) =>
          n % 2 === 0
            ? till.reserve(voucherCode)
            : voidVoucher(provisioning(servers.db), partner.organizationId, voucherCode, null),
        ),
      ),
    ]);
    const given = replies.map((own) => new Set(acquired(own)));
    expect(given.every((own) => own.size <= 1)).toBe(true);
    const all = given.flatMap((own) => [...own]);
    expect(new Set(all).size).toBe(all.length);
    expect(Object.keys(countOutcomes(replies.flat())).toSorted()).toEqual(["200", "409 sold_out"]);
    expect(await readAcquisitions(servers.db, batches.flatMap(idsOf))).toHaveLength(all.length);
    // A claim by link may get a voucher of any batch.
    expect(outcome(await (await as()).claimByLink(code))).toBe("409 sold_out");
    await assertInvariants(servers.db);
  });
});

/** Returns a function that makes a contract end at a moment. The service never changes an accepted contract's end. */
const endContract = (id: string) => (moment: Date) =>
  bypassTriggers(servers.db, "UPDATE referrer_contracts SET ends_at = $1 WHERE id = $2", [moment, id]);
const setMoment = (update: string, id: string) => (moment: Date) => servers.db.query(update, [moment, id]);

/** A way to make something end at a moment, and a call that is refused after the end. */
type Ending = [end: (moment: Date) => Promise<unknown>, call: (user: MarketClient) => Promise<Reply>];

it.each<[string, string, (offer: Offered & TestPartner, userId: string) => Promise<Ending>]>([
  [
    "409 window_closed",
    "window",
    async ({ batchId, listingId }) => [
      setMoment("UPDATE batch_windows SET closes_at = $1 WHERE batch_id = $2", batchId),
      (user) => user.buyListing(listingId),
    ],
  ],
  [
    "409 window_closed",
    "voucher's validity",
    async ({ batchId, productId }) => [
      setMoment("UPDATE batches SET valid_until = $1 WHERE id = $2", batchId),
      (user) => user.claimProduct(productId),
    ],
  ],
  [
    "403 referrers_only",
    "contract",
    async ({ brandId, productId }, userId) => [
      endContract(await makeContract(servers.db, brandId, userId)),
      (user) => user.buyProduct(productId),
    ],
  ],
  [
    "404 link_not_found",
    "link's contract",
    async (offer) => {
      const { code, contractId } = await makeReferral(servers.db, offer);
      return [endContract(contractId), (user) => user.claimByLink(code)];
    },
  ],
])("a claim or buy answers %s if it waits for a row until after the end of its %s", async (answer, what, make) => {
  const audience = what.includes("contract") ? "ReferrerOnly" : "OpenToAll";
  const userId = newUser();
  const client = await as(userId);
  const { offer, reply } = await until(async () => {
    const offer = await makeOffer(servers.db, 1, { audience });
    const [end, call] = await make(offer, userId);
    return whileBrieflyLocked(offer, async () => {
      const reply = call(client);
      if (!(await untilWaitingOr(reply, servers.db, 1, "api"))) return null;
      const moment = new Date((await databaseTime(servers.db)).getTime() + 20);
      await end(moment);
      await untilPast(servers.db, moment);
      return { offer, reply };
    });
  });
  expect(outcome(await reply)).toBe(answer);
  expect(await readAcquisitions(servers.db, idsOf(offer))).toEqual([]);
});

/** Clients of `count` different users. */
function crowd(count: number): Promise<MarketClient[]> {
  return Promise.all(Array.from({ length: count }, () => as()));
}

const makeTill = async ({ organizationId }: TestPartner) =>
  partnerClient(api.url, (await makeKey(servers.db, organizationId)).key);

/** Appends the event of a claim that a test inserted. */
async function recordClaim(voucherId: string, userId: string): Promise<void> {
  await servers.db.query(
    `INSERT INTO voucher_events (occurred_at, sequence, voucher_id, seal_status, event_type, actor_connected_id, data)
     VALUES (now(), 2, $1, 'Pending', 'voucher.instance.claimed', $2, '{"nonce": "00000000000000000000000000000000"}')`,
    [voucherId, userId],
  );
  await servers.db.query("UPDATE vouchers SET last_sequence = 2 WHERE id = $1", [voucherId]);
}

const acquired = (replies: readonly Reply[]) =>
  replies.flatMap(({ status, body }) => (status === 200 ? [body.voucher.id] : []));
