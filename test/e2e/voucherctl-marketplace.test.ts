import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { newId } from "../../src/domain/ids.ts";
import { assertInvariants } from "../support/invariants.ts";
import { inSeconds, makeContract, newUser, offerBatch, outcome, signedIn } from "../support/marketplace.ts";
import { dumpRows } from "../support/row-dump.ts";
import { openTestServers, type TestServers } from "../support/servers.ts";
import { startApi, type TestApi } from "../support/service.ts";
import { issueVouchers, makePartner, type TestPartner } from "../support/supply.ts";
import { type IssuerKey, type KeysFile, makeIssuerKey, writeKeysFile } from "../support/user-tokens.ts";
import { openVoucherctl, type Voucherctl } from "../support/voucherctl.ts";

let servers: TestServers;
let voucherctl: Voucherctl;
let api: TestApi;
let key: IssuerKey;
let keysFile: KeysFile;
let partner: TestPartner;
let stranger: TestPartner;

beforeAll(async () => {
  servers = await openTestServers();
  voucherctl = openVoucherctl(servers);
  key = await makeIssuerKey();
  keysFile = writeKeysFile(key);
  api = await startApi(servers, { AUTH_JWKS_URL: keysFile.url });
  partner = await makePartner(servers.db);
  stranger = await makePartner(servers.db);
});

afterAll(async () => {
  await assertInvariants(servers.db);
  await api.close();
  voucherctl.close();
  await servers.close();
  keysFile.remove();
});

/** Runs a command that must succeed, without --json, and returns its text. */
async function words(...args: string[]): Promise<string> {
  const { exitCode, stdout, stderr } = await voucherctl.run(args);
  expect({ exitCode, stderr }, args.join(" ")).toEqual({
    exitCode: 0,
    stderr: expect.stringMatching(/^(Next: .*\n)?$/),
  });
  return stdout;
}

/** Expects that each command fails with a message, prints no result and writes no row. */
async function expectFailures(...commands: [args: readonly string[], sentence: RegExp][]): Promise<void> {
  const before = await dumpRows(servers.db);
  const runs = commands.map(([args], index) => voucherctl.run(index % 2 === 0 ? args : [...args, "--json"]));
  for (const [index, { exitCode, stdout, stderr }] of (await Promise.all(runs)).entries()) {
    const [args, sentence] = commands[index] as (typeof commands)[number];
    expect({ failed: exitCode !== 0 && exitCode !== null, stdout }, args.join(" ")).toEqual({
      failed: true,
      stdout: "",
    });
    expect(stderr, args.join(" ")).toMatch(sentence);
    // A message for a person, not a stack trace.
    expect(stderr).not.toMatch(/^\s+at .+:\d+/m);
  }
  expect(await dumpRows(servers.db)).toEqual(before);
}

async function readRows(query: string, values: unknown[]): Promise<Record<string, unknown>[]> {
  return (await servers.db.query(query, values)).rows;
}

const id = (prefix: string) => expect.stringMatching(new RegExp(`^${prefix}_[0-9a-z]{26}$`));
const VALID = ["--valid-until", "2099-12-31T23:59:59Z"];

describe("voucherctl member add", () => {
  const add = (user: string, role: string, org = partner.organizationId) => [
    "member",
    "add",
    "--org",
    org,
    "--user",
    user,
    "--role",
    role,
  ];

  it("adds a member or changes a member's role, and says so", async () => {
    const user = newUser();
    const member = { organizationId: partner.organizationId, user };
    expect(await voucherctl.json(...add(user, "employee"))).toStrictEqual({ ...member, role: "employee" });
    expect(await words(...add(user, "owner"))).toBe(`${user} is owner of ${partner.organizationId}.\n`);
    expect(await readRows("SELECT organization_id, role FROM members WHERE user_id = $1", [user])).toEqual([
      { organization_id: partner.organizationId, role: "owner" },
    ]);
  });

  it("refuses an unknown organization, an unknown role and an invalid user", async () => {
    const unknown = newId("org");
    await expectFailures(
      [add(newUser(), "owner", unknown), new RegExp(unknown)],
      [add(newUser(), "admin"), /--role/],
      [add("", "owner"), /--user/],
      [add("x".repeat(256), "owner"), /--user/],
    );
  });
});

