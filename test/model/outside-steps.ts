import fc from "fast-check";
import { AppError } from "../../src/contract/errors.ts";
import { resolveVouchers } from "../../src/db/vouchers.ts";
import { type VoidResult, voidVoucher } from "../../src/services/admin/void-voucher.ts";
import { readRecorded } from "../support/recorded.ts";
import { countJobs, newAttempt, redeemJob } from "../support/redeem-jobs.ts";
import { provisioning } from "../support/supply.ts";
import { until } from "../support/until.ts";
import * as model from "./model.ts";
import { someVoucher } from "./names.ts";
import { someRef } from "./partner-steps.ts";
import { disagree, makeStep, type Step } from "./step.ts";
import { moveBack, moveBackInShell } from "./time-passing.ts";
import type { World } from "./world.ts";

// Steps other than partner calls.

/**
 * Sums of these stay at least 50 seconds away from the 900 seconds of a reservation and from the validities below, so that the real
 * duration of a run does not matter. test/races covers the moments around an end.
 */
const someSeconds = fc.constantFrom(120, 120, 120, 360, 360, 360, 850, 850, 850, 90_000);

/** A voucher's validity in seconds: beyond every run, or short enough to end during a reservation. */
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

/** Voids a voucher and optionally requests its seal. Otherwise its event stays Pending. */
async function runVoid(state: model.Model, world: World, choice: VoidChoice): Promise<void> {
  const { system, organizations, bindings, transcript } = world;
  const { code } = model.VOUCHERS[choice.void];
  transcript.begin(`${choice.by} void ${choice.void}`);
  const reason = choice.reason === null ? "" : ` --reason "${choice.reason}"`;
  transcript.command(`npm run -s voucherctl -- voucher void $${code} --org $ORG_${choice.by}${reason}`);

  if (!choice.announced) transcript.remark("the process dies before it requests the seal");
  const expected = model.voidVoucher(state, choice.by, choice.void, choice.reason, choice.announced);
  const result = await voidVoucher(
    provisioning(system.servers.db),
    organizations[choice.by].organizationId,
    bindings.textOf(code),
    choice.reason,
  ).catch(refusalOf);
  const actual = typeof result === "string" ? result : null;
  transcript.remark(`actual   ${actual ?? "voided"}`);
  if (actual !== expected) {
    transcript.remark(`expected ${expected ?? "voided"}`);
    disagree(world, `voiding returned ${actual ?? "voided"}, not ${expected ?? "voided"}`);
  }
  const outcome = `void: ${actual ?? "voided"}`;
  world.tally.set(outcome, (world.tally.get(outcome) ?? 0) + 1);
  if (typeof result !== "string" && choice.announced) {
    await system.requestSeal(result.voucherId);
    await until(async () => (await readRecorded(system.servers.db, result.voucherId)).sealedSequence === 2);
  }
}

function refusalOf(error: unknown): string | VoidResult {
  if (error instanceof AppError) return error.code;
  throw error;
}

interface HangChoice {
  hang: model.VoucherName;
  key: "SHOP" | "TILL" | "OTHER";
  externalRef: string;
}

/** A call reads the voucher and adds its job, which hangs in a frozen worker; or the worker that hangs goes on. */
export const hangStep: fc.Arbitrary<Step> = fc
  .record<HangChoice>({ hang: someVoucher, key: fc.constantFrom("SHOP", "TILL", "OTHER"), externalRef: someRef })
  .map((choice) =>
    makeStep(choice, (state, { hang, key, externalRef }) => {
      if (state.hanging !== null) return resume;
      if (model.KEYS[key].organization !== model.VOUCHERS[hang].organization) return null;
      return async (state, world) => {
        const { system, organizations, bindings, transcript } = world;
        transcript.begin(`${key} redeems ${hang} for ${externalRef.trim()}, and the job hangs in a frozen worker`);
        const { organizationId } = organizations[model.KEYS[key].organization];
        const ref = { organizationId, externalRef: externalRef.trim() };
        const [seen] = await resolveVouchers(system.api.ctx.pool, [{ ...ref, codeKey: null, ticket: null }]);
        const { seenEnd = 0, generation = 0 } = seen ?? {};
        const [keyId, id] = [bindings.textOf(`KEY_ID_${key}`), bindings.textOf(`ID_${hang}`)];
        const deadlineMs = Date.now() + 3_600_000;
        world.hanging = redeemJob(ref, keyId, id, ref.externalRef, { seenEnd, generation, deadlineMs });
        model.hang(state, key, { named: { by: "code", voucher: hang }, externalRef, token: null, note: null });
      };
    }),
  );

