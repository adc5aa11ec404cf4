import type { Redis } from "ioredis";
import type { Logger } from "pino";
import { MissLimiter } from "./miss-limiter.ts";
import { RateLimiter } from "./rate-limiter.ts";
import { SharedCounts } from "./shared-counts.ts";

/** A person takes far less than a partner's system: users have this part of a key's limit. */
const USER_PART = 10;

/** Every limit of the service by what it counts; null where it is off. */
export interface Limits {
  /** A key's reads: look-up, events. */
  read: RateLimiter | null;
  /** A key's moves: reserve, redeem, release. Apart from reads, so that these cannot starve them. */
  move: RateLimiter | null;
  /** A user's reads of the marketplace. */
  browse: RateLimiter | null;
  /** A user's claims and purchases. */
  take: RateLimiter | null;
  /** What an address asks for that is open to anyone. */
  address: RateLimiter | null;
  /** What an address is refused for want of a good key or token. Apart, so that visitors do not use it up. */
  refused: RateLimiter | null;
  /** A key's look-ups of codes that do not exist. */
  misses: MissLimiter | null;
}

/** Opens the limits of a process. `rateLimitRps` is a key's calls a second in each class; 0 switches off. */
export function openLimits(
  config: { rateLimitRps: number; missLimitPerMinute: number },
  redis: Redis,
  log: Logger,
): Limits {
  const counts = new SharedCounts(redis, log);
  const { rateLimitRps, missLimitPerMinute } = config;
  const perSecond = (name: string, limit: number) =>
    rateLimitRps === 0 ? null : new RateLimiter(name, limit, counts.open(name, 1));
  const perUser = Math.ceil(rateLimitRps / USER_PART);
  return {
    read: perSecond("read", rateLimitRps),
    move: perSecond("move", rateLimitRps),
    browse: perSecond("browse", perUser),
    take: perSecond("take", perUser),
    address: perSecond("address", rateLimitRps),
    refused: perSecond("refused", rateLimitRps),
    misses: missLimitPerMinute === 0 ? null : new MissLimiter(missLimitPerMinute, counts.open("misses", 60)),
  };
}
