import type { Scope } from "../domain/api-keys.ts";
import type { Queryable } from "./pool.ts";
import { bind, loadStatements } from "./statements.ts";

const sql = loadStatements(new URL("./api-keys.sql", import.meta.url), [
  "find_keys_by_secret",
  "note_key_uses",
  "insert_key",
  "insert_secret",
  "retire_secrets",
  "revoke_key",
  "select_keys",
]);

/** A key that works right now. */
export interface ApiKey {
  id: string;
  organizationId: string | null;
  scopes: Scope[];
  /** CIDRs; empty: any address. */
  allowIps: string[];
  /** How long it keeps working if nobody changes it, in milliseconds; null: without end. */
  usableMs: number | null;
  /** Its use has not been noted within the last minute. */
  useIsDue: boolean;
}

/** The working keys that these secrets (SHA-256 in hex) belong to, by the hash. Others are absent. */
export async function findKeysBySecret(db: Queryable, hashes: readonly string[]): Promise<Map<string, ApiKey>> {
  const { rows } = await db.query<{
    secret_hash: string;
    id: string;
    organization_id: string | null;
    scopes: Scope[];
    allow_ips: string[];
    usable_ms: number | null;
    use_is_due: boolean;
  }>(bind(sql.find_keys_by_secret, [hashes.map(bytesOf)]));
  return new Map(
    rows.map((row) => [
      row.secret_hash,
      {
        id: row.id,
        organizationId: row.organization_id,
        scopes: row.scopes,
        allowIps: row.allow_ips,
        usableMs: row.usable_ms,
        useIsDue: row.use_is_due,
      },
    ]),
  );
}

/** Notes that these keys are in use, each at most once a minute. */
export async function noteKeyUses(db: Queryable, keyIds: readonly string[]): Promise<void> {
  await db.query(bind(sql.note_key_uses, [keyIds]));
}

/** A key to be written. */
export interface NewApiKey {
  id: string;
  organizationId: string | null;
  label: string | null;
  scopes: readonly Scope[];
  allowIps: readonly string[];
  expiresAt: Date | null;
}

/** Writes a key without a secret; give it one in the same transaction. */
export async function insertKey(db: Queryable, key: NewApiKey): Promise<void> {
  await db.query(
    bind(sql.insert_key, [key.id, key.organizationId, key.label, key.scopes, key.allowIps, key.expiresAt]),
  );
}

/** Makes a secret (SHA-256 in hex) the key's current one. */
export async function insertSecret(db: Queryable, keyId: string, hash: string): Promise<void> {
  await db.query(bind(sql.insert_secret, [keyId, bytesOf(hash)]));
}

/** Lets all the key's secrets end after a grace or sooner; returns when the last of them does, or null when none works. */
export async function retireSecrets(db: Queryable, keyId: string, graceMs: number): Promise<Date | null> {
  const { rows } = await db.query<{ expires_at: Date }>(bind(sql.retire_secrets, [keyId, graceMs]));
  return rows[0]?.expires_at ?? null;
}

/** Revokes a key; returns whether there is such a key. */
export async function revokeKey(db: Queryable, keyId: string): Promise<boolean> {
  const { rowCount } = await db.query(bind(sql.revoke_key, [keyId]));
  return rowCount === 1;
}

/** A key as an operator sees it. */
export interface ListedKey {
  id: string;
  label: string | null;
  scopes: Scope[];
  allowIps: string[];
  createdAt: Date;
  expiresAt: Date | null;
  revokedAt: Date | null;
  /** To the minute; null: never. */
  lastUsedAt: Date | null;
  /** Until when a secret from before the last rotation works; null: none does. */
  oldSecretsUntil: Date | null;
}

/** The keys of an organization, newest first. */
export async function selectKeys(db: Queryable, organizationId: string): Promise<ListedKey[]> {
  const { rows } = await db.query<{
    id: string;
    label: string | null;
    scopes: Scope[];
    allow_ips: string[];
    created_at: Date;
    expires_at: Date | null;
    revoked_at: Date | null;
    last_used_at: Date | null;
    old_secrets_until: Date | null;
  }>(bind(sql.select_keys, [organizationId]));
  return rows.map((row) => ({
    id: row.id,
    label: row.label,
    scopes: row.scopes,
    allowIps: row.allow_ips,
    createdAt: row.created_at,
    expiresAt: row.expires_at,
    revokedAt: row.revoked_at,
    lastUsedAt: row.last_used_at,
    oldSecretsUntil: row.old_secrets_until,
  }));
}

function bytesOf(hash: string): Buffer {
  return Buffer.from(hash, "hex");
}
