import { readdirSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { lockReferences, readRedemptions } from "../../src/db/redemptions.ts";
import { readStatements } from "../../src/db/statements.ts";
import { inTransaction } from "../../src/db/transaction.ts";
import { findVoucherInOrganization } from "../../src/db/voucher-ranges.ts";
import { resolveVouchers } from "../../src/db/vouchers.ts";
import { statementsOf } from "../support/statement-users.ts";
import { useService } from "../support/use-service.ts";

const DIRECTORY = new URL("../../src/db/", import.meta.url);
/** Parameters that partners send. All other parameters come from rows that were found by one of these. */
const NAMES = ["code_key", "ticket", "external_ref", "redeem_code"];

/** Statements whose tickets do not come from a partner, and where they come from. */
const OWN_TICKETS: Record<string, string> = {
  end_reservations: "of reservations that were read under their vouchers' locks",
  select_live_tickets: "of leases that the sweeper found",
  announce_expired_reservations: "of reservations that the transaction has expired",
};

/** Statements that search all organizations, and who runs them. */
const ACROSS_ORGANIZATIONS: Record<string, string> = { find_vouchers: "operators", find_key_place: "operators" };

const STATEMENTS = readdirSync(DIRECTORY)
  .filter((file) => file.endsWith(".sql"))
  .flatMap((file) => Object.values(readStatements(new URL(file, DIRECTORY))));

const PARTNER_STATEMENTS = STATEMENTS.filter(
  ({ name, parameters }) =>
    NAMES.some((what) => parameters.includes(what)) && !(name in OWN_TICKETS) && !(name in ACROSS_ORGANIZATIONS),
);

describe("every statement with a parameter from a partner", () => {
  it("every statement with a parameter from a partner is on this list, and every exception is a statement that the service runs", () => {
    expect(PARTNER_STATEMENTS.map(({ name }) => name).sort()).toEqual([
      "end_references",
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

  it("no endpoint of a partner or a user can reach a statement that searches all organizations", () => {
    const routes = readdirSync(new URL("../../src/http/routes/", import.meta.url)).map(
      (file) => `src/http/routes/${file}`,
    );
    const reachable = statementsOf(...routes);
    expect(reachable).toContain("resolve_vouchers");
    expect(Object.keys(ACROSS_ORGANIZATIONS).filter((name) => reachable.has(name))).toEqual([]);
    const run = statementsOf("src/main.ts", "src/cli/main.ts");
    for (const name of Object.keys(ACROSS_ORGANIZATIONS)) expect(run, name).toContain(name);
  });

  it.each(
    PARTNER_STATEMENTS,
  )("$name also takes the organization and compares it in every clause that searches by such a parameter", ({
    parameters,
    text,
  }) => {
    expect(parameters).toContain("organization_id");
    // Arrays are unnested under the names of their parameters, so w.organization_id belongs to the same entry. src/db/pool.ts explains
    // ANY (ARRAY[...]).
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

it("each statement finds a voucher, a reservation and a redemption for their organization and nothing for another", async () => {
  const [held, redeemed] = [await issue(), await issue()];
  const { ticket } = (await till.reserve(held.code)).body;
  expect(await till.redeem({ code: redeemed.code, externalRef: "order-1" })).toMatchObject({ status: 200 });

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
      foundByCode: await findVoucherInOrganization(db, organizationId, held.code.replaceAll("-", "")),
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
