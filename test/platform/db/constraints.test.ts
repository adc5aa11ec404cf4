import { createHash, randomUUID } from "node:crypto";
import { appendFileSync } from "node:fs";
import type pg from "pg";
import { describe, expect, it } from "vitest";
import { GENESIS_HASH, sealEvent } from "../../../src/core/chain/chain.ts";
import { normaliseCode } from "../../../src/core/voucher/codes.ts";
import { newId } from "../../../src/core/voucher/ids.ts";
import { newUser } from "../../support/marketplace.ts";
import { besideTransaction, bypassTriggers } from "../../support/outside-transaction.ts";
import { findBatchOf } from "../../support/recorded.ts";
import { issueVoucher } from "../../support/supply.ts";
import { useDatabase } from "../../support/use-service.ts";

const CHECK = "23514";
const FOREIGN_KEY = "23503";
const UNIQUE = "23505";

const { db, partner, stranger } = useDatabase();

const [EARLIER, NOON] = ["2027-03-01T11:59:59Z", "2027-03-01T12:00:00Z"];

type Row = Record<string, unknown>;
type Query = [text: string, values?: unknown[]];

const newVoucher = async (owner: typeof partner = partner) => (await issueVoucher(db, owner)).id;
const newBatch = async () => findBatchOf(db, await newVoucher());
const sha256 = (text: string) => createHash("sha256").update(text).digest();

const bytes = (leaves: number, byte = 1) => Buffer.alloc(32 * leaves, byte);
const ENDED = { state: "Released", ended_at: "2027-03-01T12:01:00Z" };
const LONG = "x".repeat(256);
const PAYLOAD = '{"note":"Käse 🎟"}';

const reservation = (changes: Row) => (id: string) => insert("reservations", reservationRow(id, changes));
const redemption = (changes: Row) => (id: string) => insert("redemptions", redemptionRow(id, changes));
const pending = (changes: Row) => (id: string) => insert("voucher_events", pendingRow(id, 2, changes));
const sealed = (changes: Row) => (id: string) => insert("voucher_events", sealedRow(id, 2, changes));
const contract = (changes: Row) => () => insert("referrer_contracts", contractRow(changes));
const audit = (changes: Row) => () => insert("audit_entries", auditRow(changes));

const otherOrganization = () => ({ organization_id: stranger.organizationId });

const WRONG_HASHES = [sha256("something else"), sha256(`${PAYLOAD} `), Buffer.alloc(32), sha256(PAYLOAD).subarray(1)];

const ROOT = { origin: "log.example", size: 1, root: bytes(1) };
const NOTED = { note: "note", served_note: "note", last_note: "note", policy: "none", reason: "leaked" };

it.each([
  ["batch_windows", "batch_id", () => ({ batch_id: "bat_none", kind: "buy" })],
  ["api_key_secrets", "key_id", () => ({ key_id: "key_none", secret_hash: bytes(1) })],
  ["api_key_uses", "key_id", () => ({ key_id: "key_none", last_used_at: NOON })],
  ["broken_chains", "voucher_id", () => ({ voucher_id: "vch_none", found_at: NOON })],
])("a row of %s must name an existing %s", async (table, column, row) => {
  await rejected(FOREIGN_KEY, `${table}_${column}_fkey`, ...insert(table, row()));
});

it("redemptions_closed and reference_generation have one row each, with times in whole milliseconds", async () => {
  const second = { singleton: false };
  await rejected(CHECK, "reference_generation_singleton_check", ...insert("reference_generation", second));
  const closed = insert("redemptions_closed", { ...second, closed_until: NOON });
  await rejected(CHECK, "redemptions_closed_singleton_check", ...closed);
  const late = "UPDATE redemptions_closed SET closed_until = '2020-01-01 00:00:00.0001Z'";
  await rejected(CHECK, "redemptions_closed_closed_until_check", late);
  const closing =
    "UPDATE redemptions_closed SET closed_until = '2020-01-01Z', complete_until = '2019-12-31 00:00:00.0001Z'";
  await rejected(CHECK, "redemptions_complete_in_milliseconds", closing);
});

