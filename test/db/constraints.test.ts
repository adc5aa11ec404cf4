import { createHash } from "node:crypto";
import type pg from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { GENESIS_HASH, sealEvent } from "../../src/domain/chain.ts";
import { normaliseCode } from "../../src/domain/codes.ts";
import { newId } from "../../src/domain/ids.ts";
import { openTestServers, type TestServers } from "../support/servers.ts";
import { issueVoucher, makePartner, type TestPartner } from "../support/supply.ts";

/** SQLSTATEs of rejected statements (https://www.postgresql.org/docs/current/errcodes-appendix.html). */
const UNIQUE = "23505";
const CHECK = "23514";
const FOREIGN_KEY = "23503";
/** restrict_violation, which the project's own triggers raise. */
const TRIGGER = "23001";
const NOT_NULL = "23502";

let servers: TestServers;
let db: pg.Pool;
let partner: TestPartner;
let neighbour: TestPartner;

beforeAll(async () => {
  servers = await openTestServers();
  db = servers.db;
  partner = await makePartner(db);
  neighbour = await makePartner(db);
});

afterAll(async () => {
  await servers.close();
});

type Row = Record<string, unknown>;

/** Expects Postgres itself to reject a statement with this SQLSTATE and this constraint, or part of the message. */
async function rejected(code: string, by: string, text: string, values: unknown[] = []): Promise<void> {
  const error = await db.query(text, values).then(
    ({ rowCount }) => expect.fail(`accepted with ${rowCount} rows: ${text}`),
    (thrown: pg.DatabaseError) => thrown,
  );
  expect({ code: error.code, by: error.constraint ?? error.message }, text).toEqual({
    code,
    by: error.constraint === undefined ? expect.stringContaining(by) : by,
  });
}

/** Expects Postgres to accept a statement and to change exactly one row. */
async function accepted(text: string, values: unknown[] = []): Promise<void> {
  const { rowCount } = await db.query(text, values);
  expect(rowCount, text).toBe(1);
}

function insert(table: string, row: Row): [text: string, values: unknown[]] {
  const columns = Object.keys(row);
  return [
    `INSERT INTO ${table} (${columns.join(", ")}) VALUES (${columns.map((_, index) => `$${index + 1}`).join(", ")})`,
    Object.values(row),
  ];
}

async function newVoucher(owner = partner): Promise<string> {
  return (await issueVoucher(db, owner)).id;
}

function reservationRow(voucherId: string, changes: Row = {}) {
  return {
    started_at: "2027-03-01T12:00:00Z",
    expires_at: "2027-03-01T12:15:00Z",
    ended_at: null,
    ticket: newId("rsv"),
    voucher_id: voucherId,
    organization_id: partner.organizationId,
    key_id: "key_1",
    state: "Live",
    token_secret_id: "0123abcd",
    end_reason: null,
    ...changes,
  };
}

let references = 0;

function redemptionRow(voucherId: string, changes: Row = {}) {
  references += 1;
  return {
    redeemed_at: "2027-03-01T12:00:00Z",
    voucher_id: voucherId,
    organization_id: partner.organizationId,
    key_id: "key_1",
    attempt_id: `attempt-${references}`,
    ticket: null,
    redeem_code: `CODE-${references}`,
    external_ref: `order-${references}`,
    ...changes,
  };
}

function sha256(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}

const PENDING_DATA = '{"nonce": "00",  "b": 1, "a": 2}';

function pendingRow(voucherId: string, sequence: number, changes: Row = {}): Row {
  return {
    occurred_at: "2027-03-01T12:00:00Z",
    sequence,
    actor_is_employee: null,
    voucher_id: voucherId,
    seal_status: "Pending",
    event_type: "voucher.instance.voided",
    actor_connected_id: null,
    previous_hash: null,
    record_hash: null,
    data: PENDING_DATA,
    payload: null,
    ...changes,
  };
}

function sealedRow(voucherId: string, sequence: number, changes: Row = {}): Row {
  const payload = `{"sequence":${sequence},"voucher":"${voucherId}"}`;
  return pendingRow(voucherId, sequence, {
    seal_status: "Sealed",
    previous_hash: sha256(`before ${sequence}`),
    record_hash: sha256(payload),
    data: null,
    payload,
    ...changes,
  });
}

describe("a voucher's reservations", () => {
  it("are live one at a time: a second Live row is rejected until the first has ended", async () => {
    const voucherId = await newVoucher();
    const first = reservationRow(voucherId);
    await accepted(...insert("reservations", first));
    await rejected(UNIQUE, "reservations_one_live", ...insert("reservations", reservationRow(voucherId)));
    await accepted(...insert("reservations", reservationRow(await newVoucher())));
    await accepted(
      ...insert("reservations", reservationRow(voucherId, { state: "Released", ended_at: "2027-03-01T12:01:00Z" })),
    );
    await accepted("UPDATE reservations SET state = 'Released', ended_at = started_at WHERE ticket = $1", [
      first.ticket,
    ]);
    await accepted(...insert("reservations", reservationRow(voucherId)));
  });

  it("cannot be moved by an UPDATE to a voucher that has a live one", async () => {
    const voucherId = await newVoucher();
    const other = reservationRow(await newVoucher());
    await accepted(...insert("reservations", reservationRow(voucherId)));
    await accepted(...insert("reservations", other));
    await rejected(UNIQUE, "reservations_one_live", "UPDATE reservations SET voucher_id = $1 WHERE ticket = $2", [
      voucherId,
      other.ticket,
    ]);
  });

  it.each(["Consumed", "Released", "Expired"])("never change once %s", async (state) => {
    const reservation = reservationRow(await newVoucher());
    await accepted(...insert("reservations", reservation));
    await accepted("UPDATE reservations SET state = $1, ended_at = expires_at WHERE ticket = $2", [
      state,
      reservation.ticket,
    ]);
    for (const change of [
      "state = 'Live', ended_at = NULL",
      "state = CASE state WHEN 'Released' THEN 'Consumed' ELSE 'Released' END",
      "end_reason = 'something else'",
      "ended_at = ended_at + interval '1 second'",
      "expires_at = expires_at + interval '1 hour'",
      "started_at = started_at - interval '1 second'",
      "key_id = 'key_2'",
      "organization_id = 'org_2'",
      "token_secret_id = 'ffffffff'",
      "ticket = 'rsv_other'",
      "key_id = key_id",
    ]) {
      await rejected(TRIGGER, "an ended reservation is final", `UPDATE reservations SET ${change} WHERE ticket = $1`, [
        reservation.ticket,
      ]);
    }
  });

  it("have ended_at exactly when not Live, a positive duration and a valid state", async () => {
    const voucherId = await newVoucher();
    const now = "2027-03-01T12:01:00Z";
    await rejected(
      CHECK,
      "reservations_ended_at_unless_live",
      ...insert("reservations", reservationRow(voucherId, { ended_at: now })),
    );
    await rejected(
      CHECK,
      "reservations_ended_at_unless_live",
      ...insert("reservations", reservationRow(voucherId, { state: "Released" })),
    );
    await rejected(
      CHECK,
      "reservations_expire_after_start",
      ...insert("reservations", reservationRow(voucherId, { expires_at: "2027-03-01T12:00:00Z" })),
    );
    await rejected(
      CHECK,
      "reservations_state_check",
      ...insert("reservations", reservationRow(voucherId, { state: "Held", ended_at: now })),
    );
    await rejected(
      CHECK,
      "reservations_end_reason_check",
      ...insert(
        "reservations",
        reservationRow(voucherId, { state: "Released", ended_at: now, end_reason: "x".repeat(201) }),
      ),
    );
    await rejected(FOREIGN_KEY, "reservations_voucher_id_fkey", ...insert("reservations", reservationRow("vch_none")));
  });

  it("have unique tickets", async () => {
    const reservation = reservationRow(await newVoucher());
    await accepted(...insert("reservations", reservation));
    await rejected(
      UNIQUE,
      "reservations_pkey",
      ...insert("reservations", reservationRow(await newVoucher(), { ticket: reservation.ticket })),
    );
  });
});

