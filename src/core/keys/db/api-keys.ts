import {
  arrayOf,
  boolean,
  bytea,
  double,
  integer,
  orNull,
  type Row,
  text,
  textOf,
  timestamptz,
} from "../../../platform/db/columns.ts";
import { LATEST, withLatest } from "../../../platform/db/database-clock.ts";
import type { Queryable } from "../../../platform/db/pool.ts";
import { Statements } from "../../../platform/db/statements.ts";
import type { Scope } from "../api-keys.ts";

/** A key that works at the moment it is read. */
const API_KEY = {
  id: text,
  organizationId: orNull(text),
  scopes: arrayOf(textOf<Scope>()),
  /** Allowed addresses as CIDRs; an empty array allows every address. */
  allowIps: arrayOf(text),
  /** How long the key keeps working if nothing changes it, in milliseconds; null if it has no end. */
  usableMs: orNull(double),
  useIsDue: boolean,
  sandbox: boolean,
};
export type ApiKey = Row<typeof API_KEY>;

/** A key as an operator sees it. */
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
  oldSecretsUntil: orNull(timestamptz),
};
export type ListedKey = Row<typeof LISTED_KEY>;

export const sql = new Statements(new URL("./api-keys.sql", import.meta.url));

export const recordKeyUsage = sql.execute("record_key_usage", { keyId: arrayOf(text) });
/** Whether the key is revoked or expired. */
export const hasKeyEnded = sql.executeOne("find_ended_key", { keyId: text });
export const hasKeys = sql.executeOne("find_any_key");
export const findKeySandbox = sql.executeOne("find_key_sandbox", { keyId: text });
export const retireSecrets = sql.value("retire_secrets", { expiresAt: timestamptz }, { keyId: text, graceMs: double });
/** Returns whether the key exists. */
export const revokeKey = sql.executeOne("revoke_key", { id: text });
export const findKeyPlace = sql.row(
  "find_key_place",
  { organizationId: orNull(text), before: orNull(text) },
  { keyId: text, pageSize: integer },
);
const selectWorkingKeys = withLatest(
  sql.rows("find_keys_by_secret", { secretHash: text, ...API_KEY }, { secretHash: arrayOf(bytea), ...LATEST }),
);
const insertKeyRow = sql.execute("insert_key", {
  id: text,
  organizationId: orNull(text),
  label: orNull(text),
  scopes: arrayOf(text),
  allowIps: arrayOf(text),
  expiresAt: orNull(timestamptz),
});
const insertSecretRow = sql.execute("insert_secret", { keyId: text, secretHash: bytea });
const selectKeyPage = sql.rows("select_keys", LISTED_KEY, {
  organizationId: text,
  before: orNull(text),
  limit: orNull(integer),
});

/** The working keys of these secrets (SHA-256 in hex), by the hash. A hash without a working key is left out. */
export async function findKeysBySecret(db: Queryable, hashes: readonly string[]): Promise<Map<string, ApiKey>> {
  const rows = await selectWorkingKeys(db, { secretHash: hashes.map(bytesOf) });
  return new Map(rows.map(({ secretHash, ...key }) => [secretHash, key]));
}

interface NewApiKey {
  id: string;
  organizationId: string | null;
  label: string | null;
  scopes: readonly Scope[];
  allowIps: readonly string[];
  expiresAt: Date | null;
}

/** Inserts a key without a secret. Call `insertSecret` in the same transaction. */
export async function insertKey(db: Queryable, key: NewApiKey): Promise<void> {
  await insertKeyRow(db, {
    id: key.id,
    organizationId: key.organizationId,
    label: key.label,
    scopes: key.scopes,
    allowIps: key.allowIps,
    expiresAt: key.expiresAt,
  });
}

/** Makes a secret (SHA-256 in hex) the current one of a key. */
export async function insertSecret(db: Queryable, keyId: string, hash: string): Promise<void> {
  await insertSecretRow(db, { keyId, secretHash: bytesOf(hash) });
}

/** The keys of an organization, newest first: all of them, or at most `limit` that are older than the key `before`. */
export function selectKeys(
  db: Queryable,
  organizationId: string,
  before: string | null = null,
  limit: number | null = null,
): Promise<ListedKey[]> {
  return selectKeyPage(db, { organizationId, before, limit });
}

function bytesOf(hash: string): Buffer {
  return Buffer.from(hash, "hex");
}
