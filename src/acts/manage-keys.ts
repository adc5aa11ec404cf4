import { findOrganization } from "../core/catalog/db/catalog.ts";
import { hashSecret, makeApiKey } from "../core/keys/api-keys.ts";
import {
  findKeySandbox,
  insertKey,
  insertSecret,
  type ListedKey,
  type NewApiKey,
  retireSecrets,
  revokeKey,
  selectKeys,
} from "../core/keys/db/api-keys.ts";
import { newId } from "../core/voucher/ids.ts";
import { AppError } from "../platform/api/errors.ts";
import { markSandbox } from "../platform/api/fields.ts";
import type { Transaction } from "../platform/db/pool.ts";
import { assertFuture } from "./assert-future.ts";
import { type AuditContext, withAuditEntry } from "./with-audit-entry.ts";

/** A key's id, and the secret that partners send. Only the secret's hash is stored, so it cannot be shown again. */
export interface ShownKey {
  id: string;
  key: string;
  /** Present if the organization is a sandbox. Such a key begins with `pvt_`. */
  sandbox?: true;
}

/** An organization's API keys, newest first, without secrets. @throws AppError `not_found`. */
export async function readKeys(
  { pool }: Pick<AuditContext, "pool">,
  organizationId: string,
): Promise<{ keys: ListedKey[]; sandbox?: true }> {
  const organization = await findOrganization(pool, organizationId);
  if (organization === null) throw new AppError("not_found", `There is no organization ${organizationId}.`);
  return { keys: await selectKeys(pool, organizationId), ...markSandbox(organization.sandbox) };
}

/** Creates a key. The API refuses every request with a key that has no organization. @throws PastTime. */
export async function createKey(ctx: AuditContext, key: Omit<NewApiKey, "id">): Promise<ShownKey> {
  const id = newId("key");
  return withAuditEntry(ctx, { type: "ApiKey", id }, async (tx) => {
    await assertFuture(tx, { expiresAt: key.expiresAt });
    await insertKey(tx, { ...key, id });
    return addSecret(ctx, tx, id);
  });
}

/** Gives a key a new current secret. Its prefix depends on whether the organization is a sandbox. */
async function addSecret(ctx: Pick<AuditContext, "randomBytes">, tx: Transaction, id: string): Promise<ShownKey> {
  const sandbox = await findKeySandbox(tx, id);
  const key = makeApiKey(ctx.randomBytes, sandbox);
  await insertSecret(tx, id, hashSecret(key));
  return { id, key, ...markSandbox(sandbox) };
}

/** A key with a new secret. */
interface RotatedKey extends ShownKey {
  /** When the last of the old secrets stops working. */
  oldSecretsUntil: Date;
}

/**
 * Gives a key a new secret. Old ones work for at most `graceMs` longer.
 * @throws AppError `not_found` unless the key works.
 */
export async function rotateKey(ctx: AuditContext, keyId: string, graceMs: number): Promise<RotatedKey> {
  return withAuditEntry(ctx, { type: "ApiKey", id: keyId }, async (tx) => {
    const oldSecretsUntil = await retireSecrets(tx, { keyId, graceMs });
    if (oldSecretsUntil === null) throw new AppError("not_found", `There is no key ${keyId} that still works.`);
    return { ...(await addSecret(ctx, tx, keyId)), oldSecretsUntil };
  });
}

/**
 * Revokes a key. Every process refuses it within a second. Revoking it again changes nothing.
 * @throws AppError `not_found`.
 */
export async function endKey(ctx: AuditContext, keyId: string): Promise<void> {
  await withAuditEntry(ctx, { type: "ApiKey", id: keyId }, async (tx) => {
    if (!(await revokeKey(tx, keyId))) throw new AppError("not_found", `There is no key ${keyId}.`);
  });
}
