import type { Scope } from "../domain/api-keys.ts";
import { arrayOf, boolean, double, orNull, type Row, text, textOf, timestamptz } from "./columns.ts";
import type { Queryable } from "./pool.ts";
import { execute, loadStatements, readRow, readRows } from "./statements.ts";

const API_KEY = {
  id: text,
  organizationId: orNull(text),
  scopes: arrayOf(textOf<Scope>()),
  /** Allowed addresses as CIDRs; an empty array allows every address. */
  allowIps: arrayOf(text),
  /** How long the key keeps working if nothing changes it, in milliseconds; null if it has no end. */
  usableMs: orNull(double),
  /** Whether its use was not recorded within the last minute. */
  useIsDue: boolean,
  /** Whether its organization is a sandbox. */
  sandbox: boolean,
};

const LISTED_KEY = {
  id: text,
  label: orNull(text),
  scopes: arrayOf(textOf<Scope>()),
  allowIps: arrayOf(text),
  createdAt: timestamptz,
  expiresAt: orNull(timestamptz),
  revokedAt: orNull(timestamptz),
  state: textOf<"Active" | "Expired" | "Revoked">(),
  /** Recorded at most once a minute; null if the key was never used. */
  lastUsedAt: orNull(timestamptz),
  /** When the last secret from before a rotation stops working; null if none works. */
  oldSecretsUntil: orNull(timestamptz),
};

export const sql = loadStatements(new URL("./api-keys.sql", import.meta.url), {
  find_keys_by_secret: { secretHash: text, ...API_KEY },
  record_key_usage: {},
  find_any_key: { id: text },
  insert_key: {},
  find_key_sandbox: { sandbox: boolean },
  insert_secret: {},
  retire_secrets: { expiresAt: timestamptz },
  revoke_key: {},
  select_keys: LISTED_KEY,
  find_key_place: { organizationId: orNull(text), before: orNull(text) },
});

/** A key that works at the moment it is read. */
export type ApiKey = Row<typeof API_KEY>;

/** The working keys of these secrets (SHA-256 in hex), by the hash. A hash without a working key is left out. */
export async function findKeysBySecret(db: Queryable, hashes: readonly string[]): Promise<Map<string, ApiKey>> {
  const rows = await readRows(db, sql.find_keys_by_secret, [hashes.map(bytesOf)]);
  return new Map(rows.map(({ secretHash, ...key }) => [secretHash, key]));
}

/** Records that these keys are in use, each at most once a minute. */
export async function recordKeyUsage(db: Queryable, keyIds: readonly string[]): Promise<void> {
  await execute(db, sql.record_key_usage, [keyIds]);
}

/** Whether at least one key exists, also revoked or expired. */
export async function hasKeys(db: Queryable): Promise<boolean> {
  return (await readRow(db, sql.find_any_key, [])) !== null;
}

export interface NewApiKey {
  id: string;
  organizationId: string | null;
  label: string | null;
  scopes: readonly Scope[];
  allowIps: readonly string[];
  expiresAt: Date | null;
}

/** Inserts a key without a secret. Call `insertSecret` in the same transaction. */
export async function insertKey(db: Queryable, key: NewApiKey): Promise<void> {
  await execute(db, sql.insert_key, [key.id, key.organizationId, key.label, key.scopes, key.allowIps, key.expiresAt]);
}

/** Whether a key's organization is a sandbox; false when it has none, and when there is no such key. */
export async function findKeySandbox(db: Queryable, keyId: string): Promise<boolean> {
  return (await readRow(db, sql.find_key_sandbox, [keyId]))?.sandbox ?? false;
}

/** Makes a secret (SHA-256 in hex) the current one of a key. */
export async function insertSecret(db: Queryable, keyId: string, hash: string): Promise<void> {
  await execute(db, sql.insert_secret, [keyId, bytesOf(hash)]);
}

/** Ends every secret of the key within `graceMs`; returns when the last of them ends, or null when none works. */
export async function retireSecrets(db: Queryable, keyId: string, graceMs: number): Promise<Date | null> {
  return (await readRow(db, sql.retire_secrets, [keyId, graceMs]))?.expiresAt ?? null;
}

/** Revokes a key; returns whether the key exists. */
export async function revokeKey(db: Queryable, keyId: string): Promise<boolean> {
  return (await execute(db, sql.revoke_key, [keyId])) === 1;
}

/** A key as an operator sees it. */
export type ListedKey = Row<typeof LISTED_KEY>;

/** The keys of an organization, newest first: all of them, or at most `limit` that are older than the key `before`. */
export function selectKeys(
  db: Queryable,
  organizationId: string,
  before: string | null = null,
  limit: number | null = null,
): Promise<ListedKey[]> {
  return readRows(db, sql.select_keys, [organizationId, before, limit]);
}

/** A key's organization, and the key before which the page begins that shows it, in pages of `pageSize`; null without such a key. */
export function findKeyPlace(
  db: Queryable,
  keyId: string,
  pageSize: number,
): Promise<{ organizationId: string | null; before: string | null } | null> {
  return readRow(db, sql.find_key_place, [keyId, pageSize]);
}

function bytesOf(hash: string): Buffer {
  return Buffer.from(hash, "hex");
}
