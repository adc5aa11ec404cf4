import type { JWTPayload } from "jose";
import { OPERATOR_ROLES, type OperatorRole } from "../../acts/operator-role.ts";
import { isPrintable, type Telling, TokenAuthenticator } from "../../core/keys/authenticate-user.ts";
import { type Config, ConfigError } from "../../platform/config.ts";
import type { DatabaseClock } from "../../platform/db/database-clock.ts";
import { normaliseText } from "../../platform/text.ts";

/** The operator that a proxy's JWT names. The role is null if no value of the claim gives a role. */
export interface TokenOperator {
  name: string;
  /**
   * The token's subject, which the issuer gives to only one person. Null if there is none, or if it equals the name.
   */
  subject: string | null;
  role: OperatorRole | null;
  /** What the role claim contains, for the message when `role` is null. */
  found: string;
  /** When the JWT expires, on the database's clock. Milliseconds. */
  expiresAt: number;
}

type TokenSettings = Pick<Config["ops"], "jwksUrl" | "issuer" | "audience" | "nameClaim" | "roleClaim" | "roleMap">;

/** Verifies the JWTs of a proxy that signs operators in, under the same rules as users' tokens. */
export function openOperatorTokens(
  ops: TokenSettings,
  clock: DatabaseClock,
  telling: Telling,
): TokenAuthenticator<TokenOperator> {
  const roles = readRoleMap(ops.roleMap);
  return new TokenAuthenticator(ops, clock, {
    prefix: "OPS",
    required: [],
    nameless: {
      variable: "OPS_NAME_CLAIM",
      reason: `neither OPS_NAME_CLAIM (${ops.nameClaim}) nor sub names the operator`,
    },
    telling,
    readCaller(claims, expiresAt) {
      const claimed = findClaim(claims, ops.nameClaim);
      const isUnverified = claimed === claims.email && [false, "false"].includes(claims.email_verified as boolean);
      const [name, subject = null] = [isUnverified ? null : claimed, claims.sub].filter(isPrintable).filter(isName);
      if (name === undefined) return null;
      const values = valuesOf(findClaim(claims, ops.roleClaim));
      const role = highestRole(values, roles);
      const found = describeFound(values, claims, ops);
      const isOther = subject !== null && subject !== name;
      return { name: showName(name), subject: isOther ? showName(subject) : null, role, found, expiresAt };
    },
  });
}

/** Invisible characters: control and format characters, white space other than a space, and fillers. */
const UNSEEN = /[\p{C}\p{Default_Ignorable_Code_Point}\u2800]|(?! )\p{Z}/gu;
/** Letters of scripts that have look-alikes of Latin letters. */
const LOOKALIKES =
  /[\p{Script=Cyrillic}\p{Script=Greek}\p{Script=Armenian}\p{Script=Cherokee}\p{Script=Coptic}\p{Script=Lisu}]/gu;

/** Whether a text contains visible letters or digits, so that it can name a person. */
const isName = (text: string) => /[\p{L}\p{N}]/u.test(text.replaceAll(UNSEEN, ""));

/**
 * A name in which each misleading character is replaced by its code point, such as `\u{202e}`. Misleading characters
 * are invisible characters, compatibility forms such as full-width letters, and look-alikes next to Latin letters.
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

/**
 * Finds a claim by its name. If no claim has this name, finds it by its path: a JSON pointer (RFC 6901) as in
 * `/resource_access/shop.vouchers/roles`, or names with dots as in `realm_access.roles`.
 */
function findClaim(claims: JWTPayload, name: string): unknown {
  if (Object.hasOwn(claims, name)) return claims[name];
  const parts = name.startsWith("/")
    ? name
        .slice(1)
        .split("/")
        .map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~"))
    : name.split(".");
  return parts.reduce<unknown>(
    (found, part) => (isObject(found) && Object.hasOwn(found, part) ? found[part] : undefined),
    claims,
  );
}

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === "object" && value !== null;

/**
 * The values of a claim: a list, a text with values separated by commas, or an object whose property names are the
 * values. Spaces do not separate values, because group names may contain spaces, such as "Billing admin".
 */
function valuesOf(claim: unknown): string[] {
  if (typeof claim === "string") return claim.split(",");
  if (Array.isArray(claim)) return claim.filter((value) => typeof value === "string");
  return isObject(claim) ? Object.keys(claim).filter((name) => claim[name]) : [];
}

/** The form in which values are compared. A group may be named by its path, which begins with a slash. */
const roleKey = (value: string) => value.trim().replace(/^\//, "").toLowerCase();

/** The role of each value of OPS_ROLE_MAP. @throws ConfigError */
function readRoleMap(map: TokenSettings["roleMap"]): ReadonlyMap<string, OperatorRole> | null {
  if (map === null) return null;
  return new Map(
    map.map(([value, name]) => {
      const role = OPERATOR_ROLES.find((known) => known === roleKey(name));
      if (role === undefined)
        throw new ConfigError(`OPS_ROLE_MAP gives ${value} no role of ${OPERATOR_ROLES.join(", ")}`);
      return [roleKey(value), role];
    }),
  );
}

/** The highest role among the values, by OPS_ROLE_MAP or, if it is not set, by the roles' own names. */
function highestRole(values: readonly string[], map: ReadonlyMap<string, OperatorRole> | null): OperatorRole | null {
  const roles = values.map((value) => (map === null ? roleKey(value) : map.get(roleKey(value))));
  return OPERATOR_ROLES.findLast((role) => roles.includes(role)) ?? null;
}

/** Maximum number of values or claims that a sentence lists, and maximum number of characters of each. */
const [NAMED_MAX, SHOWN_MAX] = [10, 60];

function describeFound(values: readonly string[], claims: JWTPayload, { roleClaim, roleMap }: TokenSettings): string {
  const list = (texts: readonly string[]) =>
    texts
      .slice(0, NAMED_MAX)
      .map((text) => showName(text.slice(0, SHOWN_MAX)))
      .join(", ") + (texts.length > NAMED_MAX ? " and others" : "");
  const wanted = roleMap === null ? OPERATOR_ROLES.join(", ") : "a value of OPS_ROLE_MAP";
  return values.length === 0
    ? `it has no claim ${roleClaim}, which OPS_ROLE_CLAIM names, but ${list(Object.keys(claims))}.`
    : `its claim ${roleClaim} has ${list(values)}, and needs one of: ${wanted}.`;
}
