import type pg from "pg";
import { afterAll, beforeAll, expect, it } from "vitest";
import { eraseEvents } from "../../src/acts/db/erasures.ts";
import { erasePerson } from "../../src/acts/erase-person.ts";
import { listErasures, parseErasures, replayErasures } from "../../src/acts/replay-erasures.ts";
import type { EventType } from "../../src/core/chain/chain.ts";
import { verifyOneChain } from "../../src/core/chain/verify-chains.ts";
import type { Transaction } from "../../src/platform/db/pool.ts";
import { inTransaction } from "../../src/platform/db/transaction.ts";
import { appendEvent } from "../support/append-event.ts";
import { openLastingPool } from "../support/lasting-pool.ts";
import { makeMember, newUser } from "../support/marketplace.ts";
import { bypassTriggers } from "../support/outside-transaction.ts";
import { provisioning } from "../support/supply.ts";
import { useDatabase } from "../support/use-service.ts";

const { servers, db, partner, issue } = useDatabase();

const REFUSED = "23001";
const NOT_ALLOWED = "42501";
const CHECK = "23514";
const REMOVE = "UPDATE voucher_events SET payload = NULL, erased_by = 3 WHERE voucher_id = $1 AND sequence = 2";

const ROLES = ["pva_api", "pva_log", "pva_admin", "owner"] as const;
type Role = (typeof ROLES)[number];
let pools: Record<Role, pg.Pool>;

beforeAll(() => {
  const pool = (connectionString: string) => openLastingPool({ connectionString, max: 1 });
  const { databaseUrl, logUrl, adminUrl, ownerUrl } = servers;
  pools = { pva_api: pool(databaseUrl), pva_log: pool(logUrl), pva_admin: pool(adminUrl), owner: pool(ownerUrl) };
});

afterAll(() => Promise.all(Object.values(pools).map((pool) => pool.end())));

/** Events that differ from a valid erasing event by one change, and therefore erase nothing. */
const NO_TRACE: [what: string, sequences: number[], change: string | null][] = [
  ["names another event", [1], null],
  ["names itself", [3], null],
  [
    "is Pending",
    [2],
    "seal_status = 'Pending', payload = NULL, record_hash = NULL, previous_hash = NULL, log_slot = NULL, data = '{}'",
  ],
  ["has no payload", [2], "event_type = 'voucher.instance.voided', payload = NULL, erased_by = 4"],
  ["has another type", [2], "event_type = 'voucher.instance.voided'"],
];

it.each(NO_TRACE)("the database's owner cannot remove a payload if the erasing event %s", async (_, named, change) => {
  const id = await redeemed();
  await append(id, "voucher.instance.erased", { erasedSequences: named });
  if (change !== null) {
    await bypassTriggers(db, `UPDATE voucher_events SET ${change} WHERE voucher_id = $1 AND sequence = 3`, [id]);
  }
  expect(await refusalOf("owner", REMOVE, id)).toBe(REFUSED);
});

it("pva_api and pva_admin cannot UPDATE a redemption's reference or payload, even with an erasing event", async () => {
  const id = await redeemed();
  const texts =
    "UPDATE redemptions SET external_ref = erased_form(organization_id, external_ref) WHERE voucher_id = $1";
  const hash = REMOVE.replace("payload = NULL", "payload = NULL, record_hash = sha256(record_hash)");
  for (const role of ["pva_api", "pva_admin"] as const) {
    expect(await refusalOf(role, REMOVE, id), role).toBe(NOT_ALLOWED);
    const alone = "UPDATE voucher_events SET payload = NULL WHERE voucher_id = $1 AND sequence = 2";
    expect(await refusalOf(role, alone, id), role).toBe(REFUSED);
    expect(await refusalOf(role, texts, id), role).toBe(NOT_ALLOWED);
  }
  expect(await refusalOf("owner", REMOVE, id)).toBe(REFUSED);
  expect(await refusalOf("owner", texts, id)).toBe(REFUSED);
  await append(id, "voucher.instance.erased", { erasedSequences: [2] });
  for (const role of ["pva_api", "pva_admin"] as const) expect(await refusalOf(role, REMOVE, id)).toBe(NOT_ALLOWED);
  expect(await refusalOf("owner", hash, id)).toBe(REFUSED);
  expect(await refusalOf("pva_api", "SELECT * FROM erase_events(ARRAY[$1], ARRAY[3])", id)).toBe(NOT_ALLOWED);
  expect(await refusalOf("pva_admin", "SELECT key FROM erasure_keys WHERE owner = $1", id)).toBe(NOT_ALLOWED);
  const { events, texts: replaced } = await inTransaction(pools.pva_admin, (tx) =>
    eraseEvents(tx, [{ voucherId: id, sequence: 3 }]),
  );
  expect({ events, replaced }).toEqual({ events: 1, replaced: 1 });
  const back = "UPDATE voucher_events SET payload = '{}', erased_by = NULL WHERE voucher_id = $1 AND sequence = 2";
  expect(await refusalOf("owner", back, id)).toBe(REFUSED);
  const other = "UPDATE redemptions SET external_ref = 'another' WHERE voucher_id = $1";
  expect(await refusalOf("owner", other, id)).toBe(REFUSED);
});