/** Rows of tables, with changes of each that Postgres rejects, by the constraint that rejects them. */
const CHANGED: [table: string, row: () => Row, changes: Record<string, Row[]>][] = [
  [
    "products",
    () => ({
      id: newId("prd"),
      brand_id: partner.brandId,
      key: newUser("key"),
      name: "A cup",
      type: "Product",
      retail_price_usd: 2,
      price_usd: 1,
    }),
    {
      products_type_check: [{ type: "Gift" }],
      products_retail_price_usd_check: [{ retail_price_usd: -1 }],
      products_price_usd_check: [{ price_usd: -1 }],
      products_benefit_months_check: [{ benefit_months: -1 }],
      products_brand_id_fkey: [{ brand_id: "brd_none" }],
    },
  ],
  [
    "brands",
    () => ({ id: newId("brd"), organization_id: partner.organizationId, name: "Corner" }),
    { brands_organization_id_fkey: [{ organization_id: "org_none" }] },
  ],
  [
    "api_keys",
    () => ({ id: newId("key"), organization_id: partner.organizationId, scopes: ["voucher.read"] }),
    { api_keys_organization_id_fkey: [{ organization_id: "org_none" }] },
  ],
  [
    "webhook_endpoints",
    () => ({ id: newId("whk"), organization_id: partner.organizationId, place: 1, url: "https://shop.example" }),
    {
      webhook_endpoints_organization_id_fkey: [{ organization_id: "org_none" }],
      webhook_endpoints_place_check: [{ place: 0 }, { place: 21 }],
      webhook_endpoints_url_check: [{ url: "ftp://shop.example" }, { url: `https://${"x".repeat(2_048)}` }],
      webhook_endpoints_description_check: [{ description: LONG }],
      webhook_endpoints_disabled_reason_check: [{ enabled: false, disabled_reason: "tired", disabled_at: NOON }],
      webhook_endpoints_enabled: [{ enabled: false }, { disabled_reason: "gone" }, { disabled_at: NOON }],
      webhook_endpoints_deleted: [{ place: null }, { deleted_at: NOON }, { place: null, deleted_at: NOON }],
      webhook_endpoints_secret_version_check: [{ secret_version: 0 }],
      webhook_endpoints_failures_check: [{ failures: -1 }, { failures: 4 }],
      webhook_endpoints_previous_secrets_until_check: [{ previous_secrets_until: Array(11).fill(NOON) }],
    },
  ],
  [
    "webhook_deliveries",
    () => ({
      position: 1,
      created_at: NOON,
      sequence: 1,
      endpoint_id: "whk_1",
      event_id: newUser("event"),
      voucher_id: "vch_1",
      event_type: "voucher.instance.redeemed",
    }),
    {
      webhook_deliveries_attempts_check: [{ attempts: -1 }],
      webhook_deliveries_state_check: [{ state: "Lost", finished_at: NOON }],
      webhook_deliveries_last_failure_check: [{ last_failure: "Refused!" }],
      webhook_deliveries_finished: [{ finished_at: NOON }, { state: "Failed" }],
      webhook_deliveries_next: [{ state: "Failed", finished_at: NOON, next_attempt_at: NOON }],
      webhook_deliveries_one_kind: [{ sequence: null }, { ticket: "rsv_1" }],
    },
  ],
  [
    "webhook_outbox",
    () => ({ organization_id: partner.organizationId, voucher_ids: ["vch_1"], sequences: [1] }),
    {
      webhook_outbox_voucher_ids_check: [{ voucher_ids: [], sequences: [] }],
      webhook_outbox_one_kind: [{ sequences: null }, { tickets: ["rsv_1"] }],
      webhook_outbox_lengths: [{ sequences: [1, 2] }],
    },
  ],
  ["log_tiles", () => ({ index: 900, level: 1, hashes: bytes(1) }), { log_tiles_level_check: [{ level: 0 }] }],
  ["log_lost", () => ({ first_index: 900, leaves: 1, noted_at: NOON }), { log_lost_leaves_check: [{ leaves: 0 }] }],
  ["log_witnesses", () => ({ name: newUser("witness"), size: 0 }), { log_witnesses_size_check: [{ size: -1 }] }],
  [
    "log_tree",
    () => ROOT,
    { log_tree_one_check: [{ one: false }], log_tree_size_check: [{ size: -1 }], log_tree_root_check: [{ root: "x" }] },
  ],
  [
    "log_published",
    () => ({ size: 1, root: bytes(1), note: NOTED.note, policy: NOTED.policy, published_at: NOON }),
    {
      log_published_one_check: [{ one: false }],
      log_published_size_check: [{ size: -1 }],
      log_published_root_check: [{ root: "x" }],
    },
  ],
  [
    "acquired_counts",
    () => ({ batch_id: newId("bat"), at: NOON, acquired: 1 }),
    { acquired_counts_acquired_check: [{ acquired: -1 }] },
  ],
  ["activity_counted", () => ({ counted_until: NOON }), { activity_counted_singleton_check: [{ singleton: false }] }],
  [
    "activity_counts",
    () => ({ span: "hour", at: NOON, organization_id: newId("org"), redemptions: 1, claims: 1 }),
    {
      activity_counts_span_check: [{ span: "day" }],
      activity_counts_redemptions_check: [{ redemptions: -1 }],
      activity_counts_claims_check: [{ claims: -1 }],
    },
  ],
  [
    "faults",
    () => ({ kind: "VouchersSlow", subject: newUser(), page: "", severity: "red", what: "slow", since: NOON }),
    { faults_severity_check: [{ severity: "pink" }], faults_told_check: [{ told: "middle" }] },
  ],
  [
    "operators",
    () => ({ id: newId("opr"), name: newUser(), role: "viewer" }),
    {
      operators_name_check: ["", "a:b", " a", "a ", "a\nb", "x".repeat(101)].map((name) => ({ name })),
      operators_role_check: [{ role: "owner" }],
    },
  ],
  [
    "operator_tokens",
    () => ({ operator_id: "opr_none", token_hash: bytes(1), created_at: NOON }),
    {
      operator_tokens_token_hash_check: [{ token_hash: bytes(1).subarray(1) }],
      operator_tokens_operator_id_fkey: [{}],
    },
  ],
  [
    "sent_forms",
    () => ({ token: randomUUID(), sent_at: NOON, command: "org create", arguments: {}, entity_id: "org_1" }),
    { sent_forms_command_check: [{ command: "" }], sent_forms_entity_id_check: [{ entity_id: "" }] },
  ],
  [
    "erasure_keys",
    () => ({ owner: newId("org"), key: bytes(1) }),
    { erasure_keys_key_check: [{ key: bytes(1).subarray(1) }] },
  ],
  [
    "erased_users",
    () => ({ user_id: "erased:x", erased_at: NOON, up_to: NOON }),
    { erased_users_user_id_check: [{ user_id: "user_1" }], erased_users_check: [{ up_to: ENDED.ended_at }] },
  ],
  [
    "erasures",
    () => ({ voucher_id: "vch_1", sequence: 3, erased_at: NOON, up_to: NOON }),
    { erasures_check: [{ up_to: ENDED.ended_at }] },
  ],
  [
    "log_retirements",
    () => {
      const { note: _, ...notes } = NOTED;
      return { ...ROOT, ...notes, origin: newUser("log"), next_origin: "next.example", retired_at: NOON };
    },
    { log_retirements_size_check: [{ size: -1 }], log_retirements_root_check: [{ root: "x" }] },
  ],
];

it.each(CHANGED)("Postgres rejects a row of %s with any single wrong value", async (table, row, changes) => {
  const code = expect.stringMatching(/^23/);
  for (const [constraint, wrong] of Object.entries(changes))
    for (const change of wrong) await rejected(code, constraint, ...insert(table, { ...row(), ...change }));
});

const reservationRow = (voucherId: string, changes: Row = {}) => ({
  started_at: NOON,
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
});

const redemptionRow = (voucherId: string, changes: Row = {}) => ({
  redeemed_at: NOON,
  voucher_id: voucherId,
  organization_id: partner.organizationId,
  key_id: "key_1",
  attempt_id: newUser("attempt"),
  ticket: null,
  redeem_code: newUser("CODE"),
  external_ref: newUser("order"),
  ...changes,
});

const pendingRow = (voucherId: string, sequence: number, changes: Row = {}): Row => ({
  occurred_at: NOON,
  sequence,
  actor_is_employee: null,
  voucher_id: voucherId,
  seal_status: "Pending",
  event_type: "voucher.instance.voided",
  actor_connected_id: null,
  previous_hash: null,
  record_hash: null,
  data: '{"nonce": "00",  "b": 1, "a": 2}',
  payload: null,
  ...changes,
});

const contractRow = (changes: Row = {}) => ({
  id: newId("ctr"),
  brand_id: partner.brandId,
  user_id: newUser(),
  status: "Offered",
  ...changes,
});