async function resume(state: model.Model, world: World): Promise<void> {
  const { system, bindings, transcript, hanging, tally } = world;
  if (hanging === null || state.hanging === null) throw new Error("no job hangs");
  transcript.begin("the frozen worker goes on");
  world.hanging = null;
  const { named } = state.hanging.call;
  const expected = model.resume(state);
  const reply = await system.runJob(newAttempt(hanging.voucherId), hanging);
  const actual =
    { confirmed: "confirmed before", refused: "code" in reply ? reply.code : "" }[reply.kind as string] ?? reply.kind;
  if (actual !== expected) disagree(world, `the worker's reply is ${actual}, not ${expected}`);
  if (reply.kind === "redeemed" && named.by === "code") {
    bindings.bindText(`REDEEM_CODE_${named.voucher}`, reply.redeemCode);
    bindings.bindMoment(`REDEEMED_AT_${named.voucher}`, new Date(reply.redeemedAtMs));
  }
  tally.set(`resume: ${actual}`, (tally.get(`resume: ${actual}`) ?? 0) + 1);
}

export const restartStep: fc.Arbitrary<Step> = fc.constant("restart the workers").map((choice) =>
  makeStep(choice, () => async (_model, { system, transcript }) => {
    transcript.begin("all workers restart");
    await system.stopWorkers();
    await system.startWorkers();
  }),
);

export const leaseLostStep: fc.Arbitrary<Step> = fc.record({ loseLease: someVoucher }).map((choice) =>
  makeStep(choice, (_model, { loseLease }) => async (_state, { system, bindings, transcript }) => {
    transcript.begin(`Redis loses the lease of ${loseLease}`);
    transcript.command(`redis-cli -u "$REDIS_URL" del "${system.servers.leaseKey(`$ID_${loseLease}`)}"`);
    await system.servers.redis.del(system.servers.leaseKey(bindings.textOf(`ID_${loseLease}`)));
  }),
);

/** Adds a lease without a reservation, as left by a dead process, older than the two seconds for which it would count. */
export const orphanStep: fc.Arbitrary<Step> = fc.record({ orphan: someVoucher }).map((choice) =>
  makeStep(choice, (_model, { orphan }) => async (_state, { system, bindings, transcript }) => {
    transcript.begin(`${orphan} has a lease without a reservation`);
    const shown = `"${system.servers.leaseKey(`$ID_${orphan}`)}"`;
    transcript.command(
      `redis-cli -u "$REDIS_URL" hset ${shown} ticket rsv_orphan key key_orphan start $(($(date +%s%3N) - 5000))`,
    );
    transcript.command(`redis-cli -u "$REDIS_URL" pexpire ${shown} 895000`);
    const { redis } = system.servers;
    const key = system.servers.leaseKey(bindings.textOf(`ID_${orphan}`));
    const [seconds, micros] = (await redis.time()).map(Number) as [number, number];
    const start = seconds * 1_000 + Math.floor(micros / 1_000) - 5_000;
    await redis.multi().hset(key, { ticket: "rsv_orphan", key: "key_orphan", start }).pexpire(key, 895_000).exec();
  }),
);

/**
 * Runs one sweep. Skipped while an event is Pending, because the sweeper requests its seal after some seconds of real time, which the
 * model does not know.
 */
export const sweepStep: fc.Arbitrary<Step> = fc.constant("sweep").map((choice) =>
  makeStep(choice, (state) =>
    model.isSealDue(state)
      ? null
      : async (_state, world) => {
          world.transcript.begin("the sweeper runs once");
          world.transcript.remark("a worker process runs it every SWEEP_INTERVAL_MS");
          const { failures, chainsBroken } = await world.system.sweep();
          const failed = Object.entries(failures).map(([task, why]) => `${task} failed: ${why}`);
          if (failed.length > 0) disagree(world, ...failed);
          if (chainsBroken > 0) disagree(world, `the sweeper found ${chainsBroken} broken chains`);
          model.sweep(state);
        },
  ),
);

/** Empties Redis, which contains only leases and finished jobs between two steps. */
export const flushStep: fc.Arbitrary<Step> = fc.constant("flush Redis").map((choice) =>
  makeStep(choice, () => async (_model, { system, transcript }) => {
    const { redis } = system.servers;
    transcript.begin("Redis loses everything");
    transcript.command('redis-cli -u "$REDIS_URL" flushdb');
    await until(
      async () => (await countJobs(system.servers, "redeem")) + (await countJobs(system.servers, "seal")) === 0,
    );
    await redis.flushdb();
  }),
);