type Attempt = (tx: Transaction, id: string) => Promise<unknown>;

/**
 * Transactions that try to remove a redeemed event's payload without an erasing event, with the SQLSTATEs for pva_admin
 * and the owner. Null: no error, and no change. The other roles may run none of them.
 */
const ATTEMPTS: Record<string, [ofAdmin: string | null, ofOwner: string | null, attempt: Attempt]> = {
  "by UPDATE": [NOT_ALLOWED, REFUSED, (tx, id) => tx.query(REMOVE, [id])],
  "without an event": [null, null, (tx, id) => eraseEvents(tx, [{ voucherId: id, sequence: null }])],
  "with the sequence of an event that does not exist": [
    null,
    null,
    (tx, id) => eraseEvents(tx, [{ voucherId: id, sequence: 3 }]),
  ],
  "with a Pending event": [
    null,
    null,
    async (tx, id) => {
      await tx.query(
        `INSERT INTO voucher_events (occurred_at, sequence, voucher_id, seal_status, event_type, data)
       VALUES (now(), 3, $1, 'Pending', 'voucher.instance.erased', '{"erasedSequences": [2]}')`,
        [id],
      );
      await eraseEvents(tx, [{ voucherId: id, sequence: 3 }]);
    },
  ],
  "with an event that the head does not cover": [
    REFUSED,
    REFUSED,
    async (tx, id) => {
      await appendErasing(tx, id);
      await tx.query(
        `UPDATE vouchers AS v SET last_sequence = 2, sealed_sequence = 2, sealed_hash = e.record_hash
         FROM voucher_events AS e WHERE v.id = $1 AND e.voucher_id = v.id AND e.sequence = 2`,
        [id],
      );
      await eraseEvents(tx, [{ voucherId: id, sequence: 3 }]);
    },
  ],
  "with an event that is deleted again": [
    NOT_ALLOWED,
    REFUSED,
    async (tx, id) => {
      await eraseWithEvent(tx, id);
      await tx.query("DELETE FROM voucher_events WHERE voucher_id = $1 AND sequence = 3", [id]);
    },
  ],
  "with an event that gets another type": [
    NOT_ALLOWED,
    REFUSED,
    async (tx, id) => {
      await eraseWithEvent(tx, id);
      const change = "UPDATE voucher_events SET event_type = 'voucher.instance.voided' WHERE sequence = 3";
      await tx.query(`${change} AND voucher_id = $1`, [id]);
    },
  ],
  "with an event that is erased itself": [
    CHECK,
    CHECK,
    async (tx, id) => {
      await eraseWithEvent(tx, id);
      await appendEvent(tx, id, "voucher.instance.erased", { erasedSequences: [3] });
      await eraseEvents(tx, [{ voucherId: id, sequence: 4 }]);
    },
  ],
  "with an event that is rolled back": [
    null,
    null,
    async (tx, id) => {
      await tx.query("SAVEPOINT before");
      await eraseWithEvent(tx, id);
      await tx.query("ROLLBACK TO before");
    },
  ],
};

