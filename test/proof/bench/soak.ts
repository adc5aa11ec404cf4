import { CASES, type CaseId } from "./cases.ts";
import { type RunningContender, startContender } from "./contenders.ts";
import { runLoad } from "./load.ts";
import { judgeGrowth, type Measured, type Sample, showGrowth } from "./soak-growth.ts";
import { openSizes } from "./soak-sizes.ts";
import { type BenchServers, openStage, type Stage } from "./stage.ts";

/** Calls a second of each case at full load. */
const RATES: Partial<Record<CaseId, number>> = {
  "look-up": 40,
  redeem: 10,
  checkout: 15,
  claim: 4,
  events: 4,
  list: 2,
};
/**
 * The number of parts of a run. Full load and a quarter of it alternate, so that growth with time and growth with calls
 * can be separated.
 */
const PARTS = 12;
const LOW = 0.25;
/** The first parts do not count. In them caches and connections fill up, and the queue begins to remove ended jobs. */
const PARTS_BEFORE = 4;
/** Samples of each part. */
const SAMPLES = 10;
/** The share of calls that a busy machine may answer with 503. */
const BUSY_SHARE = 0.01;
/** The minimum length of a run, so that each part has ten seconds. Minutes. */
export const SOAK_MINUTES_MIN = 2;

interface Done {
  calls: number;
  busy: number;
}

interface How {
  minutes: number;
  root: string;
  signal: AbortSignal;
  say: (line: string) => void;
}

/**
 * Runs the service under a steady mixed load for some minutes, and measures its stored data and its resources.
 * @returns a table, and the names of sizes that grew without a limit.
 * @throws Error if an answer is neither 200 nor 503, or if many answers are 503.
 */
export async function playSoak(servers: BenchServers, { minutes, root, signal, say }: How) {
  const stage = await openStage(servers, "soak", root, { signal, say });
  const redis = servers.nextRedis();
  let running: RunningContender | null = null;
  const done: Done = { calls: 0, busy: 0 };
  let sizes: Awaited<ReturnType<typeof openSizes>> | null = null;
  try {
    const partSeconds = (minutes * 60) / PARTS;
    await supply(stage, partSeconds);
    running = await startContender("service", { ...stage, ...redis });
    const opened = await openSizes(stage, running, servers);
    sizes = opened;
    const samples: Sample[] = [];
    const startedAt = performance.now();
    for (let part = 0; part < PARTS; part++) {
      const ended = new AbortController();
      const sampling = sampleUntil(ended.signal, (partSeconds * 1_000) / SAMPLES, async () => {
        const measured: Measured[] = await opened.read();
        if (part >= PARTS_BEFORE)
          samples.push({ hours: (performance.now() - startedAt) / 3_600_000, calls: done.calls, measured });
      });
      const load = { seconds: partSeconds, share: part % 2 === 0 ? 1 : LOW, signal };
      await Promise.all([playPart(stage, running, load, done), sampling]).finally(() => ended.abort());
      running.check();
      say(`soak: part ${part + 1} of ${PARTS}, ${done.calls} calls, ${done.busy} of them got a 503`);
    }
    if (done.busy > BUSY_SHARE * done.calls) throw new Error(`${done.busy} of ${done.calls} calls got a 503`);
    const growths = judgeGrowth(samples);
    return { table: showGrowth(growths), unbounded: growths.filter(({ isUnbounded }) => isUnbounded) };
  } finally {
    sizes?.close();
    await running?.end();
    await stage.close();
  }
}

/** Creates the vouchers and users for the whole run before the first measurement. */
async function supply(stage: Stage, partSeconds: number): Promise<void> {
  const seconds = (partSeconds * PARTS * (1 + LOW)) / 2;
  const { redeem = 0, checkout = 0, claim = 0 } = RATES;
  await stage.ensure("vouchers", Math.ceil((redeem + checkout) * seconds * 1.2) + 1_000);
  await stage.ensure("users", Math.ceil(claim * seconds * 1.2) + 100);
}

async function playPart(
  stage: Stage,
  { ports }: RunningContender,
  { seconds, share, signal }: { seconds: number; share: number; signal: AbortSignal },
  done: Done,
): Promise<void> {
  const playing = Object.entries(RATES).map(([id, callsPerSecond]) => {
    const loadCase = CASES[id as CaseId];
    const steps = loadCase.steps(stage);
    const nextUnit = () => {
      done.calls += 1;
      const pool = stage[loadCase.supply];
      const subject = loadCase.proof === null ? pool[done.calls % pool.length] : pool.pop();
      return subject && { subject, reference: `soak-${done.calls}` };
    };
    const rate = Math.max(1, Math.round(callsPerSecond * share));
    return runLoad({ ports, pace: { rate }, seconds, steps, nextUnit, signal, mayBeBusy: true });
  });
  for (const { busy } of await Promise.all(playing)) done.busy += busy;
}

async function sampleUntil(ended: AbortSignal, everyMs: number, sample: () => Promise<void>): Promise<void> {
  for (let n = 0; n < SAMPLES && !ended.aborted; n++) {
    await new Promise((resolve) => setTimeout(resolve, everyMs));
    await sample();
  }
}
