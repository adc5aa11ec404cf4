import { setTimeout as sleep } from "node:timers/promises";
import { beforeAll, describe, expect, it } from "vitest";
import type { IssuedVoucher } from "../../../src/acts/issue-batch.ts";
import type { Reply } from "../../support/client.ts";
import { expectFairRound } from "../../support/fair-rounds.ts";
import { outcome } from "../../support/marketplace.ts";
import {
  besideTransaction,
  currentWaits,
  LOCK_WAIT_MS,
  untilWaiting,
  untilWaitingOr,
  whileLocked,
} from "../../support/outside-transaction.ts";
import { readRecorded } from "../../support/recorded.ts";
import { countJobs, redeemJob } from "../../support/redeem-jobs.ts";
import { issueVoucher, issueVouchers } from "../../support/supply.ts";
import { inTime, until, untilStarted } from "../../support/until.ts";
import { useService } from "../../support/use-service.ts";

/** Unused vouchers, issued before any lock, so that a test does only the measured work while it holds a lock. */
let unused: IssuedVoucher[];

/** The number of jobs that each of the two workers runs at once: so few that one voucher's jobs can occupy them all. */
const CONCURRENCY = 8;
/** How long a redeem waits for a locked row. An answer after twice this time means two waits. Milliseconds. */
const REDEEM_LOCK_MS = 5_000;

// REDEEM_WAIT_MS is so long that even a busy machine answers every redeem.
const env = { REDEEM_WAIT_MS: "60000", WORKER_CONCURRENCY: String(CONCURRENCY) };
const { servers, partner, stranger, worker, workers, till, rival, foreign, issue } = useService({
  workers: [env, env],
  env,
});

beforeAll(async () => {
  unused = await issueVouchers(servers.db, partner, 2_000);
  // Opens the processes' connections. On a busy machine, the first calls may fail because this takes too long.
  await untilStarted(() => Promise.all([redeemOthers(), reserveOthers()]).catch(() => false));
});

let refs = 0;

