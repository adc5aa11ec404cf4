import fc from "fast-check";
import { afterAll, beforeAll, expect, it } from "vitest";
import { assertInvariants } from "../../support/invariants.ts";
import { examine } from "./examine.ts";
import { newModel } from "./model.ts";
import * as outside from "./outside-steps.ts";
import * as partner from "./partner-steps.ts";
import type { Step } from "./step.ts";
import { openSystem, type System } from "./system.ts";
import { openWorld, type Tally, type World } from "./world.ts";

// Compares random histories of calls with the model, answer by answer. The same seed gives the same histories.
// `MODEL_RUNS=2000 MODEL_SEED=7 npx vitest run test/proof/model` runs more and other histories.
// A failure prints the command that repeats one history, with MODEL_SEED, MODEL_PATH and MODEL_REPLAY.

/** All steps with their relative frequency. A restart of the workers takes longer than a dozen calls. */
const STEPS: [fc.Arbitrary<Step>, number][] = [
  [partner.reserveStep, 20],
  [partner.redeemStep, 20],
  [partner.lookUpStep, 14],
  [partner.releaseStep, 12],
  [outside.timeStep, 6],
  [partner.eventsStep, 3],
  [outside.hangStep, 6],
  [outside.leaseLostStep, 2],
  [outside.orphanStep, 2],
  [outside.sweepStep, 2],
  [outside.flushStep, 1],
  [outside.restartStep, 1],
  [outside.voidStep, 1],
  [outside.suspendStep, 4],
  [outside.extendStep, 2],
];

const DEFAULT_RUNS = 50;
const runs = Number(process.env.MODEL_RUNS || DEFAULT_RUNS);
const seed = Number(process.env.MODEL_SEED || 20_261_121);
const path = process.env.MODEL_PATH || "";
const replayPath = process.env.MODEL_REPLAY || "";
/** The maximum number of steps in a history. */
const STEPS_MAX = 200;
/** Far longer than the runs take, so that fast-check has time to shrink a failure. Milliseconds. */
const TIME_LIMIT_MS = 60_000 + runs * 4_000;

let system: System;

beforeAll(async () => {
  system = await openSystem();
});

afterAll(() => system.close());

const { someValidity } = outside;
const validities = fc.record({ A: someValidity, B: someValidity, C: someValidity, D: someValidity });

it(
  "the service and the model of its rules give the same answers to random histories",
  async () => {
    const tally: Tally = new Map();
    // The last failure is the shortest, because fast-check shrinks only failures.
    const failed: World[] = [];
    const steps = STEPS.flatMap(([step, weight]) => Array<typeof step>(weight).fill(step));
    const property = fc.asyncProperty(
      validities,
      fc.commands(steps, { maxCommands: STEPS_MAX, size: "max", ...(replayPath === "" ? {} : { replayPath }) }),
      async (validForSeconds, commands) => {
        const world = await openWorld(system, tally, validForSeconds);
        const model = newModel(validForSeconds);
        try {
          await fc.asyncModelRun(() => ({ model, real: world }), commands);
          await examine(model, world);
        } catch (error) {
          failed.push(world);
          throw error;
        }
      },
    );
    const details = await fc.check(property, {
      seed,
      path,
      numRuns: runs,
      // Makes long histories as frequent as short ones.
      unbiased: true,
      interruptAfterTimeLimit: TIME_LIMIT_MS,
    });
    if (details.failed) throw new Error(report(details, failed.at(-1)), { cause: details.errorInstance });
    expect(details.interrupted).toBe(false);
    await assertInvariants(system.servers.db);
    if (runs >= DEFAULT_RUNS && path === "") expect([...tally.keys()]).toEqual(expect.arrayContaining(OUTCOMES));
  },
  2 * TIME_LIMIT_MS,
);

/** Returns the command that repeats the shortest failing history, and its steps with their answers. */
function report(
  details: Pick<fc.RunDetails<unknown>, "counterexamplePath" | "errorInstance"> & { counterexample: unknown },
  world?: World,
): string {
  const { counterexample, counterexamplePath, errorInstance } = details;
  const replay = /replayPath="(.*?)"/.exec(String(counterexample))?.[1] ?? "";
  return [
    `The service and the model disagree: ${(errorInstance as Error | null)?.message ?? "interrupted"}`,
    `MODEL_SEED=${seed} MODEL_PATH="${counterexamplePath}" MODEL_REPLAY="${replay}" npx vitest run test/proof/model`,
    ...(world?.log ?? []),
  ].join("\n");
}

/** Outcomes that a run of the default length must reach. */
const OUTCOMES = [
  "look up: found Active",
  "look up: found Active, reserved by the caller",
  "look up: found Active, reserved by another key",
  "look up: found Expired",
  "look up: found Suspended",
  "look up: found Suspended, reserved by the caller",
  "look up: found Redeemed",
  "look up: found Voided",
  "look up: voucher_not_found",
  ...["opened", "repeated", "missing_scope", "voucher_not_found"].map((outcome) => `reserve: ${outcome}`),
  ...["redeemed", "confirmed before", "token_mismatch", "voucher_not_found"].map((outcome) => `redeem: ${outcome}`),
  ...["reserve", "redeem"].flatMap((kind) => [
    `${kind}: voucher_used`,
    `${kind}: voucher_voided`,
    `${kind}: voucher_expired`,
    `${kind}: voucher_suspended`,
    `${kind}: reservation_ended`,
    `${kind}: voucher_reserved`,
  ]),
  ...["redeemed", "confirmed before", "late", "voucher_used", "voucher_reserved"].map(
    (outcome) => `resume: ${outcome}`,
  ),
  "release: released",
  "release: nothing released",
  "events: chain of 1",
  "events: chain of 2",
  "events: chain of 3",
  "void: voided",
  "redeem: cap_reached",
  ...["suspend: done", "unsuspend: done", "extend: done", "extend: invalid_request"],
];
