import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { assertInvariants } from "../support/invariants.ts";
import { besideTransaction, lockRows, untilWaiting } from "../support/outside-transaction.ts";
import { openTcpProxy, type TcpProxy } from "../support/tcp-proxy.ts";
import { until } from "../support/until.ts";
import type { ApiProcess } from "./cluster.ts";
import type { Answer, Outcome } from "./http-call.ts";
import { answerOf, openScenario, type Scenario, statusOf } from "./scenario.ts";
import type { ServiceProcess } from "./service-process.ts";

/** What an answer may take on top of the wait that it is for, on a busy machine. Milliseconds. */
const SLACK_MS = 2_500;
const ANSWERS_AGAIN_MS = 10_000;

let scenario: Scenario;
let api: ApiProcess;
let otherApi: ApiProcess;
let worker: ServiceProcess;
let otherWorker: ServiceProcess;
/** Vouchers that an attempt was made for and that must never be burnt, not even by jobs that dead workers left. */
const neverBurnt: string[] = [];

beforeAll(async () => {
  scenario = await openScenario();
  const { apis, workers } = scenario.cluster;
  [api, otherApi] = apis as [ApiProcess, ApiProcess];
  [worker, otherWorker] = workers as [ServiceProcess, ServiceProcess];
  await scenario.makeWhole();
}, 60_000);

afterEach(() => scenario.makeWhole(), 60_000);

afterAll(async () => {
  await scenario?.close();
});

/** Runs `work` with a worker as the only one, which reaches Redis through a wire of ours. */
async function withWiredWorker(work: (wire: TcpProxy, wired: ServiceProcess) => Promise<void>): Promise<void> {
  const { cluster } = scenario;
  const wire = await openTcpProxy(cluster.redis.url);
  await Promise.all([worker.kill(), otherWorker.kill()]);
  const wired = cluster.addWorker({ REDIS_URL: wire.url });
  try {
    wired.start();
    await until(async () => {
      const body = { code: scenario.takeVoucher().code, externalRef: scenario.newRef() };
      return statusOf(await scenario.redeem(api, body)) === 200;
    }, 20_000);
    await work(wire, wired);
  } finally {
    await wired.kill();
    cluster.workers.splice(cluster.workers.indexOf(wired), 1);
    await wire.close();
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
  it("before its commit has done nothing: the caller is told that it is not known, and a retry burns once", async () => {
    const { db } = scenario.cluster;
    const voucher = scenario.takeVoucher();
    const externalRef = scenario.newRef();
    const { ticket } = answerOf(await scenario.reserve(api, voucher.code)).body;
    await otherWorker.kill();
    const { asked } = await besideTransaction(db, async (outside) => {
      // The burn is written by then and waits to write the end of its hold.
      await outside.query("SELECT ticket FROM reservations WHERE ticket = $1 FOR UPDATE", [ticket]);
      const asked = timed(scenario.redeem(api, { ticket, externalRef }));
      await untilWaiting(db, 1, "worker");
      await worker.kill();
      return { asked };
    });
    const { result, tookMs } = await asked;
    expectRetryLater(result, "redeem_unknown");
    expect(tookMs).toBeLessThan(scenario.redeemWaitMs + SLACK_MS);
    expect(await scenario.countBurns([voucher.id])).toBe(0);
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
    expect(await scenario.countBurns([voucher.id])).toBe(1);
  }, 60_000);

  it("after its commit and before its reply has burnt: the caller is told so when its wait is over, and every retry", async () => {
    const { db } = scenario.cluster;
    const voucher = scenario.takeVoucher();
    const body = { code: voucher.code, externalRef: scenario.newRef() };
    await withWiredWorker(async (wire, wired) => {
      const { asked } = await besideTransaction(db, async (outside) => {
        await lockRows(outside, [voucher.id]);
        const asked = timed(scenario.redeem(api, body));
        await untilWaiting(db, 1, "worker");
        wire.jam();
        return { asked };
      });
      await until(async () => (await scenario.countBurns([voucher.id])) === 1);
      await wired.kill();
      const { result, tookMs } = await asked;
      const told = answerOf(result);
      expect({ status: told.status, body: told.body }).toMatchObject({
        status: 200,
        body: { redeemed: true, voucherInstanceId: voucher.id },
      });
      expect(tookMs).toBeLessThan(scenario.redeemWaitMs + SLACK_MS);
      expect(answerOf(await scenario.redeem(otherApi, body)).body).toEqual({ ...told.body, alreadyConfirmed: true });
    });
  }, 60_000);
});

describe("an API process that is killed while a partner waits", () => {
  it("leaves the burn to the worker and the answer to the partner's retry elsewhere", async () => {
    const { db } = scenario.cluster;
    const voucher = scenario.takeVoucher();
    const body = { code: voucher.code, externalRef: scenario.newRef() };
    const { asked } = await besideTransaction(db, async (outside) => {
      await lockRows(outside, [voucher.id]);
      const asked = scenario.redeem(api, body);
      await untilWaiting(db, 1, "worker");
      await api.process.kill();
      return { asked };
    });
    expect(await asked).toMatchObject({ kind: "failure", failure: "reset" });
    await until(async () => (await scenario.countBurns([voucher.id])) === 1);
    expect(answerOf(await scenario.redeem(otherApi, body)).body).toMatchObject({
      alreadyConfirmed: true,
      voucherInstanceId: voucher.id,
    });
  });
});

