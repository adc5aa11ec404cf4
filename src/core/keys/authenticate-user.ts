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
import type { Logger } from "pino";
import { AppError } from "../../platform/api/errors.ts";
import { isErasedForm } from "../../platform/api/fields.ts";
import { FairSlots } from "../../platform/batching/fair-slots.ts";
import type { DatabaseClock } from "../../platform/db/database-clock.ts";
import { networkOf } from "../../platform/http/middleware/request-headers.ts";

/** Accepted issuers and audiences of tokens (null accepts any), and the address of the keys that verify the tokens. */
interface TokenRules {
  /** Null to refuse every token. */
  jwksUrl: string | null;
  issuer: string[] | null;
  audience: string[] | null;
}

/** Only asymmetric algorithms. With a shared secret, everyone who can verify tokens could also forge them. */
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
/** Maximum number of verified tokens in memory. Only valid tokens are stored, so invalid ones cannot displace them. */
const TRUSTED_MAX = 10_000;
/**
 * Maximum number of verifications that start per turn of the event loop. At most half of them may be for one address.
 * Two verifications take about half a millisecond.
 */
const STARTS_PER_TURN = 4;
/**
 * Maximum time for which a fetched key is trusted after the issuer has withdrawn it, provided that the issuer's address
 * answers. Keys from a file are read only once. Milliseconds.
 */
const WITHDRAWN_KEY_MS = 600_000;
/** Lifetime of fetched keys, minimum time between fetches for unknown ids, maximum time of a fetch. Milliseconds. */
const KEYS = { maxAge: WITHDRAWN_KEY_MS - TRUSTED_MS, cooldown: 10_000, timeoutDuration: 2_000 };
/** Maximum length of a claim in a logged reason. Characters. */
const SHOWN_MAX = 200;
/** Maximum length of a caller's name. Characters. */
const NAME_MAX = 255;

/** A verified token. */
interface Trusted<Caller> {
  caller: Caller;
  /** The time on the monotonic clock when the signature must be checked again. Milliseconds. */
  until: number;
  /** When the token expires, on the database's clock, including the tolerance. Milliseconds. */
  expiresAt: number;
}

/** Variables that can make the service refuse correctly signed tokens, and variables with addresses of keys. */
export const TOKEN_VARIABLES = [
  ...(["AUTH_ISSUER", "AUTH_AUDIENCE", "AUTH_JWKS_URL", "OPS_ISSUER", "OPS_AUDIENCE", "OPS_JWKS_URL"] as const),
  ...(["OPS_NAME_CLAIM", "OPS_ROLE_CLAIM"] as const),
];
export type TokenVariable = (typeof TOKEN_VARIABLES)[number];

/** Tells operators, without naming persons, which variable makes tokens or keys unusable and why. Never throws. */
export type ReportToken = (variable: TokenVariable, what: string) => void;

/** Reports refused tokens, and keys that cannot be fetched, to operators. */
export interface Telling {
  log: Pick<Logger, "warn">;
  reportToken: ReportToken;
}

/** How to find the caller in a token. */
interface ReadingTokens<Caller> {
  /** The prefix of the environment variables' names. */
  prefix: "AUTH" | "OPS";
  /** Claims that every token must have. */
  required: readonly string[];
  /**
   * Returns the caller that a verified token names, or null to refuse the token. The token is valid until `expiresAt`,
   * on the database's clock, including the tolerance. Milliseconds.
   */
  readCaller(claims: JWTPayload, expiresAt: number): Caller | null;
  /** What to report if a token names no caller: the reason, and the variable that causes it. */
  nameless: { variable: TokenVariable; reason: string };
  telling: Telling;
}

