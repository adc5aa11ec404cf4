import fc from "fast-check";
import { extendById } from "../../../src/acts/extend-voucher.ts";
import { resumeById, suspendById } from "../../../src/acts/suspend-voucher.ts";
import type { AuditContext } from "../../../src/acts/with-audit-entry.ts";
import { resolveVouchers } from "../../../src/core/voucher/db/vouchers.ts";
import { AppError } from "../../../src/platform/api/errors.ts";
import { bypassTriggers } from "../../support/outside-transaction.ts";
import { countJobs, newAttempt, redeemJob } from "../../support/redeem-jobs.ts";
import { provisioning } from "../../support/supply.ts";
import { until } from "../../support/until.ts";
import { voidVoucher } from "../../support/void-voucher.ts";
import * as model from "./model.ts";
import { someVoucher } from "./names.ts";
import { someRef } from "./partner-steps.ts";
import { count, disagree, makeStep, type Step } from "./step.ts";
import type { World } from "./world.ts";

// Steps other than partner calls.

/**
 * No sum of these comes within 50 seconds of the 900 seconds of a reservation or of the validities below. So it does
 * not matter how long a run really takes. test/core tests the moments around an end.
 */
const someSeconds = fc.constantFrom(120, 120, 120, 360, 360, 360, 850, 850, 850, 90_000);

/** How many seconds a voucher is valid: longer than every run, or so short that it may end during a reservation. */
export const someValidity: fc.Arbitrary<number> = fc.constantFrom(864_000, 864_000, 864_000, 300, 1_380);

/** Makes a lease older. A lease past its expiry ends at once. */
const MOVE_LEASE_BACK = [
  "if redis.call('EXISTS', KEYS[1]) == 0 then return end",
  "redis.call('PEXPIRE', KEYS[1], redis.call('PTTL', KEYS[1]) - ARGV[1])",
].join(" ");

/**
 * Simulates that time passes. Moves everything that the service compares with a clock back by that time: the start and
 * end of live reservations, the end of validity, and the age and expiry of leases. Past moments stay. No job is
 * running, so no deadline has to move.
 */
export const timeStep: fc.Arbitrary<Step> = fc.record({ pass: someSeconds }).map((choice) =>
  makeStep(choice, (_model, { pass }) => async (state, { system: { servers }, voucherIds, bindings, log }) => {
    log.push(`${pass} seconds pass`);
    // A trigger forbids changing the ends of redeemed vouchers.
    await bypassTriggers(
      servers.db,
      `WITH moved AS (
         UPDATE reservations
            SET started_at = started_at - make_interval(secs => $2), expires_at = expires_at - make_interval(secs => $2)
          WHERE state = 'Live' AND voucher_id = ANY ($1)
       ), extended AS (
         UPDATE vouchers SET valid_until = valid_until - make_interval(secs => $2)
          WHERE id = ANY ($1) AND valid_until IS NOT NULL
       )
       UPDATE batches SET valid_until = valid_until - make_interval(secs => $2)
        WHERE id IN (SELECT batch_id FROM vouchers WHERE id = ANY ($1))`,
      [voucherIds, pass],
    );
    for (const id of voucherIds) await servers.redis.eval(MOVE_LEASE_BACK, 1, servers.leaseKey(id), pass * 1_000);
    bindings.passTime(pass);
    model.passTime(state, pass);
  }),
);

interface SuspendChoice {
  suspend: model.VoucherName;
  suspended: boolean;
}

export const suspendStep: fc.Arbitrary<Step> = fc
  .record<SuspendChoice>({ suspend: someVoucher, suspended: fc.boolean() })
  .map((choice) =>
    makeStep(choice, () => async (state, world) => {
      const verb = choice.suspended ? "suspend" : "unsuspend";
      const expected = model.suspendVoucher(state, choice.suspend, choice.suspended, "stolen");
      const act = choice.suspended ? suspendById : resumeById;
      await compareAct(world, verb, choice.suspend, expected, (ctx, id) => act(ctx, id, "stolen"));
    }),
  );

