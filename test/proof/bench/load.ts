import { setTimeout as sleep } from "node:timers/promises";
import autocannon, { type Request } from "autocannon";
import type { Subject } from "./stage.ts";

/** A slower response ends the run. Seconds. */
const TIMEOUT_SECONDS = 30;
const SAMPLE_MS = 100;
/** Refusals in the error message. */
const REFUSALS_SHOWN = 3;

/** The steps of one connection for one subject. */
export interface Unit {
  subject: Subject;
  /** Unique within the run. */
  reference: string;
  startedAt: number;
  latencyMs: number;
  /** The latest response of this unit. */
  body: string;
}

/** Makes the request of a step. */
export type Step = (unit: Unit) => Request;

export interface Load {
  ports: readonly number[];
  connections: number;
  seconds: number;
  /** Requests per second in all, at most. Without it each connection sends as soon as it is answered. */
  rate?: number;
  steps: readonly Step[];
  /** Undefined when the supply is used up. */
  nextUnit: () => Pick<Unit, "subject" | "reference"> | undefined;
  signal: AbortSignal;
  /** Whether a 503, which says that nothing is decided, is counted instead of ending the load. */
  mayBeBusy?: boolean;
}

/** Sent between the end of the supply, or an error, and the end of the load. */
const noUnit = (): Request => ({ method: "GET", path: "/readyz", headers: {} });

/**
 * Keeps one request running on each connection. Ends early when the supply is used up: `isCut` is true then.
 * @returns the completed units and the duration of the load.
 * @throws Error when a status is not 200, a connection fails, or a step throws. See `mayBeBusy`.
 */
export async function runLoad({ ports, connections, seconds, rate, steps, nextUnit, signal, mayBeBusy = false }: Load) {
  const units: Unit[] = [];
  let busy = 0;
  const refusals: string[] = [];
  const own = new AbortController();
  const failures: unknown[] = [];
  const prepare = (step: Step, index: number, context: { unit?: Unit | undefined }): Request | null => {
    try {
      const next = index === 0 ? nextUnit() : undefined;
      if (index === 0) context.unit = next && { ...next, startedAt: performance.now(), latencyMs: 0, body: "" };
      if (context.unit !== undefined) return step(context.unit);
      // A unit that was refused at an earlier step begins anew.
      if (index > 0) return null;
    } catch (error) {
      // An error that left this callback would end the process, and leave its servers running.
      failures.push(error);
      context.unit = undefined;
    }
    own.abort();
    return noUnit();
  };
  const instance = autocannon<{ unit?: Unit | undefined }>({
    url: ports.map((port) => `http://127.0.0.1:${port}`),
    connections,
    duration: seconds,
    ...(rate !== undefined && { overallRate: rate }),
    timeout: TIMEOUT_SECONDS,
    sampleInt: SAMPLE_MS,
    requests: steps.map((step, index) => ({
      setupRequest: (_, context) => prepare(step, index, context),
      onResponse(status, body, context) {
        const { unit } = context;
        if (unit === undefined) return;
        unit.body = body;
        if (status !== 200) {
          if (mayBeBusy && status === 503) busy += 1;
          else refusals.push(`${status} ${body}`);
          context.unit = undefined;
        } else if (index === steps.length - 1) {
          unit.latencyMs = performance.now() - unit.startedAt;
          units.push(unit);
        }
      },
    })),
  });
  const ending = AbortSignal.any([signal, own.signal]);
  if (ending.aborted) instance.stop();
  ending.addEventListener("abort", () => instance.stop());
  const { errors, duration } = await instance;
  signal.throwIfAborted();
  if (failures.length > 0) throw failures[0];
  if (refusals.length + errors > 0) {
    const shown = refusals.slice(0, REFUSALS_SHOWN).join("\n");
    throw new Error(`${refusals.length} responses were not 200, ${errors} connections failed\n${shown}`);
  }
  return { units, busy, seconds: duration, isCut: own.signal.aborted };
}

/** Units of a turn without load. */
const QUIET_UNITS = 4;
const NO_SUBJECT: Subject = { id: "", code: "", token: "" };

/**
 * Waits as long as some units take, and sends the request of each at its end.
 * @throws Error when a status is not 200.
 */
export async function runQuietly({ ports, steps, signal }: Load, everyMs: number) {
  const units: Unit[] = [];
  const startedAt = performance.now();
  for (let n = 0; n < QUIET_UNITS; n++) {
    await sleep(everyMs, undefined, { signal });
    const unit: Unit = { subject: NO_SUBJECT, reference: "", startedAt: performance.now(), latencyMs: 0, body: "" };
    for (const step of steps) {
      const { path, headers } = step(unit);
      const response = await fetch(`http://127.0.0.1:${ports[0]}${path}`, { headers: headers as HeadersInit, signal });
      unit.body = await response.text();
      if (response.status !== 200) throw new Error(`${response.status} ${unit.body}`);
    }
    unit.latencyMs = performance.now() - unit.startedAt;
    units.push(unit);
  }
  return { units, seconds: (performance.now() - startedAt) / 1_000, isCut: false };
}
