import type { RedisClient } from "./connections.ts";

/** The prefix of everything that processes report. The braces keep it in one slot of a Redis Cluster. */
export const reportPrefix = ({ id }: { readonly id: string }) => `{pva:${id}:overview}`;

/** What a process found and keeps for all processes of the deployment. */
export interface Kept<Value> {
  value: Value;
  /** Age by Redis's clock, from the remaining lifetime. Negative after that clock was set back. Milliseconds. */
  ageMs: number;
}

/** Reads the last finding, which was kept for `keptMs`. @throws Error when Redis does not answer. */
export async function readKept<Value>(redis: RedisClient, key: string, keptMs: number): Promise<Kept<Value> | null> {
  const [[, stored = null] = [], [, leftMs] = []] = (await redis.pipeline().get(key).pttl(key).exec()) ?? [];
  return typeof stored === "string" ? { value: JSON.parse(stored), ageMs: keptMs - Number(leftMs) } : null;
}

/** Whether a finding is at most `maxAgeMs` old. */
export function isFresh({ ageMs }: Kept<unknown>, maxAgeMs: number): boolean {
  return ageMs >= 0 && ageMs <= maxAgeMs;
}

/** Keeps a finding. Never rejects: if it is not kept, the other processes check for themselves. */
export async function keepValue(redis: RedisClient, key: string, keptMs: number, value: unknown): Promise<void> {
  await redis.set(key, JSON.stringify(value), "PX", keptMs).catch(() => undefined);
}
