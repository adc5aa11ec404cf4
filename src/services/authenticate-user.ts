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
import type { ApiContext } from "../context.ts";
import { AppError } from "../domain/errors.ts";

type UserTokens = ApiContext["config"]["users"];

/** Asymmetric signatures only: with a shared secret, whoever can verify a token could make one. */
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
/** How far the clocks of issuer and service may differ, in seconds. */
const CLOCK_TOLERANCE_S = 10;
/** How long published keys are believed, how soon an unknown key id makes them be fetched again, and how long a fetch may take. */
const KEYS = { cacheMaxAge: 600_000, cooldownDuration: 10_000, timeoutDuration: 2_000 };
/** Longest subject, in characters. */
const SUBJECT_MAX = 255;

/** Tells whose a user's token is. Tokens are JWTs (RFC 7519) signed with a key of the configured JWKS (RFC 7517). */
export class UserAuthenticator {
  readonly #tokens: UserTokens;
  readonly #keys: JWTVerifyGetKey | null;

  /** @throws Error when the keys are in a file that cannot be read. */
  constructor(tokens: UserTokens) {
    this.#tokens = tokens;
    this.#keys = tokens.jwksUrl === null ? null : openKeys(new URL(tokens.jwksUrl));
  }

  /**
   * The subject of a token.
   * @throws AppError `invalid_token`, or `unavailable` when the keys cannot be fetched.
   */
  async authenticate(token: string): Promise<string> {
    if (this.#keys === null) throw invalidToken();
    const { issuer, audience } = this.#tokens;
    try {
      const { sub } = await verify(token, this.#keys, {
        algorithms: ALGORITHMS,
        clockTolerance: CLOCK_TOLERANCE_S,
        requiredClaims: ["sub", "exp"],
        ...(issuer !== null && { issuer }),
        ...(audience !== null && { audience }),
      });
      if (!isSubject(sub)) throw invalidToken();
      return sub;
    } catch (error) {
      if (error instanceof AppError) throw error;
      if (isKeysUnavailable(error)) {
        throw new AppError("unavailable", "Sign-in cannot be checked at the moment. Please try again.", {
          cause: error,
          retryAfterSeconds: 2,
        });
      }
      throw invalidToken(error);
    }
  }
}

function openKeys(url: URL): JWTVerifyGetKey {
  if (url.protocol !== "file:") return createRemoteJWKSet(url, KEYS);
  try {
    return createLocalJWKSet(JSON.parse(readFileSync(url, "utf8")));
  } catch {
    // What the file holds instead is nobody's business.
    throw new Error("AUTH_JWKS_URL names a file that cannot be read as a JSON Web Key Set");
  }
}

/** Verifies a token; one that does not name its key is tried with each key that it may be. */
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

/** Whether it is the keys that failed, and not the token. */
function isKeysUnavailable(error: unknown): boolean {
  if (!(error instanceof errors.JOSEError)) return true;
  return (
    error instanceof errors.JWKSTimeout || error instanceof errors.JWKSInvalid || error.code === "ERR_JOSE_GENERIC"
  );
}

function invalidToken(cause?: unknown): AppError {
  return new AppError("invalid_token", "This sign-in is not valid or has ended. Please sign in again.", { cause });
}