/** Verifies JWTs (RFC 7519) with the configured JWKS (RFC 7517). Remembers valid tokens for a few seconds. */
export class TokenAuthenticator<Caller> {
  readonly #rules: TokenRules;
  readonly #clock: DatabaseClock;
  readonly #reading: ReadingTokens<Caller>;
  readonly #keys: JWTVerifyGetKey | null;
  readonly #starts = new FairSlots(STARTS_PER_TURN);
  /** Verified tokens by the token's hash, oldest first. */
  readonly #trusted = new Map<string, Trusted<Caller>>();

  /** @throws Error when `jwksUrl` names a file that cannot be read as a key set. */
  constructor(rules: TokenRules, clock: DatabaseClock, reading: ReadingTokens<Caller>) {
    this.#rules = rules;
    this.#clock = clock;
    this.#reading = reading;
    this.#keys = rules.jwksUrl === null ? null : openKeys(new URL(rules.jwksUrl), reading);
  }

  /**
   * Verifies a token and returns its caller. Only a limited number of verifications start per turn of the event loop,
   * and addresses take turns. So a flood of wrong tokens delays valid tokens a little, but no valid token is refused
   * because of it.
   * @param address the caller's address.
   * @throws AppError `invalid_token`, whose cause has the reason, or `unavailable` if the keys were never read.
   */
  async authenticate(token: string, address?: string): Promise<Caller> {
    if (this.#keys === null) throw invalidToken(`${this.#reading.prefix}_JWKS_URL is not set`);
    await this.#clock.ready();
    const tokenHash = hash("sha256", token, "base64");
    const startedAt = performance.now();
    const now = this.#clock.steadyNow();
    const trusted = this.#trusted.get(tokenHash);
    if (trusted !== undefined && trusted.until > startedAt && trusted.expiresAt > now.getTime()) return trusted.caller;
    await this.#starts.startInTurn(networkOf(address));
    const { issuer, audience } = this.#rules;
    try {
      const claims = await verify(token, this.#keys, {
        algorithms: ALGORITHMS,
        clockTolerance: CLOCK_TOLERANCE_S,
        currentDate: now,
        requiredClaims: [...this.#reading.required, "exp"],
        ...(issuer !== null && { issuer }),
        ...(audience !== null && { audience }),
      });
      const expiresAt = ((claims.exp ?? 0) + CLOCK_TOLERANCE_S) * 1_000;
      const caller = this.#reading.readCaller(claims, expiresAt);
      if (caller === null) throw this.#refuse(this.#reading.nameless);
      this.#remember(tokenHash, { caller, until: startedAt + TRUSTED_MS, expiresAt });
      return caller;
    } catch (error) {
      if (error instanceof AppError) throw error;
      if (isKeysUnavailable(error)) {
        throw new AppError("unavailable", (t) => t("inDetail.signInUnchecked"), {
          cause: error,
        });
      }
      if (error instanceof errors.JWTClaimValidationFailed) throw this.#refuse(this.#explain(error), error);
      throw invalidToken(error instanceof Error ? error.message : String(error), error);
    }
  }

  /** Refuses a token whose signature is valid, and reports it. */
  #refuse({ variable, reason }: ReadingTokens<Caller>["nameless"], cause?: unknown): AppError {
    this.#reading.telling.reportToken(variable, `A token with a right signature was refused: ${reason}`);
    return invalidToken(reason, cause);
  }

  /** The facts about a wrong claim that an operator needs. */
  #explain({ message, claim, payload }: errors.JWTClaimValidationFailed): ReadingTokens<Caller>["nameless"] {
    const { prefix } = this.#reading;
    const variable = `${prefix}_${claim === "aud" ? "AUDIENCE" : "ISSUER"}` as const;
    if (claim !== "iss" && claim !== "aud") return { variable, reason: message };
    const wanted = this.#rules[claim === "iss" ? "issuer" : "audience"];
    const found = JSON.stringify(payload[claim] ?? null).slice(0, SHOWN_MAX);
    return { variable, reason: `its ${claim} is ${found}, and ${variable} is ${wanted}` };
  }

  #remember(tokenHash: string, trusted: Trusted<Caller>): void {
    this.#trusted.delete(tokenHash);
    this.#trusted.set(tokenHash, trusted);
    const [oldest] = this.#trusted.keys();
    if (this.#trusted.size > TRUSTED_MAX && oldest !== undefined) this.#trusted.delete(oldest);
  }
}

