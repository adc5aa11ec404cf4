import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Filters, LISTS as OF_CORE } from "../../src/acts/db/lists.ts";
import { listCatalog } from "../../src/acts/list-catalog.ts";
import { createOrganization } from "../../src/acts/org/create.ts";
import { newId } from "../../src/core/voucher/ids.ts";
import { acceptContract, createLink, createListing, offerContract } from "../../src/marketplace/acts.ts";
import { CONTRACTS, insertContract, LINKS } from "../../src/marketplace/db/contracts.ts";
import { LISTINGS } from "../../src/marketplace/db/listings.ts";
import { readStatements } from "../../src/platform/db/statements.ts";
import { openTestServers, type TestServers } from "../support/servers.ts";
import { issueVouchers, makePartner, provisioning, type TestPartner } from "../support/supply.ts";

const LISTS = { ...OF_CORE, listings: LISTINGS, contracts: CONTRACTS, links: LINKS };
type ListName = keyof typeof LISTS;
const STATEMENTS = Object.assign(
  {},
  ...["acts/db/lists", "marketplace/db/listings", "marketplace/db/contracts"].map((file) =>
    readStatements(new URL(`../../src/${file}.sql`, import.meta.url)),
  ),
) as ReturnType<typeof readStatements>;
const NAMES = Object.keys(LISTS) as ListName[];
/** Rows of each table. */
const COUNT = 7;

let servers: TestServers;
let partners: TestPartner[];
const expected: Record<ListName, string[]> = {
  organizations: [],
  brands: [],
  products: [],
  batches: [],
  listings: [],
  contracts: [],
  links: [],
  operators: [],
};

beforeAll(async () => {
  servers = await openTestServers();
  const ctx = provisioning(servers.db);
  partners = [];
  for (let i = 0; i < COUNT; i++) {
    const partner = await makePartner(servers.db);
    partners.push(partner);
    await issueVouchers(servers.db, partner, 1, { windows: { buy: { opensAt: null, closesAt: null } } });
    const { rows } = await servers.db.query("SELECT id FROM batches WHERE product_id = $1", [partner.productId]);
    const listing = await createListing.run(ctx, rows[0].id, {});
    const { id: contract } = await offerContract.run(ctx, partner.brandId, { user: `user-${i}`, endsAt: null });
    await acceptContract.run(ctx, contract, {});
    expected.organizations.push(partner.organizationId);
    expected.brands.push(partner.brandId);
    expected.products.push(partner.productId);
    expected.batches.push(rows[0].id);
    expected.listings.push(listing.id);
    expected.contracts.push(contract);
    expected.links.push((await createLink.run(ctx, contract, { product: partner.productId })).code);
  }
  expected.links.sort();
});

afterAll(() => servers.close());

describe.each(NAMES)("the list of %s", (name) => {
  it("a list shows each entry once over all pages, in the order of the list's key", async () => {
    const seen: unknown[] = [];
    let after = "";
    for (let page = 0; ; page++) {
      const { items, nextCursor } = await listCatalog({ pool: servers.db }, LISTS[name], {}, { after, limit: 3 });
      seen.push(...idsOf(items));
      if (nextCursor === null) break;
      expect(items).toHaveLength(3);
      after = nextCursor;
      expect(page).toBeLessThan(COUNT);
    }
    expect(seen).toEqual(expected[name]);
    const whole = await listCatalog({ pool: servers.db }, LISTS[name], {}, { after: "", limit: COUNT });
    expect(whole.nextCursor).toBeNull();
  });

  it("a list reads in the order of an index, and reads no voucher, reservation, redemption or event", async () => {
    const { filters, key } = LISTS[name];
    const client = await servers.db.connect();
    try {
      // Forbids every plan that sorts. If an index has the order of the list, the plan reads that index.
      for (const way of ["seqscan", "bitmapscan", "hashjoin", "mergejoin", "sort"]) {
        await client.query(`SET enable_${way} = off`);
      }
      await client.query(`PREPARE listed AS ${STATEMENTS[`list_${name}`]?.text}`);
      const values = [...filters.map(() => "NULL"), "''", "10"].join(", ");
      const { rows } = await client.query(`EXPLAIN (FORMAT JSON) EXECUTE listed(${values})`);
      const plan = JSON.stringify(rows[0]["QUERY PLAN"]);
      expect(plan).not.toMatch(/"Relation Name":"(vouchers|reservations|redemptions|voucher_events)"/);
      expect(plan).not.toContain('"Node Type":"Sort"');
      expect(plan).toContain(`"Index Cond":"(${key} > ''::text)"`);
    } finally {
      client.release(true);
    }
  });
});