it.each(ROLES)("%s cannot remove a payload without an erasing event", async (role) => {
  for (const [how, [ofAdmin, ofOwner, attempt]] of Object.entries(ATTEMPTS)) {
    const id = await redeemed();
    const refusal = await inTransaction(pools[role], (tx) => attempt(tx, id)).then(
      () => null,
      ({ code, message }) => code ?? message,
    );
    const expected = { pva_api: NOT_ALLOWED, pva_log: NOT_ALLOWED, pva_admin: ofAdmin, owner: ofOwner };
    expect(refusal, how).toBe(expected[role]);
    const { rows } = await db.query("SELECT payload FROM voucher_events WHERE voucher_id = $1 AND sequence = 2", [id]);
    expect(rows, how).toEqual([{ payload: expect.stringContaining("externalRef") }]);
  }
});

it("the erasure function removes a payload that an erasing event lists, and the chain stays intact", async () => {
  const id = await redeemed();
  await inTransaction(pools.pva_admin, (tx) => eraseWithEvent(tx, id));
  expect(await verifyOneChain({ pool: db }, id)).toMatchObject({ broken: [], erased: 1 });
});

it("only the erasure functions remove an ended reservation's reason, and they change nothing else", async () => {
  const { id } = await issue();
  await release(id, "a reason");
  const set = (change: string) => `UPDATE reservations SET ${change} WHERE voucher_id = $1`;
  for (const role of ["pva_api", "pva_admin"] as const) {
    expect(await refusalOf(role, set("end_reason = NULL"), id), role).toBe(REFUSED);
  }
  for (const change of ["end_reason = 'another'", "end_reason = NULL, key_id = 'another'"]) {
    expect(await refusalOf("owner", set(change), id)).toBe(REFUSED);
  }
  const erase = "SELECT * FROM erase_events(ARRAY[$1], ARRAY[NULL::int])";
  expect(await refusalOf("pva_admin", erase, id)).toBeNull();
});

it("an event cannot be inserted without its payload", async () => {
  const { id } = await issue();
  const insert = `INSERT INTO voucher_events
      (occurred_at, sequence, voucher_id, seal_status, event_type, previous_hash, record_hash, erased_by)
    VALUES (now(), 2, $1, 'Sealed', 'voucher.instance.redeemed', sha256('1'), sha256('2'), 3)`;
  for (const role of ["pva_api", "owner"] as const) expect(await refusalOf(role, insert, id)).toBe(REFUSED);
});

it("an erasure replaces a text with its HMAC-SHA-256 under the organization's own key", async () => {
  const { rows } = await db.query(
    "SELECT encode(key, 'hex') AS key, erased_form(owner, 'Ünal 1') AS form FROM erasure_keys WHERE owner = ANY ($1)",
    [[partner.organizationId, ""]],
  );
  expect(rows).toHaveLength(2);
  for (const { key, form } of rows) {
    const signed = await crypto.subtle.importKey(
      "raw",
      Buffer.from(key, "hex"),
      { name: "HMAC", hash: "SHA-256" },
      false,
      ["sign"],
    );
    const mac = await crypto.subtle.sign("HMAC", signed, Buffer.from("Ünal 1"));
    expect(form).toBe(`erased:${Buffer.from(mac).toString("base64url").slice(0, 22)}`);
  }
  expect(await refusalOf("owner", "UPDATE erasure_keys SET key = sha256('1') WHERE owner <> $1", "none")).toBe(REFUSED);
});

it("only an erasure can change an audit entry, and an erasure replaces only whole texts", async () => {
  const user = newUser();
  const entry = `INSERT INTO audit_entries (os_user, host, command, arguments, entity_type, entity_id, before, after)
    VALUES ('me', 'here', 'member add', $1, 'Member', $2, NULL, '{"role": "owner"}') RETURNING id`;
  const { rows } = await db.query(entry, [JSON.stringify({ user, org: "org_1" }), `org_1/${user}`]);
  const id = String(rows[0].id);
  for (const change of [
    "os_user = 'you'",
    `arguments = '{"user": "another", "org": "org_1"}'`,
    `after = '{"role": "employee"}'`,
    "entity_id = 'org_2/another'",
  ]) {
    expect(await refusalOf("owner", `UPDATE audit_entries SET ${change} WHERE id = $1::bigint`, id)).toBe(REFUSED);
  }
  await pools.pva_admin.query("SELECT * FROM erase_user($1)", [user]);
  const { rows: after } = await db.query("SELECT * FROM audit_entries WHERE id = $1", [id]);
  const form = expect.stringMatching(/^erased:/);
  expect(after[0]).toMatchObject({ os_user: "me", arguments: { user: form, org: "org_1" }, after: { role: "owner" } });
  expect(after[0].entity_id).toMatch(/^org_1\/erased:[\w-]{22}$/);
});

