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
};

/**
 * The per-voucher lease in Redis. It turns contenders away before they reach Postgres, and proves nothing: whether a voucher
 * is held is decided by its reservation row alone. Every call rejects when Redis does not answer.
 */
export class Leases {
  readonly #redis: Scripted;

  constructor(redis: Redis) {
    redis.defineCommand("acquireLease", { numberOfKeys: 1, lua: script("acquire") });
    redis.defineCommand("releaseLease", { numberOfKeys: 1, lua: script("release") });
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

  /** Gives the lease back if it is still this ticket's; another's lease is left alone. */
  async release(voucherId: string, ticket: string): Promise<void> {
    await this.#redis.releaseLease(leaseKey(voucherId), ticket);
  }
}

/** Redis key of a voucher's lease; the braces make it the hash tag, so a cluster spreads leases over its slots. */
export function leaseKey(voucherId: string): string {
  return `lease:{${voucherId}}`;
}

function script(name: string): string {
  return readFileSync(new URL(`./${name}.lua`, import.meta.url), "utf8");
}
