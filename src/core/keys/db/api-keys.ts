import {
  arrayOf,
  bigint,
  boolean,
  bytea,
  double,
  integer,
  numeric,
  orNull,
  type Row,
  text,
  textOf,
  timestamptz,
} from "../../../platform/db/columns.ts";
import { LATEST, withLatest } from "../../../platform/db/database-clock.ts";
import type { Queryable, Transaction } from "../../../platform/db/pool.ts";
import { Statements } from "../../../platform/db/statements.ts";
import type { Scope } from "../api-keys.ts";

/** A key that is usable at the time of the read. */
const API_KEY = {
  id: text,
  organizationId: orNull(text),
  scopes: arrayOf(textOf<Scope>()),
  /** Allowed addresses as CIDRs. An empty array allows every address. */
  allowIps: arrayOf(text),
  /** How long the key stays usable, in milliseconds. Null if it never expires. */
  usableMs: orNull(double),
  useIsDue: boolean,
  sandbox: boolean,
  /** Whether the key has a daily limit. */
  capped: boolean,
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
  /** When the key was last used, recorded at most once a minute. Null if never. */
  lastUsedAt: orNull(timestamptz),
  currentSecretUsedAt: orNull(timestamptz),
  oldSecretsUsedAt: orNull(timestamptz),
  maxPerDay: orNull(integer),
  maxAmountPerDayUsd: orNull(numeric),
  /** How much the key has redeemed today, UTC. Counted only while the key has a daily limit. */
  redemptionsToday: integer,
  amountTodayUsd: numeric,
  oldSecretsUntil: orNull(timestamptz),
};
export type ListedKey = Row<typeof LISTED_KEY>;

export const sql = new Statements(new URL("./api-keys.sql", import.meta.url));

const recordUsage = sql.execute("record_key_usage", { secretHash: arrayOf(bytea) });
/** Whether the key is revoked or expired. */
export const hasKeyEnded = sql.executeOne("find_ended_key", { keyId: text });
export const hasKeys = sql.executeOne("find_any_key");
export const findKeySandbox = sql.executeOne("find_key_sandbox", { keyId: text });
export const selectKeyNames = sql.rows(
  "select_key_names",
  { id: text, label: orNull(text), organization: text },
  { id: arrayOf(text) },
);
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
/** Inserts a key without a secret. The same transaction must add one. */
export const insertKey = sql.execute("insert_key", {
  id: text,
  organizationId: orNull(text),
  label: orNull(text),
  scopes: arrayOf(textOf<Scope>()),
  allowIps: arrayOf(text),
  expiresAt: orNull(timestamptz),
  maxPerDay: orNull(integer),
  maxAmountPerDayUsd: orNull(numeric),
});
const lockCaps = sql.execute("lock_key_caps", { keyId: arrayOf(text) });
const selectCaps = sql.rows(
  "select_key_caps",
  { keyId: text, redemptions: orNull(integer), cents: orNull(bigint) },
  { keyId: arrayOf(text) },
);
export const findKeyCaps = sql.row(
  "find_key_caps",
  { maxPerDay: orNull(integer), maxAmountPerDayUsd: orNull(numeric) },
  { id: text },
);
const changeCaps = sql.executeOne("change_key_caps", {
  id: text,
  maxPerDay: orNull(integer),
  maxAmountPerDayUsd: orNull(numeric),
});
const countKeyDay = sql.execute("count_key_day", { keyId: text });
const insertSecretRow = sql.execute("insert_secret", { keyId: text, secretHash: bytea });
const selectKeyPage = sql.rows("select_keys", LISTED_KEY, {
  organizationId: text,
  before: orNull(text),
  limit: orNull(integer),
});

/** The usable keys of these secrets (SHA-256 in hex), by the hash. A hash without a usable key is left out. */
export async function findKeysBySecret(db: Queryable, hashes: readonly string[]): Promise<Map<string, ApiKey>> {
  const rows = await selectWorkingKeys(db, { secretHash: hashes.map(bytesOf) });
  return new Map(rows.map(({ secretHash, ...key }) => [secretHash, key]));
}

/** Records that these secrets (SHA-256 in hex) are in use. */
export async function recordKeyUsage(db: Queryable, hashes: readonly string[]): Promise<void> {
  await recordUsage(db, hashes.map(bytesOf));
}

/** What a key may redeem on one day, UTC. Null means no limit. */
export interface KeyCaps {
  maxPerDay: number | null;
  maxAmountPerDayUsd: number | null;
}

export const NO_CAPS: KeyCaps = { maxPerDay: null, maxAmountPerDayUsd: null };

/** What a key may still redeem on a day. Null means no limit. */
export interface CapLeft {
  redemptions: number | null;
  cents: number | null;
}

/**
 * Locks the caps (daily limits) of keys until the transaction ends, and reads how much of each is left today, UTC.
 * Leaves out keys without a cap. Sends all its statements before it waits.
 */
export async function lockKeyCaps(tx: Transaction, keyIds: readonly string[]): Promise<Map<string, CapLeft>> {
  const distinct = [...new Set(keyIds)].sort();
  const [, caps] = await Promise.all([lockCaps(tx, distinct), selectCaps(tx, distinct)]);
  return new Map(caps.map(({ keyId, ...left }) => [keyId, left]));
}

/** The key whose daily limit a failed transaction exceeded, according to the database. Null after other errors. */
export function keyOverCap(error: unknown): string | null {
  return /^the key (\S+) has reached its daily limit$/.exec(Object(error).message)?.[1] ?? null;
}

/** Replaces a key's daily limits. Redemptions of today count. Waits for transactions that redeem with the key. */
export async function changeKeyCaps(tx: Transaction, id: string, caps: KeyCaps): Promise<void> {
  await lockCaps(tx, [id]);
  await countKeyDay(tx, id);
  await changeCaps(tx, { id, ...caps });
}

/** Makes a secret (SHA-256 in hex) the current secret of a key. */
export async function insertSecret(db: Queryable, keyId: string, hash: string): Promise<void> {
  await insertSecretRow(db, { keyId, secretHash: bytesOf(hash) });
}

/** The keys of an organization, newest first: all, or at most `limit` that are older than the key `before`. */
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
