import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "pino";
import { problemsOf, type UnmetCheck } from "../checks.ts";
import { namesCluster } from "../redis/addresses.ts";
import { checkRedis, type RedisCheck } from "../redis/requirements.ts";

/** Time between two checks while a server does not answer or no job can run. Milliseconds. */
const CHECK_AGAIN_MS = 1_000;

interface Watched {
  config: { redisUrl: string; queueShards: readonly [number, ...number[]]; production: boolean };
  log: Logger;
}

/**
 * Compares the servers of REDIS_URL with the code's requirements on separate connections: at the start, and after each
 * reconnection or refused probe, until every server answers and jobs can run.
 */
export class RedisWatch {
  readonly #ctx: Watched;
  readonly #closing = new AbortController();
  readonly #mustEnd = Promise.withResolvers<string>();
  /** Whether a server has answered. */
  #isKnown = false;
  /** The problems that were reported. A problem that disappears and returns is reported again. */
  #reported = new Set<string>();
  #wake = new AbortController();
  /**
   * Why no job can run, as a sentence that names the remedy, or null. Does not mention refused writes for other
   * reasons, which a probe detects sooner.
   */
  problem: string | null = null;

  constructor(ctx: Watched) {
    this.#ctx = ctx;
    void this.#run();
  }

  /**
   * Resolves with a sentence if the process must start again: its servers did not answer at the start, and later proved
   * to be unusable or of another kind than assumed.
   */
  get mustEnd(): Promise<string> {
    return this.#mustEnd.promise;
  }

  /** Checks now, because a probe was refused or a connection was opened again. */
  hurry(): void {
    this.#wake.abort();
  }

  async close(): Promise<void> {
    this.#closing.abort();
    this.#wake.abort();
  }

  async #run(): Promise<void> {
    const { signal } = this.#closing;
    const { redisUrl, queueShards } = this.#ctx.config;
    while (!signal.aborted) {
      const wake = new AbortController();
      this.#wake = wake;
      const check = await checkRedis(redisUrl, queueShards[0]);
      if (signal.aborted) return;
      this.#judge(check);
      await sleep(CHECK_AGAIN_MS, undefined, { ref: false });
      const isSilent = !check.answered || problemsOf(check.rows).some(({ code }) => code === "redis_node_silent");
      if (!isSilent && this.problem === null && !wake.signal.aborted) await once(wake.signal, "abort");
    }
  }

  #judge(check: RedisCheck): void {
    const { config } = this.#ctx;
    const problems = problemsOf(check.rows).filter(({ effect }) => check.answered || effect !== "risk");
    if (check.isCluster === true && !namesCluster(config.redisUrl)) {
      const message =
        "REDIS_URL leads to a Redis Cluster, which did not answer when this process started. Start the process again.";
      problems.unshift({ code: "redis_other_kind", message, effect: "refused" });
    }
    const refused = problems.find(({ effect }) => effect === "refused");
    if (!this.#isKnown && refused !== undefined) this.#mustEnd.resolve(refused.message);
    this.#isKnown ||= check.answered;
    const hindrance = problems.find(({ code, effect }) => effect !== "risk" && code !== "redis_refuses");
    this.problem = hindrance?.message ?? null;
    // Does not report risks in development without a cluster: these are weak settings, which a development server may
    // have.
    const isTold = ({ effect }: UnmetCheck) => effect !== "risk" || config.production || check.isCluster === true;
    const told = problems.filter(isTold);
    for (const { code, message, effect } of told) {
      if (this.#reported.has(message)) continue;
      if (effect === "risk") this.#ctx.log.warn({ risk: code }, message);
      else this.#ctx.log.error({ problem: code }, message);
    }
    this.#reported = new Set(told.map(({ message }) => message));
  }
}