describe("redemptions", () => {
  it("happen once per voucher, for any reference and organization", async () => {
    const voucherId = await newVoucher();
    await accepted(...insert("redemptions", redemptionRow(voucherId)));
    await rejected(UNIQUE, "redemptions_pkey", ...insert("redemptions", redemptionRow(voucherId)));
    await rejected(
      UNIQUE,
      "redemptions_pkey",
      ...insert("redemptions", redemptionRow(voucherId, { organization_id: neighbour.organizationId })),
    );
  });

  it("happen once per reference in an organization, and independently in another organization", async () => {
    const ref = { external_ref: "the same order" };
    await accepted(...insert("redemptions", redemptionRow(await newVoucher(), ref)));
    await rejected(
      UNIQUE,
      "redemptions_external_ref",
      ...insert("redemptions", redemptionRow(await newVoucher(), ref)),
    );
    const elsewhere = { ...ref, organization_id: neighbour.organizationId };
    await accepted(...insert("redemptions", redemptionRow(await newVoucher(neighbour), elsewhere)));
  });

  it("compare references byte by byte, so that case and accents matter", async () => {
    for (const external_ref of ["Order-é", "order-é", "order-e\u0301"]) {
      await accepted(...insert("redemptions", redemptionRow(await newVoucher(), { external_ref })));
    }
  });

  it("have references of 1 to 128 code points", async () => {
    for (const external_ref of ["", "x".repeat(129), "🎟".repeat(129)]) {
      await rejected(
        CHECK,
        "redemptions_external_ref_check",
        ...insert("redemptions", redemptionRow(await newVoucher(), { external_ref })),
      );
    }
    await accepted(...insert("redemptions", redemptionRow(await newVoucher(), { external_ref: "🎟".repeat(128) })));
  });

  it("have a redeem code that is unique within the organization", async () => {
    const code = { redeem_code: "7Q4K-9MZX-2HTB" };
    await accepted(...insert("redemptions", redemptionRow(await newVoucher(), code)));
    await rejected(
      UNIQUE,
      "redemptions_redeem_code",
      ...insert("redemptions", redemptionRow(await newVoucher(), code)),
    );
    const elsewhere = { ...code, organization_id: neighbour.organizationId };
    await accepted(...insert("redemptions", redemptionRow(await newVoucher(neighbour), elsewhere)));
  });

  it("belong to an existing voucher and, if they have a ticket, to an existing reservation", async () => {
    await rejected(FOREIGN_KEY, "redemptions_voucher_id_fkey", ...insert("redemptions", redemptionRow("vch_none")));
    await rejected(
      FOREIGN_KEY,
      "redemptions_ticket_fkey",
      ...insert("redemptions", redemptionRow(await newVoucher(), { ticket: "rsv_none" })),
    );
  });

  it("are never changed, deleted or truncated, not even through another table", async () => {
    const voucherId = await newVoucher();
    await accepted(...insert("redemptions", redemptionRow(voucherId)));
    for (const statement of [
      "UPDATE redemptions SET external_ref = 'another'",
      "UPDATE redemptions SET redeemed_at = redeemed_at",
      "DELETE FROM redemptions",
      "TRUNCATE redemptions",
      "TRUNCATE redemptions CASCADE",
      "TRUNCATE reservations CASCADE",
    ]) {
      await rejected(TRIGGER, "a redemption is final", statement);
    }
  });
});

