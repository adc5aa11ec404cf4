import type { JWTPayload } from "jose";
import { OPERATOR_ROLES, type OperatorRole } from "../../acts/operator-role.ts";
import { isPrintable, TokenAuthenticator } from "../../core/keys/authenticate-user.ts";
import type { Config } from "../../platform/config.ts";
import type { DatabaseClock } from "../../platform/db/database-clock.ts";

/** The operator that a proxy's JWT names. The role is null if no value of the claim is a role. */
export interface TokenOperator {
  name: string;
  role: OperatorRole | null;
  /** When the JWT expires, on the database's clock. Milliseconds. */
  expiresAt: number;
}

type TokenSettings = Pick<Config["ops"], "jwksUrl" | "issuer" | "audience" | "nameClaim" | "roleClaim">;

/** Verifies the JWTs of a proxy that signs operators in, by the rules for the tokens of users. */
export function openOperatorTokens(ops: TokenSettings, clock: DatabaseClock): TokenAuthenticator<TokenOperator> {
  return new TokenAuthenticator(ops, clock, {
    variable: "OPS_JWKS_URL",
    required: [],
    readCaller(claims, expiresAt) {
      const name = [findClaim(claims, ops.nameClaim), claims.sub].find(isPrintable);
      return name === undefined ? null : { name, role: highestRole(findClaim(claims, ops.roleClaim)), expiresAt };
    },
  });
}

/** Finds a claim by its name or, if no claim has this name, by its path, as in `realm_access.roles`. */
function findClaim(claims: JWTPayload, name: string): unknown {
  if (Object.hasOwn(claims, name)) return claims[name];
  return name
    .split(".")
    .reduce<unknown>(
      (found, part) => (isObject(found) && Object.hasOwn(found, part) ? found[part] : undefined),
      claims,
    );
}

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === "object" && value !== null;

/**
 * The highest role among the values of a claim: a list, or a text with values between commas. Blanks do not separate
 * values, because group names contain them: "Billing admin" is not a role.
 */
function highestRole(claim: unknown): OperatorRole | null {
  const values: unknown[] =
    typeof claim === "string" ? claim.split(",").map((value) => value.trim()) : Array.isArray(claim) ? claim : [];
  return OPERATOR_ROLES.findLast((role) => values.includes(role)) ?? null;
}
