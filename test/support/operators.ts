import type pg from "pg";
import { createOperator } from "../../src/acts/operator/create.ts";
import { OPERATOR_ROLES, type OperatorRole } from "../../src/acts/operator-role.ts";
import { basic } from "./browse.ts";
import { provisioning } from "./supply.ts";

/** A named operator, and the headers of a sign-in. */
export interface TestOperator {
  id: string;
  name: string;
  token: string;
  headers: { authorization: string };
}

let operators = 0;

/** Creates an operator with a unique name. */
export async function makeOperator(
  db: pg.Pool,
  role: OperatorRole,
  expires: Date | null = null,
): Promise<TestOperator> {
  operators += 1;
  const name = `${role} ${operators} Zoë`;
  const { id, token } = await createOperator.run(provisioning(db), "", { name, role, expires });
  return { id, name, token, headers: basic(token, name) };
}

/** An operator of each role. */
export async function makeOperators(db: pg.Pool): Promise<Record<OperatorRole, TestOperator>> {
  const made: [OperatorRole, TestOperator][] = [];
  for (const role of OPERATOR_ROLES) made.push([role, await makeOperator(db, role)]);
  return Object.fromEntries(made) as Record<OperatorRole, TestOperator>;
}