describe("the events of a chain", () => {
  it("have a sequence number that is unique within the voucher", async () => {
    const voucherId = await newVoucher();
    // Event 1 is the issue of the voucher.
    await rejected(UNIQUE, "voucher_events_pkey", ...insert("voucher_events", sealedRow(voucherId, 1)));
    await rejected(UNIQUE, "voucher_events_pkey", ...insert("voucher_events", pendingRow(voucherId, 1)));
    await accepted(...insert("voucher_events", pendingRow(voucherId, 2)));
    await rejected(CHECK, "voucher_events_sequence_check", ...insert("voucher_events", pendingRow(voucherId, 0)));
  });

  it("have at most one successor, so that a chain cannot fork, not even at its first event", async () => {
    const voucherId = await newVoucher();
    const genesis = { previous_hash: Buffer.from(GENESIS_HASH, "hex") };
    await rejected(UNIQUE, "voucher_events_no_fork", ...insert("voucher_events", sealedRow(voucherId, 2, genesis)));
    const link = { previous_hash: sha256("the event before") };
    await accepted(...insert("voucher_events", sealedRow(voucherId, 2, link)));
    await rejected(UNIQUE, "voucher_events_no_fork", ...insert("voucher_events", sealedRow(voucherId, 3, link)));
    // The same link in another voucher's chain is allowed.
    await accepted(...insert("voucher_events", sealedRow(await newVoucher(), 2, link)));
    await accepted(...insert("voucher_events", pendingRow(voucherId, 3)));
    await accepted(...insert("voucher_events", pendingRow(voucherId, 4)));
  });

  it("include at most one expiry per voucher", async () => {
    const voucherId = await newVoucher();
    const expired = { event_type: "voucher.instance.expired" };
    await accepted(...insert("voucher_events", sealedRow(voucherId, 2, expired)));
    await rejected(UNIQUE, "voucher_events_one_expiry", ...insert("voucher_events", pendingRow(voucherId, 3, expired)));
    await accepted(...insert("voucher_events", pendingRow(await newVoucher(), 2, expired)));
  });

  it.each(["previous_hash", "record_hash", "payload"])("are not Sealed without their %s", async (column) => {
    const voucherId = await newVoucher();
    await rejected(
      CHECK,
      "voucher_events_sealed_complete",
      ...insert("voucher_events", sealedRow(voucherId, 2, { [column]: null })),
    );
    const { [column]: value } = sealedRow(voucherId, 2);
    await rejected(
      CHECK,
      "voucher_events_sealed_complete",
      ...insert("voucher_events", pendingRow(voucherId, 2, { [column]: value })),
    );
    await accepted(...insert("voucher_events", pendingRow(voucherId, 2)));
    const seal = sealedRow(voucherId, 2, { [column]: null });
    await rejected(
      CHECK,
      "voucher_events_sealed_complete",
      `UPDATE voucher_events SET seal_status = 'Sealed', previous_hash = $2, record_hash = $3, payload = $4
        WHERE voucher_id = $1 AND sequence = 2`,
      [voucherId, seal.previous_hash, seal.record_hash, seal.payload],
    );
  });

  it("are Pending only with data, and are either Pending or Sealed", async () => {
    const voucherId = await newVoucher();
    await rejected(
      CHECK,
      "voucher_events_pending_has_data",
      ...insert("voucher_events", pendingRow(voucherId, 2, { data: null })),
    );
    await rejected(
      CHECK,
      "voucher_events_seal_status_check",
      ...insert("voucher_events", pendingRow(voucherId, 2, { seal_status: "Open" })),
    );
    await rejected(
      CHECK,
      "voucher_events_event_type_check",
      ...insert("voucher_events", pendingRow(voucherId, 2, { event_type: "brand.created" })),
    );
    await rejected(
      FOREIGN_KEY,
      "voucher_events_voucher_id_fkey",
      ...insert("voucher_events", pendingRow("vch_none", 1)),
    );
  });

  it("have the hash of exactly the stored payload", async () => {
    const voucherId = await newVoucher();
    const payload = '{"note":"Käse 🎟"}';
    for (const wrong of [
      sha256("something else"),
      sha256(`${payload} `),
      Buffer.alloc(32),
      sha256(payload).subarray(1),
    ]) {
      await rejected(
        CHECK,
        "voucher_events_hash_matches_payload",
        ...insert("voucher_events", sealedRow(voucherId, 2, { payload, record_hash: wrong })),
      );
    }
    await accepted(...insert("voucher_events", pendingRow(voucherId, 2)));
    await rejected(
      CHECK,
      "voucher_events_hash_matches_payload",
      `UPDATE voucher_events SET seal_status = 'Sealed', previous_hash = $2, record_hash = $3, payload = $4
        WHERE voucher_id = $1 AND sequence = 2`,
      [voucherId, sha256("before"), sha256("something else"), payload],
    );
    await accepted(...insert("voucher_events", sealedRow(voucherId, 3, { payload, record_hash: sha256(payload) })));
  });

  it("have a previous hash of 32 bytes", async () => {
    const voucherId = await newVoucher();
    for (const bytes of [0, 31, 33]) {
      await rejected(
        CHECK,
        "voucher_events_previous_hash_check",
        ...insert("voucher_events", sealedRow(voucherId, 2, { previous_hash: Buffer.alloc(bytes, 1) })),
      );
    }
  });

  describe("that are Pending", () => {
    const SEAL = `seal_status = 'Sealed', previous_hash = decode(repeat('ab', 32), 'hex'), payload = '{}',
                  record_hash = sha256(convert_to('{}', 'UTF8'))`;
    /** A different value for every column that sealing does not set. Most of them violate no other constraint. */
    const CHANGES: Record<string, string> = {
      occurred_at: "occurred_at = occurred_at + interval '1 microsecond'",
      sequence: "sequence = sequence + 1",
      voucher_id: "voucher_id = $2",
      event_type: "event_type = 'voucher.instance.expired'",
      actor_connected_id: "actor_connected_id = 'key_2'",
      actor_is_employee: "actor_is_employee = true",
      data: `data = '{"nonce": "01"}'`,
    };
    /** Changes to an equal value, or to one that only looks equal. */
    const MORE_CHANGES = [
      "data = NULL",
      `data = '{"nonce":"00","b":1,"a":2}'`,
      `data = '{"nonce": "00",  "a": 2, "b": 1}'`,
    ];

    async function pendingEvent(changes: Row = {}): Promise<string> {
      const voucherId = await newVoucher();
      await accepted(...insert("voucher_events", pendingRow(voucherId, 2, changes)));
      return voucherId;
    }

    function update(set: string): string {
      return `UPDATE voucher_events SET ${set} WHERE voucher_id = $1 AND sequence = 2`;
    }

    it("become Sealed when the four seal columns are set, and never change afterwards", async () => {
      const voucherId = await pendingEvent();
      await accepted(update(SEAL), [voucherId]);
      const { rows } = await db.query("SELECT * FROM voucher_events WHERE voucher_id = $1 AND sequence = 2", [
        voucherId,
      ]);
      expect(rows[0]).toMatchObject({ seal_status: "Sealed", payload: "{}", event_type: "voucher.instance.voided" });
      await rejected(TRIGGER, "changes only once", update(SEAL), [voucherId]);
      await rejected(
        TRIGGER,
        "changes only once",
        update("seal_status = 'Pending', previous_hash = NULL, record_hash = NULL, payload = NULL"),
        [voucherId],
      );
    });

    it("get their place in the log when they are sealed, or once after that", async () => {
      const voucherId = await pendingEvent();
      await rejected(TRIGGER, "changes only once", update("log_slot = 4096"), [voucherId]);
      await accepted(update(SEAL), [voucherId]);
      await rejected(TRIGGER, "changes only once", update("log_slot = 4096, actor_connected_id = 'x'"), [voucherId]);
      await accepted(update("log_slot = 4096"), [voucherId]);
      for (const change of ["log_slot = 4097", "log_slot = NULL"]) {
        await rejected(TRIGGER, "changes only once", update(change), [voucherId]);
      }
      const other = await pendingEvent();
      await accepted(update(`${SEAL}, log_slot = 4098`), [other]);
    });

    it("have no column that these tests leave out", async () => {
      const { rows } = await db.query<{ column_name: string }>(
        "SELECT column_name FROM information_schema.columns WHERE table_name = 'voucher_events'",
      );
      const seal = ["seal_status", "previous_hash", "record_hash", "payload", "log_slot"];
      expect(rows.map((row) => row.column_name).sort()).toEqual([...Object.keys(CHANGES), ...seal].sort());
    });

    it.each([...Object.values(CHANGES), ...MORE_CHANGES])("reject any other change: %s", async (change) => {
      const voucherId = await pendingEvent();
      const values = change.includes("$2") ? [voucherId, await newVoucher()] : [voucherId];
      await rejected(TRIGGER, "changes only once", update(change), values);
      await rejected(TRIGGER, "changes only once", update(`${SEAL}, ${change}`), values);
      await accepted(update(SEAL), [voucherId]);
      await rejected(TRIGGER, "changes only once", update(change), values);
    });

    it("keep their actor when they are sealed", async () => {
      const voucherId = await pendingEvent({ actor_connected_id: "user-1", actor_is_employee: true });
      for (const change of [
        "actor_connected_id = NULL",
        "actor_connected_id = 'user-2'",
        "actor_is_employee = NULL",
        "actor_is_employee = false",
      ]) {
        await rejected(TRIGGER, "changes only once", update(`${SEAL}, ${change}`), [voucherId]);
      }
      await accepted(update(SEAL), [voucherId]);
    });

    it("reject even an UPDATE that changes nothing", async () => {
      const voucherId = await pendingEvent();
      await rejected(TRIGGER, "changes only once", update("payload = payload"), [voucherId]);
    });
  });

  it("that are Sealed do not change in any column", async () => {
    const voucherId = await newVoucher();
    for (const change of [
      "payload = payload || ' '",
      "record_hash = sha256(record_hash)",
      "payload = '{}', record_hash = sha256(convert_to('{}', 'UTF8'))",
      "previous_hash = sha256(previous_hash)",
      "seal_status = 'Pending', previous_hash = NULL, record_hash = NULL, payload = NULL, data = '{}'",
      "data = '{}'",
      "sequence = 7",
      "seal_status = seal_status",
    ]) {
      await rejected(TRIGGER, "changes only once", `UPDATE voucher_events SET ${change} WHERE voucher_id = $1`, [
        voucherId,
      ]);
    }
  });

  it("are never deleted or truncated, not even through another table", async () => {
    const voucherId = await newVoucher();
    await accepted(...insert("voucher_events", pendingRow(voucherId, 2)));
    for (const statement of [
      "DELETE FROM voucher_events",
      "DELETE FROM voucher_events WHERE seal_status = 'Pending'",
      "TRUNCATE voucher_events",
      "TRUNCATE voucher_events CASCADE",
    ]) {
      await rejected(TRIGGER, "events are permanent", statement);
    }
    for (const table of ["vouchers", "batches", "products", "brands", "organizations"]) {
      // Postgres chooses which of the dependent tables rejects first.
      await rejected(TRIGGER, "is not allowed", `TRUNCATE ${table} CASCADE`);
    }
    await rejected(FOREIGN_KEY, "voucher_events_voucher_id_fkey", "DELETE FROM vouchers WHERE id = $1", [voucherId]);
    const { rows } = await db.query("SELECT count(*)::int AS count FROM voucher_events WHERE voucher_id = $1", [
      voucherId,
    ]);
    expect(rows[0]).toEqual({ count: 2 });
  });

  it("accept what the service seals", async () => {
    const voucherId = await newVoucher();
    const { rows } = await db.query(
      "SELECT encode(record_hash, 'hex') AS hash FROM voucher_events WHERE voucher_id = $1",
      [voucherId],
    );
    const seal = sealEvent(
      {
        voucherId,
        sequence: 2,
        eventType: "voucher.instance.voided",
        occurredAt: new Date("2027-03-01T12:00:00Z"),
        actorConnectedId: null,
        actorIsEmployee: null,
        data: { nonce: "00".repeat(16), reason: 'Käse "🎟" \\ \u2028' },
      },
      rows[0].hash,
    );
    await accepted(
      ...insert(
        "voucher_events",
        sealedRow(voucherId, 2, {
          previous_hash: Buffer.from(seal.previousHash, "hex"),
          record_hash: Buffer.from(seal.recordHash, "hex"),
          payload: seal.payload,
        }),
      ),
    );
  });
});

