import { insertKey, insertSecret, type NewApiKey, retireSecrets, revokeKey } from "../db/api-keys.ts";
import { hashApiKey, makeApiKey } from "../domain/api-keys.ts";
import { AppError } from "../domain/errors.ts";
import { newId } from "../domain/ids.ts";
import { type ActContext, recordAct } from "./record-act.ts";

/** A key's id and the secret that partners send. The secret exists here and never again. */
export interface ShownKey {
  id: string;
  key: string;
}

/** Makes a key. Bound to no organization it exists, but every call with it is refused. */
export async function createKey(ctx: ActContext, key: Omit<NewApiKey, "id">): Promise<ShownKey> {
  const shown = { id: newId("key"), key: makeApiKey(ctx.randomBytes) };
  await recordAct(ctx, { type: "ApiKey", id: shown.id }, async (tx) => {
    await insertKey(tx, { ...key, id: shown.id });
    await insertSecret(tx, shown.id, hashApiKey(shown.key));
  });
  return shown;
}

/** A key with a new secret. */
export interface RotatedKey extends ShownKey {
  /** When the last secret from before stops working. */
  oldSecretsUntil: Date;
}

/**
 * Gives a key a new secret. Those from before work for `graceMs` longer at most; the key's id, and with it its holds, stays.
 * @throws AppError `not_found` when there is no such key, or it is revoked or past its end.
 */
export async function rotateKey(ctx: ActContext, keyId: string, graceMs: number): Promise<RotatedKey> {
  const shown = { id: keyId, key: makeApiKey(ctx.randomBytes) };
  const oldSecretsUntil = await recordAct(ctx, { type: "ApiKey", id: keyId }, async (tx) => {
    const until = await retireSecrets(tx, keyId, graceMs);
    if (until === null) throw new AppError("not_found", `There is no key ${keyId} that still works.`);
    await insertSecret(tx, keyId, hashApiKey(shown.key));
    return until;
  });
  return { ...shown, oldSecretsUntil };
}

/**
 * Ends a key for good. It stops working everywhere within a second. One that is revoked already keeps its moment.
 * @throws AppError `not_found`.
 */
export async function endKey(ctx: ActContext, keyId: string): Promise<void> {
  await recordAct(ctx, { type: "ApiKey", id: keyId }, async (tx) => {
    if (!(await revokeKey(tx, keyId))) throw new AppError("not_found", `There is no key ${keyId}.`);
  });
}