/** How an extension's end compares with the present end. With "never", it is after every run. */
const ENDS = ["later", "later", "never", "same", "earlier"] as const;
/**
 * Every end is this many seconds after a multiple of two minutes. Steps that let time pass add up to such a multiple,
 * plus ten seconds for each 850. So no end is near, except after many steps of 850.
 */
const END_AFTER_S = 110;

interface ExtendChoice {
  extend: model.VoucherName;
  end: (typeof ENDS)[number];
}

/** Moves a voucher's end to a later, the same or an earlier time. */
export const extendStep: fc.Arbitrary<Step> = fc
  .record<ExtendChoice>({ extend: someVoucher, end: fc.constantFrom(...ENDS) })
  .map((choice) =>
    makeStep(choice, () => async (state, world) => {
      const voucher = state.vouchers[choice.extend];
      const [before, beforeName] = [voucher.validForSeconds, model.endName(voucher)];
      const later = Math.ceil((Math.max(before, state.now) + 400) / 120) * 120 + END_AFTER_S;
      const end = { later, never: later + 864_000, same: before, earlier: before - 60 }[choice.end];
      const expected = model.extendVoucher(state, choice.extend, end, "was ill");
      const nextName = `VALID_UNTIL_${choice.extend}_${state.vouchers[choice.extend].extensions}`;
      const wanted = `WANTED_END_OF_${choice.extend}`;
      const validUntil = world.bindings.bindAfter(wanted, end - before, beforeName);
      if (nextName !== beforeName) world.bindings.bindAfter(nextName, end - before, beforeName);
      const extend = (ctx: AuditContext, id: string) => extendById(ctx, id, validUntil, "was ill");
      await compareAct(world, "extend", choice.extend, expected, extend);
    }),
  );

/** Runs an act on a voucher, and compares the refusal with the model's. */
async function compareAct(
  world: World,
  verb: string,
  name: model.VoucherName,
  expected: string | null,
  act: (ctx: AuditContext, id: string) => Promise<unknown>,
): Promise<void> {
  world.log.push(`an operator may ${verb} ${name}`);
  const id = world.bindings.textOf(`ID_${name}`);
  const actual = await act(provisioning(world.system.servers.db), id).then(() => null, refusalOf);
  if (actual !== expected) disagree(`to ${verb} ${name} returned ${actual ?? "done"}, not ${expected ?? "done"}`);
  count(world, `${verb}: ${actual ?? "done"}`);
}

interface VoidChoice {
  void: model.VoucherName;
  by: model.OrganizationName;
  reason: string | null;
}

export const voidStep: fc.Arbitrary<Step> = fc
  .record<VoidChoice>({
    void: someVoucher,
    by: fc.oneof(
      { weight: 5, arbitrary: fc.constant("OURS" as const) },
      { weight: 1, arbitrary: fc.constant("THEIRS" as const) },
    ),
    reason: fc.constantFrom(null, "printed twice"),
  })
  .map((choice) => makeStep(choice, () => (state, world) => runVoid(state, world, choice)));

async function runVoid(state: model.Model, world: World, choice: VoidChoice): Promise<void> {
  const { system, organizations, bindings } = world;
  world.log.push(`${choice.by} void ${choice.void}`);
  const expected = model.voidVoucher(state, choice.by, choice.void, choice.reason);
  const { organizationId } = organizations[choice.by];
  const code = bindings.textOf(model.VOUCHERS[choice.void].code);
  const voided = voidVoucher(provisioning(system.servers.db), organizationId, code, choice.reason);
  const actual = await voided.then(() => null, refusalOf);
  if (actual !== expected) disagree(`voiding returned ${actual ?? "voided"}, not ${expected ?? "voided"}`);
  count(world, `void: ${actual ?? "voided"}`);
}

function refusalOf(error: unknown): string {
  if (error instanceof AppError) return error.code;
  throw error;
}

interface HangChoice {
  hang: model.VoucherName;
  key: "SHOP" | "TILL" | "OTHER";
  externalRef: string;
}