describe("a batch", () => {
  it("keeps the audience that it was issued with", async () => {
    await newVoucher();
    const other = await issueReferrerOnly();
    await rejected(TRIGGER, "the audience of a batch", "UPDATE batches SET audience = 'OpenToAll' WHERE id = $1", [
      other,
    ]);
    await rejected(
      TRIGGER,
      "the audience of a batch",
      "UPDATE batches SET audience = 'ReferrerOnly' WHERE audience = 'OpenToAll'",
    );
    // An update that leaves the audience unchanged is allowed.
    await accepted("UPDATE batches SET audience = audience, usage_unit_label = 'ride' WHERE id = $1", [other]);
  });

  it("has a valid audience, at least one voucher, and no negative price or term", async () => {
    const { rows } = await db.query("SELECT * FROM batches LIMIT 1");
    const copy = (changes: object) => insert("batches", { ...rows[0], id: newId("bat"), ...changes });
    await accepted(...copy({}));
    await rejected(CHECK, "batches_audience_check", ...copy({ audience: "NoOne" }));
    await rejected(CHECK, "batches_voucher_count_check", ...copy({ voucher_count: 0 }));
    await rejected(CHECK, "batches_price_usd_check", ...copy({ price_usd: -0.01 }));
    await rejected(CHECK, "batches_retail_price_usd_check", ...copy({ retail_price_usd: -1 }));
    await rejected(CHECK, "batches_benefit_months_check", ...copy({ benefit_months: -1 }));
  });

  async function issueReferrerOnly(): Promise<string> {
    const { rows } = await db.query(
      `INSERT INTO batches (id, product_id, audience, voucher_count, valid_until, retail_price_usd, price_usd, benefit_months)
       VALUES ($1, $2, 'ReferrerOnly', 1, now(), 1, 1, 1) RETURNING id`,
      [newId("bat"), partner.productId],
    );
    return rows[0].id;
  }
});

