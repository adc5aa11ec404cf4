import { availableParallelism } from "node:os";
import { Tinypool } from "tinypool";
import {
  type ChainRange,
  type ChainVerifier,
  RANGES_PER_THREAD,
  type VerifyResult,
} from "../services/verify-chains.ts";

/**
 * Runs `work` with a verifier of as many threads as there are processors, each with database connections of its own, and ends the
 * threads behind it. Starting one takes a few tenths of a second.
 */
export async function withVerifyThreads<T>(
  databaseUrl: string,
  work: (verifier: ChainVerifier) => Promise<T>,
): Promise<T> {
  const count = availableParallelism();
  const threads = new Tinypool({
    filename: new URL("./verify-thread.ts", import.meta.url).href,
    workerData: databaseUrl,
    minThreads: count,
    maxThreads: count,
    concurrentTasksPerWorker: RANGES_PER_THREAD,
    teardown: "close",
  });
  try {
    return await work({
      verify: (range: ChainRange): Promise<VerifyResult> => threads.run(range),
      atOnce: count * RANGES_PER_THREAD,
    });
  } finally {
    await threads.destroy();
  }
}
