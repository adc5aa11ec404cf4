import { beforeAll, expect, it } from "vitest";
import { expectFairRound } from "../../support/fair-rounds.ts";
import { countWaiting, longestWaitMs, untilWaiting, whileLocked } from "../../support/outside-transaction.ts";
import { makeKey } from "../../support/supply.ts";
import { until, untilStarted } from "../../support/until.ts";
import { untilReady } from "./checker.ts";
import type { ApiProcess, Cluster } from "./cluster.ts";
import { exchangeOnce } from "./exchange.ts";
import { countChanges, type FaultPostgres } from "./fault-postgres.ts";
import { FLOOD_KINDS, FLOODED_OPS_TOKEN, flood, makeFlooder } from "./floods.ts";
import { describeViolation, History, type PartnerAsk } from "./history.ts";
import type { Answer } from "./http-call.ts";
import { deliverAgain } from "./locked-rows.ts";
import { checkOrder } from "./order.ts";
import { readRecords } from "./records.ts";
import { SeededRandom } from "./seeded-random.ts";
import { GROWTHS, grow, isKnown, readEnd, readTransaction } from "./set-back.ts";
import { useFaultCluster } from "./use-fault-cluster.ts";

// Each test makes one order of events that the campaign meets only at random: a caller has an answer that another
// process could still contradict.

/** How long a redeem waits. Half of this is for a locked row, and the rest is for a second delivery. Milliseconds. */
const REDEEM_WAIT_MS = 10_000;

const own = useFaultCluster({
  redeemWaitMs: REDEEM_WAIT_MS,
  issuerApi: true,
  // At this level, an API logs each accepted request.
  env: { LOG_LEVEL: "info", OPS_TOKEN: FLOODED_OPS_TOKEN },
});
const { newOrder, newOrders, newVoucher, get, post, redeem, redeemAll, countRedemptions, countRedeemJobs } = own;

let cluster: Cluster;
let postgres: FaultPostgres;
let api: ApiProcess;
let otherApi: ApiProcess;

beforeAll(() => {
  ({ cluster, postgres, api, otherApi } = own);
});

const codeOf = ({ status, body }: Answer) => (status === 200 ? 200 : body?.code);

it.each(
  GROWTHS,
)("Postgres with older files is refused until the newer files are back, even if its WAL grows: %s", async (growth) => {
  const { db } = cluster;
  const kept = await postgres.keepFiles();
  const copied = await readTransaction(db);
  const orders = newOrders(5);
  for (const order of orders) expect((await redeem(order, api)).status).toBe(200);
  expect(await isKnown(cluster, [cluster], copied)).toBe(true);
  const end = await readEnd(db);
  await postgres.setBack(kept);
  try {
    const changes = await countChanges(db);
    await grow({ cluster }, growth, end);
    for (let turn = 0; turn < 3; turn++) {
      for (const at of [api, otherApi]) {
        const again = orders.map(({ id, body }) => ({
          id,
          body: { ...body, externalRef: `${body.externalRef}-again` },
        }));
        const answers = [...(await redeemAll(again, at)), await get(at, `/partner/vouchers/${orders[0]?.body.code}`)];
        expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 503));
      }
    }
    expect((await get(api, "/readyz")).status).toBe(503);
    expect(await countChanges(db)).toBe(changes);
  } finally {
    await postgres.restoreFiles();
  }
  await untilReady(cluster);
  const repeats = await redeemAll(orders, otherApi);
  expect(repeats.map(({ body }) => body?.alreadyConfirmed)).toEqual(orders.map(() => true));
});

/**
 * Redeems a voucher whose row stays locked until the redeem gives up. Meanwhile `deliverLater` delivers its job again.
 */
async function redeemBesideLock(deliverLater: (answered: Promise<Answer>) => Promise<Answer>) {
  const order = newOrder();
  const answer = await whileLocked(cluster.db, [order.id], async () => {
    const asked = redeem(order, api);
    await untilWaiting(cluster.db, 1, "worker");
    const answered = await deliverLater(asked);
    // The second delivery waits for the row, or came too late.
    await until(async () => (await countWaiting(cluster.db, "worker")) > 0 || (await hasNoJob()));
    return answered;
  });
  await until(hasNoJob);
  return { order, answer };
}

const hasNoJob = async () => (await countRedeemJobs()).all === 0;

it("a second delivery of a redeem job redeems nothing after its caller was told that nothing changed", async () => {
  const { order, answer } = await redeemBesideLock(async (asked) => {
    // Both deliveries wait equally long, so the first one gives up first.
    await until(async () => (await longestWaitMs(cluster.db)) > 1_500);
    expect(await deliverAgain(cluster)).toBe(1);
    return asked;
  });
  if (codeOf(answer) !== "redeem_unknown") expect(await countRedemptions([order.id])).toBe(0);
});

it.each([
  ["its last second", "AppendOnlyTail"],
  ["everything since the job was delivered", "SinceKept"],
] as const)("after Redis lost %s, a redelivered redeem redeems nothing after a final answer", async (_what, loss) => {
  const { order, answer } = await redeemBesideLock(async (asked) => {
    cluster.redis.keepFiles();
    const answered = await asked;
    await until(async () => (await countWaiting(cluster.db, "worker")) === 0);
    await cluster.redis.kill(loss);
    await cluster.redis.start();
    // Does what BullMQ does after the job's lock has expired.
    await until(async () => (await deliverAgain(cluster)) > 0 || (await hasNoJob()));
    return answered;
  });
  if (codeOf(answer) !== "redeem_unknown") expect(await countRedemptions([order.id])).toBe(0);
});