describe("voucherctl contract", () => {
  const offer = (user: string, ...more: string[]) => [
    "contract",
    "offer",
    "--brand",
    partner.brandId,
    "--user",
    user,
    ...more,
  ];
  const read = (contract: string) =>
    readRows("SELECT brand_id, user_id, status, ends_at FROM referrer_contracts WHERE id = $1", [contract]);

  it("offer creates an Offered contract with or without an end", async () => {
    const [user, other] = [newUser(), newUser()];
    const made = await voucherctl.json(...offer(user));
    expect(made).toStrictEqual({ id: id("ctr") });
    expect(await read(made.id)).toEqual([
      { brand_id: partner.brandId, user_id: user, status: "Offered", ends_at: null },
    ]);
    const [, spoken = ""] =
      /^Offered contract (ctr_[0-9a-z]{26}) to (.+)\. It ends at 2099-06-30 10:00:00 UTC\.\n$/.exec(
        await words(...offer(other, "--ends-at", "2099-06-30T12:00:00+02:00")),
      ) ?? [];
    expect(await read(spoken)).toMatchObject([{ user_id: other, ends_at: new Date("2099-06-30T10:00:00Z") }]);
  });

  it("offer warns that the end is in the past", async () => {
    expect(await words(...offer(newUser(), "--ends-at", "2020-01-01"))).toMatch(
      /^Offered contract .+\. It ends at 2020-01-01 00:00:00 UTC\.\nWarning: this time is in the past, so the contract has no effect\.\n$/,
    );
  });

  it("accept, decline and end change the status and print the new one", async () => {
    const [first, second] = [
      await makeContract(servers.db, partner.brandId, newUser(), "Offered"),
      await makeContract(servers.db, partner.brandId, newUser(), "Offered"),
    ];
    expect(await voucherctl.json("contract", "accept", first)).toStrictEqual({ id: first, status: "Active" });
    expect(await voucherctl.json("contract", "end", first)).toStrictEqual({ id: first, status: "Ended" });
    expect(await words("contract", "decline", second)).toBe(`Contract ${second} is Declined.\n`);
    expect(await read(first)).toMatchObject([{ status: "Ended" }]);
    expect(await read(second)).toMatchObject([{ status: "Declined" }]);
  });

  it("refuses every other change and names the current status", async () => {
    const make = (...[status]: Parameters<typeof makeContract>[3][]) =>
      makeContract(servers.db, partner.brandId, newUser(), status);
    await expectFailures(
      [["contract", "end", await make("Offered")], /Offered/],
      [["contract", "accept", await make("Active")], /Active/],
      [["contract", "decline", await make("Active")], /Active/],
      [["contract", "accept", await make("Ended")], /Ended/],
    );
  });

  it("refuses a second open contract, unknown brands and contracts, invalid times and missing options", async () => {
    const user = newUser();
    await makeContract(servers.db, partner.brandId, user);
    const [brand, contract] = [newId("brd"), newId("ctr")];
    await expectFailures(
      [offer(user), /open contract/],
      [["contract", "offer", "--brand", brand, "--user", user], new RegExp(brand)],
      [["contract", "accept", contract], new RegExp(contract)],
      [offer(newUser(), "--ends-at", "tomorrow"), /--ends-at/],
      [["contract", "offer", "--user", user], /--brand/],
      [["contract", "end"], /id/],
    );
  });

  it("end takes away the referrer's access and the link at once", async () => {
    const user = newUser();
    const contract = await makeContract(servers.db, partner.brandId, user);
    const { listingId } = await offerBatch(servers.db, partner, 2, { audience: "ReferrerOnly" });
    const { code } = await voucherctl.json("link", "create", "--contract", contract, "--product", partner.productId);
    const client = await signedIn(api.url, key, user);
    expect((await client.listing(listingId)).body.canBuy).toBe(true);
    await voucherctl.json("contract", "end", contract);
    expect((await client.listing(listingId)).body.canBuy).toBe(false);
    expect(outcome(await client.buyListing(listingId))).toBe("403 referrers_only");
    expect(outcome(await client.claimByLink(code))).toBe("404 link_not_found");
  });
});