describe("while another transaction locks one voucher's row", () => {
  it.each([
    ["redeem", "worker"],
    ["reserve", "api"],
    ["release", "api"],
  ] as const)("a locked voucher delays no other voucher, and its %s succeeds after the lock", async (kind, role) => {
    const { locked, reply } = await until(async () => {
      const locked = await issue();
      const call = await prepareCall(kind, locked.code);
      return whileBrieflyLocked(kind === "redeem" ? REDEEM_LOCK_MS : LOCK_WAIT_MS, locked.id, async () => {
        const reply = call();
        if (!(await untilWaitingOr(reply, servers.db, 1, role))) return null;
        await (kind === "redeem" ? redeemOthers() : reserveOthers());
        return { locked, reply };
      });
    });
    const { status, body } = await reply;
    expect(status).toBe(200);
    const { redemption, liveTicket } = await readRecorded(servers.db, locked.id);
    expect({ redeemCode: redemption?.redeemCode, liveTicket }).toEqual({
      redeemCode: body.redeemCode,
      liveTicket: kind === "reserve" ? body.ticket : null,
    });
  });

  it.each([
    "redeem",
    "reserve",
    "release",
  ] as const)("the %s of a locked voucher answers voucher_busy after the wait, and succeeds later", async (kind) => {
    const locked = await issue();
    const call = await prepareCall(kind, locked.code);
    const before = await readRecorded(servers.db, locked.id);
    await whileLocked(servers.db, [locked.id], async () => {
      const reply = await call();
      expect(outcome(reply)).toBe("503 voucher_busy");
      expect(Number(reply.headers.get("retry-after"))).toBeGreaterThan(0);
    });
    expect(await readRecorded(servers.db, locked.id)).toEqual(before);
    if (kind === "reserve") expect(await servers.redis.exists(servers.leaseKey(locked.id))).toBe(0);
    const { status, body } = await call();
    expect({ status, again: body.alreadyConfirmed ?? false }).toEqual({ status: 200, again: false });
  });

  it("a redeem in the same batch as a locked voucher's redeem does not wait for the lock", async () => {
    const locked = await issue();
    const others = await issueVouchers(servers.db, partner, 5);
    const { own } = await whileLocked(servers.db, [locked.id], async () => {
      const [own, ...together] = [locked, ...others].map(({ id }) => redeemDirectly(id));
      expect(await Promise.all(together)).toMatchObject(others.map(() => ({ reply: { kind: "redeemed" } })));
      return { own };
    });
    expect(await own).toMatchObject({ reply: { kind: "redeemed" } });
  });

  it("other vouchers are redeemed even if all running jobs wait for one locked voucher", async () => {
    const { redeems, firstWaits, lastWaits } = await until(async () => {
      const { id, code } = await issue();
      return whileBrieflyLocked(REDEEM_LOCK_MS, id, async () => {
        const redeems = Array.from({ length: CONCURRENCY * 4 }, () => till.redeem({ code, externalRef: newRef() }));
        if (!(await untilWaitingOr(Promise.all(redeems), servers.db, workers.length, "worker"))) return null;
        const firstWaits = await currentWaits(servers.db, "worker");
        await redeemOthers();
        return { redeems, firstWaits, lastWaits: await currentWaits(servers.db, "worker") };
      });
    });
    expect(lastWaits).toEqual(expect.arrayContaining(firstWaits));
    const answers = (await Promise.all(redeems)).map(outcome);
    expect(answers.filter((answer) => answer === "200").length).toBeLessThanOrEqual(1);
    for (const answer of answers)
      expect(answer).toMatch(/^(200|409 voucher_used|503 (voucher_busy|overloaded|redeem_\w+))$/);
  });

  it("other vouchers are reserved while 30 reserves of one key wait for a locked voucher", async () => {
    const { reserves } = await until(async () => {
      const { id, code } = await issue();
      return whileBrieflyLocked(LOCK_WAIT_MS, id, async () => {
        const reserves = Array.from({ length: 30 }, () => till.reserve(code));
        if (!(await untilWaitingOr(Promise.all(reserves), servers.db, 1, "api"))) return null;
        await reserveOthers();
        return { reserves };
      });
    });
    const replies = await Promise.all(reserves);
    expect(new Set(replies.map(({ status, body }) => `${status} ${body.ticket}`)).size).toBe(1);
    expect(replies[0]?.status).toBe(200);
  });

  it("look-ups, reserves and redeems of other vouchers succeed while 30 releases wait for a lock", async () => {
    const { releases, firstWaits, lastWaits } = await until(async () => {
      const { id, code } = await issue();
      const { ticket } = (await till.reserve(code)).body;
      return whileBrieflyLocked(LOCK_WAIT_MS, id, async () => {
        const releases = Array.from({ length: 30 }, () => till.release(ticket));
        if (!(await untilWaitingOr(Promise.all(releases), servers.db, 1, "api"))) return null;
        const firstWaits = await currentWaits(servers.db, "api");
        await lookUpOthers();
        await reserveOthers();
        await redeemOthers();
        return { releases, firstWaits, lastWaits: await currentWaits(servers.db, "api") };
      });
    });
    expect(lastWaits).toEqual(expect.arrayContaining(firstWaits));
    const replies = await Promise.all(releases);
    expect(replies.filter(({ body }) => body.released === true)).toHaveLength(1);
    for (const { status, body } of replies)
      expect([true, false, "voucher_busy"]).toContain(body.released ?? (status === 503 && body.code));
  });
});

/** A partner's pause between retries, shorter than the documented one. Milliseconds. */
const RETRY_AFTER_MS = 200;

