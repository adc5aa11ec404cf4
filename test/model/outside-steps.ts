import fc from "fast-check";
import { AppError } from "../../src/domain/errors.ts";
import { leaseKey } from "../../src/holds/lease.ts";
import { type VoidResult, voidVoucher } from "../../src/services/void-voucher.ts";
import { readRecorded } from "../support/recorded.ts";
import { countJobs } from "../support/redeem-jobs.ts";
import { provisioning } from "../support/supply.ts";
import { until } from "../support/until.ts";
import * as model from "./model.ts";
import { someVoucher } from "./names.ts";
import { disagree, makeStep, type Step } from "./step.ts";
import { moveBack, moveBackInShell } from "./time-passing.ts";
import type { World } from "./world.ts";

// What happens to the service from outside of its partners' calls.

/**
 * Sums of these never come nearer than 50 seconds to the 900 of a hold or to the validities below, so that the real time that a run takes
 * decides nothing. The last moments before an end are what test/races is for.
 */
const someSeconds = fc.constantFrom(120, 120, 120, 360, 360, 360, 850, 850, 850, 90_000);

/** For how long a voucher is valid, in seconds: past every end, or so that it ends under a hold. */
export const someValidity: fc.Arbitrary<number> = fc.constantFrom(864_000, 864_000, 864_000, 300, 1_380);

export const timeStep: fc.Arbitrary<Step> = fc.record({ pass: someSeconds }).map((choice) =>
  makeStep(choice, (_model, { pass }) => async (state, { system, voucherIds, bindings, transcript }) => {
    transcript.begin(`${pass} seconds pass`);
    for (const line of moveBackInShell(pass)) transcript.command(line);
    await moveBack(system.servers, voucherIds, pass);
    bindings.passTime(pass);
    model.passTime(state, pass);
  }),
);

interface VoidChoice {
  void: model.VoucherName;
  by: model.OrganizationName;
  reason: string | null;
  announced: boolean;
}

export const voidStep: fc.Arbitrary<Step> = fc
  .record<VoidChoice>({
    void: someVoucher,
    by: fc.oneof(
      { weight: 5, arbitrary: fc.constant("OURS" as const) },
      { weight: 1, arbitrary: fc.constant("THEIRS" as const) },
    ),
    reason: fc.constantFrom(null, "printed twice"),
    announced: fc.boolean(),
  })
  .map((choice) => makeStep(choice, () => (state, world) => runVoid(state, world, choice)));

/** Voids a voucher, and has a worker seal its event or does not: then it stays Pending, because nothing moves it again. */
async function runVoid(state: model.Model, world: World, choice: VoidChoice): Promise<void> {
  const { system, organizations, bindings, transcript } = world;
  const { code } = model.VOUCHERS[choice.void];
  transcript.begin(`${choice.by} void ${choice.void}`);
  const reason = choice.reason === null ? "" : ` --reason "${choice.reason}"`;
  transcript.command(`npm run -s voucherctl -- voucher void $${code} --org $ORG_${choice.by}${reason}`);

  if (!choice.announced) transcript.remark("here the process dies before it has the event sealed");
  const expected = model.voidVoucher(state, choice.by, choice.void, choice.reason, choice.announced);
  const result = await voidVoucher(
    provisioning(system.servers.db),
    organizations[choice.by].organizationId,
    bindings.textOf(code),
    choice.reason,
  ).catch(refusalOf);
  const came = typeof result === "string" ? result : null;
  transcript.remark(`came     ${came ?? "voided"}`);
  if (came !== expected) {
    transcript.remark(`expected ${expected ?? "voided"}`);
    disagree(world, `voiding came to ${came ?? "a voided voucher"}, not ${expected ?? "to that"}`);
  }
  world.tally.set(`void: ${came ?? "voided"}`, (world.tally.get(`void: ${came ?? "voided"}`) ?? 0) + 1);
  if (typeof result !== "string" && choice.announced) {
    await system.requestSeal(result.voucherId);
    await until(async () => (await readRecorded(system.servers.db, result.voucherId)).sealedSequence === 2);
  }
}

function refusalOf(error: unknown): string | VoidResult {
  if (error instanceof AppError) return error.code;
  throw error;
}

export const restartStep: fc.Arbitrary<Step> = fc.constant("restart the workers").map((choice) =>
  makeStep(choice, () => async (_model, { system, transcript }) => {
    transcript.begin("every worker stops and starts again");
    await system.stopWorkers();
    await system.startWorkers();
  }),
);

export const leaseLostStep: fc.Arbitrary<Step> = fc.record({ loseLease: someVoucher }).map((choice) =>
  makeStep(choice, (_model, { loseLease }) => async (_state, { system, bindings, transcript }) => {
    transcript.begin(`Redis loses the lease of ${loseLease}`);
    transcript.command(`redis-cli -u "$REDIS_URL" del "${leaseKey(`$ID_${loseLease}`)}"`);
    await system.servers.redis.del(leaseKey(bindings.textOf(`ID_${loseLease}`)));
  }),
);

/** A lease as a process leaves it that died before it wrote the hold: older than the two seconds for which one may stop anybody. */
export const orphanStep: fc.Arbitrary<Step> = fc.record({ orphan: someVoucher }).map((choice) =>
  makeStep(choice, (_model, { orphan }) => async (_state, { system, bindings, transcript }) => {
    transcript.begin(`a lease of ${orphan} is there that has no hold behind it`);
    const shown = `"${leaseKey(`$ID_${orphan}`)}"`;
    transcript.command(
      `redis-cli -u "$REDIS_URL" hset ${shown} ticket rsv_orphan key key_orphan start $(($(date +%s%3N) - 5000))`,
    );
    transcript.command(`redis-cli -u "$REDIS_URL" pexpire ${shown} 895000`);
    const { redis } = system.servers;
    const key = leaseKey(bindings.textOf(`ID_${orphan}`));
    const [seconds, micros] = (await redis.time()).map(Number) as [number, number];
    const start = seconds * 1_000 + Math.floor(micros / 1_000) - 5_000;
    await redis.multi().hset(key, { ticket: "rsv_orphan", key: "key_orphan", start }).pexpire(key, 895_000).exec();
  }),
);

/**
 * One pass of the sweeper. Not while an event waits for its seal: the sweeper asks for that after seconds of real time, which
 * nothing here measures.
 */
export const sweepStep: fc.Arbitrary<Step> = fc.constant("sweep").map((choice) =>
  makeStep(choice, (state) =>
    model.isSealDue(state)
      ? null
      : async (_state, world) => {
          world.transcript.begin("the sweeper makes a pass");
          world.transcript.remark("a worker process makes one every SWEEP_INTERVAL_MS");
          const { failures, chainsBroken } = await world.system.sweep();
          const failed = Object.entries(failures).map(([task, why]) => `${task} failed: ${why}`);
          if (failed.length > 0) disagree(world, ...failed);
          if (chainsBroken > 0) disagree(world, `the sweeper found ${chainsBroken} broken chains`);
          model.sweep(state);
        },
  ),
);

/** Nothing waits in Redis between two steps, so all that it holds is leases and what is over. */
export const flushStep: fc.Arbitrary<Step> = fc.constant("flush Redis").map((choice) =>
  makeStep(choice, () => async (_model, { system, transcript }) => {
    const { redis } = system.servers;
    transcript.begin("Redis loses everything");
    transcript.command('redis-cli -u "$REDIS_URL" flushdb');
    await until(async () => (await countJobs(redis, "redeem")) + (await countJobs(redis, "seal")) === 0);
    await redis.flushdb();
  }),
);
