import fc from "fast-check";
import { afterAll, beforeAll, expect, it } from "vitest";
import { assertInvariants } from "../support/invariants.ts";
import { examine } from "./examine.ts";
import { newModel, type VoucherName } from "./model.ts";
import { someValidity } from "./outside-steps.ts";
import { reportCounterexample } from "./report.ts";
import type { Tally } from "./step.ts";
import { steps } from "./steps.ts";
import { openSystem, type System } from "./system.ts";
import { openWorld, type World } from "./world.ts";

// Compares random histories of calls with the model, answer by answer. The same seed gives the same histories.
//   MODEL_RUNS=2000 MODEL_SEED=7 npx vitest run test/model      runs more and other histories
//   MODEL_SEED=… MODEL_PATH=… MODEL_REPLAY=… npx vitest run …   repeats one, as printed by a failure

const DEFAULT_RUNS = 50;
const runs = Number(process.env.MODEL_RUNS || DEFAULT_RUNS);
const seed = Number(process.env.MODEL_SEED || 20_261_121);
const path = process.env.MODEL_PATH || "";
const replayPath = process.env.MODEL_REPLAY || "";
/** Length of the longest history. */
const STEPS_MAX = 200;
/** Far more than the runs take; the rest is for shrinking. Milliseconds. */
const TIME_LIMIT_MS = 60_000 + runs * 1_000;

/** Outcomes that a run of the default length must reach. */
const OUTCOMES = [
  "look up: found Active",
  "look up: found Active, reserved by the caller",
  "look up: found Active, reserved by another key",
  "look up: found Expired",
  "look up: found Redeemed",
  "look up: found Voided",
  "look up: voucher_not_found",
  ...["opened", "repeated", "missing_scope", "voucher_not_found"].map((outcome) => `reserve: ${outcome}`),
  ...["redeemed", "confirmed before", "token_mismatch", "voucher_not_found"].map((outcome) => `redeem: ${outcome}`),
  ...["reserve", "redeem"].flatMap((kind) => [
    `${kind}: voucher_used`,
    `${kind}: voucher_voided`,
    `${kind}: voucher_expired`,
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
  "void: voided",
];

let system: System;

beforeAll(async () => {
  system = await openSystem();
});

afterAll(() => system.close());

const validities: fc.Arbitrary<Record<VoucherName, number>> = fc.record({
  A: someValidity,
  B: someValidity,
  C: someValidity,
  D: someValidity,
});

it(
  "the service and the model of its rules give the same answers to random histories",
  async () => {
    const tally: Tally = new Map();
    // The last failure is the shortest, because shrinking continues from failures only.
    const failed: World[] = [];
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
      // Long histories as often as short ones.
      unbiased: true,
      interruptAfterTimeLimit: TIME_LIMIT_MS,
    });
    if (details.failed) throw new Error(reportCounterexample(details, failed.at(-1) ?? null));
    await assertInvariants(system.servers.db);
    if (runs >= DEFAULT_RUNS && path === "") expect([...tally.keys()]).toEqual(expect.arrayContaining(OUTCOMES));
  },
  2 * TIME_LIMIT_MS,
);