describe("while many vouchers' rows are locked", () => {
  it("all redeems of a worker succeed if many locked rows become free at once", async () => {
    const locked = await issueVouchers(servers.db, partner, CONCURRENCY - 1);
    const free = await issue();
    const { redemptions } = await whileLocked(
      servers.db,
      locked.map(({ id }) => id),
      async () => {
        const redemptions = locked.map(({ id }) => redeemDirectly(id));
        // A commit batch with this voucher and the locked ones redeems this voucher only if it skips the others.
        expect(await redeemDirectly(free.id)).toMatchObject({ reply: { kind: "redeemed" } });
        return { redemptions };
      },
    );
    expect(await Promise.all(redemptions)).toMatchObject(locked.map(() => ({ reply: { kind: "redeemed" } })));
  });

  it("a quarter of a worker's jobs may wait for locked vouchers, and the rest get voucher_busy earlier", async () => {
    const quarter = CONCURRENCY / 4;
    const measure = async () => {
      const ids = (await issueVouchers(servers.db, partner, 2 * CONCURRENCY - 3)).map(({ id }) => id);
      const free = await issue();
      return whileLocked(servers.db, ids, async () => {
        let settled = 0;
        const redeemLocked = (some: string[]) => some.map((id) => redeemDirectly(id).finally(() => settled++));
        const startedAt = performance.now();
        const redemptions = redeemLocked(ids.slice(0, CONCURRENCY));
        await until(() => settled >= CONCURRENCY - quarter);
        // While the first jobs wait, at most a quarter of the jobs may try again later, in the free voucher's batch.
        redemptions.push(...redeemLocked(ids.slice(CONCURRENCY)));
        await redeemDirectly(free.id);
        await until(() => settled > CONCURRENCY - quarter);
        const settledEarly = settled;
        const all = Promise.all(redemptions);
        const areWaiting = await untilWaitingOr(all, servers.db, quarter, "worker");
        const tookMs = performance.now() - startedAt;
        if (tookMs < REDEEM_LOCK_MS) expect(settledEarly).toBe(ids.length - 2 * quarter);
        expect(await all).toEqual(ids.map(() => ({ reply: { kind: "busy" }, consumedTicket: null })));
        return { tookMs, areWaiting };
      });
    };
    await expectFairRound(3, measure, ({ tookMs, areWaiting }) => areWaiting === true && tookMs < REDEEM_LOCK_MS);
  });

  it("redeems of other vouchers succeed during retries of locked ones, and each retry is answered soon", async () => {
    const measure = async () => {
      const locked = await issueVouchers(servers.db, partner, 40);
      const ids = locked.map(({ id }) => id);
      const answers: Awaited<ReturnType<typeof timed>>[] = [];
      let stopped = false;
      let callers: Promise<void>[] = [];
      await whileLocked(servers.db, ids, async () => {
        callers = locked.map(async ({ code }) => {
          const externalRef = newRef();
          while (!stopped) {
            answers.push(await timed(till.redeem({ code, externalRef })));
            await sleep(RETRY_AFTER_MS);
          }
        });
        try {
          await untilWaiting(servers.db, workers.length, "worker");
          await redeemOthers();
          await redeemOthers();
        } finally {
          stopped = true;
        }
        await Promise.all(callers);
      });
      expect(new Set(answers.map(({ answer }) => answer))).toEqual(new Set(["503 voucher_busy"]));
      const times = answers.map(({ tookMs }) => tookMs);
      return { shortestMs: Math.min(...times.filter((ms) => ms > REDEEM_LOCK_MS)), longestMs: Math.max(...times) };
    };
    // A call waits for the lock once. On a busy machine, its job may first wait for a worker.
    await expectFairRound(
      3,
      measure,
      ({ shortestMs, longestMs }) => shortestMs < 2 * REDEEM_LOCK_MS && longestMs < 3 * REDEEM_LOCK_MS,
    );
  });

  it("60 reserves of locked vouchers answer voucher_busy after one lock wait, and delay no other voucher", async () => {
    const measure = async () => {
      const locked = await issueVouchers(servers.db, partner, 60);
      const neighbours = await issueVoucher(servers.db, stranger);
      const ids = [...locked, neighbours].map(({ id }) => id);
      return whileLocked(servers.db, ids, async () => {
        const reserves = locked.map(({ code }) => timed(till.reserve(code)));
        const waiting = [await untilWaitingOr(Promise.all(reserves), servers.db, 2, "api")];
        // The API reserves its other connections for other organizations.
        reserves.push(timed(foreign.reserve(neighbours.code)));
        waiting.push(await untilWaitingOr(Promise.all(reserves), servers.db, 3, "api"));
        await reserveOthers();
        const replies = await Promise.all(reserves);
        expect(new Set(replies.map(({ answer }) => answer))).toEqual(new Set(["503 voucher_busy"]));
        expect(await servers.redis.exists(...ids.map(servers.leaseKey))).toBe(0);
        return { waiting, longestMs: Math.max(...replies.map(({ tookMs }) => tookMs)) };
      });
    };
    await expectFairRound(
      3,
      measure,
      ({ waiting, longestMs }) => waiting.every(Boolean) && longestMs < 2 * LOCK_WAIT_MS,
    );
  });
});

