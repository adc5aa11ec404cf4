import type { JWTPayload } from "jose";
import { OPERATOR_ROLES, type OperatorRole } from "../../acts/operator-role.ts";
import { isPrintable, TokenAuthenticator } from "../../core/keys/authenticate-user.ts";
import type { Config } from "../../platform/config.ts";
import type { DatabaseClock } from "../../platform/db/database-clock.ts";
import { normaliseText } from "../../platform/text.ts";

/** The operator that a proxy's JWT names. The role is null if no value of the claim is a role. */
export interface TokenOperator {
  name: string;
  /** The token's subject, which the issuer gives to one person only. Null if it has none, or if it is the name. */
  subject: string | null;
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
      const claimed = findClaim(claims, ops.nameClaim);
      const isUnverified = claimed === claims.email && [false, "false"].includes(claims.email_verified as boolean);
      const [name, subject = null] = [isUnverified ? null : claimed, claims.sub].filter(isPrintable).filter(isName);
      if (name === undefined) return null;
      const role = highestRole(findClaim(claims, ops.roleClaim));
      const isOther = subject !== null && subject !== name;
      return { name: showName(name), subject: isOther ? showName(subject) : null, role, expiresAt };
    },
  });
}

/** What no eye sees: control and format characters, blanks other than a space, and fillers. */
const UNSEEN = /[\p{C}\p{Default_Ignorable_Code_Point}\u2800]|(?! )\p{Z}/gu;
/** Letters of the scripts that have look-alikes of Latin letters. */
const LOOKALIKES =
  /[\p{Script=Cyrillic}\p{Script=Greek}\p{Script=Armenian}\p{Script=Cherokee}\p{Script=Coptic}\p{Script=Lisu}]/gu;

/** Whether something of a text can be seen that names a person. */
const isName = (text: string) => /[\p{L}\p{N}]/u.test(text.replaceAll(UNSEEN, ""));

/**
 * A name, in which each character that could pass for another one or for none is shown by its code point, such as
 * `\u{202e}`: what is unseen, compatibility forms such as full-width letters, and look-alikes beside Latin letters.
 */
export function showName(name: string): string {
  const byCode = (character: string) => `\\u{${character.codePointAt(0)?.toString(16)}}`;
  const seen = (normaliseText(name, "NFC") ?? name)
    .trim()
    .replaceAll(UNSEEN, byCode)
    .replaceAll(/\P{ASCII}/gu, (character) =>
      normaliseText(character, "NFKC") === character ? character : byCode(character),
    );
  return /\p{Script=Latin}/u.test(name) ? seen.replaceAll(LOOKALIKES, byCode) : seen;
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