it("an erasure finds a user's audit entries through an index", async () => {
  const user = newUser();
  await db.query(
    `INSERT INTO audit_entries (os_user, host, command, arguments, entity_type, entity_id, after)
     SELECT 'me', 'here', 'member add', jsonb_build_object('user', CASE n WHEN 5000 THEN $1 ELSE 'user ' || n END),
            'Member', 'org_1/' || CASE n WHEN 5000 THEN $1 ELSE 'user ' || n END, '{"role": "owner"}'
       FROM generate_series(1, 10000) AS n`,
    [user],
  );
  await db.query("ANALYZE audit_entries");
  const scans = "SELECT seq_scan AS scans FROM pg_stat_xact_user_tables WHERE relname = 'audit_entries'";
  await inTransaction(pools.pva_admin, async (tx) => {
    const before = (await tx.query(scans)).rows[0]?.scans ?? "0";
    expect((await tx.query("SELECT * FROM erase_user($1)", [user])).rows[0].erased_texts).toBe(1);
    expect((await tx.query(scans)).rows[0]?.scans ?? "0").toBe(before);
  });
});

it("erasing a user whose subject is a common word changes only texts that name the user", async () => {
  const entry = `INSERT INTO audit_entries (os_user, host, command, arguments, entity_type, entity_id, before, after)
    VALUES ('owner', 'owner', $1, $2, $3, $4, $5, $6) RETURNING id`;
  const named = { user: "owner", role: "owner", owner: "owner" };
  const state = { userId: "owner", role: "owner", list: ["owner"] };
  const insert = async (command: string, args: object, type: string, id: string, after: object | null) =>
    (await db.query(entry, [command, JSON.stringify(args), type, id, null, JSON.stringify(after)])).rows[0].id;
  const ids = [
    await insert("member add", named, "Member", "org_1/owner", { role: "owner" }),
    await insert("contract offer", { user: "owner" }, "ReferrerContract", "ctr_1", state),
    await insert("log retire", { reason: "owner" }, "Log", "log.example/owner", null),
  ];
  await db.query("INSERT INTO sent_forms (token, command, arguments, entity_id) VALUES ($1, 'member add', $2, $3)", [
    crypto.randomUUID(),
    JSON.stringify(named),
    "org_1/owner",
  ]);
  expect((await pools.pva_admin.query("SELECT * FROM erase_user('owner')")).rows[0].erased_texts).toBe(3);
  const { rows } = await db.query(
    `SELECT arguments, entity_id, after FROM audit_entries WHERE id = ANY ($1)
      UNION ALL SELECT arguments, entity_id, NULL FROM sent_forms ORDER BY entity_id, after`,
    [ids],
  );
  const user = (await db.query("SELECT erased_form('', 'owner') AS form")).rows[0].form;
  expect(rows).toEqual([
    { arguments: { user }, entity_id: "ctr_1", after: { ...state, userId: user } },
    { arguments: { reason: "owner" }, entity_id: "log.example/owner", after: null },
    { arguments: { ...named, user }, entity_id: `org_1/${user}`, after: { role: "owner" } },
    { arguments: { ...named, user }, entity_id: `org_1/${user}`, after: null },
  ]);
});

it("a user's claim is refused after an earlier claim of the product was erased", async () => {
  const [one, two] = [await issue(), await issue()];
  const user = newUser();
  const claim = "INSERT INTO claims (user_id, product_id, voucher_id) VALUES ($1, $2, $3)";
  await db.query(claim, [user, partner.productId, one.id]);
  await append(one.id, "voucher.instance.claimed", {});
  await append(one.id, "voucher.instance.erased", { erasedSequences: [2] });
  await inTransaction(pools.pva_admin, (tx) => eraseEvents(tx, [{ voucherId: one.id, sequence: 3 }]));
  const again = await db.query(claim, [user, partner.productId, two.id]).catch((error: pg.DatabaseError) => error);
  expect(again).toMatchObject({ code: "VS001" });
});

