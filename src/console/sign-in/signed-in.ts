import type { Request, RequestHandler } from "express";
import type { ActingBy } from "../../acts/db/audit-entries.ts";
import { isAllowed, type OperatorRole } from "../../acts/operator-role.ts";
import { AppError } from "../../platform/api/errors.ts";

/** An operator who has signed in. */
export interface SignedIn {
  /** The name in audit entries. */
  name: string;
  /** The JWT's subject, for audit entries, because one issuer can give a name to several people in turn. */
  subject?: string;
  role: OperatorRole;
  /** How the operator was identified. */
  by: Extract<ActingBy, "operator" | "jwt" | "shared">;
  /** False after the operator was revoked, or after the operator or the JWT has expired. */
  stillHolds(): Promise<boolean>;
}

declare global {
  namespace Express {
    interface Locals {
      operator?: SignedIn;
    }
  }
}

/** The operator who has signed in. Only for requests that `authenticateOperator` has admitted. */
export function operatorOf({ res }: Pick<Request, "res">): SignedIn {
  const operator = res?.locals.operator;
  if (operator === undefined) throw new Error("the route does not authenticate operators");
  return operator;
}

/** The user in an audit entry for an act or a visit of this request. */
export function actingOf(request: Request): { user: string; by: ActingBy } {
  const { name, subject, by } = operatorOf(request);
  return { user: subject === undefined ? name : `${name} (sub ${subject})`, by };
}

/** Refuses operators of a lower role. @throws AppError `missing_role`. */
export function requireRole(needed: OperatorRole): RequestHandler {
  return (request, _response, next) => {
    const { role } = operatorOf(request);
    if (!isAllowed(role, needed)) {
      throw new AppError("missing_role", `This needs the role ${needed}. You are signed in as ${role}.`);
    }
    next();
  };
}
