import { AppError } from "../../contract/errors.ts";
import { hasKeys, insertKey, insertSecret, type NewApiKey, retireSecrets, revokeKey } from "../../db/api-keys.ts";
import { hashApiKey, makeApiKey } from "../../domain/api-keys.ts";
import { newId } from "../../domain/ids.ts";
import { type AuditContext, withAuditEntry } from "./with-audit-entry.ts";

/** A key's id, and the secret that partners send. Only the secret's hash is stored, so it cannot be shown again. */
export interface ShownKey {
  id: string;
  key: string;
}

/** Whether the database has any key: before that, no partner can have used it. */
export function isInUse(ctx: Pick<AuditContext, "pool">): Promise<boolean> {
  return hasKeys(ctx.pool);
}

/** Creates a key. Every call with a key that has no organization is refused. */
export async function createKey(ctx: AuditContext, key: Omit<NewApiKey, "id">): Promise<ShownKey> {
  const shown = { id: newId("key"), key: makeApiKey(ctx.randomBytes) };
  await withAuditEntry(ctx, { type: "ApiKey", id: shown.id }, async (tx) => {
    await insertKey(tx, { ...key, id: shown.id });
    await insertSecret(tx, shown.id, hashApiKey(shown.key));
  });
  return shown;
}

/** A key with a new secret. */
interface RotatedKey extends ShownKey {
  /** When the last of the old secrets stops working. */
  oldSecretsUntil: Date;
}

/** Gives a key a new secret. Old ones work for at most `graceMs` longer. @throws AppError `not_found` unless the key works. */
export async function rotateKey(ctx: AuditContext, keyId: string, graceMs: number): Promise<RotatedKey> {
  const shown = { id: keyId, key: makeApiKey(ctx.randomBytes) };
  const oldSecretsUntil = await withAuditEntry(ctx, { type: "ApiKey", id: keyId }, async (tx) => {
    const until = await retireSecrets(tx, keyId, graceMs);
    if (until === null) throw new AppError("not_found", `There is no key ${keyId} that still works.`);
    await insertSecret(tx, keyId, hashApiKey(shown.key));
    return until;
  });
  return { ...shown, oldSecretsUntil };
}

/** Revokes a key, everywhere within a second. A repeat changes nothing. @throws AppError `not_found`. */
export async function endKey(ctx: AuditContext, keyId: string): Promise<void> {
  await withAuditEntry(ctx, { type: "ApiKey", id: keyId }, async (tx) => {
    if (!(await revokeKey(tx, keyId))) throw new AppError("not_found", `There is no key ${keyId}.`);
  });
}
