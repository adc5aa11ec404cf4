import { LOAD_CASES } from "./cases.ts";
import { startContender } from "./contenders.ts";
import { formatTable } from "./format-table.ts";
import { runLoad } from "./load/run-load.ts";
import { readResidentBytes } from "./process-usage.ts";
import type { Stage } from "./stage.ts";
import { median } from "./statistics.ts";

/** Resident memory in megabytes in one minute, medians of its samples. */
export interface SoakMinute {
  checkouts: number;
  api: number;
  worker: number;
  redis: number;
}

const CONNECTIONS = 32;
const MINUTE_SECONDS = 60;
const SAMPLE_MS = 1_000;
const MEGABYTE = 1_048_576;

/** Runs checkouts for some minutes and watches the memory of the processes. Between minutes supply is made, without load. */
export async function measureSoak(stage: Stage, minutes: number): Promise<SoakMinute[]> {
  const running = await startContender("service", stage.surroundings);
  try {
    const played: SoakMinute[] = [];
    let rate = LOAD_CASES.checkout.rateGuess;
    while (played.length < minutes) {
      const wanted = Math.ceil(rate * MINUTE_SECONDS * 1.3);
      if (stage.vouchers.left < wanted) await stage.addVouchers(wanted - stage.vouchers.left);
      const codes = stage.vouchers.take(wanted);
      const name = `soak${played.length + 1}`;
      const samples = { api: [] as number[], worker: [] as number[], redis: [] as number[] };
      const sampler = setInterval(() => {
        samples.api.push(readResidentBytes(running.apiPids[0] as number));
        samples.worker.push(readResidentBytes(running.workerPids[0] as number));
        samples.redis.push(readResidentBytes(stage.servers.redisPid ?? Number.NaN));
      }, SAMPLE_MS);
      const outcome = await runLoad(stage.client, {
        ports: running.ports,
        connections: CONNECTIONS,
        seconds: MINUTE_SECONDS,
        mode: LOAD_CASES.checkout.mode,
        lines: codes.map((code, index) => LOAD_CASES.checkout.line(code, `${name}-${index}`, stage.partner)),
        header: `X-Api-Key: ${stage.partner.key}`,
        directory: stage.directory,
        name,
        signal: stage.signal,
      }).finally(() => clearInterval(sampler));
      running.check();
      if (outcome.refused + outcome.broken > 0) {
        throw new Error(`${name}: ${outcome.refused} refusals, ${outcome.broken} failed`);
      }
      stage.vouchers.add(outcome.unused.map((index) => codes[index] as string));
      rate = outcome.checkouts / MINUTE_SECONDS;
      const megabytes = (bytes: number[]) => median(bytes) / MEGABYTE;
      const minute = {
        checkouts: outcome.checkouts,
        api: megabytes(samples.api),
        worker: megabytes(samples.worker),
        redis: megabytes(samples.redis),
      };
      played.push(minute);
      stage.say(`minute ${played.length}: API ${Math.round(minute.api)} MB, worker ${Math.round(minute.worker)} MB`);
    }
    return played;
  } finally {
    await running.end();
  }
}

/** Growth of memory from the middle third of the run, when everything is warm, to the last, as a factor. */
export function growthOf(minutes: readonly SoakMinute[], who: "api" | "worker"): number {
  const third = Math.max(1, Math.floor(minutes.length / 3));
  const memory = (part: readonly SoakMinute[]) => median(part.map((minute) => minute[who]));
  return memory(minutes.slice(-third)) / memory(minutes.slice(-2 * third).slice(0, third));
}

/** A table of it. */
export function showSoak(minutes: readonly SoakMinute[]): string {
  const rows = minutes.map(({ checkouts, api, worker, redis }, index) => [
    index + 1,
    checkouts,
    ...[api, worker, redis].map(Math.round),
  ]);
  const table = formatTable(["minute", "checkouts", "API MB", "worker MB", "Redis MB"], rows);
  const last = `From the middle third to the last: API × ${growthOf(minutes, "api").toFixed(2)}, worker × ${growthOf(minutes, "worker").toFixed(2)}`;
  return `\nMemory (RSS) under checkouts on ${CONNECTIONS} connections\n\n${table}\n\n${last}`;
}
