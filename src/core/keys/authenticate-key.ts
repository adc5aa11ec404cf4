import type pg from "pg";
import type { Logger } from "pino";
import { Batcher } from "../../platform/batching/batcher.ts";
import { networkOf } from "../../platform/http/middleware/request-headers.ts";
import { closeAll } from "../../platform/lifetime.ts";
import { hashSecret, isSandboxKey, isWellFormedApiKey, makeAllowlist } from "./api-keys.ts";
import { type ApiKey, findKeysBySecret, recordKeyUsage } from "./db/api-keys.ts";

/** A valid API key. */
interface AuthenticatedKey {
  id: string;
  organizationId: string | null;
  /** The organization is a sandbox. */
  sandbox: boolean;
  /** Whether the key has a daily limit. */
  capped: boolean;
  scopes: ReadonlySet<string>;
  allows: (address: string) => boolean;
}

interface Cached {
  key: AuthenticatedKey;
  /** The time on the monotonic clock until which the key is usable. Milliseconds. */
  usableUntil: number;
}

/** How long a cached key is trusted, from the start of its query. A revoked key stops within a second. Milliseconds. */
const TRUSTED_MS = 500;
/** Maximum number of keys in the cache. Only valid keys enter it, so made-up keys cannot displace them. */
const CACHE_MAX = 10_000;
const BATCH_MAX = 256;
/** Maximum number of waiting queries of each kind. It equals the number of connections that a process accepts. */
const WAITING_MAX = 10_000;
/** Pause before usage of keys is recorded again after a failure. Milliseconds. */
const RECORDING_PAUSE_MS = 60_000;

/** Finds an API key by its secret's SHA-256. With 200 random bits, the duration of a search reveals nothing useful. */
export class KeyAuthenticator {
  readonly #pool: pg.Pool;
  readonly #log: Logger;
  /** Keys by their secret's hash, in the order of their last query. Older entries still show that a key worked. */
  readonly #cache = new Map<string, Cached>();
  readonly #seen: Batcher<string, ApiKey | null>;
  /**
   * Queries for keys that are not in the cache. They are separate from the others, so that a flood of made-up keys does
   * not delay valid ones. One query runs at a time, so a flood uses one connection. Addresses take turns. Only a valid
   * key from the flood's own address may wait for a few queries.
   */
  readonly #unseen: Batcher<{ hash: string; address: string | undefined }, ApiKey | null>;
  readonly #usage: Batcher<string, null>;
  /** When recording resumes after a failure, on the monotonic clock. Milliseconds. */
  #recordAgainAt = 0;

  constructor(pool: pg.Pool, log: Logger) {
    this.#pool = pool;
    this.#log = log;
    const find = async (hashes: string[]) => {
      const found = await findKeysBySecret(pool, hashes);
      return hashes.map((hash) => found.get(hash) ?? null);
    };
    this.#seen = new Batcher(find, {
      batchMax: BATCH_MAX,
      waitingMax: WAITING_MAX,
      ownerOf: (hash) => this.#cache.get(hash)?.key.organizationId ?? "",
    });
    this.#unseen = new Batcher((unseen) => find(unseen.map(({ hash }) => hash)), {
      batchMax: BATCH_MAX,
      waitingMax: WAITING_MAX,
      ownerOf: ({ address }) => networkOf(address),
    });
    this.#usage = new Batcher((hashes) => this.#writeUsage(hashes), { batchMax: BATCH_MAX, waitingMax: WAITING_MAX });
  }

  /**
   * Returns the key with this secret. Returns null if the key is unknown, revoked or expired, or if its prefix and its
   * organization disagree on whether it is a sandbox key. A secret with a wrong checksum costs no query. Other secrets
   * are looked up even after many wrong ones from the same address, because secrets are too long to guess.
   * @param address the caller's address.
   * @throws BatcherFull, or the database's error.
   */
  async authenticate(secret: string, address?: string): Promise<AuthenticatedKey | null> {
    if (!isWellFormedApiKey(secret)) return null;
    const hash = hashSecret(secret);
    const startedAt = performance.now();
    const cached = this.#cache.get(hash);
    if (cached !== undefined && cached.usableUntil > startedAt) return cached.key;
    const found = await (cached === undefined ? this.#unseen.submit({ hash, address }) : this.#seen.submit(hash));
    this.#cache.delete(hash);
    if (found === null) return null;
    if (found.sandbox !== isSandboxKey(secret)) {
      this.#log.error({ keyId: found.id }, "a key's prefix does not match its organization");
      return null;
    }
    if (found.useIsDue) this.#recordUsage(hash);
    const key = {
      id: found.id,
      organizationId: found.organizationId,
      sandbox: found.sandbox,
      capped: found.capped,
      scopes: new Set<string>(found.scopes),
      allows: makeAllowlist(found.allowIps),
    };
    if (this.#cache.size >= CACHE_MAX) this.#forgetOldest();
    this.#cache.set(hash, { key, usableUntil: startedAt + Math.min(TRUSTED_MS, found.usableMs ?? TRUSTED_MS) });
    return key;
  }

  /** Returns a key that worked earlier in this process, even without Postgres. It may be invalid by now. */
  known(secret: string): Pick<AuthenticatedKey, "id" | "organizationId"> | null {
    if (!isWellFormedApiKey(secret)) return null;
    return this.#cache.get(hashSecret(secret))?.key ?? null;
  }

  /** Stops looking up keys. Resolves after all usage is recorded or its recording has failed. */
  async close(): Promise<void> {
    await closeAll([this.#seen, this.#unseen]);
    await this.#usage.close();
  }

  #forgetOldest(): void {
    const [oldest] = this.#cache.keys();
    if (oldest !== undefined) this.#cache.delete(oldest);
  }

  /** Records usage in the background. The database records a key's usage at most once a minute. */
  #recordUsage(hash: string): void {
    if (performance.now() < this.#recordAgainAt) return;
    this.#usage.submit(hash).catch((error: unknown) => {
      if (performance.now() < this.#recordAgainAt) return;
      this.#recordAgainAt = performance.now() + RECORDING_PAUSE_MS;
      this.#log.warn({ err: error }, "cannot record key usage");
    });
  }

  async #writeUsage(hashes: string[]): Promise<null[]> {
    await recordKeyUsage(this.#pool, hashes);
    return hashes.map(() => null);
  }
}
