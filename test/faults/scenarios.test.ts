import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { assertInvariants } from "../support/invariants.ts";
import { makeOffer, newUser } from "../support/marketplace.ts";
import { besideTransaction, countWaiting, lockRows, untilWaiting } from "../support/outside-transaction.ts";
import { openTcpProxy, type TcpProxy } from "../support/tcp-proxy.ts";
import { until, untilStarted } from "../support/until.ts";
import { type IssuerKey, type KeysFile, makeIssuerKey, signUser, writeKeysFile } from "../support/user-tokens.ts";
import type { ApiProcess } from "./cluster.ts";
import { type Answer, type Outcome, sendCall } from "./http-call.ts";
import { answerOf, openScenario, type Scenario, statusOf } from "./scenario.ts";
import type { ServiceProcess } from "./service-process.ts";

/** Extra time for an answer on a busy machine, on top of the redeem wait. Milliseconds. */
const SLACK_MS = 2_500;
const ANSWERS_AGAIN_MS = 10_000;

let scenario: Scenario;
let issuer: IssuerKey;
let keysFile: KeysFile;
let api: ApiProcess;
let otherApi: ApiProcess;
let worker: ServiceProcess;
let otherWorker: ServiceProcess;
/** Vouchers whose attempts were answered "redeemed nothing" or abandoned. No leftover job may redeem them. */
const neverRedeemed: string[] = [];

beforeAll(async () => {
  issuer = await makeIssuerKey();
  keysFile = writeKeysFile(issuer);
  scenario = await openScenario({ AUTH_JWKS_URL: keysFile.url });
  const { apis, workers } = scenario.cluster;
  [api, otherApi] = apis as [ApiProcess, ApiProcess];
  [worker, otherWorker] = workers as [ServiceProcess, ServiceProcess];
  await scenario.makeWhole();
});

afterEach(() => scenario.makeWhole());

afterAll(async () => {
  await scenario?.close();
  keysFile?.remove();
});

/** Runs `work` with a single worker that reaches Redis through a proxy. */
async function withProxiedWorker(work: (proxy: TcpProxy, only: ServiceProcess) => Promise<void>): Promise<void> {
  const { cluster } = scenario;
  const proxy = await openTcpProxy(cluster.redis.url);
  await Promise.all([worker.kill(), otherWorker.kill()]);
  const only = cluster.addWorker({ REDIS_URL: proxy.url });
  try {
    only.start();
    await untilStarted(async () => {
      const body = { code: scenario.nextVoucher().code, externalRef: scenario.newRef() };
      return statusOf(await scenario.redeem(api, body)) === 200;
    });
    await work(proxy, only);
  } finally {
    await only.kill();
    cluster.workers.splice(cluster.workers.indexOf(only), 1);
    await proxy.close();
  }
}

function expectRetryLater(outcome: Outcome, code: string): Answer {
  const answer = answerOf(outcome);
  expect({ status: answer.status, code: answer.body.code }).toEqual({ status: 503, code });
  expect(Number(answer.headers["retry-after"])).toBeGreaterThanOrEqual(1);
  return answer;
}

async function timed<T>(work: Promise<T>): Promise<{ result: T; tookMs: number }> {
  const startedAt = performance.now();
  const result = await work;
  return { result, tookMs: performance.now() - startedAt };
}