describe("while all workers are gone", () => {
  it("a redeem answers 503 by its deadline and says that nothing was burned; jobs left over burn nothing afterwards", async () => {
    await Promise.all([worker.kill(), otherWorker.kill()]);
    const vouchers = [scenario.takeVoucher(), scenario.takeVoucher(), scenario.takeVoucher()];
    const abandoned = scenario.takeVoucher();
    const asked = timed(
      Promise.all(vouchers.map(({ code }) => scenario.redeem(api, { code, externalRef: scenario.newRef() }))),
    );
    const cut = scenario.redeem(otherApi, { code: abandoned.code, externalRef: scenario.newRef() });
    await until(async () => (await scenario.countWaitingJobs()) === 4);
    // Nobody takes this one's job back.
    await otherApi.process.kill();
    expect((await cut).kind).toBe("failure");
    const { result, tookMs } = await asked;
    for (const outcome of result) {
      const { body } = expectRetryLater(outcome, "redeem_timeout");
      expect(body.error).toMatch(/nothing was burned/i);
    }
    expect(tookMs).toBeLessThan(scenario.redeemWaitMs + SLACK_MS);
    expect(await scenario.countWaitingJobs()).toBe(1);
    neverBurnt.push(abandoned.id, ...vouchers.map(({ id }) => id));

    // Jobs are taken in order: once a later one is done, this one is, too.
    await scenario.makeWhole();
    await until(async () => (await scenario.countWaitingJobs()) === 0);
    expect(await scenario.countBurns(neverBurnt)).toBe(0);
  }, 60_000);
});

describe("while Redis hangs", () => {
  it("look-ups answer 200; reserve, redeem and readyz answer 503 in time; all answer again once it goes on", async () => {
    const { redis } = scenario.cluster;
    const [looked, reserved, redeemed] = [scenario.takeVoucher(), scenario.takeVoucher(), scenario.takeVoucher()];
    const body = { code: redeemed.code, externalRef: scenario.newRef() };
    redis.freeze();
    const [lookUp, reserve, redeem, ready] = await Promise.all([
      timed(scenario.lookUp(api, looked.code)),
      timed(scenario.reserve(api, reserved.code)),
      timed(scenario.redeem(api, body)),
      timed(scenario.ready(api)),
    ]);
    redis.thaw();
    expect(statusOf(lookUp.result)).toBe(200);
    expect(lookUp.tookMs).toBeLessThan(1_000);
    expectRetryLater(reserve.result, "unavailable");
    expectRetryLater(redeem.result, "redeem_unknown");
    expect(answerOf(ready.result).body).toMatchObject({ code: "unavailable", postgres: "ok", redis: "unavailable" });
    for (const { tookMs } of [reserve, redeem, ready]) expect(tookMs).toBeLessThan(scenario.redeemWaitMs);

    await until(async () => statusOf(await scenario.ready(api)) === 200, ANSWERS_AGAIN_MS);
    await until(async () => statusOf(await scenario.reserve(api, reserved.code)) === 200, ANSWERS_AGAIN_MS);
    const later = await until(async () => {
      const outcome = await scenario.redeem(otherApi, body);
      return statusOf(outcome) === 200 ? answerOf(outcome) : null;
    }, ANSWERS_AGAIN_MS);
    expect(later.body.voucherInstanceId).toBe(redeemed.id);
    expect(await scenario.countBurns([redeemed.id])).toBe(1);
  }, 60_000);
});

describe("when Redis comes back empty", () => {
  it("holds stand: the other key is refused, the holder gets its own ticket again and burns by it", async () => {
    const { redis } = scenario.cluster;
    const voucher = scenario.takeVoucher();
    const held = answerOf(await scenario.reserve(api, voucher.code)).body;
    await redis.kill("Everything");
    await redis.start();
    await until(async () => statusOf(await scenario.ready(api)) === 200, ANSWERS_AGAIN_MS);
    const refused = answerOf(await scenario.reserve(api, voucher.code, scenario.webShop));
    expect({ status: refused.status, code: refused.body.code }).toEqual({ status: 409, code: "voucher_reserved" });
    expect(answerOf(await scenario.reserve(api, voucher.code)).body).toEqual(held);
    const externalRef = scenario.newRef();
    const redeemed = await until(async () => {
      const outcome = await scenario.redeem(api, { ticket: held.ticket, externalRef });
      return statusOf(outcome) === 200 ? answerOf(outcome) : null;
    }, ANSWERS_AGAIN_MS);
    expect(redeemed.body.voucherInstanceId).toBe(voucher.id);
  }, 60_000);
});

