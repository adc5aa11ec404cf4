import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { announceEvents, announceExpiredReservations, ROW_EVENTS_MAX } from "../../../src/core/chain/db/outbox.ts";
import { newId } from "../../../src/core/voucher/ids.ts";
import type { PreparedStatements } from "../../../src/platform/db/statements.ts";
import { inTransaction, write } from "../../../src/platform/db/transaction.ts";
import { openTestServers, type TestServers } from "../../support/servers.ts";
import { endService } from "../../support/service.ts";
import { issueVouchers, makePartner, type TestPartner } from "../../support/supply.ts";

let servers: TestServers;
let partner: TestPartner;

beforeAll(async () => {
  servers = await openTestServers();
});

beforeEach(async () => {
  partner = await makePartner(servers.db);
  await servers.db.query(
    "INSERT INTO webhook_endpoints (id, organization_id, place, url) VALUES ($1, $2, 1, 'https://partner.test')",
    [newId("whk"), partner.organizationId],
  );
});

afterAll(() => endService(servers));

it("the webhook outbox gets a transaction's sealed events in order, in rows of at most 4 096 events", async () => {
  const [first, second, third] = await issueVouchers(servers.db, partner, 3);
  const ids = [first, second, third].map((voucher) => voucher?.id ?? "");
  const events = Array.from({ length: 2 * ROW_EVENTS_MAX + 1 }, (_, n) => ({
    voucherId: ids[n % 3] ?? "",
    sequence: Math.floor(n / 3) + 2,
  }));
  const rows = await announce(announceEvents(events));
  expect(rows.map(({ voucherIds }) => voucherIds.length)).toEqual([ROW_EVENTS_MAX, ROW_EVENTS_MAX, 1]);
  const announced = rows.flatMap(({ voucherIds, sequences }) =>
    voucherIds.map((voucherId, n) => ({ voucherId, sequence: sequences?.[n] })),
  );
  expect(announced).toEqual(events);
});

it("the webhook outbox gets each expired reservation once, in rows of at most 4 096 reservations", async () => {
  const vouchers = await issueVouchers(servers.db, partner, ROW_EVENTS_MAX + 1);
  const ids = vouchers.map(({ id }) => id);
  await servers.db.query(
    `INSERT INTO reservations (started_at, expires_at, ended_at, ticket, voucher_id, organization_id, key_id, state,
                               token_secret_id)
     SELECT now() - interval '2 hours', now() - interval '1 hour', now() - interval '1 hour', 'rsv_' || id, id, $2,
            'key', 'Expired', 'none'
       FROM unnest($1::text[]) AS v (id)`,
    [ids, partner.organizationId],
  );
  const rows = await announce(announceExpiredReservations(ids.map((id) => `rsv_${id}`)));
  expect(rows.map(({ voucherIds }) => voucherIds.length)).toEqual([ROW_EVENTS_MAX, 1]);
  expect(rows.flatMap(({ tickets }) => tickets).sort()).toEqual(ids.map((id) => `rsv_${id}`).sort());
});

it("the database refuses a webhook_outbox row with 4 097 events", async () => {
  const insert = (events: number) =>
    servers.db.query(
      `INSERT INTO webhook_outbox (organization_id, voucher_ids, sequences)
       SELECT $1, array_fill('vch_1'::text, ARRAY[$2::int]), array_fill(2, ARRAY[$2::int])`,
      [partner.organizationId, events],
    );
  await expect(insert(ROW_EVENTS_MAX)).resolves.toMatchObject({ rowCount: 1 });
  await expect(insert(ROW_EVENTS_MAX + 1)).rejects.toMatchObject({ constraint: "webhook_outbox_voucher_ids_check" });
});

/** Writes the statements in a transaction, and returns the organization's rows of the outbox by their ids. */
async function announce(statements: PreparedStatements) {
  await inTransaction(servers.db, (tx) => write(tx, statements));
  const { rows } = await servers.db.query<{ voucherIds: string[]; sequences: number[] | null; tickets: string[] }>(
    `SELECT voucher_ids AS "voucherIds", sequences, tickets FROM webhook_outbox
      WHERE organization_id = $1 ORDER BY id`,
    [partner.organizationId],
  );
  return rows;
}