describe("a voucher", () => {
  const REDEEM = "status = 'Redeemed', redeemed_at = clock_timestamp()";

  function update(set: string): string {
    return `UPDATE vouchers SET ${set} WHERE id = $1`;
  }

  it("stays Redeemed", async () => {
    const id = await newVoucher();
    await accepted(update(REDEEM), [id]);
    for (const change of ["status = 'Active', redeemed_at = NULL", "status = 'Voided', redeemed_at = NULL"]) {
      await rejected(TRIGGER, "keeps its status", update(change), [id]);
    }
    await accepted(update("last_sequence = last_sequence + 1"), [id]);
  });

  it("stays Voided", async () => {
    const id = await newVoucher();
    await accepted(update("status = 'Voided'"), [id]);
    for (const change of ["status = 'Active'", REDEEM]) {
      await rejected(TRIGGER, "keeps its status", update(change), [id]);
    }
    await accepted(update("last_sequence = last_sequence + 1"), [id]);
  });

  it("has redeemed_at exactly when Redeemed, and a valid stored status", async () => {
    const id = await newVoucher();
    await rejected(CHECK, "vouchers_redeemed_at_if_redeemed", update("status = 'Redeemed'"), [id]);
    await rejected(CHECK, "vouchers_redeemed_at_if_redeemed", update("redeemed_at = clock_timestamp()"), [id]);
    await rejected(
      CHECK,
      "vouchers_redeemed_at_if_redeemed",
      update("status = 'Voided', redeemed_at = clock_timestamp()"),
      [id],
    );
    await rejected(CHECK, "vouchers_status_check", update("status = 'Expired'"), [id]);
  });

  it("has a consistent chain head", async () => {
    const id = await newVoucher();
    for (const change of [
      "sealed_sequence = last_sequence + 1",
      "sealed_sequence = -1",
      "sealed_sequence = 0",
      "sealed_hash = NULL",
      "last_sequence = 0",
    ]) {
      await rejected(CHECK, "vouchers_chain_head_consistent", update(change), [id]);
    }
    await rejected(CHECK, "vouchers_sealed_hash_check", update("sealed_hash = 'too short'"), [id]);
  });

  /** The row that issuing writes for a voucher with this code. */
  async function rowWithCode(code: string, owner: TestPartner): Promise<Row> {
    const template = await newVoucher(owner);
    const { rows } = await db.query("SELECT * FROM vouchers WHERE id = $1", [template]);
    return { ...rows[0], id: newId("vch"), serial: 2, code, code_key: normaliseCode(code) };
  }

  it("has a code that is unique within its organization in every spelling, but not across organizations", async () => {
    await accepted(...insert("vouchers", await rowWithCode("SOLO-2027", partner)));
    for (const code of [
      "SOLO-2027",
      "solo2027",
      " s o l o - 2 0 2 7 ",
      "S0L0-2O27",
      "501O-2027".replace("5", "S"),
      "soio2027",
    ]) {
      await rejected(UNIQUE, "vouchers_code_key", ...insert("vouchers", await rowWithCode(code, partner)));
    }
    await accepted(...insert("vouchers", await rowWithCode("SOLO-2028", partner)));
    await accepted(...insert("vouchers", await rowWithCode("SOLO-2027", neighbour)));
  });

  it("has a serial that is unique within its batch", async () => {
    const row = await rowWithCode("SERIAL-1", partner);
    await rejected(UNIQUE, "vouchers_serial", ...insert("vouchers", { ...row, serial: 1 }));
    await rejected(CHECK, "vouchers_serial_check", ...insert("vouchers", { ...row, serial: 0 }));
    await accepted(...insert("vouchers", row));
  });
});

describe("the deployment row", () => {
  it("is written by the migration and changes only by an adoption", async () => {
    for (const statement of ["DELETE FROM deployment", "TRUNCATE deployment", "TRUNCATE deployment CASCADE"]) {
      await rejected(TRIGGER, "the row is permanent", statement);
    }
    for (const change of [
      "canon_preserved_since = clock_timestamp(), id = 'x'",
      "canon_preserved_since = canon_preserved_since",
      "system_identifier = 1, id = 'x'",
      "database_oid = 1, id = 'x'",
    ]) {
      await rejected(TRIGGER, "UPDATE on deployment is not allowed", `UPDATE deployment SET ${change}`);
    }
    await accepted("UPDATE deployment SET id = 'x'");
    const values = "SELECT canon_preserved_since, 'x', system_identifier, database_oid FROM deployment";
    const columns = "canon_preserved_since, id, system_identifier, database_oid";
    await rejected(UNIQUE, "deployment_pkey", `INSERT INTO deployment (${columns}) ${values}`);
    await rejected(
      CHECK,
      "deployment_singleton_check",
      `INSERT INTO deployment (singleton, ${columns}) ${values.replace("SELECT", "SELECT false,")}`,
    );
    const { rows } = await db.query(
      "SELECT canon_preserved_since = date_trunc('milliseconds', canon_preserved_since) AS whole FROM deployment",
    );
    expect(rows).toEqual([{ whole: true }]);
  });
});

describe("an API key", () => {
  it("has one current secret, stored as 32 unique bytes, and valid scopes", async () => {
    const key = { id: newId("key"), organization_id: partner.organizationId, scopes: ["voucher.read"] };
    await accepted(...insert("api_keys", key));
    const secret = { key_id: key.id, secret_hash: sha256("first") };
    await accepted(...insert("api_key_secrets", secret));
    await rejected(UNIQUE, "api_key_secrets_pkey", ...insert("api_key_secrets", secret));
    const second = { key_id: key.id, secret_hash: sha256("second") };
    await rejected(UNIQUE, "api_key_secrets_current", ...insert("api_key_secrets", second));
    await rejected(
      CHECK,
      "api_key_secrets_secret_hash_check",
      ...insert("api_key_secrets", { ...secret, secret_hash: Buffer.from("pvk_in_plain_text") }),
    );
    await accepted("UPDATE api_key_secrets SET expires_at = clock_timestamp() WHERE key_id = $1", [key.id]);
    await accepted(...insert("api_key_secrets", second));
    for (const scopes of [[], ["voucher.void"], ["voucher.read", "voucher.void"]]) {
      await rejected(CHECK, "api_keys_scopes_check", ...insert("api_keys", { ...key, id: newId("key"), scopes }));
    }
  });
});

