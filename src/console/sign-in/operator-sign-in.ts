import { hash, timingSafeEqual } from "node:crypto";
import type { Request } from "express";
import type pg from "pg";
import type { Logger } from "pino";
import { findOperatorsByToken, hasOperators, type NamedOperator, TOKEN_PREFIX } from "../../acts/db/operators.ts";
import type { OperatorReads } from "../../core/callers/bulkhead.ts";
import { hashSecret, isWellFormedSecret } from "../../core/keys/api-keys.ts";
import type { ReportToken, TokenAuthenticator } from "../../core/keys/authenticate-user.ts";
import { AppError } from "../../platform/api/errors.ts";
import { Batcher } from "../../platform/batching/batcher.ts";
import type { Config } from "../../platform/config.ts";
import type { DatabaseClock } from "../../platform/db/database-clock.ts";
import { isDatabaseUnavailable } from "../../platform/db/transaction.ts";
import { basicCredentials, networkOf } from "../../platform/http/middleware/request-headers.ts";
import { openOperatorTokens, showName, type TokenOperator } from "./operator-tokens.ts";
import type { SignedIn } from "./signed-in.ts";

/** Maximum length of an operator's name in an audit entry. Characters. */
const NAME_MAX = 100;
/** How long a process remembers whether named operators exist. Milliseconds. */
const KNOWN_MS = 1_000;
/** Maximum number of tokens in one query, and of waiting tokens, one for each connection that a process accepts. */
const TOKENS = { batchMax: 256, waitingMax: 10_000 };

/** The credentials of a request. */
type Credentials = { kind: "basic"; name: string; password: string } | { kind: "jwt"; token: string };

interface SignInDeps extends OperatorReads {
  pool: pg.Pool;
  config: Pick<Config, "ops">;
  deployment: { clock: DatabaseClock };
  log: Pick<Logger, "warn">;
  reportToken: ReportToken;
}

/** The ways to sign in to the operator pages: a named operator's token, OPS_TOKEN under any name, a proxy's JWT. */
export class OperatorSignIn {
  readonly #hasOperators: () => Promise<boolean>;
  readonly #ops: Config["ops"];
  readonly #clock: DatabaseClock;
  readonly #sharedDigest: Buffer | null;
  readonly #tokens: TokenAuthenticator<TokenOperator> | null;
  readonly #reportToken: ReportToken;
  /**
   * Tokens are not cached, so a revoked token stops working at once. One query runs at a time, so made-up tokens use at
   * most one database connection. The batches take tokens of each address in turn.
   */
  readonly #named: Batcher<{ hash: string; address: string | undefined }, NamedOperator | null>;
  #known = { areThere: false, until: Number.NEGATIVE_INFINITY };

  constructor({ pool, operatorReads, config: { ops }, deployment: { clock }, ...telling }: SignInDeps) {
    this.#hasOperators = () => operatorReads({}, () => hasOperators(pool));
    this.#ops = ops;
    this.#clock = clock;
    this.#sharedDigest = ops.token === null ? null : digest(ops.token);
    this.#tokens = ops.jwksUrl === null ? null : openOperatorTokens(ops, clock, telling);
    this.#reportToken = telling.reportToken;
    const find = async (tokens: { hash: string; address: string | undefined }[]) => {
      const hashes = tokens.map(({ hash }) => hash);
      const found = await operatorReads({}, () => findOperatorsByToken(pool, hashes));
      return hashes.map((tokenHash) => found.get(tokenHash) ?? null);
    };
    this.#named = new Batcher(find, { ...TOKENS, ownerOf: ({ address }) => networkOf(address) });
  }

  /** Whether there is any way to sign in. Learns of new named operators within a second. */
  async isOpen(): Promise<boolean> {
    if (this.#ops.isOff) return false;
    if (this.#sharedDigest !== null || this.#tokens !== null) return true;
    if (performance.now() < this.#known.until) return this.#known.areThere;
    const areThere = await this.#hasOperators().catch(throwUnchecked);
    this.#known = { areThere, until: performance.now() + KNOWN_MS };
    return areThere;
  }

  /** The available ways to sign in, in words for the log. */
  async describeWays(): Promise<string[]> {
    const { isOff, jwksUrl } = this.#ops;
    if (isOff) return [];
    const areNamed = await this.#hasOperators();
    return [
      ...(areNamed ? ["named operators"] : []),
      ...(jwksUrl === null ? [] : ["JWT (OPS_JWKS_URL)"]),
      ...(this.#sharedDigest === null ? [] : ["shared token (OPS_TOKEN)"]),
    ];
  }

  /** HTTP Basic takes precedence over the JWT, because a proxy adds the JWT to every request. */
  findCredentials(request: Request): Credentials | null {
    const basic = basicCredentials(request);
    if (basic !== null) return { kind: "basic", ...basic };
    if (this.#tokens === null) return null;
    const header = request.get(this.#ops.jwtHeader);
    const token = /^(?:Bearer +)?(\S+) *$/i.exec(header ?? "")?.[1];
    return token === undefined ? null : { kind: "jwt", token };
  }

  /**
   * The operator with these credentials. Null for a wrong name or password.
   * @param address the caller's address.
   * @throws AppError `invalid_token`; `missing_role` for a JWT without a role; `unavailable` if the credentials cannot
   * be checked; BatcherFull.
   */
  async verify(credentials: Credentials, address: string | undefined): Promise<SignedIn | null> {
    if (credentials.kind === "jwt") return this.#verifyJwt(credentials.token, address);
    const { name, password } = credentials;
    if (this.#sharedDigest !== null && timingSafeEqual(digest(password), this.#sharedDigest)) {
      return { name: `shared: ${printable(name)}`, role: "admin", by: "shared", stillHolds: async () => true };
    }
    const operator = await this.#findNamed(password, address);
    if (operator === null || operator.name !== name) return null;
    const stillHolds = async () => (await this.#findNamed(password, address)) !== null;
    return { name: operator.name, role: operator.role, by: "operator", stillHolds };
  }

  async #findNamed(token: string, address: string | undefined): Promise<NamedOperator | null> {
    if (!isWellFormedSecret(token, TOKEN_PREFIX)) return null;
    return this.#named.submit({ hash: hashSecret(token), address }).catch(throwUnchecked);
  }

  async #verifyJwt(token: string, address: string | undefined): Promise<SignedIn | null> {
    if (this.#tokens === null) return null;
    const { name, subject, role, found, expiresAt } = await this.#tokens.authenticate(token, address);
    const stillHolds = async () => this.#clock.steadyNow().getTime() < expiresAt;
    if (role !== null) return { name, ...(subject !== null && { subject }), role, by: "jwt", stillHolds };
    this.#reportToken("OPS_ROLE_CLAIM", `A sign-in has no role: ${found}`);
    throw new AppError("missing_role", `Your sign-in has no role: ${found}`);
  }
}

/** Throws AppError `unavailable` in place of an error that means "Postgres does not respond". */
function throwUnchecked(cause: unknown): never {
  if (!isDatabaseUnavailable(cause)) throw cause;
  throw new AppError("unavailable", (t) => t("inDetail.signInUnchecked"), { cause });
}

/** The user name that was sent with OPS_TOKEN, without control characters. `operator` if there is none. */
function printable(name: string): string {
  return showName(name.replaceAll(/\p{Cc}/gu, "").slice(0, NAME_MAX)) || "operator";
}

/** All digests have the same length, so comparing them takes the same time for every password. */
function digest(text: string): Buffer {
  return hash("sha256", text, "buffer");
}
