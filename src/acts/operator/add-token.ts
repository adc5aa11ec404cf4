import { hashSecret, makeSecret } from "../../core/keys/api-keys.ts";
import type { Transaction } from "../../platform/db/pool.ts";
import { insertOperatorToken, TOKEN_PREFIX } from "../db/operators.ts";
import type { AuditContext } from "../with-audit-entry.ts";

/** An operator's id and token. Only the token's hash is stored, so the token cannot be shown again. */
interface ShownToken {
  id: string;
  token: string;
}

/** Gives an operator a new current token. The previous token must already have an expiry time. */
export async function addToken(
  { randomBytes }: Pick<AuditContext, "randomBytes">,
  tx: Transaction,
  id: string,
): Promise<ShownToken> {
  const token = makeSecret(randomBytes, TOKEN_PREFIX);
  await insertOperatorToken(tx, id, hashSecret(token));
  return { id, token };
}
