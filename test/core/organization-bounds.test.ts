import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { lockReferences, readRedemptions } from "../../src/core/redeem/db/redemptions.ts";
import { normaliseRedeemCode } from "../../src/core/voucher/codes.ts";
import {
  findVoucherInOrganization,
  selectVouchersBy,
  type VoucherCriteria,
} from "../../src/core/voucher/db/voucher-ranges.ts";
import { resolveVouchers } from "../../src/core/voucher/db/vouchers.ts";
import { newId } from "../../src/core/voucher/ids.ts";
import { readStatements } from "../../src/platform/db/statements.ts";
import { inTransaction } from "../../src/platform/db/transaction.ts";
import {
  changeWebhookEndpoint,
  deleteWebhookEndpoint,
  insertWebhookEndpoint,
  rotateWebhookSecret,
  selectWebhookEndpoints,
} from "../../src/webhooks/db/webhook-endpoints.ts";
import { untilCurrent } from "../support/service.ts";
import { findFiles, findStatementFiles } from "../support/source-files.ts";
import { statementsOf } from "../support/statement-users.ts";
import { useService } from "../support/use-service.ts";

const ROOT = new URL("../../", import.meta.url);
/** Parameters that partners send. All other parameters come from rows that a statement with one of these has found. */
const NAMES = ["code_key", "ticket", "external_ref", "redeem_code"];

/** Statements whose tickets do not come from a partner, with the source of each ticket. */
const OWN_TICKETS: Record<string, string> = {
  end_reservations: "of reservations that were read under their vouchers' locks",
  announce_expired_reservations: "of reservations that the transaction has expired",
};

/** Statements without an organization, which read all organizations, but only for operators. */
const ACROSS_ORGANIZATIONS = ["find_key_place", "find_organization_of_webhook", "select_organizations_with_brands"];

/** Searches by any identifier, within the given organizations. A test below runs each search. */
const FOUND_BY_ANY = "find_vouchers";

const FILES = findStatementFiles();
const STATEMENTS = FILES.flatMap((file) => Object.values(readStatements(new URL(file, ROOT))));

/** Statements that read all organizations if `organization_id` is null. `insert_key` only stores the null. */
const OPTIONAL_ORGANIZATION = FILES.flatMap((file) =>
  Array.from(readFileSync(new URL(file, ROOT), "utf8").matchAll(/^-- name: (\w+)\([^)]*organization_id\?/gm), String),
)
  .map((match) => /name: (\w+)/.exec(match)?.[1] ?? "")
  .filter((name) => name !== "insert_key");

const PARTNER_STATEMENTS = STATEMENTS.filter(
  ({ name, parameters }) =>
    NAMES.some((what) => parameters.includes(what)) && !(name in OWN_TICKETS) && name !== FOUND_BY_ANY,
);

describe("SQL statements with a parameter from a partner", () => {
  it("this file lists every SQL statement with a parameter from a partner, and the service uses each exception", () => {
    expect(PARTNER_STATEMENTS.map(({ name }) => name).sort()).toEqual([
      "end_references",
      "find_erasable",
      "find_logged_redemption",
      "find_references",
      "find_voucher_in_organization",
      "insert_redemptions",
      "lock_references",
      "lock_references_to_end",
      "open_reservations",
      "read_redemptions",
      "resolve_vouchers",
    ]);
    const run = statementsOf("src/main.ts", "workers/main.ts");
    for (const name of Object.keys(OWN_TICKETS)) expect(run, name).toContain(name);
  });

  it("no partner route, user route or portal page runs a statement that reads from all organizations", () => {
    const routes = findFiles("src").filter((file) => file.includes("/routes/"));
    expect(routes.length).toBeGreaterThan(20);
    const portal = findFiles("src").filter((file) => /\/portal\/.*\.ts$/.test(file));
    const reachable = statementsOf(...routes, ...portal);
    for (const name of ["resolve_vouchers", "find_vouchers", "select_webhook_endpoints"])
      expect(reachable).toContain(name);
    const across = [...ACROSS_ORGANIZATIONS, ...OPTIONAL_ORGANIZATION];
    expect(OPTIONAL_ORGANIZATION).toContain("read_stock");
    expect(across.filter((name) => reachable.has(name))).toEqual([]);
    const ofWings = findFiles("src").filter((file) => /\/in-\w+\.ts$/.test(file));
    const run = statementsOf("src/main.ts", "src/cli/main.ts", ...ofWings);
    for (const name of across) expect(run, name).toContain(name);
  });

  it("only the listed SQL statements treat a missing organization as all organizations", () => {
    const asAll = STATEMENTS.filter(({ name, parameters, text }) => {
      const parameter = `\\$${parameters.findIndex((each) => /^organization_ids?$/.test(each)) + 1}::text(?:\\[\\])?`;
      const missing = new RegExp(
        [
          `(?:coalesce|nullif)\\(${parameter}`,
          `${parameter} IS `,
          `= ${parameter}\\)? IS NOT FALSE`,
          `DISTINCT FROM (?:coalesce\\()?${parameter}`,
        ].join("|"),
      );
      return !OPTIONAL_ORGANIZATION.includes(name) && missing.test(text);
    });
    expect(asAll.map(({ name }) => name)).toEqual([]);
  });

  it.each(
    PARTNER_STATEMENTS,
  )("the SQL statement $name compares the organization wherever it compares a partner's parameter", ({
    parameters,
    text,
  }) => {
    expect(parameters).toContain("organization_id");
    // `unnest` puts the n-th value of each array parameter into row n of `w`. So w.organization_id is the organization
    // given for the identifier in that row, such as w.ticket.
    // src/platform/db/pool.ts explains ANY (ARRAY[...]).
    const plain = text.replaceAll(/ANY \(ARRAY\[([\w.]+)\]\)/g, "$1");
    const organizationColumn = text.includes("unnest(")
      ? "w.organization_id"
      : `$${parameters.indexOf("organization_id") + 1}::text`;
    for (const column of NAMES) {
      const given = [`= w.${column}`, `= $${parameters.indexOf(column) + 1}::text`];
      for (const clause of plain.split(/\b(?:UNION ALL|LEFT JOIN(?! LATERAL)|ORDER BY|ON CONFLICT)\b/)) {
        if (!given.some((comparison) => clause.includes(comparison))) continue;
        const compared = new RegExp(`\\.organization_id = ${organizationColumn.replace(/[.$]/g, "\\$&")}`);
        expect(clause, `by ${column}`).toMatch(compared);
      }
    }
  });
});

