import { readdirSync, readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { findConfirmations, findRedemption } from "../../src/db/redemptions.ts";
import { findHoldVoucher } from "../../src/db/reservations.ts";
import { findVoucherInOrganization, resolveVouchers } from "../../src/db/vouchers.ts";
import { partnerClient } from "../support/client.ts";
import { openTestServers, type TestServers } from "../support/servers.ts";
import { startApi, startWorkers, type TestApi, type TestWorker } from "../support/service.ts";
import { statementsOf } from "../support/statement-users.ts";
import { issueVoucher, makeKey, makePartner } from "../support/supply.ts";

const DIRECTORY = new URL("../../src/db/", import.meta.url);
/** What partners send to name something. Everything else that statements take comes from rows found by one of these. */
const NAMES = ["code_key", "ticket", "external_ref", "redeem_code"];

/** Statements that take tickets which no partner sent, and where those come from. */
const OWN_TICKETS: Record<string, string> = {
  end_holds: "of holds that were read under their vouchers' locks",
  select_overdue_holds: "where the sweeper stopped",
  select_live_holds: "where the sweeper stopped",
  select_live_tickets: "of leases that the sweeper found",
};

interface Block {
  name: string;
  /** Its parameters' names by number. */
  parameters: Map<number, string>;
  text: string;
}

const BLOCKS: Block[] = readdirSync(DIRECTORY)
  .filter((file) => file.endsWith(".sql"))
  .flatMap((file) =>
    readFileSync(new URL(file, DIRECTORY), "utf8")
      .split(/^-- name: /m)
      .slice(1),
  )
  .map((block) => {
    const [name = "", ...lines] = block.split("\n");
    const comment = lines.filter((line) => line.startsWith("--")).join(" ");
    const parameters = Array.from(
      comment.matchAll(/\$(\d+) (\w+)/g),
      ([, number, what = ""]) => [Number(number), what] as const,
    );
    return { name, parameters: new Map(parameters), text: lines.filter((line) => !line.startsWith("--")).join("\n") };
  });

const PARTNER_STATEMENTS = BLOCKS.filter(
  ({ name, parameters }) => NAMES.some((what) => [...parameters.values()].includes(what)) && !(name in OWN_TICKETS),
);

describe("every statement that takes what a partner sent", () => {
  it("is found, and every exception is a statement that no partner's call runs with what it sent", () => {
    expect(PARTNER_STATEMENTS.map(({ name }) => name).sort()).toEqual([
      "find_confirmations",
      "find_hold_voucher",
      "find_redeem_result",
      "find_voucher_in_organization",
      "insert_redemptions",
      "open_holds",
      "resolve_vouchers",
    ]);
    const run = statementsOf("src/main.ts", "workers/main.ts");
    for (const name of Object.keys(OWN_TICKETS)) expect(run, name).toContain(name);
  });

  it.each(PARTNER_STATEMENTS)("$name takes the organization, too, and reads no table by a name without comparing it", ({
    parameters,
    text,
  }) => {
    const organization = [...parameters].find(([, what]) => what === "organization_id")?.[0];
    expect(organization).toBeTypeOf("number");
    // Lists are unnested under the names of their parameters; w.organization_id is the organization that stands beside the name.
    // Either is how a column of another table is compared; src/db/pool.ts says why there are two.
    const plain = text.replaceAll(/ANY \(ARRAY\[([\w.]+)\]\)/g, "$1");
    const asked = text.includes("unnest(") ? "w.organization_id" : `$${organization}::text`;
    for (const column of NAMES) {
      const given = [
        `= w.${column}`,
        ...[...parameters].filter(([, what]) => what === column).map(([n]) => `= $${n}::text`),
      ];
      for (const clause of plain.split(/\b(?:UNION ALL|LEFT JOIN(?! LATERAL)|ORDER BY|ON CONFLICT)\b/)) {
        if (!given.some((comparison) => clause.includes(comparison))) continue;
        const compared = new RegExp(`\\.organization_id = ${asked.replace(/[.$]/g, "\\$&")}`);
        expect(clause, `by ${column}`).toMatch(compared);
      }
    }
  });
});

describe("on real rows", () => {
  let servers: TestServers;
  let api: TestApi;
  let workers: TestWorker;

  beforeAll(async () => {
    servers = await openTestServers();
    [api, workers] = await Promise.all([startApi(servers), startWorkers(servers)]);
  });

  afterAll(async () => {
    await Promise.all([api.close(), workers.close()]);
    await servers.close();
  });

  it("each finds a voucher, a hold and a burn for their organization and nothing for any other", async () => {
    const [owner, stranger] = [await makePartner(servers.db), await makePartner(servers.db)];
    const till = partnerClient(api.url, (await makeKey(servers.db, owner.organizationId)).key);
    const [held, burnt] = [await issueVoucher(servers.db, owner), await issueVoucher(servers.db, owner)];
    const { ticket } = (await till.reserve(held.code)).body;
    expect(await till.redeem({ code: burnt.code, externalRef: "order-1" })).toMatchObject({ status: 200 });

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
        holdByCode: byCode?.hold?.ticket ?? null,
        resolvedByTicket: byTicket?.voucher?.id ?? null,
        confirmed: byRef?.confirmed,
        foundByCode: await findVoucherInOrganization(servers.db, organizationId, held.code.replaceAll("-", "")),
        foundByTicket: await findHoldVoucher(api.ctx.pool, ticket, organizationId),
        burnt: (await findRedemption(api.ctx.pool, ref))?.voucherId ?? null,
        confirmations: (await findConfirmations(api.ctx.pool, [ref])).size,
      };
    };
    expect(await look(owner.organizationId)).toEqual({
      resolvedByCode: held.id,
      holdByCode: ticket,
      resolvedByTicket: held.id,
      confirmed: true,
      foundByCode: held.id,
      foundByTicket: held.id,
      burnt: burnt.id,
      confirmations: 1,
    });
    expect(await look(stranger.organizationId)).toEqual({
      resolvedByCode: null,
      holdByCode: null,
      resolvedByTicket: null,
      confirmed: false,
      foundByCode: null,
      foundByTicket: null,
      burnt: null,
      confirmations: 0,
    });
  });
});