describe("voucherctl link create", () => {
  it("creates a new link on each call, and users can claim through it", async () => {
    const contract = await makeContract(servers.db, partner.brandId, newUser());
    const create = ["link", "create", "--contract", contract, "--product", partner.productId];
    const made = await voucherctl.json(...create);
    expect(made).toStrictEqual({ code: expect.stringMatching(/^[0-9a-hjkmnp-tv-z]{12}$/) });
    const [, spoken = ""] =
      /^Users claim a voucher with POST \/r\/([0-9a-z]{12})\/claim\n$/.exec(await words(...create)) ?? [];
    expect(
      await readRows("SELECT code FROM referral_links WHERE contract_id = $1 ORDER BY created_at", [contract]),
    ).toEqual([{ code: made.code }, { code: spoken }]);
    await offerBatch(servers.db, partner, 1, { audience: "ReferrerOnly" });
    expect(outcome(await (await signedIn(api.url, key)).claimByLink(spoken))).toBe("200");
  });

  it("refuses a product of another brand, unknown contracts and products, and missing options", async () => {
    const contract = await makeContract(servers.db, partner.brandId, newUser());
    const [unknown, product] = [newId("ctr"), newId("prd")];
    const create = (contractId: string, productId: string) => [
      "link",
      "create",
      "--contract",
      contractId,
      "--product",
      productId,
    ];
    await expectFailures(
      [create(contract, stranger.productId), new RegExp(stranger.productId)],
      [create(unknown, partner.productId), new RegExp(unknown)],
      [create(contract, product), new RegExp(product)],
      [["link", "create", "--contract", contract], /--product/],
    );
  });
});

describe("voucherctl batch issue with windows", () => {
  const issue = (...more: string[]) => [
    "batch",
    "issue",
    "--product",
    partner.productId,
    "--count",
    "2",
    ...VALID,
    ...more,
  ];
  const windows = (batchId: string) =>
    readRows("SELECT kind, opens_at, closes_at FROM batch_windows WHERE batch_id = $1 ORDER BY kind", [batchId]);
  const countPickable = async (batchId: string) =>
    (
      await readRows("SELECT count(*) FILTER (WHERE pickable)::int AS n FROM vouchers WHERE batch_id = $1", [batchId])
    )[0]?.n;

  it("opens no window by default, so that no user can take its vouchers", async () => {
    const { id: batchId } = await voucherctl.json(...issue());
    expect(await windows(batchId)).toEqual([]);
    expect(await countPickable(batchId)).toBe(0);
  });

  it("opens the requested windows, at once and without end or between the given times", async () => {
    const { id: claims } = await voucherctl.json(...issue("--claim"));
    expect(await windows(claims)).toEqual([{ kind: "claim", opens_at: null, closes_at: null }]);
    expect(await countPickable(claims)).toBe(2);
    const { id: both } = await voucherctl.json(
      ...issue(
        "--claim",
        "--buy",
        "--opens-at",
        "2027-01-01",
        "--closes-at",
        "2028-01-01T00:00:00+01:00",
        "--audience",
        "ReferrerOnly",
      ),
    );
    const moments = { opens_at: new Date("2027-01-01T00:00:00Z"), closes_at: new Date("2027-12-31T23:00:00Z") };
    expect(await windows(both)).toEqual([
      { kind: "buy", ...moments },
      { kind: "claim", ...moments },
    ]);
    const { id: buy } = await voucherctl.json(...issue("--buy", "--closes-at", "2028-01-01"));
    expect(await windows(buy)).toEqual([{ kind: "buy", opens_at: null, closes_at: new Date("2028-01-01T00:00:00Z") }]);
  });

  it("shows windows and the number of vouchers left in them", async () => {
    const { id: batchId } = await voucherctl.json(...issue("--claim", "--buy", "--closes-at", "2098-01-01"));
    const { rows } = await servers.db.query("SELECT code FROM vouchers WHERE batch_id = $1", [batchId]);
    await voucherctl.json("voucher", "void", rows[0].code, "--org", partner.organizationId);
    const window = { opensAt: null, closesAt: "2098-01-01T00:00:00.000Z" };
    const show = () => voucherctl.json("batch", "show", batchId);
    expect(await show()).toMatchObject({ active: 1, windows: { claim: window, buy: window }, left: 1 });
    const describe = async (change: string) => {
      await servers.db.query(`UPDATE batch_windows SET ${change} WHERE batch_id = $1 AND kind = 'buy'`, [batchId]);
      return words("batch", "show", batchId);
    };
    const open = "  Claim window  open until 2098-01-01 00:00:00 UTC\n";
    expect(await describe("opens_at = '2097-01-01Z'")).toContain(
      `${open}  Buy window    opens at 2097-01-01 00:00:00 UTC, closes at 2098-01-01 00:00:00 UTC\n  Available     1 voucher\n`,
    );
    expect(await describe("opens_at = NULL, closes_at = '2020-01-01Z'")).toContain(
      `${open}  Buy window    closed since 2020-01-01 00:00:00 UTC\n  Available     1 voucher\n`,
    );
    await servers.db.query("UPDATE batches SET valid_until = '2021-01-01Z' WHERE id = $1", [batchId]);
    expect(await show()).toMatchObject({ expired: 1, left: 0 });
    expect(await words("batch", "show", batchId)).toContain("  Claim window  closed since 2021-01-01 00:00:00 UTC\n");
  });

  it("refuses times without a window, windows that close before they open, and invalid times", async () => {
    await expectFailures(
      [issue("--opens-at", "2027-01-01"), /--claim/],
      [issue("--closes-at", "2027-01-01"), /--buy/],
      [issue("--buy", "--opens-at", "2027-01-02", "--closes-at", "2027-01-01"), /--closes-at/],
      [issue("--buy", "--opens-at", "noon"), /--opens-at/],
      [issue("--claim", "--closes-at", "2027-13-01"), /--closes-at/],
    );
  });
});