describe("a worker that is killed", () => {
  it("before its commit redeems nothing: the caller gets redeem_timeout, and a retry redeems once", async () => {
    const { db } = scenario.cluster;
    const voucher = scenario.nextVoucher();
    const externalRef = scenario.newRef();
    const { ticket } = answerOf(await scenario.reserve(api, voucher.code)).body;
    await otherWorker.kill();
    const { asked } = await besideTransaction(db, async (outside) => {
      // The redemption is written by then and waits to write the end of its reservation.
      await outside.query("SELECT ticket FROM reservations WHERE ticket = $1 FOR UPDATE", [ticket]);
      const asked = timed(scenario.redeem(api, { ticket, externalRef }));
      await untilWaiting(db, 1, "worker");
      await worker.kill();
      // Its transaction ends with its wait for the lock, long before the caller's deadline.
      await until(async () => (await countWaiting(db, "worker")) === 0);
      return { asked };
    });
    const { result, tookMs } = await asked;
    expect(expectRetryLater(result, "redeem_timeout").body.error).toContain("This attempt redeemed nothing.");
    expect(tookMs).toBeLessThan(scenario.redeemWaitMs + SLACK_MS);
    expect(await scenario.countRedemptions([voucher.id])).toBe(0);
    expect(answerOf(await scenario.lookUp(api, ticket)).body).toMatchObject({
      voucher: { status: "Active" },
      reservation: { ticket },
    });
    await scenario.cluster.heal();
    const retried = await until(async () => {
      const outcome = await scenario.redeem(otherApi, { ticket, externalRef });
      return statusOf(outcome) === 200 ? answerOf(outcome) : null;
    });
    expect(retried.body).toMatchObject({ alreadyConfirmed: false, voucherInstanceId: voucher.id });
    expect(await scenario.countRedemptions([voucher.id])).toBe(1);
  });

  it("after its commit and before its reply has redeemed: the caller gets 200 at its deadline, and a retry gets the same answer", async () => {
    const { db } = scenario.cluster;
    const voucher = scenario.nextVoucher();
    const body = { code: voucher.code, externalRef: scenario.newRef() };
    await withProxiedWorker(async (proxy, only) => {
      const { asked } = await besideTransaction(db, async (outside) => {
        await lockRows(outside, [voucher.id]);
        const asked = timed(scenario.redeem(api, body));
        await untilWaiting(db, 1, "worker");
        proxy.jam();
        return { asked };
      });
      await until(async () => (await scenario.countRedemptions([voucher.id])) === 1);
      await only.kill();
      const { result, tookMs } = await asked;
      const confirmed = answerOf(result);
      expect({ status: confirmed.status, body: confirmed.body }).toMatchObject({
        status: 200,
        body: { redeemed: true, voucherInstanceId: voucher.id },
      });
      expect(tookMs).toBeLessThan(scenario.redeemWaitMs + SLACK_MS);
      expect(answerOf(await scenario.redeem(otherApi, body)).body).toEqual({
        ...confirmed.body,
        alreadyConfirmed: true,
      });
    });
  });
});

describe("an API process that is killed while 200 users claim 150 vouchers", () => {
  it("leaves each user with one voucher or none, and retries at another process give out exactly the rest", async () => {
    const { db } = scenario.cluster;
    const offer = await makeOffer(db, 150);
    const tokens = await Promise.all(Array.from({ length: 200 }, () => signUser(issuer, newUser("crowd"))));
    const claim = (at: ApiProcess, token: string) =>
      sendCall({ method: "POST", url: `${at.url}/products/${offer.productId}/claim`, token, timeoutMs: 20_000 });
    const countClaims = async () => {
      const { rows } = await db.query("SELECT count(*)::int AS claims FROM claims WHERE product_id = $1", [
        offer.productId,
      ]);
      return rows[0]?.claims as number;
    };
    const { asked } = await besideTransaction(db, async (outside) => {
      // Some calls wait for these vouchers, so that the process is killed before it has answered all.
      await lockRows(
        outside,
        offer.vouchers.slice(100).map(({ id }) => id),
      );
      const asked = tokens.map((token) => claim(api, token));
      await until(async () => (await countClaims()) > 0);
      await untilWaiting(db, 1, "api");
      await api.process.kill();
      return { asked };
    });
    const first = await Promise.all(asked);
    expect(first.filter(({ kind }) => kind === "failure").length).toBeGreaterThan(0);
    const retried = await Promise.all(tokens.map((token) => claim(otherApi, token)));
    expect(retried.filter((one) => statusOf(one) === 200)).toHaveLength(150);
    expect(retried.filter((one) => statusOf(one) === 409)).toHaveLength(50);
    const idOf = (one: Outcome) => (statusOf(one) === 200 ? answerOf(one).body.voucher.id : null);
    expect(new Set(retried.map(idOf).filter((id) => id !== null)).size).toBe(150);
    for (const [n, before] of first.entries()) {
      if (statusOf(before) === 200) expect(idOf(retried[n] as Outcome)).toBe(idOf(before));
    }
    expect(await countClaims()).toBe(150);
    await assertInvariants(db);
  });
});

