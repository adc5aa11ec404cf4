import { setTimeout as sleep } from "node:timers/promises";
import { FRESH_MS, SILENT_MS } from "../core/redeem/canary.ts";
import { shareFor } from "../platform/batching/share-for.ts";
import { type Config, hasConfiguredSignIn } from "../platform/config.ts";
import type { Closable } from "../platform/lifetime.ts";
import { readStock } from "./db/activity.ts";
import type { RecordedFault } from "./db/faults.ts";
import { type FactDeps, type Facts, gatherFacts, readStanding, STOCK, type Standing } from "./facts.ts";
import { allFaults, answeredElsewhereMs, type Fault } from "./faults.ts";
import { type Attention, FaultKeeper } from "./keep-faults.ts";

/** Pause between two searches. Milliseconds. */
const LOOK_EVERY_MS = 2_000;
/** How long a process reuses its last search. Milliseconds. */
const KEPT_MS = 500;
/**
 * How long a server must be unusable before this process reports itself as not ready. Longer than test jobs (canaries)
 * may stay unanswered, so that for a server that no process can use, the search first finds the server's fault.
 * Milliseconds.
 */
const UNREADY_MS = SILENT_MS + 2_000;
/** How long a process reuses the stock. The stock changes slowly, and reading it is expensive. Milliseconds. */
const STOCK_KEPT_MS = 60_000;

interface Look {
  at: Date;
  attention: Attention[];
  /** Faults that ended within the last minute, or whose end was not reported yet. */
  ended: Pick<RecordedFault, "what" | "subject" | "endedAt">[];
  standing: Standing;
}

type Deps = FactDeps &
  Omit<ConstructorParameters<typeof FaultKeeper>[0], "faults"> & {
    config: FactDeps["config"] & Pick<Config, "ops" | "production">;
  };

/** Looks for faults, in each API process independently. */
export class FaultWatch implements Closable {
  readonly #ctx: Deps & Parameters<typeof gatherFacts>[0];
  readonly #faults: readonly Fault[];
  readonly #keeper: FaultKeeper;
  readonly #closing = new AbortController();
  #unreadySinceMs: number | null = null;
  /** Since when the canaries (test jobs) of another process have been answered in time. */
  #othersAnsweredSinceMs: number | null = null;
  /** Searches for faults, or returns the last result. Never rejects. */
  readonly look = shareFor(KEPT_MS, () => this.lookAnew());

  constructor(ctx: Deps) {
    const read = () => readStock(ctx.pool, { organizationId: null, ...STOCK });
    this.#ctx = { ...ctx, readStock: shareFor(STOCK_KEPT_MS, read) };
    this.#faults = allFaults(ctx.faultsOfWings);
    this.#keeper = new FaultKeeper({ ...ctx, faults: this.#faults });
  }

  /**
   * Searches regularly from now on, even if no operator has a page open. Without operator pages and ALERT_URL, the
   * process only checks whether it can serve requests itself.
   */
  start(): void {
    const { config, log } = this.#ctx;
    const { signal } = this.#closing;
    const isWatching = hasConfiguredSignIn(config) || config.alerts.url !== null;
    const run = async () => {
      while (!signal.aborted) {
        const looking = isWatching
          ? this.look()
          : readStanding(this.#ctx).then((standing) => this.#judgeSelf(standing));
        await looking.catch((error) => log.debug({ err: error }, "cannot look for faults"));
        await sleep(LOOK_EVERY_MS, undefined, { ref: false, signal }).catch(() => undefined);
      }
    };
    void run();
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#keeper.close();
  }

  /** Looks for faults. */
  async lookAnew(): Promise<Look> {
    const standing = await readStanding(this.#ctx);
    const facts = await gatherFacts(this.#ctx, standing, this.#judgeSelf(standing));
    const attention = await this.#keeper.keep(findFaults(facts, this.#faults));
    const isOpen = (row: RecordedFault) =>
      attention.some(({ runbook, subject }) => runbook === row.kind && subject === row.subject);
    const ended = (facts.database?.recorded ?? []).flatMap((row) =>
      row.endedAt === null || isOpen(row) ? [] : [{ what: row.what, subject: row.subject, endedAt: row.endedAt }],
    );
    return { at: facts.now, attention, ended, standing };
  }

  /** Why this process cannot serve requests although others can, or null. Records this reason for the others. */
  #judgeSelf(standing: Standing): string | null {
    const { problems, canary } = standing;
    const problem = problems.postgres ?? problems.redis;
    this.#unreadySinceMs = problem === null ? null : (this.#unreadySinceMs ?? performance.now());
    const isUnready = this.#unreadySinceMs !== null && performance.now() - this.#unreadySinceMs >= UNREADY_MS;
    const isAnsweredElsewhere = answeredElsewhereMs({ ...standing, self: this.#ctx.process }) < FRESH_MS;
    this.#othersAnsweredSinceMs = isAnsweredElsewhere ? (this.#othersAnsweredSinceMs ?? performance.now()) : null;
    // Waits until canaries of others have been answered for a while, because an outage does not begin and end at the
    // same time for all processes.
    const answeredForMs = performance.now() - (this.#othersAnsweredSinceMs ?? performance.now());
    const isCutOff = canary.silentMs >= SILENT_MS && answeredForMs >= FRESH_MS;
    const unready = isUnready || isCutOff ? (problem ?? "No worker answers it.") : null;
    this.#ctx.process.tell(unready);
    return unready;
  }
}

/** The faults of each kind, and the kinds that could not be judged. */
function findFaults(facts: Facts, faults: readonly Fault[]) {
  const judged = faults.map(({ name: runbook, severity, find }) => ({
    runbook,
    found: find(facts)?.map((one): Attention => {
      const { what, subject, since, page = null } = one;
      return { severity: one.severity ?? severity, what, subject, since: since ?? facts.now, runbook, page };
    }),
  }));
  return {
    found: judged.flatMap(({ found }) => found ?? []),
    unknown: new Set(judged.flatMap(({ runbook, found }) => (found === undefined ? [runbook] : []))),
    recorded: facts.database?.recorded ?? null,
  };
}
