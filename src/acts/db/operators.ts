import { arrayOf, bytea, double, integer, orNull, text, textOf, timestamptz } from "../../platform/db/columns.ts";
import { LATEST, withLatest } from "../../platform/db/database-clock.ts";
import type { Queryable } from "../../platform/db/pool.ts";
import { Statements } from "../../platform/db/statements.ts";
import type { OperatorRole } from "../operator-role.ts";

export const sql = new Statements(new URL("./operators.sql", import.meta.url));

/** The prefix of an operator's token. */
export const TOKEN_PREFIX = "pvo_";

/** An operator who can sign in at the time of the read. */
export interface NamedOperator {
  id: string;
  name: string;
  role: OperatorRole;
}

const selectByToken = withLatest(
  sql.rows(
    "find_operators_by_token",
    { tokenHash: text, id: text, name: text, role: textOf<OperatorRole>() },
    { tokenHash: arrayOf(bytea), ...LATEST },
  ),
);
export const hasOperators = sql.executeOne("find_any_operator");
/** How many operators of each role can sign in. A role without such operators is left out. */
export const countOperators = sql.rows("count_operators", { role: textOf<OperatorRole>(), operators: integer });
export const insertOperator = sql.execute("insert_operator", {
  id: text,
  name: text,
  role: textOf<OperatorRole>(),
  expiresAt: orNull(timestamptz),
});
const insertTokenRow = sql.execute("insert_operator_token", { operatorId: text, tokenHash: bytea });
export const retireOperatorTokens = sql.value(
  "retire_operator_tokens",
  { expiresAt: timestamptz },
  { operatorId: text, graceMs: double },
);
/** Returns whether the operator exists. */
export const revokeOperatorRow = sql.executeOne("revoke_operator", { id: text });

/** The operators with these tokens (SHA-256 in hex), by the hash. A hash without an operator is left out. */
export async function findOperatorsByToken(
  db: Queryable,
  hashes: readonly string[],
): Promise<Map<string, NamedOperator>> {
  const rows = await selectByToken(db, { tokenHash: hashes.map((hash) => Buffer.from(hash, "hex")) });
  return new Map(rows.map(({ tokenHash, ...operator }) => [tokenHash, operator]));
}

/** Makes a token (SHA-256 in hex) the current token of an operator. */
export async function insertOperatorToken(db: Queryable, operatorId: string, hash: string): Promise<void> {
  await insertTokenRow(db, { operatorId, tokenHash: Buffer.from(hash, "hex") });
}
