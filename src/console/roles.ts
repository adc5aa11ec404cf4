import type { OperatorRole } from "../acts/operator-role.ts";

/**
 * The role that is required to see credentials: codes, redeem codes, tickets, codes of links, and the errors of failed
 * jobs, which may quote the others. With a credential, anyone can use a voucher or prove its use.
 */
export const CREDENTIALS_ROLE: OperatorRole = "operator";

/** What viewers see instead of the error of a failed job. */
export const CAUSE_HIDDEN = "not shown to viewers";

/**
 * Returns the role that is required for a path after `/ops`. Ignores a query in the path.
 * @throws Error for a path that does not exist, so that no page links to it.
 */
export type Roles = (path: string) => OperatorRole;

/** Looks up roles in a table of paths. A path segment with a leading colon stands for any text. */
export function openRoles(table: () => readonly { path: string; role: OperatorRole }[]): Roles {
  let patterns: (readonly [pattern: RegExp, role: OperatorRole])[] | null = null;
  return (path) => {
    patterns ??= table().map((route) => [patternOf(route.path), route.role]);
    const [, role] = patterns.find(([pattern]) => pattern.test(path)) ?? [];
    if (role === undefined) throw new Error(`there is nothing at /ops${path.replace(/\?.*/, "")}`);
    return role;
  };
}

/** The pattern of a path. A path contains only letters, slashes, dots, dashes and names with a colon. */
function patternOf(path: string): RegExp {
  const segments = path.replaceAll(".", "\\.").replaceAll(/:\w+/g, "[^/?]+");
  return new RegExp(`^${segments}(?:\\?.*)?$`);
}