describe("voucherctl listing create", () => {
  async function newBatch(...kinds: ("claim" | "buy")[]): Promise<string> {
    const windows = Object.fromEntries(kinds.map((kind) => [kind, { opensAt: null, closesAt: null }]));
    const [voucher] = await issueVouchers(servers.db, partner, 1, { validUntil: inSeconds(3_600), windows });
    const [row] = await readRows("SELECT batch_id FROM vouchers WHERE id = $1", [voucher?.id]);
    return String(row?.batch_id);
  }

  it("lists a batch, which then appears on the marketplace", async () => {
    const [batch, other] = [await newBatch(), await newBatch("buy")];
    const made = await voucherctl.json("listing", "create", "--batch", batch);
    expect(made).toStrictEqual({ id: id("lst") });
    const client = await signedIn(api.url, key);
    expect(await client.listing(made.id)).toMatchObject({ status: 200, body: { productId: partner.productId } });
    expect(await words("listing", "create", "--batch", other)).toMatch(
      new RegExp(`^Listing lst_[0-9a-z]{26} offers batch ${other}\\.\n$`),
    );
  });

  it("warns that no user can buy from a batch without a buy window", async () => {
    for (const batch of [await newBatch(), await newBatch("claim")]) {
      expect(await words("listing", "create", "--batch", batch)).toMatch(
        /\nWarning: users cannot buy these vouchers, because the batch has no buy window\.\n$/,
      );
    }
  });

  it("refuses a batch that is already listed, an unknown batch and a missing one", async () => {
    const batch = await newBatch();
    await voucherctl.json("listing", "create", "--batch", batch);
    const unknown = newId("bat");
    await expectFailures(
      [["listing", "create", "--batch", batch], /already/],
      [["listing", "create", "--batch", unknown], new RegExp(unknown)],
      [["listing", "create"], /--batch/],
    );
  });
});

describe("voucherctl user token", () => {
  it("creates no token when DATABASE_URL is set, because no service would accept it", async () => {
    await expectFailures(
      [["user", "token", "--user", "alice"], /DATABASE_URL/],
      [["user", "token", "--user", "alice", "--ttl", "1h"], /DATABASE_URL/],
      [["user", "token"], /--user/],
      [["user", "token", "--user", "x", "--ttl", "soon"], /--ttl/],
    );
  });
});
