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

interface Load {
  ports: readonly number[];
  connections: number;
  seconds: number;
  /** Requests per second in all, at most. Without it each connection sends as soon as it is answered. */
  rate?: number;
  steps: readonly Step[];
  nextUnit: () => Pick<Unit, "subject" | "reference">;
  signal: AbortSignal;
  /** Ends the load early. */
  stop?: AbortSignal;
}

/**
 * Keeps one request running on each connection.
 * @returns the completed units and the duration of the load.
 * @throws Error when a status is not 200 or a connection fails.
 */
export async function runLoad(load: Load): Promise<{ units: Unit[]; seconds: number }> {
  const { ports, connections, seconds, rate, steps, nextUnit, signal } = load;
  const units: Unit[] = [];
  const refusals: string[] = [];
  const begin = (): Unit => ({ ...nextUnit(), startedAt: performance.now(), latencyMs: 0, body: "" });
  const instance = autocannon<{ unit?: Unit | undefined }>({
    url: ports.map((port) => `http://127.0.0.1:${port}`),
    connections,
    duration: seconds,
    ...(rate !== undefined && { overallRate: rate }),
    timeout: TIMEOUT_SECONDS,
    sampleInt: SAMPLE_MS,
    requests: steps.map((step, index) => ({
      setupRequest(_, context) {
        if (index === 0) context.unit = begin();
        return context.unit === undefined ? null : step(context.unit);
      },
      onResponse(status, body, context) {
        const { unit } = context;
        if (unit === undefined) return;
        unit.body = body;
        if (status !== 200) {
          refusals.push(`${status} ${body}`);
          context.unit = undefined;
        } else if (index === steps.length - 1) {
          unit.latencyMs = performance.now() - unit.startedAt;
          units.push(unit);
        }
      },
    })),
  });
  const stop = () => instance.stop();
  for (const ending of [signal, load.stop]) ending?.addEventListener("abort", stop);
  const { errors, duration } = await instance;
  signal.removeEventListener("abort", stop);
  signal.throwIfAborted();
  if (refusals.length + errors > 0) {
    const shown = refusals.slice(0, REFUSALS_SHOWN).join("\n");
    throw new Error(`${refusals.length} responses were not 200, ${errors} connections failed\n${shown}`);
  }
  return { units, seconds: duration };
}
