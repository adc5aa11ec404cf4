import { setTimeout as sleep } from "node:timers/promises";
import { Pool } from "undici";

/** The responses to a load. */
export interface LoadResult {
  seconds: number;
  redemptions: number;
  /** The numbers of responses other than 200, by error code. */
  refusals: Record<string, number>;
  /** Null without a redemption. */
  latencyMs: { p50: number; p99: number } | null;
  /** Whether the vouchers ran out before the end of the time. */
  isCut: boolean;
}

interface Load {
  urls: readonly string[];
  keys: readonly string[];
  codes: readonly string[];
  callers: number;
  seconds: number;
  signal: AbortSignal;
}

/** How long a caller rests after a refusal. Milliseconds. */
const REST_MS = 100;

/** Redeems vouchers with a number of callers, one at a time each, until the time is over or none is left. */
export async function runLoad({ urls, keys, codes, callers, seconds, signal }: Load): Promise<LoadResult> {
  const pools = urls.map((url) => new Pool(url, { connections: Math.ceil(callers / urls.length) }));
  const latencies: number[] = [];
  const refusals: Record<string, number> = {};
  const startedAt = performance.now();
  const endsAt = startedAt + seconds * 1_000;
  let next = 0;
  const callOnAndOn = async (caller: number) => {
    const pool = pools[caller % pools.length] as Pool;
    const key = keys[caller % keys.length] as string;
    while (performance.now() < endsAt && next < codes.length && !signal.aborted) {
      const code = codes[next++] as string;
      const sentAt = performance.now();
      const refusal = await redeem(pool, key, code).catch(() => "no_answer");
      if (refusal === null) {
        latencies.push(performance.now() - sentAt);
        continue;
      }
      refusals[refusal] = (refusals[refusal] ?? 0) + 1;
      await sleep(REST_MS);
    }
  };
  try {
    await Promise.all(Array.from({ length: callers }, (_, caller) => callOnAndOn(caller)));
  } finally {
    await Promise.all(pools.map((pool) => pool.destroy()));
  }
  const sorted = latencies.toSorted((a, b) => a - b);
  const at = (share: number) => sorted[Math.floor(share * (sorted.length - 1))] as number;
  return {
    seconds: (performance.now() - startedAt) / 1_000,
    redemptions: latencies.length,
    refusals,
    latencyMs: sorted.length === 0 ? null : { p50: at(0.5), p99: at(0.99) },
    isCut: next >= codes.length,
  };
}

/** Redeems a voucher for a new order. Returns the error code of a refusal, or null. */
async function redeem(pool: Pool, key: string, code: string): Promise<string | null> {
  const { statusCode, body } = await pool.request({
    method: "POST",
    path: "/partner/vouchers/redeem",
    headers: { "content-type": "application/json", "x-api-key": key },
    body: JSON.stringify({ code, externalRef: `scale-check ${code}` }),
  });
  const answer = (await body.json()) as { code?: string };
  return statusCode === 200 ? null : (answer.code ?? String(statusCode));
}
