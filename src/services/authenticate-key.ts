import type pg from "pg";
import type { Logger } from "pino";
import { Coalescer } from "../batching/coalescer.ts";
import { type ApiKey, findKeysBySecret, noteKeyUses } from "../db/api-keys.ts";
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
/** Keys that are remembered. Only keys that work get in, so callers with made-up keys push nobody out. */
const CACHE_MAX = 10_000;
const BATCH_MAX = 256;
/** Queries for keys that worked before. */
const WAITING_MAX = 10_000;
/** Queries for keys that nobody here has seen work: most of them are made up when there are many. */
const UNSEEN_WAITING_MAX = 1_000;
/** For this long after a failure no use is noted. Milliseconds. */
const NOTING_PAUSE_MS = 60_000;

/**
 * Tells whose key a header value is. The compare is an index look-up of its SHA-256: what its time may tell is of the hash, which a caller
 * cannot choose, and of 200 random bits.
 */
export class KeyAuthenticator {
  readonly #pool: pg.Pool;
  readonly #log: Logger;
  /** By the secret's hash, the one that was read last at the end. An entry that is not believed any more still tells that the key worked. */
  readonly #cache = new Map<string, Cached>();
  readonly #seen: Coalescer<string, ApiKey | null>;
  /** Apart, so that a flood of made-up keys keeps no key waiting that works. */
  readonly #unseen: Coalescer<string, ApiKey | null>;
  readonly #uses: Coalescer<string, null>;
  /** On the monotonic clock, milliseconds. */
  #noteAgainAt = 0;

  constructor(pool: pg.Pool, log: Logger) {
    this.#pool = pool;
    this.#log = log;
    const find = async (hashes: string[]) => {
      const found = await findKeysBySecret(pool, hashes);
      return hashes.map((hash) => found.get(hash) ?? null);
    };
    this.#seen = new Coalescer(find, { batchMax: BATCH_MAX, waitingMax: WAITING_MAX });
    this.#unseen = new Coalescer(find, { batchMax: BATCH_MAX, waitingMax: UNSEEN_WAITING_MAX });
    this.#uses = new Coalescer((keyIds) => this.#writeUses(keyIds), { batchMax: BATCH_MAX, waitingMax: WAITING_MAX });
  }

  /**
   * The key behind a secret, or null when it is unknown, revoked or past its end. A mistyped secret costs no query. Before a secret is
   * looked up that has not worked here lately, `mayBeUnknown` is called, which may throw.
   */
  async authenticate(secret: string, mayBeUnknown: () => void = () => {}): Promise<AuthenticatedKey | null> {
    if (!isWellFormedApiKey(secret)) return null;
    const hash = hashApiKey(secret);
    const startedAt = performance.now();
    const cached = this.#cache.get(hash);
    if (cached !== undefined && cached.usableUntil > startedAt) return cached.key;
    if (cached === undefined) mayBeUnknown();
    const found = await (cached === undefined ? this.#unseen : this.#seen).submit(hash);
    this.#cache.delete(hash);
    if (found === null) return null;
    if (found.useIsDue) this.#noteUse(found.id);
    const key = {
      id: found.id,
      organizationId: found.organizationId,
      scopes: new Set<string>(found.scopes),
      allows: makeAllowlist(found.allowIps),
    };
    if (this.#cache.size >= CACHE_MAX) this.#forgetOldest();
    this.#cache.set(hash, { key, usableUntil: startedAt + Math.min(BELIEVED_MS, found.usableMs ?? BELIEVED_MS) });
    return key;
  }

  /** Resolves once every use that was seen is noted, or has failed to be. */
  drain(): Promise<void> {
    return this.#uses.drain();
  }

  #forgetOldest(): void {
    const [oldest] = this.#cache.keys();
    if (oldest !== undefined) this.#cache.delete(oldest);
  }

  /** Notes a use without anybody waiting for it. The statement sees to it that a key is written once a minute. */
  #noteUse(keyId: string): void {
    if (performance.now() < this.#noteAgainAt) return;
    this.#uses.submit(keyId).catch((error: unknown) => {
      if (performance.now() < this.#noteAgainAt) return;
      this.#noteAgainAt = performance.now() + NOTING_PAUSE_MS;
      this.#log.warn({ err: error }, "the use of keys could not be noted");
    });
  }

  async #writeUses(keyIds: string[]): Promise<null[]> {
    await noteKeyUses(this.#pool, keyIds);
    return keyIds.map(() => null);
  }
}