describe("while a redemption under one reference is written and not committed", () => {
  it("a redeem waits for an uncommitted redemption under its reference, and other redeems do not", async () => {
    const [first, second] = await issueVouchers(servers.db, partner, 2);
    const externalRef = newRef();
    const { redeem } = await besideTransaction(servers.db, async (outside) => {
      await outside.query(
        `INSERT INTO redemptions
           (redeemed_at, voucher_id, organization_id, key_id, attempt_id, redeem_code, external_ref)
         VALUES (date_trunc('milliseconds', clock_timestamp()), $1, $2, 'key', 'attempt', 'code', $3)`,
        [first?.id, partner.organizationId, externalRef],
      );
      const redeem = till.redeem({ code: second?.code, externalRef });
      await untilWaiting(servers.db, 1, "worker");
      await redeemOthers();
      return { redeem };
    });
    expect(outcome(await redeem)).toMatch(/^(200|503 \w+)$/);
  });
});

it("40 callers that retry one voucher do not delay redeems of other vouchers", async () => {
  const hot = await issue();
  await rival.reserve(hot.code);
  const answers: string[] = [];
  let stopped = false;
  const callers = Array.from({ length: 40 }, async () => {
    while (!stopped) answers.push(outcome(await till.redeem({ code: hot.code, externalRef: newRef() })));
  });
  try {
    await until(() => answers.length > 100);
    await redeemOthers();
    await redeemOthers();
    const answeredMeanwhile = answers.length;
    await until(() => answers.length > answeredMeanwhile);
  } finally {
    stopped = true;
  }
  await Promise.all(callers);
  expect(new Set(answers)).toEqual(new Set(["409 voucher_reserved"]));
  expect((await readRecorded(servers.db, hot.id)).redemption).toBeNull();
  expect(await countJobs(servers, "redeem")).toBe(0);
});

function newRef(): string {
  refs += 1;
  return `ref-${refs}`;
}

/** Redeems 20 other vouchers concurrently. Resolves when all are redeemed. */
async function redeemOthers(): Promise<void> {
  const others = unused.splice(0, 20);
  const replies = await Promise.all(others.map(({ code }) => till.redeem({ code, externalRef: newRef() })));
  expect(replies.map(outcome)).toEqual(others.map(() => "200"));
}

/** Reserves 20 other vouchers concurrently and releases them. Resolves when all are released. */
async function reserveOthers(): Promise<void> {
  const others = unused.splice(0, 20);
  const reserved = await Promise.all(others.map(({ code }) => till.reserve(code)));
  expect(reserved.map(outcome)).toEqual(others.map(() => "200"));
  const released = await Promise.all(reserved.map(({ body }) => till.release(body.ticket)));
  expect(released.map(({ body }) => body.released)).toEqual(others.map(() => true));
}

/** Runs `work` while a voucher's row is locked. Returns null if that took longer than a call waits for the lock. */
function whileBrieflyLocked<T>(lockWaitMs: number, id: string, work: () => Promise<T>): Promise<T | null> {
  return inTime(lockWaitMs, () => whileLocked(servers.db, [id], work));
}

/** Looks up 20 other vouchers concurrently. */
async function lookUpOthers(): Promise<void> {
  const others = unused.splice(0, 20);
  const replies = await Promise.all(others.map(({ code }) => till.lookUp(code)));
  expect(replies.map(outcome)).toEqual(others.map(() => "200"));
}

/** Submits a redeem directly to the first worker's group committer, without the queue. */
function redeemDirectly(voucherId: string) {
  return worker.ctx.redeemCommitter.submit({
    ...redeemJob(partner, "key", voucherId, newRef()),
    attemptId: newRef(),
    origin: worker.ctx.deployment.serverId,
  });
}

/** Returns a repeatable call for a voucher. For a release, it first reserves the voucher. */
async function prepareCall(kind: "redeem" | "reserve" | "release", code: string): Promise<() => Promise<Reply>> {
  const externalRef = newRef();
  if (kind === "redeem") return () => till.redeem({ code, externalRef });
  if (kind === "reserve") return () => till.reserve(code);
  const { ticket } = (await till.reserve(code)).body;
  return () => till.release(ticket);
}

async function timed(call: Promise<Reply>): Promise<{ answer: string; tookMs: number }> {
  const startedAt = performance.now();
  const answer = outcome(await call);
  return { answer, tookMs: performance.now() - startedAt };
}