/** Verifies the tokens of users. The token's subject is the caller. */
export class UserAuthenticator extends TokenAuthenticator<string> {
  constructor(rules: TokenRules, clock: DatabaseClock, telling: Telling) {
    const readCaller = ({ sub }: JWTPayload) => (isPrintable(sub) && !isErasedForm(sub) ? sub : null);
    const reason = `its sub is no text of 1 to ${NAME_MAX} characters that can name a user`;
    const nameless = { variable: "AUTH_ISSUER", reason } as const;
    super(rules, clock, { prefix: "AUTH", required: ["sub"], readCaller, nameless, telling });
  }
}

type Reading = Pick<ReadingTokens<unknown>, "prefix" | "telling">;

function openKeys(url: URL, reading: Reading): JWTVerifyGetKey {
  if (url.protocol !== "file:") return openRemoteKeys(url, reading);
  try {
    return createLocalJWKSet(JSON.parse(readFileSync(url, "utf8")));
  } catch {
    // The parse error is not the cause of this error, because it quotes the file, which may contain secrets.
    throw new Error(`${reading.prefix}_JWKS_URL names a file that cannot be read as a JSON Web Key Set`);
  }
}

/**
 * Fetched keys. Times are measured on the monotonic clock: `jose` itself would use the host's clock. While the issuer's
 * address does not answer, the last fetched keys still verify tokens.
 */
function openRemoteKeys(url: URL, { prefix, telling }: Reading): JWTVerifyGetKey {
  const { maxAge, cooldown, timeoutDuration } = KEYS;
  const keys = createRemoteJWKSet(url, { cacheMaxAge: Infinity, cooldownDuration: Infinity, timeoutDuration });
  let fetchedAt = -Infinity;
  let failedAt = -Infinity;
  const fetchIfOlder = async (ageMs: number): Promise<void> => {
    const startedAt = performance.now();
    if (startedAt - fetchedAt < ageMs) return;
    await keys.reload();
    fetchedAt = startedAt;
  };
  const refresh = async (): Promise<void> => {
    const startedAt = performance.now();
    const isKnown = fetchedAt > -Infinity;
    if (isKnown && startedAt - failedAt < cooldown) return;
    await fetchIfOlder(maxAge).catch((error: unknown) => {
      if (!isKnown) throw error;
      const what = `The keys of ${prefix}_JWKS_URL could not be fetched: the last ones stayed in use`;
      if (failedAt < startedAt - cooldown) telling.log.warn({ err: error }, what);
      telling.reportToken(`${prefix}_JWKS_URL`, what);
      failedAt = startedAt;
    });
  };
  return async (...header) => {
    await refresh();
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

/** Whether a claim can name a caller: a text that is not too long and has no control character. */
export function isPrintable(name: unknown): name is string {
  return typeof name === "string" && name !== "" && name.length <= NAME_MAX && !/[\p{Cc}\p{Cs}]/u.test(name);
}

/** Whether verification failed because of the keys and not because of the token. */
function isKeysUnavailable(error: unknown): boolean {
  if (!(error instanceof errors.JOSEError)) return true;
  return (
    error instanceof errors.JWKSTimeout || error instanceof errors.JWKSInvalid || error.code === "ERR_JOSE_GENERIC"
  );
}

/** Whether a token was refused only because it has expired. Signature, issuer and audience are checked first. */
export function isExpiredToken(error: unknown): boolean {
  return error instanceof AppError && error.cause instanceof Error && error.cause.cause instanceof errors.JWTExpired;
}

function invalidToken(reason: string, cause?: unknown): AppError {
  return new AppError("invalid_token", undefined, { cause: new Error(reason, { cause }) });
}