it("a purchase is refused if the user's erased purchase had the same payment", async () => {
  const [one, two] = [await issue(), await issue()];
  const ids = [partner.organizationId, newUser(), "a payment that is erased"];
  const purchase = "INSERT INTO purchases (organization_id, user_id, payment_ref, voucher_id) VALUES ($1, $2, $3, $4)";
  await db.query(purchase, [...ids, one.id]);
  await append(one.id, "voucher.instance.bought", {});
  await erasePerson(provisioning(db), { by: "voucher", voucherId: one.id }, null);
  const again = await db.query(purchase, [...ids, two.id]).catch((error: pg.DatabaseError) => error);
  expect(again).toMatchObject({ code: "VS001" });
});

it("a batch's reference cannot be inserted again after the reference was erased", async () => {
  const { organizationId } = partner;
  const insert = async () => {
    const { id } = await issue();
    const { rowCount } = await db.query(
      `INSERT INTO issue_references (organization_id, issue_ref, batch_id, terms)
       SELECT $1, 'a reference that is erased', batch_id, '{}' FROM vouchers WHERE id = $2`,
      [organizationId, id],
    );
    return rowCount;
  };
  expect(await insert()).toBe(1);
  await erasePerson(
    provisioning(db),
    { by: "reference", organizationId, externalRef: "a reference that is erased" },
    null,
  );
  expect(await insert()).toBe(0);
});

it("an erasure of only release reasons adds no event, but is in the list of erasures and can be replayed", async () => {
  const { id } = await issue();
  const ctx = { ...provisioning(db), pool: pools.pva_admin };
  const eraseIt = () => erasePerson(ctx, { by: "voucher", voucherId: id }, null);
  const list = async () => {
    const { items, ...others } = await listErasures({ pool: pools.pva_admin }, new Date(0));
    return { ...others, items: items.filter(({ voucherId }) => voucherId === id) };
  };
  for (const reason of ["a first reason", "a second reason"]) {
    await release(id, reason);
    await eraseIt();
  }
  const item = { voucherId: id, sequences: [], erasedAt: expect.any(String) };
  const listed = await list();
  expect(listed.items).toEqual([item, item]);
  await release(id, "a reason from a backup", "1 minute");
  await release(id, "a later reason");
  expect(await replayErasures(ctx, parseErasures(JSON.stringify(listed)))).toMatchObject({ references: 1 });
  const { rows } = await db.query("SELECT end_reason FROM reservations WHERE voucher_id = $1 AND end_reason <> ''", [
    id,
  ]);
  expect(rows).toEqual([{ end_reason: "a later reason" }]);
});

it("an erasure replay after a restore repeats each erasure with the same replacement texts", async () => {
  const id = await redeemed();
  const userId = newUser();
  const { organizationId } = partner;
  await db.query(
    `INSERT INTO issue_references (organization_id, issue_ref, batch_id, terms)
     SELECT $1, 'an order of a batch', batch_id, '{}' FROM vouchers WHERE id = $2`,
    [organizationId, id],
  );
  await makeMember(db, { organizationId: partner.organizationId, userId, role: "employee" });
  const tables = [
    "voucher_events",
    "vouchers",
    "redemptions",
    "members",
    "issue_references",
    "erasures",
    "erased_users",
  ];
  for (const table of tables) await db.query(`CREATE TABLE kept_${table} AS TABLE ${table}`);
  const ctx = { ...provisioning(db), pool: pools.pva_admin };
  const first = await erasePerson(ctx, { by: "voucher", voucherId: id }, "asked for");
  await erasePerson(ctx, { by: "user", userId }, null);
  await erasePerson(ctx, { by: "reference", organizationId, externalRef: "an order of a batch" }, null);
  const texts = () =>
    db.query(
      `SELECT external_ref FROM redemptions WHERE voucher_id = $1 UNION ALL SELECT user_id FROM members
        UNION ALL SELECT issue_ref FROM issue_references`,
      [id],
    );
  const [erased, listed] = [(await texts()).rows, await listErasures({ pool: pools.pva_admin }, new Date(0))];
  const restore = (table: string) => `DELETE FROM ${table}; INSERT INTO ${table} SELECT * FROM kept_${table};`;
  await bypassTriggers(db, tables.map(restore).join("\n"));
  expect((await texts()).rows).not.toEqual(erased);
  expect(await replayErasures(ctx, parseErasures(JSON.stringify(listed)))).toMatchObject({ vouchers: 1, events: 1 });
  expect(first).toMatchObject({ vouchers: 1, events: 1 });
  expect((await texts()).rows).toEqual(erased);
  expect(await verifyOneChain({ pool: db }, id)).toMatchObject({ broken: [], erased: 1 });
  expect(await replayErasures(ctx, listed)).toEqual({ vouchers: 0, events: 0, references: 0, otherEvents: 0 });
});

