import type fc from "fast-check";
import {
  flushStep,
  hangStep,
  leaseLostStep,
  orphanStep,
  restartStep,
  sweepStep,
  timeStep,
  voidStep,
} from "./outside-steps.ts";
import { eventsStep, lookUpStep, redeemStep, releaseStep, reserveStep } from "./partner-steps.ts";
import type { Step } from "./step.ts";

/**
 * All steps with their relative frequency. Most rules concern reservations and redemptions; a restart of the workers takes longer than a
 * dozen calls.
 */
const WEIGHTS: [fc.Arbitrary<Step>, number][] = [
  [reserveStep, 20],
  [redeemStep, 20],
  [lookUpStep, 14],
  [releaseStep, 12],
  [timeStep, 6],
  [eventsStep, 3],
  [hangStep, 6],
  [leaseLostStep, 2],
  [orphanStep, 2],
  [sweepStep, 2],
  [flushStep, 1],
  [restartStep, 1],
  [voidStep, 1],
];

export const steps: fc.Arbitrary<Step>[] = WEIGHTS.flatMap(([step, weight]) => Array(weight).fill(step));
