import {
  bigint,
  boolean,
  integer,
  jsonb,
  orNull,
  type Row,
  text,
  textOf,
  timestamptz,
} from "../../platform/db/columns.ts";
import type { Queryable, Transaction } from "../../platform/db/pool.ts";
import { Statements } from "../../platform/db/statements.ts";

/** The columns of an entity before or after a change, without secrets and codes. */
type EntityState = Record<string, unknown>;

/**
 * How the acting person or program was identified: by a named operator's token, by a proxy's JWT, by OPS_TOKEN with a
 * freely chosen name, by the operating system's user of a command, or by an API key.
 */
export type ActingBy = "operator" | "jwt" | "shared" | "command" | "key";

const CHANGE = {
  id: bigint,
  /** The time on the database's clock, shortly before the change was committed. */
  at: timestamptz,
  /** The operator or user. For a sign-in with OPS_TOKEN, `shared: ` and the given name. */
  osUser: text,
  host: text,
  /** Null in entries of earlier releases. */
  by: orNull(textOf<ActingBy>()),
  command: text,
  entityType: text,
  entityId: text,
};

const AUDIT_ENTRY = {
  ...CHANGE,
  databaseRole: text,
  arguments: jsonb<Record<string, unknown>>(),
  before: orNull(jsonb<EntityState>()),
  after: orNull(jsonb<EntityState>()),
};
export type AuditEntry = Row<typeof AUDIT_ENTRY>;

export const sql = new Statements(new URL("./audit-entries.sql", import.meta.url));

export const selectAuditEntries = sql.rows("select_audit_entries", AUDIT_ENTRY, {
  entityId: orNull(text),
  user: orNull(text),
  limit: integer,
});
export const selectChanges = sql.rows("select_changes", CHANGE, {
  before: bigint,
  limit: integer,
  entityId: orNull(text),
  user: orNull(text),
});
/** The newest entry that paused or resumed a queue, with its reason. Null if there is none. */
export const findNewestPause = sql.row(
  "find_newest_pause",
  {
    at: timestamptz,
    osUser: text,
    command: textOf<"queue pause" | "queue resume">(),
    reason: orNull(text),
  },
  { queue: text },
);
const lockEntityName = sql.execute("lock_entity", { entityType: text, entityId: text });
const insertEntry = sql.execute("insert_audit_entry", {
  osUser: text,
  host: text,
  by: textOf<ActingBy>(),
  command: text,
  arguments: jsonb<string>(),
  entityType: text,
  entityId: text,
  before: orNull(jsonb<string>()),
  after: orNull(jsonb<string>()),
});
/** Adds to the counts in this hour's entry about a key that reads a batch's codes. Returns false if there is none. */
export const countCodesRead = sql.requiredValue(
  "count_codes_read",
  { counted: boolean },
  { batchId: text, keyId: text, codes: integer },
);
const insertVisitEntry = sql.execute("insert_visit", {
  osUser: text,
  host: text,
  by: textOf<ActingBy>(),
  command: text,
  arguments: jsonb<string>(),
  entityType: text,
  entityId: text,
});

const STATE_OF = {
  Organization: sql.prepare("state_of_organization", { id: text }),
  Brand: sql.prepare("state_of_brand", { id: text }),
  Product: sql.prepare("state_of_product", { id: text }),
  ApiKey: sql.prepare("state_of_api_key", { id: text }),
  Batch: sql.prepare("state_of_batch", { id: text }),
  VoucherInstance: sql.prepare("state_of_voucher", { id: text }),
  /** The id is `<organization>/<user>`. */
  Member: sql.prepare("state_of_member", { organizationAndUser: text }),
  ReferrerContract: sql.prepare("state_of_contract", { id: text }),
  /** The id is the SHA-256 of the link's code, in hex. */
  ReferralLink: sql.prepare("state_of_link", { codeSha256: text }),
  Listing: sql.prepare("state_of_listing", { id: text }),
  WebhookEndpoint: sql.prepare("state_of_webhook_endpoint", { id: text }),
  Operator: sql.prepare("state_of_operator", { id: text }),
  /** An erased user. The id is the text that replaced the user's id. */
  User: sql.prepare("state_of_user", { form: text }),
  /** The rights of the service's roles. The id is the name of the database. */
  DatabaseRoles: sql.prepare("state_of_roles", { database: text }),
  /** The transparency log. The id is its origin. */
  Log: sql.prepare("state_of_log", { origin: text }),
  /** The id is the deployment's id before the change. */
  Deployment: sql.prepare("state_of_deployment", { id: text }),
};

const STATELESS = ["Queue", "Process"] as const;

/** The entity that an administrative command changes. */
export interface Entity {
  /** The kind of the entity. Queues and processes are in Redis, so they have no state here. */
  type: keyof typeof STATE_OF | (typeof STATELESS)[number];
  id: string;
}

/** Serializes changes of the same entity until this transaction ends, even if the entity does not exist. */
export async function lockEntity(tx: Transaction, { type, id }: Entity): Promise<void> {
  await lockEntityName(tx, { entityType: type, entityId: id });
}

function isStateless(type: Entity["type"]): type is (typeof STATELESS)[number] {
  return STATELESS.some((stateless) => stateless === type);
}

/** The state of an entity, or null. Call `lockEntity` first, so that no other command changes the entity. */
export async function readEntityState(tx: Transaction, { type, id }: Entity): Promise<EntityState | null> {
  if (isStateless(type)) return null;
  const { rows } = await tx.query<EntityState>(STATE_OF[type](id));
  return rows[0] ?? null;
}

interface NewAuditEntry {
  osUser: string;
  host: string;
  by: ActingBy;
  /** Noun and verb. */
  command: string;
  /** The arguments of the command, without secrets and codes. */
  arguments: Record<string, unknown>;
  entity: Entity;
  /** Null if the entity did not exist. */
  before: EntityState | null;
  after: EntityState | null;
}

/** Inserts an audit entry. A constraint rejects an entry whose `before` and `after` are equal. */
export async function insertAuditEntry(tx: Transaction, entry: NewAuditEntry): Promise<void> {
  const { osUser, host, by, command, entity, before, after } = entry;
  await insertEntry(tx, {
    osUser,
    host,
    by,
    command,
    arguments: JSON.stringify(entry.arguments),
    entityType: entity.type,
    entityId: entity.id,
    before: before && JSON.stringify(before),
    after: after && JSON.stringify(after),
  });
}

/** What an operator viewed or did on a page. It is recorded like an audit entry, but without states. */
export interface VisitEntry extends Pick<NewAuditEntry, "osUser" | "host" | "by" | "arguments"> {
  /** The word `page`, followed by what the page shows or does. */
  command: `page ${string}`;
  entity: { type: Entity["type"] | "Search"; id: string };
}

/** Inserts the audit entry of an operator's visit. */
export async function insertVisit(db: Queryable, visit: VisitEntry): Promise<void> {
  const { osUser, host, by, command, entity } = visit;
  await insertVisitEntry(db, {
    osUser,
    host,
    by,
    command,
    arguments: JSON.stringify(visit.arguments),
    entityType: entity.type,
    entityId: entity.id,
  });
}