describe("an API process that is killed while a partner waits", () => {
  it("leaves the redemption to the worker; a retry at another API process gets its result", async () => {
    const { db } = scenario.cluster;
    const voucher = scenario.nextVoucher();
    const body = { code: voucher.code, externalRef: scenario.newRef() };
    const { asked } = await besideTransaction(db, async (outside) => {
      await lockRows(outside, [voucher.id]);
      const asked = scenario.redeem(api, body);
      await untilWaiting(db, 1, "worker");
      await api.process.kill();
      return { asked };
    });
    expect(await asked).toMatchObject({ kind: "failure", failure: "reset" });
    await until(async () => (await scenario.countRedemptions([voucher.id])) === 1);
    expect(answerOf(await scenario.redeem(otherApi, body)).body).toMatchObject({
      alreadyConfirmed: true,
      voucherInstanceId: voucher.id,
    });
  });
});

describe("while all workers are gone", () => {
  it("a redeem answers redeem_timeout at its deadline, and no job left over redeems later", async () => {
    await Promise.all([worker.kill(), otherWorker.kill()]);
    const vouchers = [scenario.nextVoucher(), scenario.nextVoucher(), scenario.nextVoucher()];
    const abandoned = scenario.nextVoucher();
    const asked = timed(
      Promise.all(vouchers.map(({ code }) => scenario.redeem(api, { code, externalRef: scenario.newRef() }))),
    );
    const abandonedCall = scenario.redeem(otherApi, { code: abandoned.code, externalRef: scenario.newRef() });
    await until(async () => (await scenario.countWaitingJobs()) === 4);
    // No process withdraws this job.
    await otherApi.process.kill();
    expect((await abandonedCall).kind).toBe("failure");
    const { result, tookMs } = await asked;
    for (const outcome of result) {
      const { body } = expectRetryLater(outcome, "redeem_timeout");
      expect(body.error).toContain("This attempt redeemed nothing.");
    }
    expect(tookMs).toBeLessThan(scenario.redeemWaitMs + SLACK_MS);
    expect(await scenario.countWaitingJobs()).toBe(1);
    neverRedeemed.push(abandoned.id, ...vouchers.map(({ id }) => id));

    // Workers start jobs in order: once a later one is done, so is this one.
    await scenario.makeWhole();
    await until(async () => (await scenario.countWaitingJobs()) === 0);
    expect(await scenario.countRedemptions(neverRedeemed)).toBe(0);
  });
});

