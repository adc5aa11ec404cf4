import type { Queryable, Transaction } from "./pool.ts";
import { bind, loadStatements } from "./statements.ts";

const sql = loadStatements(new URL("./admin-acts.sql", import.meta.url), [
  "lock_entity",
  "state_of_organization",
  "state_of_brand",
  "state_of_product",
  "state_of_api_key",
  "state_of_batch",
  "state_of_voucher",
  "state_of_member",
  "state_of_contract",
  "state_of_link",
  "state_of_listing",
  "state_of_roles",
  "insert_act",
  "select_acts",
  "select_acts_on_entity",
]);

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
  /** Its id is the name of the database that they have rights in. */
  DatabaseRoles: sql.state_of_roles,
} as const;

/** What an act of administration is done to. */
export interface Entity {
  type: keyof typeof STATE_OF;
  id: string;
}

/** What there is to say about an entity, without secrets and codes. */
export type EntityState = Record<string, unknown>;

/** Makes acts on the same entity take turns until this transaction ends, whether or not the entity exists. */
export async function lockEntity(tx: Transaction, entity: Entity): Promise<void> {
  await tx.query(bind(sql.lock_entity, [entity.type, entity.id]));
}

/**
 * An entity as it is in this transaction, or null. Run after `lockEntity`: then nobody but this transaction changes what is read
 * before it ends.
 */
export async function readEntityState(tx: Transaction, { type, id }: Entity): Promise<EntityState | null> {
  const { rows } = await tx.query<EntityState>(bind(STATE_OF[type], [id]));
  const row = rows[0];
  if (row === undefined) return null;
  const toCamelCase = (column: string) => column.replace(/_[a-z]/g, (match) => match.slice(1).toUpperCase());
  return Object.fromEntries(Object.entries(row).map(([column, value]) => [toCamelCase(column), value]));
}

/** An act to be recorded. */
export interface NewAdminAct {
  osUser: string;
  host: string;
  /** Noun and verb. */
  command: string;
  /** What was given to the command, without secrets and codes. */
  arguments: Record<string, unknown>;
  entity: Entity;
  /** Null: the entity did not exist. */
  before: EntityState | null;
  after: EntityState | null;
}

/** Records an act. The table refuses one that changed nothing. */
export async function insertAct(tx: Transaction, act: NewAdminAct): Promise<void> {
  await tx.query(
    bind(sql.insert_act, [
      act.osUser,
      act.host,
      act.command,
      JSON.stringify(act.arguments),
      act.entity.type,
      act.entity.id,
      act.before && JSON.stringify(act.before),
      act.after && JSON.stringify(act.after),
    ]),
  );
}

/** A recorded act. */
export interface AdminAct {
  id: number;
  /** The database's clock, shortly before the act was committed. */
  at: Date;
  /** As whom the database knew whoever did it. */
  databaseRole: string;
  osUser: string;
  host: string;
  command: string;
  arguments: Record<string, unknown>;
  entityType: string;
  entityId: string;
  before: EntityState | null;
  after: EntityState | null;
}

/** At most `limit` acts, the newest first; those on one entity if `entityId` is not null. */
export async function selectActs(db: Queryable, entityId: string | null, limit: number): Promise<AdminAct[]> {
  const { rows } = await db.query<{
    id: number;
    at: Date;
    database_role: string;
    os_user: string;
    host: string;
    command: string;
    arguments: Record<string, unknown>;
    entity_type: string;
    entity_id: string;
    before: EntityState | null;
    after: EntityState | null;
  }>(entityId === null ? bind(sql.select_acts, [limit]) : bind(sql.select_acts_on_entity, [entityId, limit]));
  return rows.map((row) => ({
    id: row.id,
    at: row.at,
    databaseRole: row.database_role,
    osUser: row.os_user,
    host: row.host,
    command: row.command,
    arguments: row.arguments,
    entityType: row.entity_type,
    entityId: row.entity_id,
    before: row.before,
    after: row.after,
  }));
}
