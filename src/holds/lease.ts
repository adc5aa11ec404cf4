import { readFileSync } from "node:fs";
import type { Redis } from "ioredis";

/** A lease without a live hold behind it for longer than this is an orphan and stops nobody. Milliseconds. */
export const ORPHAN_AFTER_MS = 2_000;

/** Whose lease a voucher has. */
export interface LeaseHolder {
  ticket: string;
  keyId: string;
}

type Scripted = Redis & {
  acquireLease(
    key: string,
    ticket: string,
    keyId: string,
    lifetimeMs: number,
    orphanMs: number,
  ): Promise<[number, string, string]>;
  releaseLease(key: string, ticket: string): Promise<number>;
  restoreLease(key: string, ticket: string, keyId: string, ageMs: number, leftMs: number): Promise<number>;
};

/** A live hold whose lease should stand. Durations are milliseconds. */
export interface LeasedHold extends LeaseHolder {
  voucherId: string;
  ageMs: number;
  leftMs: number;
}

/** A lease that was found. `ageMs` is by Redis's own clock. */
export interface FoundLease {
  voucherId: string;
  ticket: string;
  ageMs: number;
}

/**
 * The per-voucher lease in Redis. It turns contenders away before they reach Postgres, and proves nothing: whether a voucher
 * is held is decided by its reservation row alone. Every call rejects when Redis does not answer.
 */
export class Leases {
  readonly #redis: Scripted;

  constructor(redis: Redis) {
    redis.defineCommand("acquireLease", { numberOfKeys: 1, lua: script("acquire") });
    redis.defineCommand("releaseLease", { numberOfKeys: 1, lua: script("release") });
    redis.defineCommand("restoreLease", { numberOfKeys: 1, lua: script("restore") });
    this.#redis = redis as Scripted;
  }

  /** Takes the lease for `lifetimeMs` and returns null, or returns whose it is. Atomic. */
  async acquire(voucherId: string, holder: LeaseHolder, lifetimeMs: number): Promise<LeaseHolder | null> {
    const [taken, ticket, keyId] = await this.#redis.acquireLease(
      leaseKey(voucherId),
      holder.ticket,
      holder.keyId,
      lifetimeMs,
      ORPHAN_AFTER_MS,
    );
    return taken === 1 ? null : { ticket, keyId };
  }

  /** Gives the lease back if it is still this ticket's; another's lease is left alone. Returns whether there was one. */
  async release(voucherId: string, ticket: string): Promise<boolean> {
    return (await this.#redis.releaseLease(leaseKey(voucherId), ticket)) === 1;
  }

  /** Puts a live hold's lease back, to end with the hold, unless it stands. Returns whether it was missing. */
  async restore({ voucherId, ticket, keyId, ageMs, leftMs }: LeasedHold): Promise<boolean> {
    return (await this.#redis.restoreLease(leaseKey(voucherId), ticket, keyId, ageMs, leftMs)) === 1;
  }

  /**
   * Looks through about `count` keys of Redis for leases, from a cursor on ("0" to begin). The next cursor is "0" when all have
   * been seen.
   */
  async scan(cursor: string, count: number): Promise<{ cursor: string; found: FoundLease[] }> {
    const [next, keys] = await this.#redis.scan(cursor, "MATCH", leaseKey("*"), "COUNT", count);
    if (keys.length === 0) return { cursor: next, found: [] };
    const [seconds, microseconds] = await this.#redis.time();
    const now = Number(seconds) * 1_000 + Number(microseconds) / 1_000;
    const held = await Promise.all(keys.map((key) => this.#redis.hmget(key, "ticket", "start")));
    const found = keys.flatMap((key, index) => {
      const [ticket, start] = held[index] ?? [];
      return ticket ? [{ voucherId: key.slice(LEASE_PREFIX.length, -1), ticket, ageMs: now - Number(start) }] : [];
    });
    return { cursor: next, found };
  }
}

const LEASE_PREFIX = "lease:{";

/** Redis key of a voucher's lease; the braces make it the hash tag, so a cluster spreads leases over its slots. */
export function leaseKey(voucherId: string): string {
  return `${LEASE_PREFIX}${voucherId}}`;
}

function script(name: string): string {
  return readFileSync(new URL(`./${name}.lua`, import.meta.url), "utf8");
}