describe("while Redis hangs", () => {
  it("look-ups answer 200 without waiting for it; reserve, redeem and readyz answer 503 in time; all work again once it resumes", async () => {
    const { redis } = scenario.cluster;
    const [lookedUp, reserved, redeemed] = [scenario.nextVoucher(), scenario.nextVoucher(), scenario.nextVoucher()];
    const body = { code: redeemed.code, externalRef: scenario.newRef() };
    redis.freeze();
    const [lookUp, reserve, redeem, ready] = await Promise.all([
      timed(scenario.lookUp(api, lookedUp.code)),
      timed(scenario.reserve(api, reserved.code)),
      timed(scenario.redeem(api, body)),
      timed(scenario.ready(api)),
    ]);
    redis.thaw();
    expect(statusOf(lookUp.result)).toBe(200);
    expect(lookUp.tookMs).toBeLessThan(reserve.tookMs);
    expectRetryLater(reserve.result, "unavailable");
    expectRetryLater(redeem.result, "redeem_timeout");
    expect(answerOf(ready.result).body).toMatchObject({ code: "unavailable", postgres: "ok", redis: "unavailable" });
    for (const { tookMs } of [reserve, redeem, ready]) expect(tookMs).toBeLessThan(scenario.redeemWaitMs);

    await until(async () => statusOf(await scenario.ready(api)) === 200, ANSWERS_AGAIN_MS);
    await until(async () => statusOf(await scenario.reserve(api, reserved.code)) === 200, ANSWERS_AGAIN_MS);
    const later = await until(async () => {
      const outcome = await scenario.redeem(otherApi, body);
      return statusOf(outcome) === 200 ? answerOf(outcome) : null;
    }, ANSWERS_AGAIN_MS);
    expect(later.body.voucherInstanceId).toBe(redeemed.id);
    expect(await scenario.countRedemptions([redeemed.id])).toBe(1);
  });
});

describe("when Redis restarts empty", () => {
  it("reservations stay: another key is refused, and the holder gets its own ticket again and redeems with it", async () => {
    const { redis } = scenario.cluster;
    const voucher = scenario.nextVoucher();
    const reservation = answerOf(await scenario.reserve(api, voucher.code)).body;
    await redis.kill("Everything");
    await redis.start();
    await until(async () => statusOf(await scenario.ready(api)) === 200, ANSWERS_AGAIN_MS);
    const refused = answerOf(await scenario.reserve(api, voucher.code, scenario.webShop));
    expect({ status: refused.status, code: refused.body.code }).toEqual({ status: 409, code: "voucher_reserved" });
    expect(answerOf(await scenario.reserve(api, voucher.code)).body).toEqual(reservation);
    const externalRef = scenario.newRef();
    const redeemed = await until(async () => {
      const outcome = await scenario.redeem(api, { ticket: reservation.ticket, externalRef });
      return statusOf(outcome) === 200 ? answerOf(outcome) : null;
    }, ANSWERS_AGAIN_MS);
    expect(redeemed.body.voucherInstanceId).toBe(voucher.id);
  });
});

describe("when Redis restarts without its last second of writes", () => {
  it("the caller gets the redemption of a worker whose start Redis has forgotten", async () => {
    const { db, redis } = scenario.cluster;
    const voucher = scenario.nextVoucher();
    const body = { code: voucher.code, externalRef: scenario.newRef() };
    await withProxiedWorker(async (proxy) => {
      proxy.jam();
      const asked = scenario.redeem(api, body);
      await until(async () => (await scenario.countWaitingJobs()) === 1);
      // Redis keeps the job, and loses its start by the worker.
      const keptUntilMs = redis.sampleSize();
      await besideTransaction(db, async (outside) => {
        await lockRows(outside, [voucher.id]);
        proxy.mend();
        await untilWaiting(db, 1, "worker");
        proxy.cut();
        await redis.kill("AppendOnlyTail", keptUntilMs);
      });
      await redis.start();
      expect(await scenario.countWaitingJobs()).toBe(1);
      await until(async () => (await scenario.countRedemptions([voucher.id])) === 1);
      const confirmed = answerOf(await asked);
      expect({ status: confirmed.status, body: confirmed.body }).toMatchObject({
        status: 200,
        body: { redeemed: true, voucherInstanceId: voucher.id },
      });
      proxy.mend();
    });
  });
});