describe("a list with filters", () => {
  const ids = async <Name extends ListName>(name: Name, filters: Filters<(typeof LISTS)[Name]>) =>
    idsOf((await listCatalog({ pool: servers.db }, LISTS[name], filters, { after: "", limit: 100 })).items);

  it("a list with several filters shows only entries that match all filters", async () => {
    const [, partner] = partners;
    if (partner === undefined) throw new Error("no partner");
    const { organizationId: org, brandId: brand, productId: product } = partner;
    const second = (name: ListName) => [expected[name][1] ?? ""];
    expect(await ids("brands", { org })).toEqual([brand]);
    for (const filters of [{ org }, { brand }]) expect(await ids("products", filters)).toEqual([product]);
    for (const filters of [{ org }, { brand }, { product }])
      expect(await ids("batches", filters)).toEqual(second("batches"));
    const [batch = ""] = second("batches");
    for (const filters of [{ org }, { product }, { batch }])
      expect(await ids("listings", filters)).toEqual(second("listings"));
    for (const filters of [{ brand }, { user: "user-1" }, { brand, user: "user-1", status: "Active" }]) {
      expect(await ids("contracts", filters)).toEqual(second("contracts"));
    }
    const [contract = ""] = second("contracts");
    const links = await ids("links", { contract });
    expect(links).toHaveLength(1);
    for (const filters of [{ product }, { user: "user-1" }]) expect(await ids("links", filters)).toEqual(links);
    expect(await ids("contracts", { status: "Offered" })).toEqual([]);
  });

  it("a list refuses a filter by an unknown id, and is empty for a known id without entries", async () => {
    const ctx = provisioning(servers.db);
    const { id: empty } = await createOrganization.run(ctx, "", { name: "Without brands", sandbox: false });
    expect(await ids("brands", { org: empty })).toEqual([]);
    for (const [name, filter, kind, prefix] of [
      ["brands", "org", "organization", "org"],
      ["products", "brand", "brand", "brd"],
      ["batches", "product", "product", "prd"],
      ["listings", "batch", "batch", "bat"],
      ["links", "contract", "contract", "ctr"],
    ] as const) {
      const id = newId(prefix);
      await expect(ids(name, { [filter]: id })).rejects.toThrow(`There is no ${kind} ${id}.`);
    }
  });

  it("a list filters by any part of a name, and takes % and _ literally", async () => {
    await servers.db.query("INSERT INTO organizations (id, name) VALUES ($1, 'Café 100%_sure')", [newId("org")]);
    const names = async (name: string) =>
      (await listCatalog({ pool: servers.db }, LISTS.organizations, { name }, { after: "", limit: 100 })).items.map(
        (item) => item.name,
      );
    expect(await names("CAF")).toEqual(["Café 100%_sure"]);
    expect(await names("0%_s")).toEqual(["Café 100%_sure"]);
    expect(await names("_")).toEqual(["Café 100%_sure"]);
  });

  it("a list of contracts shows an Active contract as Ended after the contract's end", async () => {
    const ctx = provisioning(servers.db);
    const [partner] = partners;
    const id = newId("ctr");
    const endsAt = new Date(Date.now() - 1_000);
    await insertContract(servers.db, { id, brandId: partner?.brandId ?? "", userId: "late", endsAt });
    await acceptContract.run(ctx, id, {});
    expect(await ids("contracts", { user: "late", status: "Ended" })).toEqual([id]);
    expect(await ids("contracts", { user: "late", status: "Active" })).toEqual([]);
  });
});

const idsOf = (items: readonly object[]) => items.map((item) => ("code" in item ? item.code : "id" in item && item.id));
