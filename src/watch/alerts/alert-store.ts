import pTimeout from "p-timeout";
import type pg from "pg";
import type { DatabaseFence } from "../../platform/db/database-fence.ts";
import type { RedisClient } from "../../platform/redis/connections.ts";
import { replaceText } from "../../platform/redis/replace-text.ts";
import { type AlertState, alertState, mergeAlerts, NO_ALERTS } from "../alerts.ts";
import { readAlerts, replaceAlerts } from "../db/alerts.ts";

/** Longest wait for a server. Milliseconds. */
const WAIT_MAX_MS = 2_000;

export interface AlertStoreDeps {
  pool: pg.Pool;
  redis: RedisClient;
  /** Throws while the database has not been reached. */
  deployment: Pick<DatabaseFence, "id">;
}

/** The newest state, and how each place replaces it. A place that does not answer rejects. */
interface Known {
  state: AlertState;
  /** Whether each place that answers has it. */
  isEverywhere: boolean;
  /** In the order in which they are asked: the first that answers decides. */
  places: ((next: AlertState) => Promise<boolean>)[];
}

/**
 * What API processes know of alerts: in Postgres, where one process of several changes it first. While Postgres is
 * away, Redis decides, and while both are, each process for itself. Once a server is back, the first process that finds
 * it outdated writes the newest state there. What a process has told before it reached any server is added to that.
 */
export class AlertStore {
  readonly #ctx: AlertStoreDeps;
  /** What this process has last seen or written. Version 0 with alerts: what it has told before it reached a server. */
  #own = NO_ALERTS;

  constructor(ctx: AlertStoreDeps) {
    this.#ctx = ctx;
  }

  /**
   * Changes the state and returns what `change` returns beside it, or null if another process has changed it first.
   * Without a change, writes nothing unless a server lacks it.
   */
  async change<T>(change: (state: AlertState) => { state: AlertState; result: T }): Promise<T | null> {
    const { state: before, isEverywhere, places } = await this.#read();
    if (isEverywhere) this.#own = before;
    const { state, result } = change(before);
    if (isEverywhere && JSON.stringify(state) === JSON.stringify(before)) return result;
    const isApart = places.length === 0 && before.version === 0;
    const next = { ...state, version: isApart ? 0 : before.version + 1 };
    for (const replace of places) {
      const isFirst = await inTime(replace(next)).catch(() => null);
      if (isFirst === false) return null;
      if (isFirst) break;
    }
    this.#own = next;
    const key = this.#key;
    if (key !== null) await inTime(this.#ctx.redis.set(key, JSON.stringify(next))).catch(() => undefined);
    return result;
  }

  /** Null while the deployment is not known. */
  get #key(): string | null {
    try {
      return `pva:${this.#ctx.deployment.id}:alerts`;
    } catch {
      return null;
    }
  }

  async #read(): Promise<Known> {
    const { pool, redis } = this.#ctx;
    const key = this.#key;
    const [row, text] = await Promise.all([
      inTime(readAlerts(pool)).catch(() => null),
      key === null ? undefined : inTime(redis.get(key)).catch(() => undefined),
    ]);
    const inPostgres = row?.state ?? null;
    const inRedis = text ? parse(JSON.parse(text)) : null;
    const found = [inRedis, inPostgres].filter((state) => state !== null);
    const isApart = this.#own.version === 0 && this.#own.alerts.length > 0 && found.length > 0;
    const states = isApart ? found : [this.#own, ...found];
    const newest = states.reduce((best, one) => (one.version >= best.version ? one : best));
    const state = isApart ? mergeAlerts(newest, this.#own.alerts) : newest;
    const places: Known["places"] = [];
    if (row !== null) {
      places.push((next) =>
        replaceAlerts(pool, {
          before: row.version,
          version: next.version,
          state: JSON.stringify({ alerts: next.alerts }),
        }),
      );
    }
    if (key !== null && text !== undefined) {
      places.push((next) => replaceText(redis, key, text ?? "", JSON.stringify(next)));
    }
    const lacks = (one: AlertState | null) => one?.version !== state.version;
    const isEverywhere = !isApart && !(row !== null && lacks(inPostgres)) && !(text !== undefined && lacks(inRedis));
    return { state, isEverywhere, places };
  }
}

const inTime = <T>(answer: Promise<T>) => pTimeout(answer, { milliseconds: WAIT_MAX_MS });

/** Null for what another release has written. */
const parse = (state: unknown): AlertState | null => alertState.safeParse(state).data ?? null;