const { db, api, till, partner, stranger, issue } = useService();

it("each SQL statement finds a voucher, reservation or redemption only for its organization", async () => {
  const [held, redeemed] = [await issue(), await issue()];
  const { ticket } = (await till.reserve(held.code)).body;
  // The tests above block this process for seconds. After such a block, redeems answer redeem_unknown for a while.
  await untilCurrent(api);
  expect((await till.redeem({ code: redeemed.code, externalRef: "order-1" })).status).toBe(200);

  const look = async (organizationId: string) => {
    const ref = { organizationId, externalRef: "order-1" };
    const names = [
      { organizationId, codeKey: held.code.replaceAll("-", ""), ticket: null, externalRef: null },
      { organizationId, codeKey: null, ticket, externalRef: null },
      { organizationId, codeKey: null, ticket: null, externalRef: "order-1" },
    ];
    const [byCode, byTicket, byRef] = await resolveVouchers(api.ctx.pool, names);
    return {
      resolvedByCode: byCode?.voucher?.id ?? null,
      reservationByCode: byCode?.reservation?.ticket ?? null,
      resolvedByTicket: byTicket?.voucher?.id ?? null,
      confirmed: byRef?.redeemed?.voucherId ?? null,
      foundByCode: await findVoucherInOrganization(db, { organizationId, codeKey: held.code.replaceAll("-", "") }),
      redeemed: (await readRedemptions(api.ctx.pool, [ref]))[0]?.redemption?.voucherId ?? null,
      known: await inTransaction(api.ctx.pool, (tx) => lockReferences(tx, [{ ...ref, seenEnd: 0, generation: 2 }])),
    };
  };
  expect(await look(partner.organizationId)).toEqual({
    resolvedByCode: held.id,
    reservationByCode: ticket,
    resolvedByTicket: held.id,
    confirmed: redeemed.id,
    foundByCode: held.id,
    redeemed: redeemed.id,
    known: [{ n: 0, isEnded: false, confirmation: expect.objectContaining({ redeemCode: expect.any(String) }) }],
  });
  expect(await look(stranger.organizationId)).toEqual({
    resolvedByCode: null,
    reservationByCode: null,
    resolvedByTicket: null,
    confirmed: null,
    foundByCode: null,
    redeemed: null,
    known: [],
  });
});

it("find_vouchers finds a voucher by any identifier only for the voucher's organization", async () => {
  const voucher = await issue();
  const { ticket } = (await till.reserve(voucher.code)).body;
  const { redeemCode } = (await till.redeem({ ticket, externalRef: "order-any" })).body;
  const batch = await db.query("SELECT batch_id, serial FROM vouchers WHERE id = $1", [voucher.id]);
  const none = {
    codeKey: null,
    ticket: null,
    voucherId: null,
    externalRef: null,
    redeemCode: null,
    batchId: null,
    serial: null,
  };
  const identifiers: Partial<VoucherCriteria>[] = [
    { codeKey: voucher.code.replaceAll("-", "") },
    { ticket },
    { voucherId: voucher.id },
    { externalRef: "order-any" },
    { redeemCode: normaliseRedeemCode(redeemCode) },
    { batchId: batch.rows[0].batch_id, serial: batch.rows[0].serial },
  ];
  const find = async (organizationIds: unknown, by: Partial<VoucherCriteria>) =>
    (await selectVouchersBy(db, organizationIds as string[], { ...none, ...by }, 10)).map(({ id }) => id);
  for (const by of identifiers) {
    const name = JSON.stringify(Object.keys(by));
    expect(await find([partner.organizationId], by), name).toEqual([voucher.id]);
    for (const others of [[stranger.organizationId], [], [null], null]) {
      expect(await find(others, by), `${name} for ${others}`).toEqual([]);
    }
  }
});

it("a webhook endpoint can be found and changed only for its organization", async () => {
  const id = newId("whk");
  const endpoint = { id, url: "https://shop.test/", description: "", eventTypes: [], enabled: true, places: 1 };
  const { organizationId } = partner;
  expect(await insertWebhookEndpoint(db, { ...endpoint, organizationId })).toBe(true);
  for (const other of [stranger.organizationId, null] as string[]) {
    expect(await selectWebhookEndpoints(db, other)).toEqual([]);
    expect(await changeWebhookEndpoint(db, id, other, { description: "changed" })).toBe(false);
    expect(await rotateWebhookSecret(db, { id, organizationId: other, hours: 1, secretsMax: 10 })).toBeNull();
    expect(await deleteWebhookEndpoint(db, { id, organizationId: other })).toBe(false);
  }
  expect(await selectWebhookEndpoints(db, organizationId)).toMatchObject([{ description: "", signingVersions: [1] }]);
});