describe("when Redis comes back without its last second", () => {
  it("nobody is told that nothing was burned while a worker burns", async () => {
    const { db, redis } = scenario.cluster;
    const voucher = scenario.takeVoucher();
    const body = { code: voucher.code, externalRef: scenario.newRef() };
    await withWiredWorker(async (wire) => {
      wire.jam();
      const askedAt = performance.now();
      const asked = scenario.redeem(api, body);
      await until(async () => (await scenario.countWaitingJobs()) === 1);
      // The job is older than what is lost below; that a worker has started it is not.
      await until(() => performance.now() - askedAt > 1_500);
      await besideTransaction(db, async (outside) => {
        await lockRows(outside, [voucher.id]);
        wire.mend();
        await untilWaiting(db, 1, "worker");
        wire.cut();
        await redis.kill("AppendOnlyTail");
        await redis.start();
        expect(await scenario.countWaitingJobs()).toBe(1);
      });
      await until(async () => (await scenario.countBurns([voucher.id])) === 1);
      const told = answerOf(await asked);
      expect({ status: told.status, body: told.body }).toMatchObject({
        status: 200,
        body: { redeemed: true, voucherInstanceId: voucher.id },
      });
      wire.mend();
    });
  }, 60_000);
});

describe("when Postgres is killed", () => {
  it("every call answers 503 with Retry-After until it is back; then all answer by themselves and what was told still holds", async () => {
    const { postgres } = scenario.cluster;
    const [held, burnt, open] = [scenario.takeVoucher(), scenario.takeVoucher(), scenario.takeVoucher()];
    const hold = answerOf(await scenario.reserve(api, held.code)).body;
    const body = { code: burnt.code, externalRef: scenario.newRef() };
    const told = answerOf(await scenario.redeem(api, body)).body;

    await postgres.kill();
    const fresh = { code: open.code, externalRef: scenario.newRef() };
    for (const outcome of await Promise.all([
      scenario.lookUp(api, open.code),
      scenario.reserve(api, open.code),
      scenario.redeem(api, fresh),
    ])) {
      expectRetryLater(outcome, "unavailable");
    }
    expect(answerOf(await scenario.ready(api)).body).toMatchObject({ postgres: "unavailable", redis: "ok" });

    await postgres.start();
    await until(async () => statusOf(await scenario.ready(api)) === 200, ANSWERS_AGAIN_MS);
    expect(answerOf(await scenario.redeem(api, body)).body).toEqual({ ...told, alreadyConfirmed: true });
    expect(answerOf(await scenario.reserve(api, held.code)).body).toEqual(hold);
    const later = await until(async () => {
      const outcome = await scenario.redeem(otherApi, fresh);
      return statusOf(outcome) === 200 ? answerOf(outcome) : null;
    }, ANSWERS_AGAIN_MS);
    expect(later.body.voucherInstanceId).toBe(open.id);
  }, 60_000);
});

describe("SIGTERM under load", () => {
  it.each([0, 1])("process %i of each kind: every request that was accepted gets its proper answer", async (which) => {
    const { apis, workers } = scenario.cluster;
    const [ending, endingWorker] = [apis[which] as ApiProcess, workers[which] as ServiceProcess];
    const wrong: Outcome[] = [];
    const reset: string[] = [];
    let answered = 0;
    let refused = 0;
    let goesOn = true;
    const loggedBefore = ending.process.readLog().length;
    const check = (target: ApiProcess, outcome: Outcome) => {
      if (statusOf(outcome) === 200) answered += 1;
      else if (target !== ending || outcome.kind === "answer") wrong.push(outcome);
      else if (outcome.failure === "refused") refused += 1;
      else if (outcome.failure === "reset") reset.push(outcome.requestId);
      else wrong.push(outcome);
    };
    const visit = async (visitor: number) => {
      for (let turn = visitor; goesOn; turn++) {
        const target = apis[turn % apis.length] as ApiProcess;
        const { code } = scenario.takeVoucher();
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
    goesOn = false;
    await Promise.all(visitors);
    expect(wrong).toEqual([]);
    // The system resets connections that it queued and that the process had not accepted when it stopped listening; no process can
    // help that. Every request that was accepted has a line in the log, answered or not.
    const log = ending.process.readLog().slice(loggedBefore);
    expect(reset.filter((requestId) => log.includes(requestId))).toEqual([]);
    expect(log).not.toContain('"status":499');
    expect({ exitCode, workerExitCode }).toEqual({ exitCode: 0, workerExitCode: 0 });
  });
});

describe("after all of this", () => {
  it("the jobs that dead workers left are taken over within 25 s and burn nothing", async () => {
    // A job that is taken over waits for a moment between two workers.
    await until(async () => (await scenario.countJobs()) === 0, 25_000);
    expect(await scenario.countBurns(neverBurnt)).toBe(0);
    await assertInvariants(scenario.cluster.db);
    expect(scenario.cluster.accidents).toEqual([]);
  });
});
