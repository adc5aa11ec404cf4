import { setTimeout as sleep } from "node:timers/promises";
import autocannon, { type Request } from "autocannon";
import type { Subject } from "./stage.ts";

/** Seconds without a response after which autocannon reports an error. */
const TIMEOUT_SECONDS = 30;
const SAMPLE_MS = 100;
const REFUSALS_SHOWN = 3;

/** One pass through the steps of a case, for one voucher or user. */
export interface Unit {
  subject: Subject;
  /** Unique within the run. */
  reference: string;
  startedAt: number;
  latencyMs: number;
  body: string;
}

/** Makes the request of a step. */
export type Step = (unit: Unit) => Request;

/**
 * The pace of a load, in units (passes through a case's steps). With `connections`, each connection begins a unit when
 * its last one has ended. With `rate`, this many units begin per second, however many are in progress.
 */
export type Pace = { connections: number } | { rate: number };

export interface Load {
  ports: readonly number[];
  pace: Pace;
  seconds: number;
  steps: readonly Step[];
  /** The next voucher or user, with a reference. Undefined if none is left. */
  nextUnit: () => Pick<Unit, "subject" | "reference"> | undefined;
  signal: AbortSignal;
  /** Whether the load continues after a 503. */
  mayBeBusy?: boolean;
}

/**
 * Runs units until the time has passed. If no voucher is left, ends early with `isCut`.
 * @returns the completed units and the duration of the load.
 * @throws Error if a status is not 200, a connection fails, or a step throws. See `mayBeBusy`.
 */
export async function runLoad(load: Load) {
  const record = new LoadRecord(load);
  const { pace } = load;
  const { errors, duration } = await ("rate" in pace
    ? sendAtRate(load, pace.rate, record)
    : sendWhenAnswered(load, pace.connections, record));
  load.signal.throwIfAborted();
  return { ...record.read(errors), seconds: duration };
}

class LoadRecord {
  readonly #load: Load;
  readonly #units: Unit[] = [];
  readonly #refusals: string[] = [];
  readonly #failures: unknown[] = [];
  readonly #own = new AbortController();
  #busy = 0;
  readonly ending: AbortSignal;

  constructor(load: Load) {
    this.#load = load;
    this.ending = AbortSignal.any([load.signal, this.#own.signal]);
  }

  /** Begins the next unit, or ends the load if no voucher is left. */
  begin(): Unit | undefined {
    const next = this.#load.nextUnit();
    if (next === undefined) this.#own.abort();
    return next && { ...next, startedAt: performance.now(), latencyMs: 0, body: "" };
  }

  prepare(step: Step, unit: Unit): Request | undefined {
    try {
      return step(unit);
    } catch (error) {
      // An error that leaves a callback of autocannon would end the process, and its servers would keep running.
      this.#failures.push(error);
      this.#own.abort();
      return undefined;
    }
  }

  /** Records a step's response. Returns whether the unit continues. */
  receive(unit: Unit, index: number, status: number, body: string): boolean {
    unit.body = body;
    if (status !== 200) {
      if (this.#load.mayBeBusy && status === 503) this.#busy += 1;
      else this.#refusals.push(`${status} ${body}`);
      return false;
    }
    if (index < this.#load.steps.length - 1) return true;
    unit.latencyMs = performance.now() - unit.startedAt;
    this.#units.push(unit);
    return false;
  }

  /** @throws the error of a step, or Error if a response or connection failed. */
  read(connectionErrors: number) {
    if (this.#failures.length > 0) throw this.#failures[0];
    if (this.#refusals.length + connectionErrors > 0) {
      const shown = this.#refusals.slice(0, REFUSALS_SHOWN).join("\n");
      throw new Error(
        `${this.#refusals.length} responses were not 200, ${connectionErrors} connections failed\n${shown}`,
      );
    }
    return { units: this.#units, busy: this.#busy, isCut: this.#own.signal.aborted };
  }
}

/** The request that a connection sends after the last voucher or an error, until the load ends. */
const noUnit = (): Request => ({ method: "GET", path: "/readyz", headers: {} });

async function sendWhenAnswered({ ports, seconds, steps }: Load, connections: number, record: LoadRecord) {
  const prepare = (step: Step, index: number, context: { unit?: Unit | undefined }): Request | null => {
    if (index === 0) context.unit = record.begin();
    // The connection's unit ended at an earlier step. Null makes autocannon begin a unit with the first step.
    else if (context.unit === undefined) return null;
    const request = context.unit && record.prepare(step, context.unit);
    if (request === undefined) context.unit = undefined;
    return request ?? noUnit();
  };
  const instance = autocannon<{ unit?: Unit | undefined }>({
    url: ports.map((port) => `http://127.0.0.1:${port}`),
    connections,
    duration: seconds,
    timeout: TIMEOUT_SECONDS,
    sampleInt: SAMPLE_MS,
    requests: steps.map((step, index) => ({
      setupRequest: (_, context) => prepare(step, index, context),
      onResponse(status, body, context) {
        if (context.unit !== undefined && !record.receive(context.unit, index, status, body)) context.unit = undefined;
      },
    })),
  });
  const { ending } = record;
  if (ending.aborted) instance.stop();
  ending.addEventListener("abort", () => instance.stop());
  return instance;
}

/**
 * Begins units at even intervals, even if earlier units are in progress, so that a slow response delays no other unit.
 * autocannon would send all requests of a second at its start.
 */
async function sendAtRate({ ports, seconds, steps }: Load, rate: number, record: LoadRecord) {
  let errors = 0;
  const play = async (unit: Unit, port: number | undefined) => {
    for (const [index, step] of steps.entries()) {
      const request = record.prepare(step, unit);
      if (request === undefined) return;
      const { path = "/", ...rest } = request;
      const response = await fetch(`http://127.0.0.1:${port}${path}`, {
        ...(rest as RequestInit),
        signal: AbortSignal.timeout(TIMEOUT_SECONDS * 1_000),
      });
      if (!record.receive(unit, index, response.status, await response.text())) return;
    }
  };
  const startedAt = performance.now();
  const passedSeconds = () => (performance.now() - startedAt) / 1_000;
  const playing: Promise<void>[] = [];
  while (passedSeconds() < seconds && !record.ending.aborted) {
    const due = Math.floor(passedSeconds() * rate);
    while (playing.length <= due) {
      const unit = record.begin();
      if (unit === undefined) break;
      const port = ports[playing.length % ports.length];
      const ended = play(unit, port).catch(() => {
        errors += 1;
      });
      playing.push(ended);
    }
    await sleep(1);
  }
  await Promise.all(playing);
  return { errors, duration: passedSeconds() };
}

/** The number of units in a turn of a case without load. */
const QUIET_UNITS = 4;
const NO_SUBJECT: Subject = { id: "", code: "", token: "" };

/**
 * Waits `everyMs` and then sends the requests of `steps`, if any, {@link QUIET_UNITS} times.
 * @throws Error if a status is not 200.
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
