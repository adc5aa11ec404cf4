import { readFileSync } from "node:fs";
import type { Redis } from "ioredis";
import type { Logger } from "pino";
import { portionsOf } from "../../platform/batching/shares.ts";
import type { DeploymentIdentity } from "../../platform/deployment-identity.ts";
import { mastersOf, type RedisClient } from "../../platform/redis/connections.ts";

/**
 * A lease older than this without a live reservation is an orphan. The next caller that reserves the voucher replaces
 * it. Milliseconds.
 */
export const ORPHAN_AFTER_MS = 2_000;

/** The reservation that a lease belongs to. */
export interface LeaseHolder {
  ticket: string;
  keyId: string;
}

type Scripted = RedisClient & {
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

/** A live reservation, which must have a lease. Durations are milliseconds. */
interface LeasedReservation extends LeaseHolder {
  voucherId: string;
  ageMs: number;
  leftMs: number;
}

/** A lease found by a scan. `ageMs` is measured by Redis's clock. */
interface FoundLease {
  voucherId: string;
  ticket: string;
  ageMs: number;
}

/**
 * Leases of vouchers in Redis. A lease refuses competing callers before they wait for the voucher's lock in Postgres.
 * It proves nothing: the reservation's row alone decides whether a voucher is reserved. Methods reject when Redis does
 * not respond.
 */
export class Leases {
  readonly #redis: Scripted;
  readonly #deployment: Pick<DeploymentIdentity, "id">;

  constructor(redis: RedisClient, deployment: Pick<DeploymentIdentity, "id">) {
    this.#deployment = deployment;
    redis.defineCommand("acquireLease", { numberOfKeys: 1, lua: script("acquire") });
    redis.defineCommand("releaseLease", { numberOfKeys: 1, lua: script("release") });
    redis.defineCommand("restoreLease", { numberOfKeys: 1, lua: script("restore") });
    this.#redis = redis as Scripted;
  }

  /** Acquires the lease for `lifetimeMs` and returns null, or returns the current holder. Atomic. */
  async acquire(voucherId: string, holder: LeaseHolder, lifetimeMs: number): Promise<LeaseHolder | null> {
    const [acquired, ticket, keyId] = await this.#redis.acquireLease(
      this.#key(voucherId),
      holder.ticket,
      holder.keyId,
      lifetimeMs,
      ORPHAN_AFTER_MS,
    );
    return acquired === 1 ? null : { ticket, keyId };
  }

  /** Deletes the lease if it still belongs to this ticket. Returns whether it did. */
  async release(voucherId: string, ticket: string): Promise<boolean> {
    return (await this.#redis.releaseLease(this.#key(voucherId), ticket)) === 1;
  }

  /**
   * Restores a live reservation's lease if it is missing or has another ticket, until the reservation ends. Returns
   * whether it did.
   */
  async restore({ voucherId, ticket, keyId, ageMs, leftMs }: LeasedReservation): Promise<boolean> {
    return (await this.#redis.restoreLease(this.#key(voucherId), ticket, keyId, ageMs, leftMs)) === 1;
  }

  /**
   * Scans about `count` keys for leases, from a cursor ("0" at first). Returns the cursor "0" after the last keys. The
   * masters of a Redis Cluster are scanned one after another; a cursor is then the master's index and its own cursor,
   * such as `1/42`. If one of several masters does not respond, returns no leases and the cursor of the next master.
   */
  async scan(position: string, count: number): Promise<{ cursor: string; found: FoundLease[] }> {
    const masters = mastersOf(this.#redis);
    const [first = "0", second] = position.split("/");
    const [index, cursor] = second === undefined ? [0, first] : [Number(first), second];
    const master = masters[index];
    if (master === undefined) return { cursor: "0", found: [] };
    const nextMaster = index + 1 < masters.length ? `${index + 1}/0` : "0";
    try {
      const { next, found } = await this.#scanMaster(master, cursor, count);
      return { cursor: next === "0" ? nextMaster : masters.length === 1 ? next : `${index}/${next}`, found };
    } catch (error) {
      if (masters.length === 1) throw error;
      return { cursor: nextMaster, found: [] };
    }
  }

  async #scanMaster(master: Redis, cursor: string, count: number): Promise<{ next: string; found: FoundLease[] }> {
    const [next, keys] = await master.scan(cursor, "MATCH", this.#key("*"), "COUNT", count);
    if (keys.length === 0) return { next, found: [] };
    const [seconds, microseconds] = await master.time();
    const now = Number(seconds) * 1_000 + Number(microseconds) / 1_000;
    const leases = await Promise.all(keys.map((key) => this.#redis.hmget(key, "ticket", "start")));
    const found = keys.flatMap((key, index) => {
      const [ticket, start] = leases[index] ?? [];
      return ticket ? [{ voucherId: key.slice(this.#key("").length - 1, -1), ticket, ageMs: now - Number(start) }] : [];
    });
    return { next, found };
  }

  #key(voucherId: string): string {
    return leaseKey(this.#deployment.id, voucherId);
  }
}

/**
 * The Redis key of a voucher's lease. The braces make the id the hash tag, so a cluster spreads leases over its slots.
 */
export function leaseKey(deploymentId: string, voucherId: string): string {
  return `lease:${deploymentId}:{${voucherId}}`;
}

function script(name: string): string {
  return readFileSync(new URL(`./${name}.lua`, import.meta.url), "utf8");
}

/**
 * Releases a lease. Never fails: a lease that cannot be released becomes an orphan, which refuses other callers for at
 * most two seconds.
 */
export async function releaseLease(
  { leases, log }: { leases: Leases; log: Logger },
  voucherId: string,
  ticket: string,
): Promise<void> {
  try {
    await leases.release(voucherId, ticket);
  } catch (error) {
    log.warn({ err: error, voucherId }, "cannot release a lease");
  }
}

/** Leases that one call of {@link releaseLeases} releases at the same time. */
const RELEASES_MAX = 500;

/**
 * As {@link releaseLease}, for many. Stops at a portion with a lease that cannot be released, with one warning for all
 * that remain.
 */
export async function releaseLeases(
  { leases, log }: { leases: Leases; log: Logger },
  ended: readonly { voucherId: string; ticket: string }[],
): Promise<void> {
  let released = 0;
  for (const portion of portionsOf(ended, RELEASES_MAX)) {
    const results = await Promise.allSettled(portion.map(({ voucherId, ticket }) => leases.release(voucherId, ticket)));
    const failed = results.find((result) => result.status === "rejected");
    released += results.filter(({ status }) => status === "fulfilled").length;
    if (failed === undefined) continue;
    log.warn({ err: failed.reason, remaining: ended.length - released }, "cannot release leases");
    return;
  }
}

/** As {@link releaseLease}, for the reservation that a void has ended; null if there was none. */
export async function releaseEndedLease(
  ctx: Parameters<typeof releaseLease>[0],
  { voucherId, endedTicket }: { voucherId: string; endedTicket: string | null },
): Promise<void> {
  if (endedTicket !== null) await releaseLease(ctx, voucherId, endedTicket);
}
