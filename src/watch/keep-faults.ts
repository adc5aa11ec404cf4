import type pg from "pg";
import type { Logger } from "pino";
import { reportPrefix } from "../core/processes/minute-counts.ts";
import { redeemQueue } from "../core/redeem/job.ts";
import type { Config } from "../platform/config.ts";
import type { DatabaseFence } from "../platform/db/database-fence.ts";
import type { Closable } from "../platform/lifetime.ts";
import type { RedisClient } from "../platform/redis/connections.ts";
import { type AlertSending, sendAlert } from "./alerts.ts";
import {
  beginFaults,
  endFaults,
  type FaultKey,
  forgetFaults,
  type RecordedFault,
  recordRefused,
  recordTold,
  type Told,
  takeUntold,
} from "./db/faults.ts";
import { knownId, nowOf, type Severity } from "./facts.ts";
import { compareFaults, type Fault } from "./faults.ts";

/** A fault has ended when no search has found it for this long. Each message is tried once in this period. Seconds. */
const TOLD_AFTER_S = 60;
/** How long Redis remembers that a fault was reported while Postgres did not answer. Milliseconds. */
const TOLD_KEPT_MS = 600_000;

/** A fault that needs an operator's attention. */
export interface Attention {
  severity: Severity;
  what: string;
  since: Date;
  /** The person, organization or thing that is affected. */
  subject: string;
  /** The name of the entry in the runbook. */
  runbook: string;
  /** The operator page of the subject, as segments after `/ops`. Null if there is none. */
  page: readonly string[] | null;
}

/** The result of a search. */
export interface Found {
  found: readonly Attention[];
  /** The kinds of faults that the search could not judge. Their earlier faults are kept. */
  unknown: ReadonlySet<string>;
  /** The faults that Postgres has recorded. Null if it does not answer. */
  recorded: readonly RecordedFault[] | null;
}

type Deps = AlertSending & {
  faults: readonly Fault[];
  pool: pg.Pool;
  redis: RedisClient;
  deployment: Pick<DatabaseFence, "id"> & Parameters<typeof nowOf>[0];
  config: Pick<Config, "alerts">;
  log: Logger;
};

/**
 * Records in Postgres since when each fault exists. Sends messages about red faults to ALERT_URL: one when a fault
 * begins, and one when it ends. While Postgres does not answer, each process uses the faults of its last search, and
 * the first process that claims a message in Redis sends it. When Postgres answers again, each process records its
 * messages there.
 */
export class FaultKeeper implements Closable {
  readonly #ctx: Deps;
  #last: readonly Attention[] = [];
  /** Faults whose beginning was reported to ALERT_URL, according to Postgres. */
  #told = new Set<string>();
  /** Faults that some process has reported while Postgres was unavailable, and when this process last tried to. */
  readonly #toldAlone = new Map<string, Attention>();
  readonly #triedAtMs = new Map<string, number>();
  #telling: Promise<void> | null = null;
  #closed = false;

  constructor(ctx: Deps) {
    this.#ctx = ctx;
  }

  /** Whether a fault has not ended. Ignores kinds of faults that only processes of a later release know. */
  readonly #isOpen = ({ endedAt, kind }: RecordedFault) =>
    endedAt === null && this.#ctx.faults.some(({ name }) => name === kind);