describe("when Postgres is killed", () => {
  it("every call answers 503 with Retry-After until it is back; then all work again, and earlier answers stay true", async () => {
    const { postgres } = scenario.cluster;
    const [reserved, redeemed, unused] = [scenario.nextVoucher(), scenario.nextVoucher(), scenario.nextVoucher()];
    const reservation = answerOf(await scenario.reserve(api, reserved.code)).body;
    const body = { code: redeemed.code, externalRef: scenario.newRef() };
    const confirmed = answerOf(await scenario.redeem(api, body)).body;

    await postgres.kill();
    const fresh = { code: unused.code, externalRef: scenario.newRef() };
    for (const outcome of await Promise.all([
      scenario.lookUp(api, unused.code),
      scenario.reserve(api, unused.code),
      scenario.redeem(api, fresh),
    ])) {
      expectRetryLater(outcome, "unavailable");
    }
    expect(answerOf(await scenario.ready(api)).body).toMatchObject({ postgres: "unavailable", redis: "ok" });

    await postgres.start();
    await until(async () => statusOf(await scenario.ready(api)) === 200, ANSWERS_AGAIN_MS);
    expect(answerOf(await scenario.redeem(api, body)).body).toEqual({ ...confirmed, alreadyConfirmed: true });
    expect(answerOf(await scenario.reserve(api, reserved.code)).body).toEqual(reservation);
    const later = await until(async () => {
      const outcome = await scenario.redeem(otherApi, fresh);
      return statusOf(outcome) === 200 ? answerOf(outcome) : null;
    }, ANSWERS_AGAIN_MS);
    expect(later.body.voucherInstanceId).toBe(unused.id);
  });
});

describe("SIGTERM under load", () => {
  it.each([0, 1])("to process %i of each kind: every accepted request gets its answer", async (which) => {
    const { apis, workers } = scenario.cluster;
    const [ending, endingWorker] = [apis[which] as ApiProcess, workers[which] as ServiceProcess];
    const wrong: Outcome[] = [];
    const reset: string[] = [];
    let answered = 0;
    let refused = 0;
    let running = true;
    const loggedBefore = ending.process.readLog().length;
    const check = (target: ApiProcess, outcome: Outcome) => {
      if (statusOf(outcome) === 200) answered += 1;
      else if (target !== ending || outcome.kind === "answer") wrong.push(outcome);
      else if (outcome.failure === "refused") refused += 1;
      else if (outcome.failure === "reset") reset.push(outcome.requestId);
      else wrong.push(outcome);
    };
    const visit = async (visitor: number) => {
      for (let turn = visitor; running; turn++) {
        const target = apis[turn % apis.length] as ApiProcess;
        const { code } = scenario.nextVoucher();
        check(target, await scenario.lookUp(target, code));
        if (turn % 3 === 0) check(target, await scenario.reserve(target, code));
        check(target, await scenario.redeem(target, { code, externalRef: scenario.newRef() }));
      }
    };
    const visitors = Array.from({ length: 12 }, (_, visitor) => visit(visitor));
    await until(() => answered > 200);
    const [exitCode, workerExitCode] = await Promise.all([ending.process.terminate(), endingWorker.terminate()]);
    const before = answered;
    await until(() => answered > before + 100 && refused > 20);
    running = false;
    await Promise.all(visitors);
    expect(wrong).toEqual([]);
    // The kernel resets connections that the process had not accepted yet when it stopped listening. The log has a line for every
    // accepted request, answered or not.
    const log = ending.process.readLog().slice(loggedBefore);
    expect(reset.filter((requestId) => log.includes(requestId))).toEqual([]);
    expect(log).not.toContain('"status":499');
    expect({ exitCode, workerExitCode }).toEqual({ exitCode: 0, workerExitCode: 0 });
  });
});

describe("after all of these faults", () => {
  it("the jobs of dead workers end within 25 s and redeem nothing", async () => {
    // A job waits briefly when another worker takes it over.
    await until(async () => (await scenario.countJobs()) === 0, 25_000);
    expect(await scenario.countRedemptions(neverRedeemed)).toBe(0);
    await assertInvariants(scenario.cluster.db);
    expect(scenario.cluster.accidents).toEqual([]);
  });
});
