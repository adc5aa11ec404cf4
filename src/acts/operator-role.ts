/** What an operator may do, least first. Each role may do what those before it may. */
export const OPERATOR_ROLES = ["viewer", "operator", "admin"] as const;

export type OperatorRole = (typeof OPERATOR_ROLES)[number];

/** Whether an operator with the role `has` may do what `needs` names. */
export function isAllowed(has: OperatorRole, needs: OperatorRole): boolean {
  return OPERATOR_ROLES.indexOf(has) >= OPERATOR_ROLES.indexOf(needs);
}