/** Reads the voucher and adds a job, which hangs in a frozen worker. Or lets the frozen worker continue. */
export const hangStep: fc.Arbitrary<Step> = fc
  .record<HangChoice>({ hang: someVoucher, key: fc.constantFrom("SHOP", "TILL", "OTHER"), externalRef: someRef })
  .map((choice) =>
    makeStep(choice, (state, { hang, key, externalRef }) => {
      if (state.hanging !== null) return resume;
      if (model.KEYS[key].organization !== model.VOUCHERS[hang].organization) return null;
      return async (state, world) => {
        const { system, organizations, bindings, log } = world;
        log.push(`${key} redeems ${hang} for ${externalRef.trim()}, and the job hangs in a frozen worker`);
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
  const { system, bindings, log, hanging } = world;
  if (hanging === null || state.hanging === null) throw new Error("no job hangs");
  log.push("the frozen worker goes on");
  world.hanging = null;
  const { named } = state.hanging.call;
  const expected = model.resume(state);
  const reply = await system.runJob(newAttempt(hanging.voucherId), hanging);
  const actual =
    { confirmed: "confirmed before", refused: "code" in reply ? reply.code : "" }[reply.kind as string] ?? reply.kind;
  if (actual !== expected) disagree(`the worker's reply is ${actual}, not ${expected}`);
  if (reply.kind === "redeemed" && named.by === "code") {
    bindings.bindText(`REDEEM_CODE_${named.voucher}`, reply.redeemCode);
    bindings.bindMoment(`REDEEMED_AT_${named.voucher}`, new Date(reply.redeemedAtMs));
  }
  count(world, `resume: ${actual}`);
}

export const restartStep: fc.Arbitrary<Step> = fc.constant("restart the workers").map((choice) =>
  makeStep(choice, () => async (_model, { system, log }) => {
    log.push("all workers restart");
    await system.stopWorkers();
    await system.startWorkers();
  }),
);

export const leaseLostStep: fc.Arbitrary<Step> = fc.record({ loseLease: someVoucher }).map((choice) =>
  makeStep(choice, (_model, { loseLease }) => async (_state, { system, bindings, log }) => {
    log.push(`Redis loses the lease of ${loseLease}`);
    await system.servers.redis.del(system.servers.leaseKey(bindings.textOf(`ID_${loseLease}`)));
  }),
);

/**
 * Adds a lease without a reservation, as a process that died may leave it. With 895 of its 900 s left, it is five
 * seconds old. The service refuses calls only for a lease of at most two seconds.
 */
export const orphanStep: fc.Arbitrary<Step> = fc.record({ orphan: someVoucher }).map((choice) =>
  makeStep(choice, (_model, { orphan }) => async (_state, { system, bindings, log }) => {
    log.push(`${orphan} has a lease without a reservation`);
    const { redis } = system.servers;
    const key = system.servers.leaseKey(bindings.textOf(`ID_${orphan}`));
    await redis.set(key, "rsv_orphan key_orphan", "PX", 895_000);
  }),
);

/** Runs one sweep. */
export const sweepStep: fc.Arbitrary<Step> = fc.constant("sweep").map((choice) =>
  makeStep(choice, () => async (state, world) => {
    world.log.push("the sweeper runs once");
    const { failures, chainsBroken } = await world.system.sweep();
    const failed = Object.entries(failures).map(([task, why]) => `${task} failed: ${why}`);
    disagree(...failed);
    if (chainsBroken > 0) disagree(`the sweeper found ${chainsBroken} broken chains`);
    model.sweep(state);
  }),
);

/** Empties Redis, which contains only leases and finished jobs between two steps. */
export const flushStep: fc.Arbitrary<Step> = fc.constant("flush Redis").map((choice) =>
  makeStep(choice, () => async (_model, { system, log }) => {
    log.push("Redis loses everything");
    await until(async () => (await countJobs(system.servers, "redeem")) === 0);
    await system.servers.redis.flushdb();
  }),
);
