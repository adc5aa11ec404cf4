import type pg from "pg";
import { Coalescer } from "../batching/coalescer.ts";
import { type ApiKey, findKeysBySecret } from "../db/api-keys.ts";
import { hashApiKey, isWellFormedApiKey, makeAllowlist } from "../domain/api-keys.ts";

/** A key that works, with its allowlist ready to ask. */
export interface AuthenticatedKey {
  id: string;
  organizationId: string | null;
  scopes: ReadonlySet<string>;
  allows: (address: string) => boolean;
}

interface Cached {
  key: AuthenticatedKey;
  /** On the monotonic clock, milliseconds. */
  usableUntil: number;
}

/** A key is believed for this long, counted from the start of its query, so a revoked key stops working within a second. */
const BELIEVED_MS = 500;
/** Keys in the cache. Only keys that exist get in, so callers with made-up keys cannot fill it. */
const CACHE_MAX = 10_000;
const BATCH_MAX = 256;
const WAITING_MAX = 10_000;

/** Tells whose key a header value is. */
export class KeyAuthenticator {
  readonly #cache = new Map<string, Cached>();
  readonly #reads: Coalescer<Buffer, ApiKey | null>;

  constructor(pool: pg.Pool) {
    this.#reads = new Coalescer(
      async (hashes) => {
        const found = await findKeysBySecret(pool, hashes);
        return hashes.map((hash) => found.get(hash.toString("hex")) ?? null);
      },
      { batchMax: BATCH_MAX, waitingMax: WAITING_MAX },
    );
  }

  /** The key behind a secret, or null when it is unknown, revoked or past its end. A mistyped secret costs no query. */
  async authenticate(secret: string): Promise<AuthenticatedKey | null> {
    if (!isWellFormedApiKey(secret)) return null;
    const hash = hashApiKey(secret);
    const name = hash.toString("base64");
    const startedAt = performance.now();
    const cached = this.#cache.get(name);
    if (cached !== undefined && cached.usableUntil > startedAt) return cached.key;
    const found = await this.#reads.submit(hash);
    if (found === null) {
      this.#cache.delete(name);
      return null;
    }
    const key = {
      id: found.id,
      organizationId: found.organizationId,
      scopes: new Set<string>(found.scopes),
      allows: makeAllowlist(found.allowIps),
    };
    if (this.#cache.size >= CACHE_MAX) this.#cache.clear();
    this.#cache.set(name, { key, usableUntil: startedAt + Math.min(BELIEVED_MS, found.usableMs ?? BELIEVED_MS) });
    return key;
  }
}
