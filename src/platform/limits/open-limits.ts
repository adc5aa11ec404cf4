import type { RedisClient } from "../redis/connections.ts";
import { MissLimiter } from "./miss-limiter.ts";
import { openCounter, RateLimiter } from "./rate-limiter.ts";

/** A user's limit is a key's limit divided by this number. A person makes far fewer calls than a partner's system. */
const USER_DIVISOR = 10;

/** All limits of the service. A limit that is off is null. */
export interface Limits {
  /** A key's reads, and its calls to manage webhooks. */
  read: RateLimiter | null;
  /** A key's calls of reserve, redeem and release. This limit is separate, so that reads cannot use it up. */
  move: RateLimiter | null;
  /** A user's reads of the marketplace. */
  browse: RateLimiter | null;
  /** A user's claims and purchases. */
  take: RateLimiter | null;
  /** An address's requests to routes that need no key or token. */
  address: RateLimiter | null;
  /**
   * An address's requests without valid credentials to routes that need a key or token. This limit is separate, so that
   * anonymous visitors cannot use it up.
   */
  refused: RateLimiter | null;
  /** A key's look-ups of codes that do not exist. */
  misses: MissLimiter | null;
}

/**
 * Opens the limits of a process. `rateLimitRps` is a key's limit in calls per second, for `read` and for `move` each. 0
 * turns off every limit except `misses`, which has its own setting.
 */
export function openLimits(
  { rateLimitRps, missLimitPerMinute }: { rateLimitRps: number; missLimitPerMinute: number },
  redis: RedisClient,
): Limits {
  const perSecond = (name: string, limit: number) =>
    rateLimitRps === 0 ? null : new RateLimiter(name, limit, openCounter(redis, name, 1));
  const perUser = Math.ceil(rateLimitRps / USER_DIVISOR);
  return {
    read: perSecond("read", rateLimitRps),
    move: perSecond("move", rateLimitRps),
    browse: perSecond("browse", perUser),
    take: perSecond("take", perUser),
    address: perSecond("address", rateLimitRps),
    refused: perSecond("refused", rateLimitRps),
    misses: missLimitPerMinute === 0 ? null : new MissLimiter(missLimitPerMinute, openCounter(redis, "misses", 60)),
  };
}