let users = 0;

function newUser(): string {
  users += 1;
  return `user-${users}`;
}

describe("a referrer contract", () => {
  const MOVES: [from: string, to: string][] = [
    ["Offered", "Active"],
    ["Offered", "Declined"],
    ["Active", "Ended"],
  ];
  const STATUSES = ["Offered", "Active", "Ended", "Declined"];

  function contractRow(changes: Row = {}) {
    return { id: newId("ctr"), brand_id: partner.brandId, user_id: newUser(), status: "Offered", ...changes };
  }

  async function contractIn(status: string): Promise<string> {
    const row = contractRow();
    await accepted(...insert("referrer_contracts", row));
    await moveTo(row.id, status);
    return row.id;
  }

  /** Moves an offered contract to a status by legal transitions. */
  async function moveTo(id: string, status: string): Promise<void> {
    const way = { Offered: [], Active: ["Active"], Declined: ["Declined"], Ended: ["Active", "Ended"] }[status] ?? [];
    for (const next of way) await accepted("UPDATE referrer_contracts SET status = $2 WHERE id = $1", [id, next]);
  }

  it("starts as Offered and is permanent", async () => {
    for (const status of ["Active", "Ended", "Declined", "Paused"]) {
      await rejected(TRIGGER, "starts as Offered", ...insert("referrer_contracts", contractRow({ status })));
    }
    await contractIn("Offered");
    for (const statement of ["DELETE FROM referrer_contracts", "TRUNCATE referrer_contracts CASCADE"]) {
      await rejected(TRIGGER, "contracts are permanent", statement);
    }
  });

  it.each(
    STATUSES.flatMap((from) => STATUSES.map((to) => [from, to] as const)),
  )("goes from %s to %s only if the transition is legal", async (from, to) => {
    const move: [string, unknown[]] = [
      "UPDATE referrer_contracts SET status = $2 WHERE id = $1",
      [await contractIn(from), to],
    ];
    if (MOVES.some(([start, end]) => start === from && end === to)) await accepted(...move);
    else await rejected(TRIGGER, `not from ${from} to ${to}`, ...move);
  });

  it("keeps its id, brand and user, with or without a legal transition", async () => {
    for (const change of [`brand_id = '${neighbour.brandId}'`, "user_id = 'another user'", "id = 'ctr_other'"]) {
      const id = await contractIn("Offered");
      await rejected(TRIGGER, "a contract goes from", `UPDATE referrer_contracts SET ${change} WHERE id = $1`, [id]);
      await rejected(
        TRIGGER,
        "a contract goes from",
        `UPDATE referrer_contracts SET status = 'Active', ${change} WHERE id = $1`,
        [id],
      );
    }
  });

  it("keeps its end while it is Active", async () => {
    const id = await contractIn("Active");
    await rejected(
      TRIGGER,
      "a contract goes from",
      "UPDATE referrer_contracts SET ends_at = 'infinity' WHERE id = $1",
      [id],
    );
  });

  it("is the only open one between a user and a brand, and may follow an ended one", async () => {
    for (const open of ["Offered", "Active"]) {
      const first = contractRow();
      await accepted(...insert("referrer_contracts", first));
      await moveTo(first.id, open);
      const second = contractRow({ user_id: first.user_id });
      await rejected(UNIQUE, "referrer_contracts_one_open", ...insert("referrer_contracts", second));
      const elsewhere = contractRow({ user_id: first.user_id, brand_id: neighbour.brandId });
      await accepted(...insert("referrer_contracts", elsewhere));
      await moveTo(elsewhere.id, "Active");
      const over = open === "Offered" ? "Declined" : "Ended";
      await accepted("UPDATE referrer_contracts SET status = $2 WHERE id = $1", [first.id, over]);
      await accepted(...insert("referrer_contracts", contractRow({ user_id: first.user_id })));
    }
  });

  it("has an existing brand and a user", async () => {
    const refuse = (code: string, by: string, changes: Row) =>
      rejected(code, by, ...insert("referrer_contracts", contractRow(changes)));
    await refuse(FOREIGN_KEY, "referrer_contracts_brand_id_fkey", { brand_id: "brd_none" });
    await refuse(CHECK, "referrer_contracts_user_id_check", { user_id: "" });
    await refuse(CHECK, "referrer_contracts_user_id_check", { user_id: "x".repeat(256) });
  });

  it("has links to products of its own brand only", async () => {
    const id = await contractIn("Active");
    const link = { code: newId("ctr"), contract_id: id, product_id: partner.productId, brand_id: partner.brandId };
    const foreign = { ...link, code: newId("ctr"), product_id: neighbour.productId };
    await accepted(...insert("referral_links", link));
    await rejected(UNIQUE, "referral_links_pkey", ...insert("referral_links", link));
    await rejected(FOREIGN_KEY, "referral_links_product_id_brand_id_fkey", ...insert("referral_links", foreign));
    await rejected(
      FOREIGN_KEY,
      "referral_links_contract_id_brand_id_fkey",
      ...insert("referral_links", { ...foreign, brand_id: neighbour.brandId }),
    );
  });
});

describe("a member", () => {
  it("is unique within an organization and has a valid role", async () => {
    const row = { organization_id: partner.organizationId, user_id: newUser(), role: "owner" };
    await accepted(...insert("members", row));
    await rejected(UNIQUE, "members_pkey", ...insert("members", { ...row, role: "employee" }));
    await accepted(...insert("members", { ...row, organization_id: neighbour.organizationId }));
    await rejected(CHECK, "members_role_check", ...insert("members", { ...row, user_id: newUser(), role: "Owner" }));
    await rejected(CHECK, "members_user_id_check", ...insert("members", { ...row, user_id: "" }));
    await rejected(
      FOREIGN_KEY,
      "members_organization_id_fkey",
      ...insert("members", { ...row, organization_id: "org_none" }),
    );
  });
});

