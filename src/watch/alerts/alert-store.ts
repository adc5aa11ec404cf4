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
  /** Throws before the process has first reached the database. */
  deployment: Pick<DatabaseFence, "id">;
}

/** The newest state, and how to replace it on each server. The replacement rejects if the server does not answer. */
interface Known {
  state: AlertState;
  /** Whether each server that answers has this state. */
  isEverywhere: boolean;
  /** In the order in which they are asked. The first server that answers decides. */
  places: ((next: AlertState) => Promise<boolean>)[];
}

/**
 * The state of alerts, which API processes share. In Postgres, one of several concurrent changes succeeds. While
 * Postgres does not answer, the state in Redis decides; without both, each process keeps its own. When a server is
 * back, the first process that finds its state outdated writes the newest one there, and adds what it sent before it
 * reached a server.
 */
export class AlertStore {
  readonly #ctx: AlertStoreDeps;
  /** The state last read or written. Version 0 with alerts: sent before the process reached a server. */
  #own = NO_ALERTS;

  constructor(ctx: AlertStoreDeps) {
    this.#ctx = ctx;
  }

  /**
   * Changes the state and returns the `result` of `change`, or null if another process changed the state first. If
   * `change` changes nothing, writes only to a server that lacks the state.
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

  /** The key in Redis; null while the deployment's id is not known. */
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

/** The state, or null if another release wrote it in another form. */
const parse = (state: unknown): AlertState | null => alertState.safeParse(state).data ?? null;
