import { readFileSync } from "node:fs";
import type { Logger } from "pino";
import { portionsOf } from "../../platform/batching/shares.ts";
import type { DeploymentIdentity } from "../../platform/deployment-identity.ts";
import type { RedisClient } from "../../platform/redis/connections.ts";

const RELEASE = readFileSync(new URL("./release.lua", import.meta.url), "utf8");

/** A lease of this age without a reservation is left over: the next reserve call takes it over. Milliseconds. */
export const ORPHAN_AFTER_MS = 2_000;

/** The reservation to which a lease belongs. */
export interface LeaseHolder {
  ticket: string;
  keyId: string;
}

type Scripted = RedisClient & { releaseLease(key: string, ticket: string): Promise<number> };

/**
 * Leases of vouchers in Redis. A lease refuses competing callers before they wait for the voucher's lock in Postgres.
 * Only the reservation's row in Postgres decides whether a voucher is reserved, so leases need no repair. A lost lease
 * changes no response, and a leftover lease expires. Methods reject when Redis does not respond.
 */
export class Leases {
  readonly #redis: Scripted;
  readonly #deployment: Pick<DeploymentIdentity, "id">;

  constructor(redis: RedisClient, deployment: Pick<DeploymentIdentity, "id">) {
    this.#deployment = deployment;
    redis.defineCommand("releaseLease", { numberOfKeys: 1, lua: RELEASE });
    this.#redis = redis as Scripted;
  }

  /**
   * Acquires the lease for `lifetimeMs` and returns null, or returns the current holder. The caller must have read that
   * the voucher has no live reservation, so a lease older than {@link ORPHAN_AFTER_MS} is taken over.
   */
  async acquire(voucherId: string, { ticket, keyId }: LeaseHolder, lifetimeMs: number): Promise<LeaseHolder | null> {
    const key = leaseKey(this.#deployment.id, voucherId);
    const tryToSet = () => this.#redis.set(key, `${ticket} ${keyId}`, "PX", lifetimeMs, "NX", "GET");
    const held = await tryToSet();
    if (held === null) return null;
    // Computes the age from the time to live, which exceeds the lifetime if Redis's clock was set back.
    const ageMs = Math.abs(lifetimeMs - (await this.#redis.pttl(key)));
    if (ageMs <= ORPHAN_AFTER_MS) return holderOf(held);
    await this.#redis.releaseLease(key, holderOf(held).ticket);
    return holderOf(await tryToSet());
  }

  /** Deletes the lease if it still belongs to this ticket. Returns whether it did. */
  async release(voucherId: string, ticket: string): Promise<boolean> {
    return (await this.#redis.releaseLease(leaseKey(this.#deployment.id, voucherId), ticket)) === 1;
  }
}

function holderOf(held: string): LeaseHolder;
function holderOf(held: string | null): LeaseHolder | null;
function holderOf(held: string | null): LeaseHolder | null {
  const [ticket = "", keyId = ""] = held?.split(" ") ?? [];
  return held === null ? null : { ticket, keyId };
}

/**
 * The Redis key of a voucher's lease. The braces make the voucher's id the hash tag, so a cluster distributes leases
 * over its slots. The key must differ from `lease:<deployment>:{<voucher>}`, where version 0.1.0 stored hashes.
 */
export function leaseKey(deploymentId: string, voucherId: string): string {
  return `lease:{${voucherId}}:${deploymentId}`;
}

/** Releases a lease. Never fails. A lease that remains refuses other callers for at most two more seconds. */
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

/** Number of leases that {@link releaseLeases} releases at the same time. */
const RELEASES_MAX = 500;

/**
 * Like {@link releaseLease}, for many leases, {@link RELEASES_MAX} at a time. After a failed release, begins no further
 * ones, and logs one warning about all remaining leases.
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