describe("a batch's windows and listing", () => {
  async function newBatch(): Promise<string> {
    const { rows } = await db.query("SELECT batch_id FROM vouchers WHERE id = $1", [await newVoucher()]);
    return rows[0].batch_id;
  }

  it("have a valid kind, are unique by kind, and close after they open", async () => {
    const window = { batch_id: await newBatch(), kind: "claim" };
    await accepted(...insert("batch_windows", window));
    await rejected(UNIQUE, "batch_windows_pkey", ...insert("batch_windows", window));
    await rejected(CHECK, "batch_windows_kind_check", ...insert("batch_windows", { ...window, kind: "rent" }));
    const buy = { ...window, kind: "buy", opens_at: "2027-03-01T12:00:00Z" };
    for (const closes_at of ["2027-03-01T12:00:00Z", "2027-03-01T11:59:59Z"]) {
      await rejected(CHECK, "batch_windows_close_after_opening", ...insert("batch_windows", { ...buy, closes_at }));
    }
    await accepted(...insert("batch_windows", { ...buy, closes_at: "2027-03-01T12:00:01Z" }));
  });

  it("include at most one listing, of an existing batch", async () => {
    const batch_id = await newBatch();
    await accepted(...insert("listings", { id: newId("lst"), batch_id }));
    await rejected(UNIQUE, "listings_batch_id_key", ...insert("listings", { id: newId("lst"), batch_id }));
    await rejected(
      FOREIGN_KEY,
      "listings_batch_id_fkey",
      ...insert("listings", { id: newId("lst"), batch_id: "bat_none" }),
    );
  });
});

describe("a voucher in its windows", () => {
  const pickable = (value: boolean) => `UPDATE vouchers SET pickable = ${value} WHERE id = $1`;

  /** A voucher that issuing has put into its windows. */
  async function newPickable(): Promise<string> {
    const { rows } = await db.query("SELECT * FROM vouchers WHERE id = $1", [await newVoucher()]);
    const id = newId("vch");
    await accepted(...insert("vouchers", { ...rows[0], id, code: id, code_key: id, serial: 2, pickable: true }));
    return id;
  }

  it("does not return to them, and a voucher that was never in a window cannot enter one", async () => {
    const id = await newPickable();
    await accepted(pickable(true), [id]);
    await accepted(pickable(false), [id]);
    await rejected(TRIGGER, "does not return", pickable(true), [id]);
    await rejected(TRIGGER, "does not return", pickable(true), [await newVoucher()]);
  });

  it("is Active: redeeming or voiding must remove it from them", async () => {
    for (const change of ["status = 'Voided'", "status = 'Redeemed', redeemed_at = clock_timestamp()"]) {
      const id = await newPickable();
      const update = (more: string) => `UPDATE vouchers SET ${change}${more} WHERE id = $1`;
      await rejected(CHECK, "vouchers_pickable_only_if_active", update(""), [id]);
      await accepted(update(", pickable = false"), [id]);
    }
  });
});

describe.each([
  { table: "claims", key: (user: string) => ({ user_id: user, product_id: partner.productId }), pkey: "claims_pkey" },
  {
    table: "purchases",
    key: (user: string) => ({ organization_id: partner.organizationId, user_id: user, payment_ref: "payment" }),
    pkey: "purchases_pkey",
  },
])("a row of $table", ({ table, key, pkey }) => {
  it("is unique by user and key, and independent of other users", async () => {
    const user = newUser();
    await accepted(...insert(table, { ...key(user), voucher_id: await newVoucher() }));
    await rejected(UNIQUE, pkey, ...insert(table, { ...key(user), voucher_id: await newVoucher() }));
    await accepted(...insert(table, { ...key(newUser()), voucher_id: await newVoucher() }));
  });

  it("has an existing voucher, which no other row has", async () => {
    const voucher_id = await newVoucher();
    await accepted(...insert(table, { ...key(newUser()), voucher_id }));
    await rejected(UNIQUE, `${table}_voucher_id_key`, ...insert(table, { ...key(newUser()), voucher_id }));
    await rejected(
      FOREIGN_KEY,
      `${table}_voucher_id_fkey`,
      ...insert(table, { ...key(newUser()), voucher_id: "vch_none" }),
    );
  });

  it("has a voucher from the start, which never changes", async () => {
    await rejected(NOT_NULL, "voucher_id", ...insert(table, key(newUser())));
    const user = newUser();
    const voucher_id = await newVoucher();
    await accepted(...insert(table, { ...key(user), voucher_id }));
    const change = `UPDATE ${table} SET voucher_id = $2 WHERE user_id = $1`;
    await rejected(TRIGGER, `${table} are permanent`, change, [user, await newVoucher()]);
    await rejected(TRIGGER, `${table} are permanent`, change, [user, null]);
    const { rows } = await db.query(`SELECT voucher_id FROM ${table} WHERE user_id = $1`, [user]);
    expect(rows).toEqual([{ voucher_id }]);
  });

  it("is permanent", async () => {
    await accepted(...insert(table, { ...key(newUser()), voucher_id: await newVoucher() }));
    for (const statement of [`DELETE FROM ${table}`, `TRUNCATE ${table}`]) {
      await rejected(TRIGGER, `${table} are permanent`, statement);
    }
  });
});

describe("an audit entry", () => {
  const actRow = (changes: Row = {}) => ({
    os_user: "alice",
    host: "desk-1",
    command: "org create",
    arguments: {},
    entity_type: "Organization",
    entity_id: "org_1",
    before: null,
    after: { name: "x" },
    ...changes,
  });
  const add = (changes: Row = {}) => insert("audit_entries", actRow(changes));

  it("is permanent and never changes", async () => {
    await accepted(...add());
    for (const statement of [
      "UPDATE audit_entries SET os_user = 'bob'",
      "DELETE FROM audit_entries",
      "TRUNCATE audit_entries",
    ]) {
      await rejected(TRIGGER, "audit entries are permanent", statement);
    }
  });

  it("gets its time and role from the database, and not from the INSERT", async () => {
    const { rows } = await db.query("SELECT session_user AS role, clock_timestamp() AS before");
    await accepted(...add({ entity_id: "org_dated", at: "2001-01-01", database_role: "another_role" }));
    const { rows: written } = await db.query(
      "SELECT database_role, at >= date_trunc('milliseconds', $1::timestamptz) AND at <= clock_timestamp() AS just FROM audit_entries WHERE entity_id = 'org_dated'",
      [rows[0].before],
    );
    expect(written).toEqual([{ database_role: rows[0].role, just: true }]);
  });

  it("gets its id from the database", async () => {
    await rejected("428C9", "cannot insert a non-DEFAULT value", ...add({ id: 1 }));
  });

  it("shows a change", async () => {
    await rejected(CHECK, "audit_entries_change", ...add({ before: { name: "x" } }));
    await rejected(CHECK, "audit_entries_change", ...add({ after: null }));
    await accepted(...add({ before: { name: "y" } }));
    await accepted(...add({ before: { name: "y" }, after: null }));
  });

  it.each(["os_user", "host", "command", "entity_type", "entity_id"])("has a %s that is not empty", async (column) => {
    await rejected(CHECK, `audit_entries_${column}_check`, ...add({ [column]: "" }));
    await rejected(NOT_NULL, column, ...add({ [column]: null }));
  });
});

