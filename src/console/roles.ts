import type { OperatorRole } from "../acts/operator-role.ts";

/**
 * The role that is needed to see credentials, which let their holder use a voucher, or prove that one was used: codes,
 * redeem codes, tickets and the codes of links. Why a job
 * failed counts as one, too, because errors quote what they are about.
 */
export const CREDENTIALS_ROLE: OperatorRole = "operator";

/** What those who see no credentials read instead of why a job failed. */
export const CAUSE_HIDDEN = "not shown to viewers";

/**
 * The role that a path after `/ops` needs. Its query does not count.
 * @throws Error for a path that does not exist, which nothing may link to.
 */
export type Roles = (path: string) => OperatorRole;

/** Finds roles in a table of paths. A segment that begins with a colon stands for any text. */
export function openRoles(table: () => readonly { path: string; role: OperatorRole }[]): Roles {
  let patterns: (readonly [pattern: RegExp, role: OperatorRole])[] | null = null;
  return (path) => {
    patterns ??= table().map((route) => [patternOf(route.path), route.role]);
    const [, role] = patterns.find(([pattern]) => pattern.test(path)) ?? [];
    if (role === undefined) throw new Error(`there is nothing at /ops${path.replace(/\?.*/, "")}`);
    return role;
  };
}

/** Paths have letters, slashes, dots, dashes and names with a colon. */
function patternOf(path: string): RegExp {
  const segments = path.replaceAll(".", "\\.").replaceAll(/:\w+/g, "[^/?]+");
  return new RegExp(`^${segments}(?:\\?.*)?$`);
}
