/** The roles of operators, lowest first. Each role includes the rights of the roles before it. */
export const OPERATOR_ROLES = ["viewer", "operator", "admin"] as const;

export type OperatorRole = (typeof OPERATOR_ROLES)[number];

/** Whether an operator with the role `has` may do what requires the role `needs`. */
export function isAllowed(has: OperatorRole, needs: OperatorRole): boolean {
  return OPERATOR_ROLES.indexOf(has) >= OPERATOR_ROLES.indexOf(needs);
}