/** A process notices a freeze that is longer than this. Milliseconds. */
const NOTICED_MS = 3_500;

it("a frozen API process redeems nothing for a call whose retry another process has refused", async () => {
  const { key, otherKey } = own;
  const { id, code } = newVoucher();
  const held = await post(otherApi, "reserve", { code }, { key: otherKey });
  const order = { code, externalRef: `frozen-${id}` };
  api.process.freeze();
  const frozenAt = performance.now();
  const unread = post(api, "redeem", order, { key });
  expect(codeOf(await post(otherApi, "redeem", order))).toBe("voucher_reserved");
  expect((await post(otherApi, "release", { ticket: held.body.ticket }, { key: otherKey })).body.released).toBe(true);
  await until(() => performance.now() - frozenAt > NOTICED_MS);
  api.process.thaw();
  expect(codeOf(await unread)).toBe("redeem_unknown");
  expect(await countRedemptions([id])).toBe(0);
  await until(async () => (await post(api, "redeem", order)).status === 200);
});

it("answers before a promotion agree with answers after the promotion, even if waiting sessions end", async () => {
  const { key, otherKey } = own;
  const history = new History();
  const [redeemed, reserved, voided] = [newVoucher(), newVoucher(), newVoucher()];
  const made = await makeKey(cluster.db, key.organizationId, { scopes: ["voucher.issue"] });
  const issuer = { ...key, id: made.id, secret: made.key };
  const order = { externalRef: `waits-${redeemed.id}`, by: { code: redeemed.code }, token: null };
  const asks: PartnerAsk[] = [
    { operation: "redeem", key, voucher: redeemed, ...order },
    { operation: "redemption", key, externalRef: order.externalRef },
    ...(["lookUp", "events", "publicEvents"] as const).map((operation) => ({ operation, key, voucher: redeemed })),
    { operation: "reserve", key: otherKey, voucher: redeemed },
    { operation: "reserve", key: otherKey, voucher: reserved },
    { operation: "lookUp", key, voucher: reserved },
    { operation: "void", key: issuer, voucher: redeemed },
    { operation: "void", key: issuer, voucher: voided },
    { operation: "lookUp", key, voucher: voided },
    { operation: "list", key, from: new Date(Date.now() - 60_000).toISOString(), after: null, limit: 1_000 },
  ];
  const ask = (one: PartnerAsk, at: ApiProcess) => exchangeOnce(one, at, 1, { timeoutMs: 20_000 });
  const askAll = () =>
    Promise.all(asks.flatMap((one) => [api, otherApi].map(async (at) => history.add(await ask(one, at)))));
  postgres.cutOffStandby();
  const first = ask(asks[0] as PartnerAsk, api);
  const end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'";
  // Waits until the primary shows the redemption, which the standby lacks.
  await until(async () => {
    await cluster.db.query(end);
    return (await countRedemptions([redeemed.id])) === 1;
  });
  let isAnswered = false;
  const answered = Promise.all([first, askAll()]).finally(() => {
    isAnswered = true;
  });
  await until(async () => {
    await cluster.db.query(end);
    return isAnswered;
  });
  history.add((await answered)[0]);
  await postgres.promoteStandby(() => history.losses.push({ fromMs: performance.now(), untilMs: performance.now() }));
  await postgres.start();
  await untilReady(cluster);
  await untilStarted(async () => {
    const last = await askAll();
    return last.every(({ status }) => status !== null && status < 500);
  });
  const records = await readRecords(cluster.db, postgres.clock);
  expect(checkOrder(history, postgres.clock, records).map(describeViolation)).toEqual([]);
});

/** How long each flood lasts. Milliseconds. */
const FLOODED_MS = 700;

/**
 * Maximum repeats of a flood, because on a busy machine a call during a flood may once exceed a limit of 1.5 seconds.
 */
const FLOODS_MAX = 3;

it("no flood by one caller costs another caller an answer", async () => {
  const flooder = await makeFlooder(cluster.db);
  const random = new SeededRandom(1);
  for (const kind of FLOOD_KINDS) {
    await expectFairRound(
      FLOODS_MAX,
      () => callDuring((isOver) => flood(kind, api, flooder, random, isOver)),
      ({ refused }) => refused.length === 0,
    );
  }
});

/** Calls as another caller during a flood. Returns the calls that failed, with the reasons. */
async function callDuring(play: (isOver: () => boolean) => Promise<unknown>) {
  let isOver = false;
  const endAt = performance.now() + FLOODED_MS;
  const flooded = play(() => performance.now() > endAt).finally(() => {
    isOver = true;
  });
  const refused: unknown[] = [];
  const note = (what: string, answer: Answer) => {
    if (answer.status !== 200) refused.push([what, answer.status ?? answer.failure, codeOf(answer)]);
  };
  const { body } = newOrder();
  const lookUp = `/partner/vouchers/${body.code}`;
  while (!isOver) {
    for (const path of [lookUp, `${lookUp}/events`, "/partner/redemptions?limit=10", "/readyz"])
      note(path, await get(api, path));
    note("redeem", await redeem(newOrder(), api));
  }
  expect(await flooded).toEqual([]);
  return { refused, complaints: refused.length > 0 ? api.process.lastComplaints() : "" };
}
