/** The roles of operators, lowest first. Each role has all rights of the lower roles. */
export const OPERATOR_ROLES = ["viewer", "operator", "admin"] as const;

export type OperatorRole = (typeof OPERATOR_ROLES)[number];

/** Whether an operator with the role `has` may do something that requires the role `needs`. */
export function isAllowed(has: OperatorRole, needs: OperatorRole): boolean {
  return OPERATOR_ROLES.indexOf(has) >= OPERATOR_ROLES.indexOf(needs);
}