it("an erasure's count includes vouchers from which the erasure removed only release reasons", async () => {
  const user = newUser();
  for (const { id } of [await issue(), await issue()]) {
    await append(id, "voucher.instance.bought", {});
    await db.query(
      "INSERT INTO purchases (organization_id, user_id, payment_ref, voucher_id) VALUES ($1, $2, $3, $3)",
      [partner.organizationId, user, id],
    );
  }
  const ctx = { ...provisioning(db), pool: pools.pva_admin };
  const eraseUser = () => erasePerson(ctx, { by: "user", userId: user }, null);
  expect(await eraseUser()).toMatchObject({ vouchers: 2, events: 2 });
  const { rows } = await db.query("SELECT voucher_id AS id FROM purchases WHERE user_id = erased_form('', $1)", [user]);
  for (const { id } of rows) await release(id, `a reason of ${id}`);
  expect(await eraseUser()).toEqual({ vouchers: 2, events: 0, references: 2 });
});

let orders = 0;

/** Makes a redeemed voucher whose redemption's event has sequence 2 and is sealed. Returns its id. */
async function redeemed(): Promise<string> {
  orders += 1;
  const { id } = await issue();
  await append(id, "voucher.instance.redeemed", { externalRef: `order-${orders}` });
  await db.query("UPDATE vouchers SET status = 'Redeemed', redeemed_at = now() WHERE id = $1", [id]);
  await db.query(
    `INSERT INTO redemptions (redeemed_at, voucher_id, organization_id, key_id, attempt_id, redeem_code, external_ref)
     SELECT date_trunc('milliseconds', clock_timestamp()), id, organization_id, 'key', 'attempt', $2, $2
       FROM vouchers WHERE id = $1`,
    [id, `order-${orders}`],
  );
  return id;
}

/** Inserts a reservation that was released this long ago. The ticket and the reason are the same text. */
const release = (id: string, reason: string, ago = "0 seconds") =>
  db.query(
    `INSERT INTO reservations (started_at, expires_at, ended_at, ticket, voucher_id, organization_id, key_id, state,
                               end_reason, token_secret_id)
     SELECT ended_at - interval '1 minute', ended_at, ended_at, $3, $1, $2, 'key', 'Released', $3, 'secret'
       FROM (SELECT clock_timestamp() - $4::interval AS ended_at) AS n`,
    [id, partner.organizationId, reason, ago],
  );

/** Appends an event that erases the event with sequence 2. */
const appendErasing = (tx: Transaction, id: string) =>
  appendEvent(tx, id, "voucher.instance.erased", { erasedSequences: [2] });

async function eraseWithEvent(tx: Transaction, id: string) {
  await appendErasing(tx, id);
  return eraseEvents(tx, [{ voucherId: id, sequence: 3 }]);
}

const append = (id: string, eventType: EventType, data: Record<string, unknown>) =>
  inTransaction(db, (tx) => appendEvent(tx, id, eventType, data));

/** Tries a statement as a role, and rolls it back. Returns the SQLSTATE of the refusal, or null. */
async function refusalOf(role: Role, statement: string, id: string): Promise<string | null> {
  const client = await pools[role].connect();
  try {
    await client.query("BEGIN");
    await client.query(statement, [id]);
    return null;
  } catch (error) {
    return (error as pg.DatabaseError).code ?? String(error);
  } finally {
    await client.query("ROLLBACK");
    client.release();
  }
}