  /** Records the result of a search. Returns the faults with their beginnings, worst first. Never rejects. */
  async keep({ found, unknown, recorded }: Found): Promise<Attention[]> {
    const known = recorded?.filter(this.#isOpen).map(toAttention) ?? this.#last;
    const lasting = recorded?.filter(({ told }) => told !== "end").map(toAttention) ?? this.#last;
    const began = new Map(lasting.map((one) => [nameOf(one), one.since]));
    const dated = found.map((one) => ({ ...one, since: earlier(began.get(nameOf(one)), one.since) }));
    const attention = [...dated, ...known.filter(({ runbook }) => unknown.has(runbook))].toSorted(
      compareFaults(this.#ctx.faults),
    );
    this.#last = attention;
    if (recorded !== null) await this.#record(recorded, dated.map(asTold(dated)), unknown);
    this.#tell(recorded !== null);
    return attention;
  }

  /** Waits for messages that are being sent. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#telling;
  }

  /** Resolves once the messages of the last search are sent. */
  async told(): Promise<void> {
    await this.#telling;
  }

  /**
   * Records in Postgres which faults have begun, changed or ended, and which messages were sent while Postgres was
   * unavailable. Never rejects.
   */
  async #record(
    recorded: readonly RecordedFault[],
    found: readonly Attention[],
    unknown: ReadonlySet<string>,
  ): Promise<void> {
    const { pool, log, config } = this.#ctx;
    const rows = new Map(recorded.map((row) => [nameOf(toAttention(row)), row]));
    const isSame = (one: Attention) => {
      const row = rows.get(nameOf(one));
      return row?.endedAt === null && row.what === one.what && row.severity === one.severity;
    };
    const changed = new Map(found.filter((one) => !isSame(one)).map((one) => [nameOf(one), toRow(one, null)]));
    for (const [name, one] of this.#toldAlone) changed.set(name, toRow(one, "begin"));
    const names = new Set(found.map(nameOf));
    const open = recorded.filter(this.#isOpen).map(toAttention);
    const missing = [...this.#toldAlone.values(), ...open];
    const ended = missing.filter((one) => !names.has(nameOf(one)) && !unknown.has(one.runbook));
    this.#told = new Set(
      recorded.flatMap((row) => (row.told === "begin" && this.#isOpen(row) ? [nameOf(toAttention(row))] : [])),
    );
    try {
      await beginFaults(pool, [...changed.values()]);
      await endFaults(pool, ended.map(toKey));
      if (!recorded.every(this.#isOpen))
        await forgetFaults(pool, { seconds: TOLD_AFTER_S, isTelling: config.alerts.url !== null });
      for (const name of this.#toldAlone.keys()) {
        if (names.has(name)) this.#told.add(name);
        void this.#ctx.redis.del(this.#claimOf(name)).catch(() => undefined);
      }
      this.#toldAlone.clear();
    } catch (error) {
      log.debug({ err: error }, "cannot record faults");
    }
  }

  /** Begins to send the due messages, unless earlier messages are still being sent. */
  #tell(hasPostgres: boolean): void {
    const { config, log } = this.#ctx;
    if (config.alerts.url === null || this.#telling !== null || this.#closed) return;
    this.#telling = (hasPostgres ? tellFaults(this.#ctx) : this.#tellAlone())
      .catch((error) => log.warn({ err: error }, "cannot tell of faults"))
      .finally(() => {
        this.#telling = null;
      });
  }

  async #tellAlone(): Promise<void> {
    for (const fault of this.#last.map(asTold(this.#last)).filter(({ severity }) => severity === "red")) {
      const name = nameOf(fault);
      const triedMsAgo = performance.now() - (this.#triedAtMs.get(name) ?? Number.NEGATIVE_INFINITY);
      if (this.#told.has(name) || this.#toldAlone.has(name) || triedMsAgo < TOLD_AFTER_S * 1_000) continue;
      const claim = await this.#claim(name);
      if (claim === "told") this.#toldAlone.set(name, fault);
      if (claim !== "mine") continue;
      this.#triedAtMs.set(name, performance.now());
      const isAccepted = await tellFault(this.#ctx, `alr_${crypto.randomUUID()}`, { ...fault, endedAt: null });
      const { redis } = this.#ctx;
      if (isAccepted) {
        this.#toldAlone.set(name, fault);
        this.#triedAtMs.delete(name);
        await redis.set(this.#claimOf(name), "told", "PX", TOLD_KEPT_MS).catch(() => undefined);
      } else await redis.del(this.#claimOf(name)).catch(() => undefined);
    }
  }

  /** Who sends a fault's message: this process, another, or none because it was sent. Without Redis, all send it. */
  async #claim(name: string): Promise<"mine" | "other" | "told"> {
    if (knownId(this.#ctx.deployment) === null) return "mine";
    const { redis } = this.#ctx;
    const key = this.#claimOf(name);
    try {
      const isMine = (await redis.set(key, "telling", "PX", TOLD_AFTER_S * 1_000, "NX")) === "OK";
      return isMine ? "mine" : (await redis.get(key)) === "told" ? "told" : "other";
    } catch {
      return "mine";
    }
  }

  #claimOf = (name: string) => `${reportPrefix(this.#ctx.deployment)}:told:${name}`;
}

/** The kinds of faults that explain a kind. Both have the same cause, so they share one card and one message. */
const EXPLAINED_BY: Readonly<Record<string, readonly string[]>> = {
  VouchersNothingRedeemed: ["VouchersQueuePaused"],
  VouchersShardAway: ["VouchersQueuePaused"],
  VouchersQueueBacklog: ["VouchersQueuePaused", "VouchersNothingRedeemed", "VouchersServerAway", "VouchersShardAway"],
  VouchersJobsFail: ["VouchersNothingRedeemed", "VouchersServerAway", "VouchersShardAway"],
};

/** Finds in `all` the fault that explains `one`, if any. A pause explains only faults of its own queue. */
export function findExplanation<Each extends Explained>(one: Explained, all: readonly Each[]): Each | undefined {
  const queue = one.runbook === "VouchersQueueBacklog" ? one.subject : redeemQueue.name;
  return all.find(
    ({ runbook, subject }) =>
      EXPLAINED_BY[one.runbook]?.includes(runbook) && (runbook !== "VouchersQueuePaused" || subject === queue),
  );
}

/** Records a fault as amber if another fault explains it. Messages report only red faults. */
const asTold =
  (all: readonly Attention[]) =>
  (one: Attention): Attention =>
    one.severity === "red" && findExplanation(one, all) !== undefined ? { ...one, severity: "amber" } : one;

type Explained = Pick<Attention, "runbook" | "subject">;

const pageOf = ({ page }: Pick<Attention, "page">) => (page ?? []).join("/");
/** Identifies a fault. */
const nameOf = (one: Attention) => JSON.stringify([one.runbook, one.subject, pageOf(one)]);
const toKey = (one: Attention): FaultKey => ({ kind: one.runbook, subject: one.subject, page: pageOf(one) });
const toRow = (one: Attention, told: "begin" | null) => {
  const { severity, what, since } = one;
  return { ...toKey(one), severity, what, since, told };
};

function toAttention({ kind, severity, what, subject, since, page }: RecordedFault): Attention {
  return { severity, what, subject, since, runbook: kind, page: page === "" ? null : page.split("/") };
}

const earlier = (known: Date | undefined, found: Date) => (known !== undefined && known < found ? known : found);

/** Sends one message and logs the outcome. Returns whether the receiver has accepted the message. */
async function tellFault(ctx: Deps, id: string, told: Told): Promise<boolean> {
  const { url } = ctx.config.alerts;
  if (url === null) return false;
  const result = await sendAlert(ctx, { url, id, told, now: nowOf(ctx.deployment) });
  const { status = null, failure = "stopped" } = result ?? {};
  if (failure === null) ctx.log.info({ alert: id, what: told.what }, "an alert was sent");
  else ctx.log.warn({ alert: id, what: told.what, status, failure }, "ALERT_URL did not accept an alert");
  return failure === null;
}

/**
 * Sends the messages that are due to ALERT_URL, about red faults that have begun or ended. Several processes may do
 * this at once, because only one takes each message. A message that the receiver did not accept is due again after a
 * minute.
 */
async function tellFaults(ctx: Deps): Promise<void> {
  const due = await takeUntold(ctx.pool, TOLD_AFTER_S);
  await Promise.all(
    due.map(async ({ id, ...told }) => {
      const phase = told.endedAt === null ? "begin" : "end";
      if (await tellFault(ctx, `alr_${id}-${phase}`, told)) await recordTold(ctx.pool, { id, told: phase });
      else await recordRefused(ctx.pool, id);
    }),
  );
}
