import { bigint, jsonb, orNull, type Row, text, timestamptz } from "./columns.ts";
import type { Queryable, Transaction } from "./pool.ts";
import { execute, loadStatements, prepare, readRows } from "./statements.ts";

/** The columns of an entity before and after a change, without secrets and codes. */
type EntityState = Record<string, unknown>;

const AUDIT_ENTRY = {
  id: bigint,
  /** The database's clock, shortly before the change was committed. */
  at: timestamptz,
  /** The role that was connected to the database. */
  databaseRole: text,
  osUser: text,
  host: text,
  command: text,
  arguments: jsonb<Record<string, unknown>>(),
  entityType: text,
  entityId: text,
  before: orNull(jsonb<EntityState>()),
  after: orNull(jsonb<EntityState>()),
};

const { databaseRole: _role, arguments: _arguments, before: _before, after: _after, ...CHANGE } = AUDIT_ENTRY;
export type AuditedChange = Row<typeof CHANGE>;

export const sql = loadStatements(new URL("./audit-entries.sql", import.meta.url), {
  lock_entity: {},
  // These statements declare no columns, because `readEntityState` reads each row as an object.
  state_of_organization: {},
  state_of_brand: {},
  state_of_product: {},
  state_of_api_key: {},
  state_of_batch: {},
  state_of_voucher: {},
  state_of_member: {},
  state_of_contract: {},
  state_of_link: {},
  state_of_listing: {},
  state_of_webhook_endpoint: {},
  state_of_roles: {},
  state_of_log: {},
  state_of_deployment: {},
  insert_audit_entry: {},
  insert_look: {},
  select_audit_entries: AUDIT_ENTRY,
  select_audit_entries_on_entity: AUDIT_ENTRY,
  select_changes: CHANGE,
});

const STATE_OF = {
  Organization: sql.state_of_organization,
  Brand: sql.state_of_brand,
  Product: sql.state_of_product,
  ApiKey: sql.state_of_api_key,
  Batch: sql.state_of_batch,
  VoucherInstance: sql.state_of_voucher,
  /** Its id is `<organization>/<user>`. */
  Member: sql.state_of_member,
  ReferrerContract: sql.state_of_contract,
  /** Its id is the SHA-256 of its code, in hex. */
  ReferralLink: sql.state_of_link,
  Listing: sql.state_of_listing,
  WebhookEndpoint: sql.state_of_webhook_endpoint,
  /** The rights of the service's roles. Its id is the name of the database. */
  DatabaseRoles: sql.state_of_roles,
  /** The transparency log. Its id is its origin. */
  Log: sql.state_of_log,
  /** Its id is the deployment's id before the change. */
  Deployment: sql.state_of_deployment,
} as const;

/** What an administrative command changes. */
export interface Entity {
  type: keyof typeof STATE_OF;
  id: string;
}

/** Serializes changes of the same entity until this transaction ends, whether or not the entity exists. */
export async function lockEntity(tx: Transaction, entity: Entity): Promise<void> {
  await execute(tx, sql.lock_entity, [entity.type, entity.id]);
}

/** The state of an entity in this transaction, or null if there is none. Call `lockEntity` first, so that no other command changes it. */
export async function readEntityState(tx: Transaction, { type, id }: Entity): Promise<EntityState | null> {
  const { rows } = await tx.query<EntityState>(prepare(STATE_OF[type], [id]));
  return rows[0] ?? null;
}

interface NewAuditEntry {
  osUser: string;
  host: string;
  /** Noun and verb. */
  command: string;
  /** The arguments of the command, without secrets and codes. */
  arguments: Record<string, unknown>;
  entity: Entity;
  /** Null: the entity did not exist. */
  before: EntityState | null;
  after: EntityState | null;
}

/** Inserts an audit entry. A constraint rejects an entry whose `before` and `after` are equal. */
export async function insertAuditEntry(tx: Transaction, entry: NewAuditEntry): Promise<void> {
  await execute(tx, sql.insert_audit_entry, [
    entry.osUser,
    entry.host,
    entry.command,
    JSON.stringify(entry.arguments),
    entry.entity.type,
    entry.entity.id,
    entry.before && JSON.stringify(entry.before),
    entry.after && JSON.stringify(entry.after),
  ]);
}

/** What an operator viewed on a page. Recorded like an audit entry, without states. */
export interface Look extends Pick<NewAuditEntry, "osUser" | "host" | "arguments"> {
  /** `page` and what it shows. */
  command: `page ${string}`;
  entity: { type: Entity["type"] | "Search"; id: string };
}

/** Inserts the audit entry of a page view. */
export async function insertLook(db: Queryable, look: Look): Promise<void> {
  const { osUser, host, command, entity } = look;
  await execute(db, sql.insert_look, [osUser, host, command, JSON.stringify(look.arguments), entity.type, entity.id]);
}

export type AuditEntry = Row<typeof AUDIT_ENTRY>;

/** At most `limit` audit entries, newest first: those of one entity, or all if `entityId` is null. */
export function selectAuditEntries(db: Queryable, entityId: string | null, limit: number): Promise<AuditEntry[]> {
  return entityId === null
    ? readRows(db, sql.select_audit_entries, [limit])
    : readRows(db, sql.select_audit_entries_on_entity, [entityId, limit]);
}

/** At most `limit` changes before an entry's id, newest first, without states and without views of pages. */
export function selectChanges(db: Queryable, before: number, limit: number): Promise<AuditedChange[]> {
  return readRows(db, sql.select_changes, [before, limit]);
}