describe("the log", () => {
  const hashes = (leaves: number, byte = 1) => Buffer.alloc(32 * leaves, byte);

  it("keeps a batch either waiting with its hashes or placed without them", async () => {
    await rejected(
      CHECK,
      "log_batches_hashes_size",
      ...insert("log_batches", { id: 9_001, leaves: 2, hashes: hashes(1) }),
    );
    await rejected(CHECK, "log_batches_placed_or_waiting", ...insert("log_batches", { id: 9_001, leaves: 1 }));
    await rejected(
      CHECK,
      "log_batches_leaves_check",
      ...insert("log_batches", { id: 9_001, leaves: 4_097, hashes: hashes(4_097) }),
    );
    await accepted(...insert("log_batches", { id: 9_001, leaves: 2, hashes: hashes(2) }));
    await rejected(TRIGGER, "changes only once", "UPDATE log_batches SET hashes = $1 WHERE id = 9001", [hashes(2, 7)]);
    await rejected(TRIGGER, "changes only once", "UPDATE log_batches SET id = 9009 WHERE id = 9001");
    await rejected(CHECK, "log_batches_placed_or_waiting", "UPDATE log_batches SET first_index = 0 WHERE id = 9001");
    await accepted("UPDATE log_batches SET first_index = 0, hashes = NULL WHERE id = 9001");
    await rejected(TRIGGER, "changes only once", "UPDATE log_batches SET first_index = 5 WHERE id = 9001");
    await accepted(...insert("log_batches", { id: 9_002, leaves: 1, hashes: hashes(1) }));
    await rejected(
      UNIQUE,
      "log_batches_first_index_key",
      "UPDATE log_batches SET first_index = 0, hashes = NULL WHERE id = 9002",
    );
    const places = "UPDATE log_batches SET first_index = 7, hashes = NULL, places = $1 WHERE id = 9002";
    for (const wrong of [[7, 9], [9], [null], []]) await rejected(CHECK, "log_batches_places", places, [wrong]);
    await accepted(places, [[7]]);
  });

  it.each([
    ["log_bundles", "entries", {}],
    ["log_tiles", "hashes", { level: 1 }],
  ])("lets a row of %s grow only", async (table, column, rest) => {
    await rejected(
      CHECK,
      `${table}_${column}_check`,
      ...insert(table, { index: 0, ...rest, [column]: Buffer.alloc(31) }),
    );
    await rejected(CHECK, `${table}_${column}_check`, ...insert(table, { index: 0, ...rest, [column]: hashes(257) }));
    await accepted(...insert(table, { index: 0, ...rest, [column]: hashes(2) }));
    const update = `UPDATE ${table} SET ${column} = $1 WHERE index = 0`;
    await rejected(TRIGGER, "only grows", update, [hashes(1)]);
    await rejected(TRIGGER, "only grows", update, [Buffer.concat([hashes(1), hashes(2, 2)])]);
    await rejected(TRIGGER, "only grows", `UPDATE ${table} SET index = 9 WHERE index = 0`);
    await accepted(update, [Buffer.concat([hashes(2), hashes(1, 2)])]);
  });

  it.each([
    ["log_tree", { origin: "log.example" }],
    ["log_published", { note: "note", policy: "quorum none\n", published_at: new Date(0) }],
  ])("never shrinks in %s, and has one root for a size", async (table, rest) => {
    await accepted(...insert(table, { size: 5, root: hashes(1), ...rest }));
    await rejected(UNIQUE, `${table}_pkey`, ...insert(table, { size: 6, root: hashes(1), ...rest }));
    await rejected(TRIGGER, "never shrinks", `UPDATE ${table} SET size = 4`);
    await rejected(TRIGGER, "never shrinks", `UPDATE ${table} SET root = $1`, [hashes(1, 2)]);
    await accepted(`UPDATE ${table} SET size = 5, root = $1`, [hashes(1)]);
    await accepted(`UPDATE ${table} SET size = 6, root = $1`, [hashes(1, 2)]);
  });

  it.each([
    "log_batches",
    "log_bundles",
    "log_tiles",
    "log_tree",
    "log_lost",
    "log_retirements",
  ])("never loses a row of %s", async (table) => {
    await rejected(TRIGGER, "permanent", `DELETE FROM ${table}`);
    await rejected(TRIGGER, "permanent", `TRUNCATE ${table}`);
  });

  it("changes its name and stops serving a checkpoint only when it is recorded as retired", async () => {
    await db.query(`INSERT INTO log_tree VALUES (true, 'log.example', 0, sha256('')) ON CONFLICT DO NOTHING`);
    await db.query(
      `INSERT INTO log_published VALUES (true, 0, sha256(''), 'note', 'quorum none', now()) ON CONFLICT DO NOTHING`,
    );
    const [tree] = (await db.query("SELECT origin, size, root FROM log_tree")).rows;
    const rename = "UPDATE log_tree SET origin = 'next.example'";
    const retirement = {
      ...{ ...tree, next_origin: "next.example", last_note: "note", served_note: "note" },
      ...{ policy: "quorum none\n", reason: "leaked", retired_at: new Date(0) },
    };
    const record = (other: object) => insert("log_retirements", { ...retirement, ...other });
    await rejected(CHECK, "log_retirements_check", ...record({ next_origin: "log.example" }));
    await rejected(CHECK, "log_retirements_reason_check", ...record({ reason: "" }));
    await rejected(TRIGGER, "keeps its name", rename);
    await rejected(TRIGGER, "permanent", "DELETE FROM log_published");
    await accepted(...record({ origin: "other.example", served_note: "other" }));
    await rejected(TRIGGER, "keeps its name", rename);
    await rejected(TRIGGER, "permanent", "DELETE FROM log_published");
    await rejected(TRIGGER, "permanent", "TRUNCATE log_published");
    await accepted(...record({}));
    await rejected(TRIGGER, "permanent", "UPDATE log_retirements SET reason = 'other'");
    await rejected(TRIGGER, "keeps its name", "UPDATE log_tree SET origin = 'third.example'");
    await accepted("DELETE FROM log_published");
    await accepted(rename);
  });
});