const auditRow = (changes: Row = {}) => ({
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

const HEADS = [
  "sealed_sequence = last_sequence + 1",
  "sealed_sequence = -1",
  "sealed_sequence = 0",
  "sealed_hash = NULL",
  "last_sequence = 0",
];

/** Creates a statement about a new voucher. */
type Make = (voucherId: string) => Query | Promise<Query>;

/** Makes a redemption with the ticket of a reservation that has ended. */
const endedRedemption = (state: string) => async (id: string) => {
  const ended = reservationRow(id, { state, ended_at: NOON });
  await accepted(...insert("reservations", ended));
  return redemption({ ticket: ended.ticket })(id);
};

const voucher =
  (set: string) =>
  (id: string): Query => [`UPDATE vouchers SET ${set} WHERE id = $1`, [id]];

const batch = (changes: Row) => async () => {
  const { rows } = await db.query("SELECT * FROM batches WHERE id = $1", [await newBatch()]);
  return insert("batches", { ...rows[0], id: newId("bat"), ...changes });
};

const copyOf = (changes: Row) => async (id: string) => {
  const { rows } = await db.query("SELECT * FROM vouchers WHERE id = $1", [id]);
  return insert("vouchers", { ...rows[0], id: newId("vch"), code: id, code_key: id, ...changes });
};

const apiKey = (scopes: string[]) => () =>
  insert("api_keys", { id: newId("key"), organization_id: partner.organizationId, scopes });

const member = (changes: Row) => () =>
  insert("members", { organization_id: partner.organizationId, user_id: newUser(), role: "owner", ...changes });

const window = (changes: Row) => async () =>
  insert("batch_windows", { batch_id: await newBatch(), kind: "buy", opens_at: NOON, ...changes });

const listing = (changes: Row) => async () =>
  insert("listings", { id: newId("lst"), batch_id: await newBatch(), ...changes });

const issueReference = (changes: Row) => async () =>
  insert("issue_references", {
    organization_id: partner.organizationId,
    issue_ref: newUser("ref"),
    batch_id: await newBatch(),
    terms: "{}",
    ...changes,
  });

const claim = (changes: Row) => (voucher_id: string) =>
  insert("claims", { user_id: newUser(), product_id: partner.productId, voucher_id, ...changes });

const purchase = (changes: Row) => (voucher_id: string) =>
  insert("purchases", {
    organization_id: partner.organizationId,
    user_id: newUser(),
    payment_ref: "payment",
    voucher_id,
    ...changes,
  });

/** Makes the insert of a leaf batch, with the next id unless `id` is another expression. */
const logBatch =
  (changes: Row, id = "nextval('log_batch_ids')") =>
  (): Query => {
    const [text, values] = insert("log_batches", changes);
    return [text.replace("(", "(id, ").replace("VALUES (", `VALUES (${id}, `), values];
  };

/** For each column of a seal: a sealed event without it, and a pending event with it. */
const INCOMPLETE = ["previous_hash", "record_hash", "payload"].flatMap((column): Make[] => [
  sealed({ [column]: null }),
  (id) => insert("voucher_events", pendingRow(id, 2, { [column]: sealedRow(id, 2)[column] })),
]);

/** Rows that Postgres must reject, by the constraint or a part of the message. */
const REJECTED: Record<string, Make[]> = {
  reservations_ended_at_unless_live: [reservation({ ended_at: ENDED.ended_at }), reservation({ state: "Released" })],
  reservations_expire_after_start: [reservation({ expires_at: NOON })],
  reservations_state_check: [reservation({ ...ENDED, state: "Held" })],
  reservations_end_reason_check: [reservation({ ...ENDED, end_reason: LONG })],
  reservations_voucher_id_fkey: [reservation({ voucher_id: "vch_none" })],
  redemptions_external_ref_check: ["", "x".repeat(129), "🎟".repeat(129)].map((external_ref) =>
    redemption({ external_ref }),
  ),
  redemptions_in_milliseconds: [redemption({ redeemed_at: "2027-03-01T12:00:00.0001Z" })],
  redemptions_voucher_id_fkey: [redemption({ voucher_id: "vch_none" })],
  redemptions_ticket: [
    redemption({ ticket: "rsv_none" }),
    endedRedemption("Released"),
    endedRedemption("Expired"),
    async (id) => {
      const other = reservationRow(await newVoucher());
      await accepted(...insert("reservations", other));
      return redemption({ ticket: other.ticket })(id);
    },
  ],
  // Each voucher already has event 1, its issue.
  voucher_events_pkey: [sealed({ sequence: 1 }), pending({ sequence: 1 })],
  voucher_events_sequence_check: [pending({ sequence: 0 })],
  voucher_events_no_fork: [sealed({ previous_hash: Buffer.from(GENESIS_HASH, "hex") })],
  voucher_events_sealed_complete: INCOMPLETE,
  voucher_events_pending_has_data: [pending({ data: null })],
  voucher_events_seal_status_check: [pending({ seal_status: "Open" })],
  voucher_events_event_type_check: [pending({ event_type: "brand.created" })],
  voucher_events_voucher_id_fkey: [pending({ voucher_id: "vch_none" })],
  voucher_events_hash_matches_payload: WRONG_HASHES.map((record_hash) => sealed({ payload: PAYLOAD, record_hash })),
  voucher_events_previous_hash_check: [0, 31, 33].map((length) => sealed({ previous_hash: Buffer.alloc(length, 1) })),
  batches_audience_check: [batch({ audience: "NoOne" })],
  batches_product_id_fkey: [batch({ product_id: "prd_none" })],
  batches_expiry_recorded_to_range: [batch({ expiry_recorded_to: 10_000 })],
  batches_voucher_count_check: [batch({ voucher_count: 0 })],
  batches_price_usd_check: [batch({ price_usd: -0.01 })],
  batches_retail_price_usd_check: [batch({ retail_price_usd: -1 })],
  batches_benefit_months_check: [batch({ benefit_months: -1 })],
  vouchers_batch_id_fkey: [copyOf({ batch_id: "bat_none" })],
  vouchers_redeemed_at_if_redeemed: [
    "status = 'Redeemed'",
    "redeemed_at = now()",
    "status = 'Voided', redeemed_at = now()",
  ].map(voucher),
  // The status Expired follows from the time and is not stored.
  vouchers_status_check: [voucher("status = 'Expired'")],
  vouchers_chain_head_consistent: HEADS.map(voucher),
  vouchers_sealed_hash_check: [voucher("sealed_hash = 'too short'")],
  vouchers_serial: [copyOf({ serial: 1 })],
  vouchers_serial_check: [copyOf({ serial: 0 })],
  api_keys_scopes_check: [apiKey([]), apiKey(["voucher.read", "voucher.void"])],
  "starts as Offered": ["Active", "Ended", "Declined", "Paused"].map((status) => contract({ status })),
  referrer_contracts_brand_id_fkey: [contract({ brand_id: "brd_none" })],
  referrer_contracts_user_id_check: [contract({ user_id: "" }), contract({ user_id: LONG })],
  members_role_check: [member({ role: "Owner" })],
  members_user_id_check: [member({ user_id: "" })],
  members_organization_id_fkey: [member({ organization_id: "org_none" })],
  batch_windows_kind_check: [window({ kind: "rent" })],
  batch_windows_close_after_opening: [window({ closes_at: NOON }), window({ closes_at: EARLIER })],
  listings_batch_id_fkey: [listing({ batch_id: "bat_none" })],
  issue_references_batch_id_fkey: [issueReference({ batch_id: "bat_none" })],
  issue_references_organization_id_fkey: [issueReference({ organization_id: "org_none" })],
  issue_references_issue_ref_check: [issueReference({ issue_ref: "" }), issueReference({ issue_ref: LONG })],
  claims_product_id_fkey: [claim({ product_id: "prd_none" })],
  claims_voucher_id_fkey: [claim({ voucher_id: "vch_none" })],
  purchases_voucher_id_fkey: [purchase({ voucher_id: "vch_none" })],
  voucher_id: [claim({ voucher_id: null }), purchase({ voucher_id: null })],
  "cannot insert a non-DEFAULT value": [audit({ id: 1 })],
  audit_entries_by_check: [audit({ by: "guess" })],
  audit_entries_change: [audit({ before: { name: "x" } }), audit({ after: null })],
  ...Object.fromEntries(
    ["os_user", "host", "command", "entity_type", "entity_id"].flatMap((column) => [
      [`audit_entries_${column}_check`, [audit({ [column]: "" })]],
      [column, [audit({ [column]: null })]],
    ]),
  ),
  log_batches_hashes_size: [logBatch({ leaves: 2, hashes: bytes(1) })],
  log_batches_placed_or_waiting: [logBatch({ leaves: 1 })],
  log_batches_leaves_check: [logBatch({ leaves: 4_097, hashes: bytes(4_097) }), logBatch({ leaves: 0, hashes: "" })],
  log_batches_first_index_check: [logBatch({ leaves: 1, first_index: -1 })],
};

it.each(
  Object.entries(REJECTED),
)("Postgres rejects invalid rows, with an error that names %s", async (constraintOrMessage, makes) => {
  const code = expect.stringMatching(/^23|^428C9$/);
  for (const make of makes) await rejected(code, constraintOrMessage, ...(await make(await newVoucher())));
});

it.each<[index: string, table: string, row: (id: string) => Row]>([
  ["operators_name", "operators", (id) => ({ id, name: "one name", role: "viewer" })],
  [
    "operator_tokens_current",
    "operator_tokens",
    (id) => ({ operator_id: "1", token_hash: sha256(id), created_at: NOON }),
  ],
  [
    "faults_kind_subject_page_key",
    "faults",
    () => ({ kind: "VouchersSlow", subject: "one", page: "", severity: "red", what: "slow", since: NOON }),
  ],
  [
    "webhook_endpoints_place",
    "webhook_endpoints",
    (id) => ({ id, organization_id: partner.organizationId, place: 1, url: "https://shop.example" }),
  ],
  [
    "products_brand_id_key_key",
    "products",
    (id) => ({
      id,
      brand_id: partner.brandId,
      key: "one key",
      name: "A cup",
      type: "Product",
      retail_price_usd: 2,
      price_usd: 1,
    }),
  ],
])("Postgres rejects a second row by %s", async (index, table, row) => {
  await accepted(...insert(table, row("1")));
  await rejected(UNIQUE, index, ...insert(table, row("2")));
});

it("a batch can have at most one reference", async () => {
  const another = issueReference({ batch_id: await newBatch() });
  await accepted(...(await another()));
  await rejected(UNIQUE, "issue_references_batch_id_key", ...(await another()));
});

it("an event of a claim by link must name the link's referrer", async () => {
  const data = { referrer: "an earlier referrer", referralLink: "no such link" };
  await rejected("VS001", "the link has another referrer", ...(await pending({ data })(await newVoucher())));
});

it("a row of reference_ends can be replaced only by a later one", async () => {
  const row = { generation: 5, organization_id: partner.organizationId, external_ref: "an ended order" };
  await accepted(...insert("reference_ends", row));
  const earlier = [
    "UPDATE reference_ends SET generation = 6 WHERE external_ref = 'an ended order'",
    "UPDATE reference_ends SET version = DEFAULT, generation = 4 WHERE external_ref = 'an ended order'",
  ];
  await forbidden("only a later end replaces one", earlier);
  await accepted("UPDATE reference_ends SET version = DEFAULT WHERE external_ref = 'an ended order'");
});

it("a referrer contract can have only one of four states, even without a trigger", async () => {
  const [text, values] = await contract({ status: "Paused" })();
  await expect(bypassTriggers(db, text, values)).rejects.toMatchObject({
    code: CHECK,
    constraint: "referrer_contracts_status_check",
  });
});

it.each(["claims", "purchases"])("a transaction that adds a row to %s holds a shared advisory lock", async (table) => {
  const [text, values] = await (table === "claims" ? claim({}) : purchase({}))(await newVoucher());
  await besideTransaction(db, async (outside) => {
    await outside.query(text, values);
    const { rowCount } = await outside.query(
      `SELECT FROM pg_locks WHERE pid = pg_backend_pid() AND locktype = 'advisory' AND mode = 'ShareLock'
                              AND classid::bigint >> 16 = 21092`,
    );
    expect(rowCount).toBe(1);
  });
});

it("Postgres accepts rows whose values are just within the constraints", async () => {
  for (const make of [
    redemption({ external_ref: "🎟".repeat(128) }),
    sealed({ payload: PAYLOAD, record_hash: sha256(PAYLOAD) }),
    copyOf({ serial: 2 }),
    batch({}),
    window({ closes_at: "2027-03-01T12:00:01Z" }),
    audit({ before: { name: "y" } }),
    audit({ before: { name: "y" }, after: null }),
  ])
    await accepted(...(await make(await newVoucher())));
});

/** restrict_violation, which the project's own triggers raise. */
const TRIGGER = "23001";

/** Messages of the project's triggers, and the statements that they reject. */
it.each([
  [
    "a redemption is final",
    `UPDATE redemptions SET external_ref = 'another'; UPDATE redemptions SET redeemed_at = redeemed_at;
     DELETE FROM redemptions;
     TRUNCATE redemptions; TRUNCATE redemptions CASCADE`,
  ],
  [
    "events are permanent",
    `DELETE FROM voucher_events; DELETE FROM voucher_events WHERE seal_status = 'Pending'; TRUNCATE voucher_events;
     TRUNCATE voucher_events CASCADE`,
  ],
  // Which dependent table rejects the statement first depends on Postgres, so the message has no name.
  [
    "is not allowed",
    `TRUNCATE vouchers CASCADE; TRUNCATE batches CASCADE; TRUNCATE products CASCADE; TRUNCATE brands CASCADE;
     TRUNCATE organizations CASCADE`,
  ],
  ...["deployment", "activity_counted", "redemptions_closed", "reference_generation"].map((table) => [
    "the row is permanent",
    `DELETE FROM ${table}; TRUNCATE ${table}; TRUNCATE ${table} CASCADE`,
  ]),
  ["an attempt may not have seen the end", "TRUNCATE reference_ends"],
  ["an organization is live or a sandbox", "UPDATE organizations SET sandbox = NOT sandbox"],
  [
    "replaced texts would no longer be recognized",
    "UPDATE erasure_keys SET owner = owner || '2'; DELETE FROM erasure_keys; TRUNCATE erasure_keys",
  ],
  [
    "an erasure is final",
    `UPDATE erasures SET sequence = 0; DELETE FROM erasures; TRUNCATE erasures; DELETE FROM erased_users;
     TRUNCATE erased_users`,
  ],
  [
    "UPDATE on deployment is not allowed",
    `UPDATE deployment SET canon_preserved_since = clock_timestamp(), id = 'x';
     UPDATE deployment SET canon_preserved_since = canon_preserved_since;
     UPDATE deployment SET system_identifier = 1, id = 'x'; UPDATE deployment SET database_oid = 1, id = 'x'`,
  ],
  [
    "an accepted loss is final",
    "UPDATE accepted_losses SET id = 'x'; DELETE FROM accepted_losses; TRUNCATE accepted_losses",
  ],
  ["contracts are permanent", "DELETE FROM referrer_contracts; TRUNCATE referrer_contracts CASCADE"],
  [
    "references of batches are permanent",
    "UPDATE issue_references SET terms = terms; DELETE FROM issue_references; TRUNCATE issue_references",
  ],
  ...["claims", "purchases"].map((table) => [
    `${table} are permanent`,
    `DELETE FROM ${table}; TRUNCATE ${table}; UPDATE ${table} SET voucher_id = voucher_id;
     UPDATE ${table} SET voucher_id = NULL`,
  ]),
  [
    "audit entries are permanent",
    "UPDATE audit_entries SET os_user = 'bob'; DELETE FROM audit_entries; TRUNCATE audit_entries",
  ],
  ...["log_batches", "log_bundles", "log_tiles", "log_tree", "log_lost", "log_retirements"].map((table) => [
    "permanent",
    `DELETE FROM ${table}; TRUNCATE ${table}`,
  ]),
])("Postgres says %j and rejects: %s", async (message = "", statements = "") => {
  for (const make of [
    redemption({}),
    pending({}),
    contract({}),
    claim({}),
    purchase({}),
    audit({}),
    issueReference({}),
  ])
    await accepted(...(await make(await newVoucher())));
  await forbidden(message, statements.split(/;\s*/));
});

/** References that Postgres compares byte by byte. */
const ALIKE = ["order-é", "order-e\u0301"].map((external_ref) => ({ external_ref }));

/** Postgres rejects a second row with the same key, and accepts a row with other values. */
it.each<[what: string, constraint: string, make: (changes: Row) => Make, key: Row, others: () => Row[]]>([
  ["a ticket", "reservations_pkey", reservation, { ticket: "rsv_twice" }, () => [{ ticket: "rsv_once" }]],
  [
    ...(["a reference in an organization", "redemptions_external_ref", redemption] as const),
    ...([{ external_ref: "Order-é" }, () => [otherOrganization(), ...ALIKE]] as const),
  ],
  [
    "a reference of a batch",
    "issue_references_pkey",
    issueReference,
    { issue_ref: "spring" },
    () => [otherOrganization()],
  ],
  ["a redeem code", "redemptions_redeem_code", redemption, { redeem_code: "7Q4K" }, () => [otherOrganization()]],
  ["a user and product", "claims_pkey", claim, { user_id: "claimer" }, () => [{ user_id: "another" }]],
  [
    "a user and payment",
    "purchases_pkey",
    purchase,
    { user_id: "buyer" },
    () => [{ user_id: "x" }, { payment_ref: "2" }],
  ],
])("%s is unique by %s", async (_, constraint, make, key, others) => {
  const next = async (changes: Row) => make({ ...key, ...changes })(await newVoucher());
  await accepted(...(await next({})));
  await rejected(UNIQUE, constraint, ...(await next({})));
  for (const other of others()) await accepted(...(await next(other)));
});

it.each([
  ["redemption", redemption, "redemptions_pkey", { organization_id: "org_other" }],
  ["claim", claim, "claims_voucher_id_key", {}],
  ["purchase", purchase, "purchases_voucher_id_key", {}],
])("a voucher can have at most one %s", async (_, make, constraint, other) => {
  const id = await newVoucher();
  await accepted(...make({})(id));
  await rejected(UNIQUE, constraint, ...make({})(id));
  await rejected(UNIQUE, constraint, ...make(other)(id));
});

it("a voucher has at most one Live reservation, even after an UPDATE", async () => {
  const voucherId = await newVoucher();
  const first = reservationRow(voucherId);
  const other = reservationRow(await newVoucher());
  await accepted(...insert("reservations", first));
  await accepted(...insert("reservations", other));
  await rejected(UNIQUE, "reservations_one_live", ...reservation({})(voucherId));
  const move = "UPDATE reservations SET voucher_id = $1 WHERE ticket = $2";
  await rejected(UNIQUE, "reservations_one_live", move, [voucherId, other.ticket]);
  await accepted(...reservation(ENDED)(voucherId));
  await accepted("UPDATE reservations SET state = 'Released', ended_at = started_at WHERE ticket = $1", [first.ticket]);
  await accepted(...reservation({})(voucherId));
});

it("only a reservation that ended unused 30 days ago can be deleted", async () => {
  const write = async (changes: Row) => {
    const row = reservationRow(await newVoucher(), changes);
    await accepted(...insert("reservations", row));
    return { text: "DELETE FROM reservations WHERE ticket = $1", values: [row.ticket] };
  };
  const [long, short] = ["2020-01-01T00:00:00Z", new Date(Date.now() - 29 * 86_400_000).toISOString()];
  for (const kept of [{}, { state: "Consumed", ended_at: long }, { state: "Released", ended_at: short }]) {
    const { text, values } = await write(kept);
    await rejected(TRIGGER, "ended unused 30 days ago", text, values);
  }
  for (const state of ["Released", "Expired"]) {
    const { text, values } = await write({ state, ended_at: long });
    await accepted(text, values);
  }
  await forbidden("redemptions name their reservations", ["TRUNCATE reservations", "TRUNCATE reservations CASCADE"]);
});

it.each(["Consumed", "Released", "Expired"])("a reservation never changes once it is %s", async (state) => {
  const { ticket, ...row } = reservationRow(await newVoucher());
  await accepted(...insert("reservations", { ticket, ...row }));
  await accepted("UPDATE reservations SET state = $1, ended_at = expires_at WHERE ticket = $2", [state, ticket]);
  const changes = [
    "state = 'Live', ended_at = NULL",
    "state = CASE state WHEN 'Released' THEN 'Consumed' ELSE 'Released' END",
    ...["end_reason = 'something else'", "ended_at = ended_at + interval '1 second'"],
    ...["expires_at = expires_at + interval '1 hour'", "started_at = started_at - interval '1 second'"],
    ...["key_id = 'key_2'", "organization_id = 'org_2'", "token_secret_id = 'ffffffff'", "ticket = 'rsv_other'"],
    "key_id = key_id",
  ].map((set) => `UPDATE reservations SET ${set} WHERE ticket = $1`);
  await forbidden("an ended reservation is final", changes, [ticket]);
});

describe("the events of a voucher's chain", () => {
  const SEAL = `seal_status = 'Sealed', previous_hash = decode(repeat('ab', 32), 'hex'), payload = '{}',
                record_hash = sha256(convert_to('{}', 'UTF8'))`;
  const update = (set: string) => `UPDATE voucher_events SET ${set} WHERE voucher_id = $1 AND sequence = 2`;
  const UNSEAL = "seal_status = 'Pending', previous_hash = NULL, record_hash = NULL, payload = NULL";
  const ONCE = "changes only once";

  async function pendingEvent(changes: Row = {}): Promise<string> {
    const voucherId = await newVoucher();
    await accepted(...pending(changes)(voucherId));
    return voucherId;
  }

  it("an event has at most one successor, so that a chain cannot fork", async () => {
    const voucherId = await newVoucher();
    const link = { previous_hash: sha256("the event before") };
    await accepted(...sealed(link)(voucherId));
    await rejected(UNIQUE, "voucher_events_no_fork", ...sealed({ ...link, sequence: 3 })(voucherId));
    // An event of another voucher's chain may have the same previous hash.
    await accepted(...sealed(link)(await newVoucher()));
    for (const sequence of [3, 4]) await accepted(...pending({ sequence })(voucherId));
  });

  it("a voucher's chain has at most one expired event", async () => {
    const voucherId = await newVoucher();
    const expired = { event_type: "voucher.instance.expired" };
    await accepted(...sealed(expired)(voucherId));
    await rejected(UNIQUE, "voucher_events_one_expiry", ...pending({ ...expired, sequence: 3 })(voucherId));
    await accepted(...pending({ event_type: "voucher.instance.extended", sequence: 3 })(voucherId));
    await accepted(...pending({ ...expired, sequence: 4 })(voucherId));
    await accepted(...pending(expired)(await newVoucher()));
  });

  it.each<[seal: string, constraint: string]>([
    ...["previous_hash", "record_hash", "payload"].map((column): [string, string] => [
      `${SEAL.replace(new RegExp(`${column} = .*?(?=, \\w+ =|,?\\s*$)`, "s"), `${column} = NULL`)}`,
      "voucher_events_sealed_complete",
    ]),
    [SEAL.replace("convert_to('{}'", "convert_to('else'"), "voucher_events_hash_matches_payload"],
  ])("a Pending event cannot be sealed with %s", async (seal, constraint) => {
    await rejected(CHECK, constraint, update(seal), [await pendingEvent()]);
  });

  it("a Pending event becomes Sealed when its four seal columns are set, and then never changes", async () => {
    const voucherId = await pendingEvent();
    await accepted(update(SEAL), [voucherId]);
    const { rows } = await db.query("SELECT * FROM voucher_events WHERE voucher_id = $1 AND sequence = 2", [voucherId]);
    expect(rows[0]).toMatchObject({ seal_status: "Sealed", payload: "{}", event_type: "voucher.instance.voided" });
    await forbidden(ONCE, [update(SEAL), update(UNSEAL)], [voucherId]);
  });

  it("an event's log_slot is set when the event is sealed, or once later", async () => {
    const voucherId = await pendingEvent();
    await rejected(TRIGGER, ONCE, update("log_slot = 4096"), [voucherId]);
    await accepted(update(SEAL), [voucherId]);
    await rejected(TRIGGER, ONCE, update("log_slot = 4096, actor_connected_id = 'x'"), [voucherId]);
    await accepted(update("log_slot = 4096"), [voucherId]);
    await forbidden(ONCE, [update("log_slot = 4097"), update("log_slot = NULL")], [voucherId]);
    await accepted(update(`${SEAL}, log_slot = 4098`), [await pendingEvent()]);
  });

  /** A different value for every column that a seal does not set. Most values violate no other constraint. */
  const CHANGES: Record<string, string> = {
    occurred_at: "occurred_at = occurred_at + interval '1 microsecond'",
    sequence: "sequence = sequence + 1",
    voucher_id: "voucher_id = (SELECT min(id) FROM vouchers)",
    event_type: "event_type = 'voucher.instance.expired'",
    actor_connected_id: "actor_connected_id = 'key_2'",
    actor_is_employee: "actor_is_employee = true",
    data: `data = '{"nonce": "01"}'`,
    erased_by: "erased_by = 3",
  };

  it("the tests of sealing cover every column of voucher_events", async () => {
    const { rows } = await db.query(
      "SELECT column_name AS name FROM information_schema.columns WHERE table_name = 'voucher_events'",
    );
    const seal = ["seal_status", "previous_hash", "record_hash", "payload", "log_slot"];
    expect(rows.map(({ name }) => name).sort()).toEqual([...Object.keys(CHANGES), ...seal].sort());
  });

  it.each([
    ...Object.values(CHANGES),
    // NULL, and the stored object in two other spellings of JSON.
    ...["data = NULL", `data = '{"nonce":"00","b":1,"a":2}'`, `data = '{"nonce": "00",  "a": 2, "b": 1}'`],
  ])("an event's column outside the seal never changes, before, during or after sealing: %s", async (change) => {
    const voucherId = await pendingEvent();
    await forbidden(ONCE, [update(change), update(`${SEAL}, ${change}`)], [voucherId]);
    await accepted(update(SEAL), [voucherId]);
    await rejected(TRIGGER, ONCE, update(change), [voucherId]);
  });

  it("an event keeps its actor when the event is sealed", async () => {
    const voucherId = await pendingEvent({ actor_connected_id: "user-1", actor_is_employee: true });
    for (const column of [
      "actor_connected_id = NULL",
      "actor_connected_id = 'user-2'",
      "actor_is_employee = NULL",
      "actor_is_employee = false",
    ])
      await rejected(TRIGGER, ONCE, update(`${SEAL}, ${column}`), [voucherId]);
    await accepted(update(SEAL), [voucherId]);
  });

  it("a Pending event cannot be updated to the same values, and a voucher with events cannot be deleted", async () => {
    const voucherId = await pendingEvent();
    await rejected(TRIGGER, ONCE, update("payload = payload"), [voucherId]);
    await rejected(FOREIGN_KEY, "voucher_events_voucher_id_fkey", "DELETE FROM vouchers WHERE id = $1", [voucherId]);
  });

  it("a Sealed event never changes in any column", async () => {
    const changes = [
      ...["payload = payload || ' '", "record_hash = sha256(record_hash)", "previous_hash = sha256(previous_hash)"],
      "payload = '{}', record_hash = sha256(convert_to('{}', 'UTF8'))",
      `${UNSEAL}, data = '{}'`,
      ...["data = '{}'", "sequence = 7", "seal_status = seal_status"],
    ].map((set) => `UPDATE voucher_events SET ${set} WHERE voucher_id = $1`);
    await forbidden(ONCE, changes, [await newVoucher()]);
  });

  it("Postgres accepts all events that the service seals", async () => {
    const voucherId = await newVoucher();
    const { rows } = await db.query(
      "SELECT encode(record_hash, 'hex') AS hash FROM voucher_events WHERE voucher_id = $1",
      [voucherId],
    );
    const { previousHash, recordHash, payload } = sealEvent(
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
    const [previous_hash, record_hash] = [Buffer.from(previousHash, "hex"), Buffer.from(recordHash, "hex")];
    await accepted(...sealed({ previous_hash, record_hash, payload })(voucherId));
  });
});

describe("vouchers and batches", () => {
  const REDEEM = "status = 'Redeemed', redeemed_at = clock_timestamp()";

  it("a batch's audience cannot be changed", async () => {
    const id = await newBatch();
    const change = "UPDATE batches SET audience = 'ReferrerOnly' WHERE id = $1";
    await rejected(TRIGGER, "the audience of a batch", change, [id]);
    // An update that does not change the audience is allowed.
    await accepted("UPDATE batches SET audience = audience, usage_unit_label = 'ride' WHERE id = $1", [id]);
  });

  it.each([
    ["Redeemed", REDEEM, ["status = 'Active', redeemed_at = NULL", "status = 'Voided', redeemed_at = NULL"]],
    ["Voided", "status = 'Voided'", ["status = 'Active'", REDEEM]],
  ])("a voucher that is %s keeps its status", async (_, end, changes) => {
    const id = await newVoucher();
    await accepted(...voucher(end)(id));
    for (const change of changes) await rejected(TRIGGER, "keeps its status", ...voucher(change)(id));
    await accepted(...voucher("last_sequence = last_sequence + 1")(id));
  });

  it("a voucher's code is unique in every spelling within its organization, but not across organizations", async () => {
    const next = async (code: string, owner = partner) =>
      copyOf({ serial: 2, code, code_key: normaliseCode(code) })(await newVoucher(owner));
    await accepted(...(await next("SOLO-2027")));
    for (const code of ["SOLO-2027", "solo2027", " s o l o - 2 0 2 7 ", "S0L0-2O27", "S01O-2027", "soio2027"])
      await rejected(UNIQUE, "vouchers_code_key", ...(await next(code)));
    await accepted(...(await next("SOLO-2028")));
    await accepted(...(await next("SOLO-2027", stranger)));
  });

  it("a batch has at most one window of each kind and one listing", async () => {
    const batch_id = await newBatch();
    for (const [make, constraint] of [
      [window, "batch_windows_pkey"],
      [listing, "listings_batch_id_key"],
    ] as const) {
      await accepted(...(await make({ batch_id })()));
      await rejected(UNIQUE, constraint, ...(await make({ batch_id })()));
    }
    await accepted(...(await window({ batch_id, kind: "claim" })()));
  });

  /** Inserts a voucher that users may acquire in its batch's windows. */
  async function newPickable(): Promise<string> {
    const id = newId("vch");
    await accepted(...(await copyOf({ id, serial: 2, pickable: true })(await newVoucher())));
    return id;
  }

  it("a voucher cannot enter its batch's claim and buy windows after its issue, and cannot return", async () => {
    const id = await newPickable();
    await accepted(...voucher("pickable = true")(id));
    await accepted(...voucher("pickable = false")(id));
    for (const other of [id, await newVoucher()])
      await rejected(TRIGGER, "does not return", ...voucher("pickable = true")(other));
  });

  it.each([
    "status = 'Voided'",
    REDEEM,
  ])("only an Active voucher can be in its batch's windows: a voucher leaves them with %s", async (set) => {
    const id = await newPickable();
    await rejected(CHECK, "vouchers_pickable_only_if_active", ...voucher(set)(id));
    await accepted(...voucher(`${set}, pickable = false`)(id));
  });
});

it("the deployment table has exactly one row, whose id can change", async () => {
  await accepted("UPDATE deployment SET id = 'x'");
  const values = "SELECT canon_preserved_since, 'x', system_identifier, database_oid FROM deployment";
  const columns = "canon_preserved_since, id, system_identifier, database_oid";
  await rejected(UNIQUE, "deployment_pkey", `INSERT INTO deployment (${columns}) ${values}`);
  const second = `INSERT INTO deployment (singleton, ${columns}) ${values.replace("SELECT", "SELECT false,")}`;
  await rejected(CHECK, "deployment_singleton_check", second);
  const { rows } = await db.query(
    "SELECT canon_preserved_since = date_trunc('milliseconds', canon_preserved_since) AS whole FROM deployment",
  );
  expect(rows).toEqual([{ whole: true }]);
});

it("an API key has one current secret, stored as 32 unique bytes", async () => {
  const [text, values] = apiKey(["voucher.read"])();
  await accepted(text, values);
  const [key_id] = values;
  const secret = (secret_hash: Buffer) => insert("api_key_secrets", { key_id, secret_hash });
  await accepted(...secret(sha256("first")));
  await rejected(UNIQUE, "api_key_secrets_pkey", ...secret(sha256("first")));
  await rejected(UNIQUE, "api_key_secrets_current", ...secret(sha256("second")));
  await rejected(CHECK, "api_key_secrets_secret_hash_check", ...secret(Buffer.from("pvk_in_plain_text")));
  await accepted("UPDATE api_key_secrets SET expires_at = clock_timestamp() WHERE key_id = $1", [key_id]);
  await accepted(...secret(sha256("second")));
});

describe("referrer contracts", () => {
  const MOVES = ["Offered Active", "Offered Declined", "Active Ended"];
  const STATUSES = ["Offered", "Active", "Ended", "Declined"];
  const MOVE = "UPDATE referrer_contracts SET status = $2 WHERE id = $1";

  /** Creates a contract and moves it to a state by legal transitions. */
  async function contractIn(status: string, changes: Row = {}): Promise<string> {
    const row = contractRow(changes);
    await accepted(...insert("referrer_contracts", row));
    const way = { Active: ["Active"], Declined: ["Declined"], Ended: ["Active", "Ended"] }[status] ?? [];
    for (const next of way) await accepted(MOVE, [row.id, next]);
    return row.id;
  }

  it.each(
    STATUSES.flatMap((from) => STATUSES.map((to) => [from, to])),
  )("a referrer contract can change from %s to %s only if that is legal", async (from = "", to = "") => {
    const id = await contractIn(from);
    if (MOVES.includes(`${from} ${to}`)) await accepted(MOVE, [id, to]);
    else await rejected(TRIGGER, `not from ${from} to ${to}`, MOVE, [id, to]);
  });

  it.each([
    "brand_id = 'brd_other'",
    "user_id = 'another user'",
    "id = 'ctr_other'",
  ])("a referrer contract rejects %s, with or without a legal state change", async (set) => {
    const changes = [set, `status = 'Active', ${set}`].map(
      (all) => `UPDATE referrer_contracts SET ${all} WHERE id = $1`,
    );
    await forbidden("a contract goes from", changes, [await contractIn("Offered")]);
  });

  it("the end date of an Active referrer contract cannot change", async () => {
    const change = "UPDATE referrer_contracts SET ends_at = 'infinity' WHERE id = $1";
    await rejected(TRIGGER, "a contract goes from", change, [await contractIn("Active")]);
  });

  it.each([
    ["Offered", "Declined"],
    ["Active", "Ended"],
  ])("a referrer contract that is %s is the only open one of its user and brand until it is %s", async (open, over) => {
    const user_id = newUser();
    const first = await contractIn(open, { user_id });
    await rejected(UNIQUE, "referrer_contracts_one_open", ...contract({ user_id })());
    await contractIn("Active", { user_id, brand_id: stranger.brandId });
    await accepted(MOVE, [first, over]);
    await accepted(...contract({ user_id })());
  });

  it("a referrer contract can have links only for products of its brand", async () => {
    const { productId: product_id, brandId: brand_id } = partner;
    const link = { code: newId("ctr"), contract_id: await contractIn("Active"), product_id, brand_id };
    const foreign = { ...link, code: newId("ctr"), product_id: stranger.productId };
    await accepted(...insert("referral_links", link));
    await rejected(UNIQUE, "referral_links_pkey", ...insert("referral_links", link));
    await rejected(FOREIGN_KEY, "referral_links_product_id_brand_id_fkey", ...insert("referral_links", foreign));
    const wrong = insert("referral_links", { ...foreign, brand_id: stranger.brandId });
    await rejected(FOREIGN_KEY, "referral_links_contract_id_brand_id_fkey", ...wrong);
  });

  it("a user can be a member of an organization once, and of several organizations", async () => {
    const user_id = newUser();
    await accepted(...member({ user_id })());
    await rejected(UNIQUE, "members_pkey", ...member({ user_id, role: "employee" })());
    await accepted(...member({ user_id, organization_id: stranger.organizationId })());
  });
});

it("an audit entry gets its time and role from the database, not from the INSERT", async () => {
  const { rows } = await db.query("SELECT session_user AS role, clock_timestamp() AS before");
  await accepted(...audit({ entity_id: "org_dated", at: "2001-01-01", database_role: "another_role" })());
  const { rows: written } = await db.query(
    `SELECT database_role,
            at >= date_trunc('milliseconds', $1::timestamptz) AND at <= clock_timestamp() AS just
       FROM audit_entries WHERE entity_id = 'org_dated'`,
    [rows[0].before],
  );
  expect(written).toEqual([{ database_role: rows[0].role, just: true }]);
});

it("a row of log_batches has either hashes or a position in the tree, and changes only once", async () => {
  const set = (change: string) => `UPDATE log_batches SET ${change} WHERE id = (SELECT max(id) FROM log_batches)`;
  await accepted(...logBatch({ leaves: 2, hashes: bytes(2) })());
  await rejected(TRIGGER, "changes only once", set("hashes = $1"), [bytes(2, 7)]);
  await rejected(TRIGGER, "changes only once", set("id = 9009"));
  await rejected(CHECK, "log_batches_placed_or_waiting", set("first_index = 0"));
  await accepted(set("first_index = 0, hashes = NULL"));
  await rejected(TRIGGER, "changes only once", set("first_index = 5"));
  await accepted(...logBatch({ leaves: 1, hashes: bytes(1) })());
  await rejected(UNIQUE, "log_batches_first_index_key", set("first_index = 0, hashes = NULL"));
  const places = set("first_index = 7, hashes = NULL, places = $1");
  for (const wrong of [[7, 9], [9], [null], []]) await rejected(CHECK, "log_batches_places", places, [wrong]);
  await accepted(places, [[7]]);
});

it("a log_batches id must be the last number that the session drew from the sequence", async () => {
  const leaf = { leaves: 1, hashes: bytes(1) };
  for (const id of ["nextval('log_batch_ids') + 1", "nextval('log_batch_ids') - 1", "0 * nextval('log_batch_ids')"])
    await rejected(TRIGGER, "the last one that this session drew", ...logBatch(leaf, id)());
  await rejected(
    TRIGGER,
    "the last one that this session drew",
    ...logBatch(leaf, "nextval('log_batch_ids') + 1e18")(),
  );
  const { rows } = await db.query("SELECT nextval('log_batch_ids') AS last");
  const outOfRange = logBatch(leaf, "setval('log_batch_ids', 2199023255552)");
  await rejected(CHECK, "log_batches_id_in_slot", ...outOfRange());
  await db.query("SELECT setval('log_batch_ids', $1)", [rows[0].last]);
  await accepted(...logBatch(leaf)());
});

it.each([
  ["log_bundles", "entries", {}],
  ["log_tiles", "hashes", { level: 1 }],
])("a row of %s has 1 to 256 hashes in %s, and can only get further hashes", async (table, column, rest) => {
  const row = (hashes: Buffer) => insert(table, { index: 0, ...rest, [column]: hashes });
  for (const wrong of [Buffer.alloc(31), bytes(257)]) await rejected(CHECK, `${table}_${column}_check`, ...row(wrong));
  await accepted(...row(bytes(2)));
  const update = `UPDATE ${table} SET ${column} = $1 WHERE index = 0`;
  for (const wrong of [bytes(1), Buffer.concat([bytes(1), bytes(2, 2)])])
    await rejected(TRIGGER, "only grows", update, [wrong]);
  await rejected(TRIGGER, "only grows", `UPDATE ${table} SET index = 9 WHERE index = 0`);
  await accepted(update, [Buffer.concat([bytes(2), bytes(1, 2)])]);
});

it.each([
  ["log_tree", { origin: "log.example" }],
  ["log_published", { note: "note", policy: "quorum none\n", published_at: new Date(0) }],
])("%s has one row, whose size never decreases and whose root never changes for a given size", async (table, rest) => {
  await accepted(...insert(table, { size: 5, root: bytes(1), ...rest }));
  await rejected(UNIQUE, `${table}_pkey`, ...insert(table, { size: 6, root: bytes(1), ...rest }));
  await rejected(TRIGGER, "never shrinks", `UPDATE ${table} SET size = 4`);
  await rejected(TRIGGER, "never shrinks", `UPDATE ${table} SET root = $1`, [bytes(1, 2)]);
  await accepted(`UPDATE ${table} SET size = 5, root = $1`, [bytes(1)]);
  await accepted(`UPDATE ${table} SET size = 6, root = $1`, [bytes(1, 2)]);
});

it("the transparency log can be renamed, and its checkpoint withdrawn, only with a recorded retirement", async () => {
  await db.query(`INSERT INTO log_tree VALUES (true, 'log.example', 0, sha256('')) ON CONFLICT DO NOTHING`);
  await db.query(
    `INSERT INTO log_published VALUES (true, 0, sha256(''), 'note', 'quorum none', now()) ON CONFLICT DO NOTHING`,
  );
  const [tree] = (await db.query("SELECT origin, size, root FROM log_tree")).rows;
  const rename = "UPDATE log_tree SET origin = 'next.example'";
  const record = (other: object) =>
    insert("log_retirements", {
      ...tree,
      next_origin: "next.example",
      last_note: "note",
      served_note: "note",
      policy: "quorum none\n",
      reason: "leaked",
      retired_at: new Date(0),
      ...other,
    });
  await rejected(CHECK, "log_retirements_check", ...record({ next_origin: "log.example" }));
  await rejected(CHECK, "log_retirements_reason_check", ...record({ reason: "" }));
  const stillNamed = async () => {
    await rejected(TRIGGER, "keeps its name", rename);
    await forbidden("permanent", ["DELETE FROM log_published", "TRUNCATE log_published"]);
  };
  await stillNamed();
  await accepted(...record({ origin: "other.example", served_note: "other" }));
  await stillNamed();
  await accepted(...record({}));
  await rejected(TRIGGER, "permanent", "UPDATE log_retirements SET reason = 'other'");
  await rejected(TRIGGER, "keeps its name", "UPDATE log_tree SET origin = 'third.example'");
  await accepted("DELETE FROM log_published");
  await accepted(rename);
});

/**
 * Expects Postgres itself to reject a statement with this SQLSTATE and this constraint, or part of the message. Appends
 * the table and the constraint to the file SEEN_CONSTRAINTS if it is set.
 */
async function rejected(code: string, by: string, text: string, values: unknown[] = []): Promise<void> {
  const error = await db.query(text, values).then(
    ({ rowCount }) => expect.fail(`accepted with ${rowCount} rows: ${text}`),
    (thrown: pg.DatabaseError) => thrown,
  );
  expect({ code: error.code, by: error.constraint ?? error.message }, text).toEqual({
    code,
    by: error.constraint === undefined ? expect.stringContaining(by) : by,
  });
  const seen = process.env.SEEN_CONSTRAINTS;
  if (seen && error.constraint !== undefined) appendFileSync(seen, `${error.table} ${error.constraint}\n`);
}

/** Expects the project's triggers to reject each statement. */
async function forbidden(by: string, statements: readonly string[], values: unknown[] = []): Promise<void> {
  for (const statement of statements) await rejected(TRIGGER, by, statement, values);
}

/** Expects Postgres to accept a statement and to change exactly one row. */
async function accepted(text: string, values: unknown[] = []): Promise<void> {
  const { rowCount } = await db.query(text, values);
  expect(rowCount, text).toBe(1);
}

function insert(table: string, row: Row): [text: string, values: unknown[]] {
  const columns = Object.keys(row);
  const numbers = columns.map((_, index) => `$${index + 1}`);
  return [`INSERT INTO ${table} (${columns.join(", ")}) VALUES (${numbers.join(", ")})`, Object.values(row)];
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
