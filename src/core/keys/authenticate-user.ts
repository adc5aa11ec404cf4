import { hash } from "node:crypto";
import { readFileSync } from "node:fs";
import {
  createLocalJWKSet,
  createRemoteJWKSet,
  errors,
  type JWTPayload,
  type JWTVerifyGetKey,
  type JWTVerifyOptions,
  jwtVerify,
} from "jose";
import { AppError } from "../../platform/api/errors.ts";
import { startsPerTurn } from "../../platform/batching/starts-per-turn.ts";
import type { Config } from "../../platform/config.ts";
import type { DatabaseClock } from "../../platform/db/database-clock.ts";

type UserTokens = Config["users"];

/** Asymmetric signatures only: anyone who can verify a token with a shared secret can also forge one. */
const ALGORITHMS = [
  "EdDSA",
  "Ed25519",
  "ES256",
  "ES384",
  "ES512",
  "PS256",
  "PS384",
  "PS512",
  "RS256",
  "RS384",
  "RS512",
];
/** Accepted difference between the clocks of issuer and service, in seconds. */
const CLOCK_TOLERANCE_S = 10;
/** A verified token is trusted for this long without another check of its signature. Milliseconds. */
const TRUSTED_MS = 5_000;
/** Most verified tokens in memory. Only valid tokens are stored, so invalid ones cannot displace them. */
const TRUSTED_MAX = 10_000;
/** Most verifications that start in one turn of the event loop. Two take about half a millisecond together. */
const STARTS_PER_TURN = 2;
/**
 * How long a fetched key is still trusted after the issuer withdraws it, at most. Keys from a file are read once.
 * Milliseconds.
 */
const WITHDRAWN_KEY_MS = 600_000;
/**
 * Lifetime of fetched keys, shortest time between fetches for unknown key ids, and longest duration of a fetch.
 * Milliseconds.
 */
const KEYS = { maxAge: WITHDRAWN_KEY_MS - TRUSTED_MS, cooldown: 10_000, timeoutDuration: 2_000 };
/** Longest subject, in characters. */
const SUBJECT_MAX = 255;

/** A verified token. */
interface Trusted {
  subject: string;
  /** When its signature must be checked again, on the monotonic clock. Milliseconds. */
  until: number;
  /** When the token expires, on the database's clock, including the tolerance. Milliseconds. */
  expiresAt: number;
}

/**
 * Verifies users' tokens: JWTs (RFC 7519) signed with a key of the configured JWKS (RFC 7517). Remembers a valid one
 * for seconds.
 */
export class UserAuthenticator {
  readonly #tokens: UserTokens;
  readonly #clock: DatabaseClock;
  readonly #keys: JWTVerifyGetKey | null;
  readonly #startInTurn = startsPerTurn(STARTS_PER_TURN);
  /** Verified tokens by the token's hash, oldest first. */
  readonly #trusted = new Map<string, Trusted>();

  /** @throws Error when `jwksUrl` names a file that cannot be read as a key set. */
  constructor(tokens: UserTokens, clock: DatabaseClock) {
    this.#tokens = tokens;
    this.#clock = clock;
    this.#keys = tokens.jwksUrl === null ? null : openKeys(new URL(tokens.jwksUrl));
  }

  /**
   * Verifies a token and returns its subject.
   * @throws AppError `invalid_token`, or `unavailable` if the keys cannot be read.
   */
  async authenticate(token: string): Promise<string> {
    if (this.#keys === null) throw invalidToken();
    await this.#clock.ready();
    const tokenHash = hash("sha256", token, "base64");
    const startedAt = performance.now();
    const now = this.#clock.now();
    const trusted = this.#trusted.get(tokenHash);
    if (trusted !== undefined && trusted.until > startedAt && trusted.expiresAt > now.getTime()) return trusted.subject;
    await new Promise<void>((start) => this.#startInTurn(start));
    const { issuer, audience } = this.#tokens;
    try {
      const { sub, exp = 0 } = await verify(token, this.#keys, {
        algorithms: ALGORITHMS,
        clockTolerance: CLOCK_TOLERANCE_S,
        currentDate: now,
        requiredClaims: ["sub", "exp"],
        ...(issuer !== null && { issuer }),
        ...(audience !== null && { audience }),
      });
      if (!isSubject(sub)) throw invalidToken();
      this.#remember(tokenHash, {
        subject: sub,
        until: startedAt + TRUSTED_MS,
        expiresAt: (exp + CLOCK_TOLERANCE_S) * 1_000,
      });
      return sub;
    } catch (error) {
      if (error instanceof AppError) throw error;
      if (isKeysUnavailable(error)) {
        throw new AppError("unavailable", ({ inDetail }) => inDetail.signInUnchecked, {
          cause: error,
        });
      }
      throw invalidToken(error);
    }
  }

  #remember(tokenHash: string, trusted: Trusted): void {
    this.#trusted.delete(tokenHash);
    this.#trusted.set(tokenHash, trusted);
    const [oldest] = this.#trusted.keys();
    if (this.#trusted.size > TRUSTED_MAX && oldest !== undefined) this.#trusted.delete(oldest);
  }
}

function openKeys(url: URL): JWTVerifyGetKey {
  if (url.protocol !== "file:") return openRemoteKeys(url);
  try {
    return createLocalJWKSet(JSON.parse(readFileSync(url, "utf8")));
  } catch {
    // No cause: a parse error quotes the file, which may contain secrets.
    throw new Error("AUTH_JWKS_URL names a file that cannot be read as a JSON Web Key Set");
  }
}

/** Keys that are fetched again by the monotonic clock. `jose` would go by the host's. */
function openRemoteKeys(url: URL): JWTVerifyGetKey {
  const { maxAge, cooldown, timeoutDuration } = KEYS;
  const keys = createRemoteJWKSet(url, { cacheMaxAge: Infinity, cooldownDuration: Infinity, timeoutDuration });
  let fetchedAt = -Infinity;
  const fetchIfOlder = async (ageMs: number): Promise<void> => {
    const startedAt = performance.now();
    if (startedAt - fetchedAt < ageMs) return;
    await keys.reload();
    fetchedAt = startedAt;
  };
  return async (...header) => {
    await fetchIfOlder(maxAge);
    try {
      return await keys(...header);
    } catch (error) {
      if (!(error instanceof errors.JWKSNoMatchingKey)) throw error;
      await fetchIfOlder(cooldown);
      return keys(...header);
    }
  };
}

/** Verifies a token. If the token does not name its key, tries every matching key of the set. */
async function verify(token: string, keys: JWTVerifyGetKey, options: JWTVerifyOptions): Promise<JWTPayload> {
  try {
    return (await jwtVerify(token, keys, options)).payload;
  } catch (error) {
    if (!(error instanceof errors.JWKSMultipleMatchingKeys)) throw error;
    for await (const key of error) {
      const verified = await jwtVerify(token, key, options).catch((failure: unknown) => {
        if (failure instanceof errors.JWSSignatureVerificationFailed) return null;
        throw failure;
      });
      if (verified !== null) return verified.payload;
    }
    throw new errors.JWSSignatureVerificationFailed();
  }
}

function isSubject(subject: unknown): subject is string {
  return (
    typeof subject === "string" && subject !== "" && subject.length <= SUBJECT_MAX && !/[\p{Cc}\p{Cs}]/u.test(subject)
  );
}

/** Whether verification failed because of the keys and not because of the token. */
function isKeysUnavailable(error: unknown): boolean {
  if (!(error instanceof errors.JOSEError)) return true;
  return (
    error instanceof errors.JWKSTimeout || error instanceof errors.JWKSInvalid || error.code === "ERR_JOSE_GENERIC"
  );
}

function invalidToken(cause?: unknown): AppError {
  return new AppError("invalid_token", undefined, { cause });
}
