import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Queue } from "bullmq";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { newId } from "../../src/domain/ids.ts";
import { sealQueue } from "../../src/queues/catalog.ts";
import { sealVoucher } from "../../src/services/chain/seal-events.ts";
import { startNode, startNpm } from "../support/child-process.ts";
import { partnerClient } from "../support/client.ts";
import { assertInvariants } from "../support/invariants.ts";
import { readRecorded } from "../support/recorded.ts";
import { dumpRows } from "../support/row-dump.ts";
import { openTestServers, type TestServers } from "../support/servers.ts";
import { startApi, startWorkers, type TestApi } from "../support/service.ts";
import { findSteadyPort } from "../support/steady-port.ts";
import { issueVoucher, issueVouchers, makeKey, makePartner, type TestPartner } from "../support/supply.ts";
import { until, untilStarted } from "../support/until.ts";
import { openVoucherctl, type Voucherctl } from "../support/voucherctl.ts";

let servers: TestServers;
let voucherctl: Voucherctl;
let api: TestApi;
let partner: TestPartner;
let directory: string;

beforeAll(async () => {
  servers = await openTestServers();
  voucherctl = openVoucherctl(servers);
  api = await startApi(servers);
  partner = await makePartner(servers.db);
  directory = mkdtempSync(join(tmpdir(), "voucherctl-test-"));
});

afterAll(async () => {
  await assertInvariants(servers.db);
  await api.close();
  voucherctl.close();
  await servers.close();
  rmSync(directory, { recursive: true, force: true });
});

/** Expects that a command fails with a message, prints no result and writes no row. */
async function expectFailure(
  args: readonly string[],
  sentence: RegExp,
  env: Record<string, string> = {},
): Promise<void> {
  const before = await dumpRows(servers.db);
  const { exitCode, stdout, stderr } = await voucherctl.run(args, env);
  expect({ failed: exitCode !== 0 && exitCode !== null, stdout }, args.join(" ")).toEqual({
    failed: true,
    stdout: "",
  });
  expect(stderr).toMatch(sentence);
  // A message for a person, not a stack trace.
  expect(stderr).not.toMatch(/^\s+at .+:\d+/m);
  expect(await dumpRows(servers.db)).toEqual(before);
}

async function readRow(table: string, id: string) {
  const { rows } = await servers.db.query(`SELECT * FROM ${table} WHERE id = $1`, [id]);
  return rows[0];
}

/** A file in this test's directory. */
function file(name: string, content?: string): string {
  const path = join(directory, name);
  if (content !== undefined) writeFileSync(path, content);
  return path;
}

const VALID = ["--valid-until", "2099-12-31T23:59:59Z"];
/** The line that says what usually comes next. */
const NEXT = /^Next: .*\n$/;
const id = (prefix: string) => expect.stringMatching(new RegExp(`^${prefix}_[0-9a-z]{26}$`));

describe("voucherctl", () => {
  it("refuses an unknown command, none at all, and an unknown option", async () => {
    await expectFailure(["frobnicate"], /frobnicate/);
    await expectFailure(["org"], /voucherctl org/);
    await expectFailure(["org", "create", "--name", "x", "--frobnicate"], /frobnicate/);
  });

  it("fails with a message and no JSON on bad options, unknown ids and refusals, with --json too", async () => {
    const key = await makeKey(servers.db, partner.organizationId);
    await voucherctl.json("key", "revoke", key.id);
    await expectFailure(["org", "create", "--json"], /--name/);
    await expectFailure(["key", "create", "--scope", "voucher.write", "--json"], /--scope/);
    await expectFailure(["key", "revoke", "key_unknown", "--json"], /key_unknown/);
    await expectFailure(["key", "rotate", key.id, "--json"], new RegExp(key.id));
    await expectFailure(["chain", "verify", "--all", "--json"], /DATABASE_URL/, { DATABASE_URL: "nonsense" });
  });

  it("names the wrong variable and a database that is not migrated, and fails with a message when one is unreachable", async () => {
    const list = ["key", "list", "--org", partner.organizationId];
    await expectFailure(list, /DATABASE_URL/, { DATABASE_URL: "nonsense" });
    const closed = await findSteadyPort();
    await expectFailure(list, /\S/, { DATABASE_URL: `postgres://wrong@127.0.0.1:${closed}/x` });

    const name = `voucherctl_bare_${process.pid}`;
    await servers.db.query(`CREATE DATABASE ${name}`);
    const bare = new URL(inject("databaseUrl"));
    bare.pathname = `/${name}`;
    try {
      for (const args of [
        list,
        ["org", "create", "--name", "x"],
        ["batch", "issue", "--product", "prd_x", "--count", "1", ...VALID],
        ["chain", "verify", "--all"],
      ]) {
        await expectFailure(args, /not been migrated/, { DATABASE_URL: bare.href });
      }
    } finally {
      await servers.db.query(`DROP DATABASE ${name} WITH (FORCE)`);
    }
  });
});

describe("voucherctl org create", () => {
  it("creates an organization and prints its id", async () => {
    const made = await voucherctl.json("org", "create", "--name", "  Café Größenwahn ");
    expect(made).toStrictEqual({ id: id("org") });
    expect(await readRow("organizations", made.id)).toMatchObject({ name: "Café Größenwahn" });
  });

  it("prints name and id as text without --json", async () => {
    const { exitCode, stdout, stderr } = await voucherctl.run(["org", "create", "--name", "Words"]);
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: expect.stringMatching(NEXT) });
    expect(stdout).toMatch(/^Organization Words: org_[0-9a-z]{26}\n$/);
  });

  it("creates a sandbox with --sandbox, and every command that shows something of it says so", async () => {
    const mark = { sandbox: true };
    const org = await voucherctl.json("org", "create", "--name", "Tests", "--sandbox");
    expect(org).toStrictEqual({ id: id("org"), ...mark });
    const brand = await voucherctl.json("brand", "create", "--org", org.id, "--name", "Tests");
    const product = await voucherctl.json(
      ...["product", "create", "--brand", brand.id, "--key", "k", "--name", "n", "--type", "Product"],
      ...["--retail-price-usd", "2", "--price-usd", "1"],
    );
    const issue = ["batch", "issue", "--product", product.id, "--count", "1", "--valid-until", "2099-01-01"];
    const out = join(directory, "sandbox.csv");
    const batch = await voucherctl.json(...issue, "--out", out);
    const code = readFileSync(out, "utf8").split("\n")[1]?.split(",")[1] ?? "";
    const key = await voucherctl.json("key", "create", "--org", org.id, "--scope", "voucher.read");
    expect(key).toStrictEqual({ id: id("key"), key: expect.stringMatching(/^pvt_/), ...mark });
    const rotated = await voucherctl.json("key", "rotate", key.id);
    expect(rotated).toMatchObject({ key: expect.stringMatching(/^pvt_/), ...mark });
    for (const shown of [
      batch,
      await voucherctl.json("batch", "show", batch.id),
      await voucherctl.json("voucher", "show", code, "--org", org.id),
      await voucherctl.json("key", "list", "--org", org.id),
    ]) {
      expect(shown).toMatchObject(mark);
    }
    const shown = await voucherctl.run(["voucher", "show", code, "--org", org.id]);
    expect(shown.stdout).toMatch(/^ *Sandbox {2,}for tests, has no value$/m);
    expect(await voucherctl.json("key", "list", "--org", partner.organizationId)).not.toHaveProperty("sandbox");
  });

  it("refuses a name that is missing, empty, too long or has several lines", async () => {
    await expectFailure(["org", "create"], /--name/);
    for (const name of ["", "   ", "x".repeat(201), "two\nlines"]) {
      await expectFailure(["org", "create", "--name", name], /--name/);
    }
  });
});

describe("voucherctl brand create", () => {
  it("creates a brand of an organization and prints its id", async () => {
    const made = await voucherctl.json("brand", "create", "--org", partner.organizationId, "--name", "Second brand");
    expect(made).toStrictEqual({ id: id("brd") });
    expect(await readRow("brands", made.id)).toMatchObject({
      name: "Second brand",
      organization_id: partner.organizationId,
    });
  });

  it("refuses missing options, and an unknown organization, which it names", async () => {
    const unknown = newId("org");
    await expectFailure(["brand", "create", "--org", unknown, "--name", "x"], new RegExp(unknown));
    await expectFailure(["brand", "create", "--name", "x"], /--org/);
    await expectFailure(["brand", "create", "--org", partner.organizationId], /--name/);
  });
});

describe("voucherctl product create", () => {
  const options = (change: Record<string, string | null> = {}) => {
    const all: Record<string, string | null> = {
      "--brand": partner.brandId,
      "--key": `key-${crypto.randomUUID()}`,
      "--name": "Day pass",
      "--type": "Service",
      "--retail-price-usd": "19.90",
      "--price-usd": "12",
      ...change,
    };
    return Object.entries(all).flatMap(([name, value]) => (value === null ? [] : [name, value]));
  };

  it("creates a product and prints its id", async () => {
    const made = await voucherctl.json(
      "product",
      "create",
      ...options({ "--key": "day-pass", "--benefit-months": "12", "--usage-unit-label": "entry" }),
    );
    expect(made).toStrictEqual({ id: id("prd") });
    expect(await readRow("products", made.id)).toMatchObject({
      brand_id: partner.brandId,
      key: "day-pass",
      name: "Day pass",
      type: "Service",
      retail_price_usd: 19.9,
      price_usd: 12,
      benefit_months: 12,
      usage_unit_label: "entry",
    });
  });

  it("defaults to no term and no label, and stores the largest price to the cent", async () => {
    const made = await voucherctl.json(
      "product",
      "create",
      ...options({ "--retail-price-usd": "9999999999.99", "--price-usd": "0.01" }),
    );
    expect(await readRow("products", made.id)).toMatchObject({
      retail_price_usd: 9999999999.99,
      price_usd: 0.01,
      benefit_months: 0,
      usage_unit_label: null,
    });
  });

  it("refuses a key that the brand already has, and accepts it for another brand", async () => {
    await voucherctl.json("product", "create", ...options({ "--key": "taken" }));
    await expectFailure(["product", "create", ...options({ "--key": "taken" })], /taken/);
    const other = await makePartner(servers.db);
    await voucherctl.json("product", "create", ...options({ "--key": "taken", "--brand": other.brandId }));
  });

  it.each([
    "--brand",
    "--key",
    "--name",
    "--type",
    "--retail-price-usd",
    "--price-usd",
  ])("requires %s", async (name) => {
    await expectFailure(["product", "create", ...options({ [name]: null })], new RegExp(name));
  });

  it.each([
    ["--type", "Gift"],
    ["--type", "subscription"],
    ["--retail-price-usd", "-1"],
    ["--retail-price-usd", "1.999"],
    ["--retail-price-usd", "10000000000"],
    ["--price-usd", "free"],
    ["--price-usd", "1,5"],
    ["--price-usd", "NaN"],
    ["--benefit-months", "-1"],
    ["--benefit-months", "1.5"],
    ["--usage-unit-label", ""],
  ])("refuses %s %s", async (name, value) => {
    await expectFailure(["product", "create", ...options({ [name]: value })], new RegExp(name));
  });

  it("refuses an unknown brand and names it", async () => {
    const unknown = newId("brd");
    await expectFailure(["product", "create", ...options({ "--brand": unknown })], new RegExp(unknown));
  });
});

describe("voucherctl key", () => {
  const both = ["--scope", "voucher.read", "--scope", "voucher.redeem"];
  const lookUp = async (key: string) => (await partnerClient(api.url, key).lookUp("7Q4K-9MZX-2HTB-W8RC")).status;

  it("create prints a working key that is not stored in clear text", async () => {
    const made = await voucherctl.json("key", "create", "--org", partner.organizationId, ...both, "--label", "till 1");
    expect(made).toStrictEqual({ id: id("key"), key: expect.stringMatching(/^pvk_[0-9A-HJKMNP-TV-Z]{47}$/) });
    expect(await lookUp(made.key)).toBe(404);
    expect(await readRow("api_keys", made.id)).toMatchObject({
      organization_id: partner.organizationId,
      label: "till 1",
      scopes: ["voucher.read", "voucher.redeem"],
      allow_ips: [],
      expires_at: null,
      revoked_at: null,
    });
    expect(JSON.stringify(await dumpRows(servers.db))).not.toContain(made.key);
  });

  it("create limits a key to scopes, an organization, addresses and an expiry time", async () => {
    const read = await voucherctl.json("key", "create", "--org", partner.organizationId, "--scope", "voucher.read");
    expect((await partnerClient(api.url, read.key).reserve("7Q4K")).status).toBe(401);
    const unbound = await voucherctl.json("key", "create", ...both);
    expect(await lookUp(unbound.key)).toBe(403);
    const elsewhere = ["--allow-ip", "192.0.2.0/24", "--allow-ip", "2001:db8::/32", "--allow-ip", "198.51.100.7"];
    const far = await voucherctl.json("key", "create", "--org", partner.organizationId, ...both, ...elsewhere);
    expect(await lookUp(far.key)).toBe(403);
    const ended = await voucherctl.json(
      "key",
      "create",
      "--org",
      partner.organizationId,
      ...both,
      "--expires",
      "2020-01-01",
    );
    expect(await lookUp(ended.key)).toBe(401);
    expect(await readRow("api_keys", ended.id)).toMatchObject({ expires_at: new Date("2020-01-01T00:00:00Z") });
  });

  it("create warns that a key has already expired", async () => {
    const create = ["key", "create", "--org", partner.organizationId, ...both, "--expires"];
    expect((await voucherctl.run([...create, "2020-01-01"])).stdout).toMatch(
      /\nWarning: this key has already expired\.\n$/,
    );
    expect((await voucherctl.run([...create, "2099-01-01"])).stdout).not.toContain("expired");
  });

  it("create refuses an unknown organization, an unknown scope and a missing scope", async () => {
    const create = ["key", "create", "--org", partner.organizationId];
    const unknown = newId("org");
    await expectFailure(["key", "create", "--org", unknown, ...both], new RegExp(unknown));
    await expectFailure(create, /--scope/);
    await expectFailure([...create, "--scope", "voucher.write"], /--scope/);
  });

  it("create refuses invalid addresses and times", async () => {
    const create = ["key", "create", "--org", partner.organizationId];
    for (const address of [
      "300.1.1.1",
      "10.0.0.0/33",
      "2001:db8::/129",
      "example.org",
      "10.0.0.0/8/8",
      "10.1.2.3/8",
      "",
    ]) {
      await expectFailure([...create, ...both, "--allow-ip", address], /\S/);
    }
    for (const moment of ["tomorrow", "2027-13-01", "2027-02-30", "1e9"]) {
      await expectFailure([...create, ...both, "--expires", moment], /--expires/);
    }
  });

  it("list prints an organization's keys, newest first, without secrets", async () => {
    const own = await makePartner(servers.db);
    expect(await voucherctl.json("key", "list", "--org", own.organizationId)).toStrictEqual({ keys: [] });
    const older = await voucherctl.json("key", "create", "--org", own.organizationId, "--scope", "voucher.read");
    const newer = await voucherctl.json(
      ...["key", "create", "--org", own.organizationId, ...both, "--label", "newer"],
      ...["--allow-ip", "192.0.2.0/24", "--expires", "2099-01-02T03:04:05Z"],
    );
    await voucherctl.json("key", "revoke", older.id);
    const listed = await voucherctl.json("key", "list", "--org", own.organizationId);
    const moment = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    expect(listed).toStrictEqual({
      keys: [
        {
          id: newer.id,
          label: "newer",
          scopes: ["voucher.read", "voucher.redeem"],
          allowIps: ["192.0.2.0/24"],
          createdAt: moment,
          expiresAt: "2099-01-02T03:04:05.000Z",
          revokedAt: null,
          state: "Active",
          lastUsedAt: null,
          oldSecretsUntil: null,
        },
        {
          id: older.id,
          label: null,
          scopes: ["voucher.read"],
          allowIps: [],
          createdAt: moment,
          expiresAt: null,
          revokedAt: moment,
          state: "Revoked",
          lastUsedAt: null,
          oldSecretsUntil: null,
        },
      ],
    });
    const { stdout } = await voucherctl.run(["key", "list", "--org", own.organizationId]);
    expect(stdout).toContain("revoked");
    for (const { key } of [older, newer]) expect(JSON.stringify(listed) + stdout).not.toContain(key.slice(4));
  });

  it("list refuses an unknown organization", async () => {
    const unknown = newId("org");
    await expectFailure(["key", "list", "--org", unknown], new RegExp(unknown));
    await expectFailure(["key", "list"], /--org/);
  });

  it("revoke ends a key within a second and can be repeated", async () => {
    const made = await voucherctl.json("key", "create", "--org", partner.organizationId, ...both);
    expect(await lookUp(made.key)).toBe(404);
    expect(await voucherctl.json("key", "revoke", made.id)).toStrictEqual({ id: made.id, revoked: true });
    await until(async () => (await lookUp(made.key)) === 401, 1_000);
    const { revoked_at } = await readRow("api_keys", made.id);
    await voucherctl.json("key", "revoke", made.id);
    expect((await readRow("api_keys", made.id)).revoked_at).toEqual(revoked_at);
  });

  it("rotate gives a key a new secret, and the old one works during its grace period", async () => {
    const made = await voucherctl.json("key", "create", "--org", partner.organizationId, ...both);
    const rotated = await voucherctl.json("key", "rotate", made.id);
    expect(rotated).toStrictEqual({
      id: made.id,
      key: expect.stringMatching(/^pvk_/),
      oldSecretsUntil: expect.stringMatching(/Z$/),
    });
    expect([await lookUp(made.key), await lookUp(rotated.key)]).toEqual([404, 404]);
    const { rows } = await servers.db.query(
      "SELECT extract(epoch FROM expires_at - now())::float8 / 3600 AS hours FROM api_key_secrets WHERE key_id = $1 AND expires_at IS NOT NULL",
      [made.id],
    );
    expect(rows).toHaveLength(1);
    expect(rows[0].hours).toBeGreaterThan(23.9);
    expect(rows[0].hours).toBeLessThanOrEqual(24);
    const again = await voucherctl.json("key", "rotate", made.id, "--grace", "0s");
    for (const old of [made.key, rotated.key]) await until(async () => (await lookUp(old)) === 401, 1_000);
    expect(await lookUp(again.key)).toBe(404);
  });

  it("revoke and rotate refuse an unknown or missing id; rotate refuses a revoked key and an invalid grace period", async () => {
    const unknown = newId("key");
    await expectFailure(["key", "revoke", unknown], new RegExp(unknown));
    await expectFailure(["key", "rotate", unknown], new RegExp(unknown));
    const made = await voucherctl.json("key", "create", "--org", partner.organizationId, ...both);
    await voucherctl.json("key", "revoke", made.id);
    await expectFailure(["key", "rotate", made.id], new RegExp(made.id));
    await expectFailure(["key", "revoke"], /id/);
    await expectFailure(["key", "rotate"], /id/);
    for (const grace of ["24", "-1h", "1w", "1.5h", "h"]) {
      await expectFailure(["key", "rotate", made.id, "--grace", grace], /--grace/);
    }
  });
});

describe("voucherctl batch issue", () => {
  const issue = (...more: string[]) => ["batch", "issue", "--product", partner.productId, ...more];

  it("issues vouchers with new codes and prints id, count and serials", async () => {
    const made = await voucherctl.json(...issue("--count", "3", "--valid-until", "2099-12-31T23:59:59Z"));
    expect(made).toStrictEqual({ id: id("bat"), count: 3, firstSerial: 1, lastSerial: 3 });
    expect(await readRow("batches", made.id)).toMatchObject({
      product_id: partner.productId,
      audience: "OpenToAll",
      voucher_count: 3,
      valid_until: new Date("2099-12-31T23:59:59Z"),
      retail_price_usd: 50,
      price_usd: 40.25,
      benefit_months: 6,
      usage_unit_label: "visit",
    });
    const { rows } = await servers.db.query(
      "SELECT code, serial, status, last_sequence, sealed_sequence FROM vouchers WHERE batch_id = $1 ORDER BY serial",
      [made.id],
    );
    expect(rows.map(({ serial }) => serial)).toEqual([1, 2, 3]);
    expect(new Set(rows.map(({ code }) => code)).size).toBe(3);
    for (const row of rows) {
      expect(row.code).toMatch(/^[0-9A-HJKMNP-TV-Z]{4}(-[0-9A-HJKMNP-TV-Z]{4}){3}$/);
      expect(row).toMatchObject({ status: "Active", last_sequence: 1, sealed_sequence: 1 });
    }
  });

  it("accepts an audience that cannot be changed later", async () => {
    for (const audience of ["OpenToAll", "ReferrerOnly"]) {
      const made = await voucherctl.json(...issue("--count", "1", ...VALID, "--audience", audience));
      expect(await readRow("batches", made.id)).toMatchObject({ audience });
      const other = audience === "OpenToAll" ? "ReferrerOnly" : "OpenToAll";
      await expect(
        servers.db.query("UPDATE batches SET audience = $2 WHERE id = $1", [made.id, other]),
      ).rejects.toThrow(/audience/);
    }
  });

  it("reads times with Z, with an offset and as a date, which means 00:00 UTC", async () => {
    for (const [text, moment] of [
      ["2099-06-30T12:00:00Z", "2099-06-30T12:00:00Z"],
      ["2099-06-30T12:00:00.250+02:00", "2099-06-30T10:00:00.250Z"],
      ["2099-06-30", "2099-06-30T00:00:00Z"],
      ["2096-02-29", "2096-02-29T00:00:00Z"],
    ] as const) {
      const made = await voucherctl.json(...issue("--count", "1", "--valid-until", text));
      expect((await readRow("batches", made.id)).valid_until).toEqual(new Date(moment));
    }
  });

  it("writes id, code and serial of every voucher to --out, readable by its owner alone", async () => {
    const out = file("out.csv");
    const made = await voucherctl.json(...issue("--count", "12", ...VALID, "--out", out));
    const { rows } = await servers.db.query(
      "SELECT id, code, serial FROM vouchers WHERE batch_id = $1 ORDER BY serial",
      [made.id],
    );
    const lines = rows.map((row) => `${row.id},${row.code},${row.serial}\n`).join("");
    expect(readFileSync(out, "utf8")).toBe(`id,code,serial\n${lines}`);
    expect(statSync(out).mode & 0o777).toBe(0o600);
    expect(readdirSync(directory).filter((name) => name.startsWith("out.csv"))).toEqual(["out.csv"]);
  });

  it("issues more vouchers than one chunk holds, with every code in the file once", async () => {
    const out = file("many.csv");
    const made = await voucherctl.json(...issue("--count", "12001", ...VALID, "--out", out));
    expect(made).toMatchObject({ count: 12_001, firstSerial: 1, lastSerial: 12_001 });
    const [header, ...lines] = readFileSync(out, "utf8").trimEnd().split("\n");
    expect(header).toBe("id,code,serial");
    expect(lines.map((line) => Number(line.split(",")[2]))).toEqual(Array.from({ length: 12_001 }, (_, i) => i + 1));
    expect(new Set(lines.map((line) => line.split(",")[1])).size).toBe(12_001);
    const { rows } = await servers.db.query(
      "SELECT count(*)::int AS n FROM vouchers v JOIN voucher_events e ON e.voucher_id = v.id WHERE v.batch_id = $1",
      [made.id],
    );
    expect(rows[0].n).toBe(12_001);
  });

  it.each([
    ["an unknown product", ["--product", "prd_unknown", "--count", "1", ...VALID], /prd_unknown/],
    ["no product", ["--count", "1", ...VALID], /--product/],
    ["no count", ["--product", "prd_x", ...VALID], /--count/],
    ["no expiry time", ["--product", "prd_x", "--count", "1"], /--valid-until/],
    ["a count of 0", ["--product", "prd_x", "--count", "0", ...VALID], /--count/],
    ["a negative count", ["--product", "prd_x", "--count=-1", ...VALID], /--count/],
    ["a fractional count", ["--product", "prd_x", "--count", "1.5", ...VALID], /--count/],
    ["a count in another notation", ["--product", "prd_x", "--count", "1e3", ...VALID], /--count/],
    ["an unknown audience", ["--product", "prd_x", "--count", "1", ...VALID, "--audience", "Everyone"], /--audience/],
    ["a time in words", ["--product", "prd_x", "--count", "1", "--valid-until", "tomorrow"], /--valid-until/],
    [
      "a time without a zone",
      ["--product", "prd_x", "--count", "1", "--valid-until", "2099-01-01T00:00:00"],
      /--valid-until/,
    ],
    ["a 13th month", ["--product", "prd_x", "--count", "1", "--valid-until", "2099-13-01"], /--valid-until/],
    ["a 30th of February", ["--product", "prd_x", "--count", "1", "--valid-until", "2099-02-30"], /--valid-until/],
    [
      "a 29th of February in a common year",
      ["--product", "prd_x", "--count", "1", "--valid-until", "2099-02-29T00:00:00Z"],
      /--valid-until/,
    ],
  ])("refuses %s and writes nothing", async (_what, args, sentence) => {
    await expectFailure(["batch", "issue", ...args], sentence);
  });

  it("leaves no file when it fails", async () => {
    const failing = ["batch", "issue", "--product", "prd_unknown", "--count", "1", ...VALID];
    await expectFailure([...failing, "--out", file("never.csv")], /prd_unknown/);
    expect(readdirSync(directory).filter((name) => name.startsWith("never"))).toEqual([]);
  });

  it("warns when the codes were not saved and when the vouchers have already expired", async () => {
    const say = async (...more: string[]) => {
      const { exitCode, stdout, stderr } = await voucherctl.run(issue("--count", "1", ...more));
      expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: expect.stringMatching(NEXT) });
      return stdout.split("\n").slice(1, -1);
    };
    const warning = expect.stringMatching(
      /^Warning: these codes were not saved, and users cannot claim or buy the vouchers\. Get them with: voucherctl batch export bat_\w+ --out FILE$/,
    );
    expect(await say(...VALID)).toEqual([warning]);
    expect(await say("--valid-until", "2020-01-01", "--force")).toEqual([
      warning,
      "Warning: these vouchers have already expired.",
    ]);
    expect(await say(...VALID, "--out", file("told.csv"))).toEqual([expect.stringMatching(/told\.csv/)]);
    for (const way of [["--codes", file("told.txt", "TOLD-0001\n")], ["--claim"], ["--buy"]]) {
      expect(await say(...VALID, ...way)).toEqual([]);
    }
  });

  it("overwrites no file: neither a finished one nor one that another run left unfinished", async () => {
    const again = issue("--count", "1", ...VALID, "--out", file("again.csv", ""));
    const ids: string[] = [];
    for (const line of [/Only you can read this file\.\n$/, /to \S+again\.csv\.1\.\n$/, /to \S+again\.csv\.2\.\n$/]) {
      const { stdout } = await voucherctl.run(again);
      expect(stdout).toMatch(line);
      ids.push(/bat_\w+/.exec(stdout)?.[0] ?? "");
    }
    for (const [index, name] of ["again.csv.1", "again.csv.2", "again.csv"].entries()) {
      const { rows } = await servers.db.query("SELECT id, code, serial FROM vouchers WHERE batch_id = $1", [
        ids[index],
      ]);
      expect(rows).toHaveLength(1);
      expect(readFileSync(file(name), "utf8")).toBe(`id,code,serial\n${Object.values(rows[0]).join(",")}\n`);
    }
    file("killed.csv.unfinished", "id,code,serial\n");
    await expectFailure(
      issue("--count", "1", ...VALID, "--out", file("killed.csv")),
      /another run .* or one was killed.*\n.*voucher show CODE --org ID.*\n.*remove it\. Then run this again\.\n$/,
    );
    expect(readdirSync(directory).filter((name) => name.startsWith("killed"))).toEqual(["killed.csv.unfinished"]);
    expect(readFileSync(file("killed.csv.unfinished"), "utf8")).toBe("id,code,serial\n");
    rmSync(file("killed.csv.unfinished"));
  });

  /** Starts a run that has opened its file and is blocked before it issues anything. */
  async function startBlocked(out: string, ...more: string[]) {
    const lock = await servers.db.connect();
    await lock.query("BEGIN");
    await lock.query("LOCK TABLE batches IN SHARE MODE");
    const issuing = startNode(["src/cli/main.ts", ...issue("--count", "2", ...VALID, "--out", out, ...more)], {
      DATABASE_URL: servers.adminUrl,
    });
    // Before its first write, it has checked for an existing file.
    await untilStarted(() => existsSync(`${out}.unfinished`) && statSync(`${out}.unfinished`).size > 0);
    return {
      issuing,
      unblock: async () => {
        await lock.query("ROLLBACK");
        lock.release();
        return issuing.ended;
      },
    };
  }

  it("lets only one of two concurrent runs write a file", async () => {
    const out = file("two.csv");
    const { unblock } = await startBlocked(out, "--json");
    await expectFailure(issue("--count", "1", ...VALID, "--out", out), /another run/);
    const { exitCode, stdout } = await unblock();
    expect({ exitCode, count: JSON.parse(stdout).count }).toEqual({ exitCode: 0, count: 2 });
    expect(readFileSync(out, "utf8").split("\n")).toHaveLength(4);
  });

  it.each([[[]], [["--json"]]])("says where the codes are when their file cannot be renamed %s", async (json) => {
    const out = file(`renamed${json.length}.csv`);
    const { unblock } = await startBlocked(out, ...json);
    mkdirSync(out);
    const { exitCode, stdout, stderr } = await unblock();
    expect(exitCode).toBe(0);
    expect(stderr).toMatch(
      /^The file could not be renamed \(.*\)\. The codes are in \S+\.csv\.unfinished\.\n(Next: .*\n)?$/,
    );
    if (json.length > 0) expect(JSON.parse(stdout)).toMatchObject({ count: 2 });
    else expect(stdout).toContain(`The codes are in ${out}.unfinished. Only you can read this file.\n`);
    expect(readFileSync(`${out}.unfinished`, "utf8").split("\n")).toHaveLength(4);
    rmSync(`${out}.unfinished`);
  });

  it("leaves neither rows nor a file when it is interrupted", async () => {
    const before = await dumpRows(servers.db);
    const out = file("interrupted.csv");
    const issuing = startNode(["src/cli/main.ts", ...issue("--count", "1000000", ...VALID, "--out", out)], {
      DATABASE_URL: servers.adminUrl,
    });
    await untilStarted(() => existsSync(`${out}.unfinished`) && statSync(`${out}.unfinished`).size > 10_000);
    issuing.child.kill("SIGINT");
    const { exitCode, stdout, stderr } = await issuing.ended;
    expect({ exitCode, stdout, stderr }).toEqual({ exitCode: 130, stdout: "", stderr: "Interrupted.\n" });
    expect(readdirSync(directory).filter((name) => name.startsWith("interrupted"))).toEqual([]);
    expect(await dumpRows(servers.db)).toEqual(before);
  });

  it("ends within five seconds of an interrupt when the database does not answer, and leaves no file", async () => {
    const out = file("blocked.csv");
    const { issuing, unblock } = await startBlocked(out);
    issuing.child.kill("SIGINT");
    // The lock is held until the process has ended.
    const { exitCode, stdout, stderr } = await issuing.ended;
    await unblock();
    expect({ exitCode, stdout }).toEqual({ exitCode: 69, stdout: "" });
    expect(stderr).toMatch(
      /did not end within five seconds .*\nRun voucherctl audit list to see whether anything was done\.\n$/,
    );
    expect(readdirSync(directory).filter((name) => name.startsWith("blocked"))).toEqual([]);
  });

  it("leaves neither rows nor a file when npm forwards Ctrl-C a second time", async () => {
    const before = await dumpRows(servers.db);
    for (const round of [1, 2, 3]) {
      const out = file(`npm-${round}.csv`);
      const command = ["run", "-s", "voucherctl", "--", ...issue("--count", "1000000", ...VALID, "--out", out)];
      const issuing = startNpm(command, { DATABASE_URL: servers.adminUrl });
      await untilStarted(() => existsSync(`${out}.unfinished`) && statSync(`${out}.unfinished`).size > 10_000);
      // A terminal sends its signals to the whole process group.
      process.kill(-(issuing.child.pid as number), "SIGINT");
      const { exitCode, stdout, stderr } = await issuing.ended;
      expect({ exitCode, stdout, stderr }).toEqual({ exitCode: 130, stdout: "", stderr: "Interrupted.\n" });
      expect(readdirSync(directory).filter((name) => name.startsWith("npm-"))).toEqual([]);
    }
    expect(await dumpRows(servers.db)).toEqual(before);
  });

  it("ends with 130 while more signals arrive", async () => {
    const out = file("flood.csv");
    const command = ["src/cli/main.ts", ...issue("--count", "1000000", ...VALID, "--out", out)];
    const issuing = startNode(command, { DATABASE_URL: servers.adminUrl });
    await untilStarted(() => existsSync(`${out}.unfinished`));
    const flood = setInterval(() => issuing.child.kill("SIGINT"), 1);
    expect(await issuing.ended).toMatchObject({ exitCode: 130, stderr: "Interrupted.\n" });
    clearInterval(flood);
  });

  it("keeps the codes when the database disconnects during the commit, which may have succeeded", async () => {
    await servers.db.query(`
      CREATE FUNCTION go_away() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN RAISE EXCEPTION 'terminating connection' USING ERRCODE = 'admin_shutdown'; END $$;
      CREATE CONSTRAINT TRIGGER go_away AFTER INSERT ON batches DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW EXECUTE FUNCTION go_away()`);
    const out = file("doubtful.csv");
    try {
      await expectFailure(
        issue("--count", "2", ...VALID, "--out", out),
        /^If the batch was issued after all, its codes are in \S+doubtful\.csv\.unfinished\.\nThe database does not answer .*\n.*audit list to see whether anything was done\.\n$/,
      );
    } finally {
      await servers.db.query("DROP TRIGGER go_away ON batches; DROP FUNCTION go_away");
    }
    expect(readFileSync(`${out}.unfinished`, "utf8").split("\n")).toHaveLength(4);
    rmSync(`${out}.unfinished`);
  });

  it("issues nothing when the file's directory is missing or its name is a directory's", async () => {
    mkdirSync(file("a-directory"));
    await expectFailure(issue("--count", "2", ...VALID, "--out", file("nowhere/out.csv")), /nowhere/);
    await expectFailure(issue("--count", "2", ...VALID, "--out", file("a-directory")), /a-directory/);
    expect(readdirSync(directory).filter((name) => name.includes("unfinished"))).toEqual([]);
  });
});

describe("voucherctl batch issue --codes", () => {
  let own: TestPartner;
  const issue = (content: string, count: number, ...more: string[]) => [
    ...["batch", "issue", "--product", own.productId, "--count", String(count), ...VALID],
    ...["--codes", file(`${crypto.randomUUID()}.txt`, content), ...more],
  ];
  const readCodes = async (batchId: string) => {
    const query = "SELECT code, code_key FROM vouchers WHERE batch_id = $1 ORDER BY serial";
    return (await servers.db.query(query, [batchId])).rows;
  };

  beforeAll(async () => {
    own = await makePartner(servers.db);
  });

  it("imports printed codes unchanged, in file order, and finds them in every spelling", async () => {
    const made = await voucherctl.json(...issue("First-Code 01\nsecond/code?\n ~third~ \n", 3));
    expect(made).toMatchObject({ count: 3, firstSerial: 1, lastSerial: 3 });
    expect(await readCodes(made.id)).toEqual([
      { code: "First-Code 01", code_key: "F1RSTC0DE01" },
      { code: "second/code?", code_key: "SEC0ND/C0DE?" },
      { code: "~third~", code_key: "~TH1RD~" },
    ]);
    const client = partnerClient(api.url, (await makeKey(servers.db, own.organizationId)).key);
    expect((await client.lookUp("fIRST CODE-OL")).body.voucher).toMatchObject({ code: "First-Code 01", serial: 1 });
  });

  it.each([
    ["ends its lines with CRLF", "CRLF-0001\r\nCRLF-0002\r\n"],
    ["has no newline at its end", "BARE-0001\nBARE-0002"],
    ["begins with a byte order mark", "\ufeffMARK-0001\nMARK-0002\n"],
  ])("reads a file that %s", async (_what, content) => {
    const made = await voucherctl.json(...issue(content, 2));
    const printed = content.replace("\ufeff", "").trim().split(/\r?\n/);
    expect((await readCodes(made.id)).map(({ code }) => code)).toEqual(printed);
  });

  it("accepts 4 to 64 symbols, not counting hyphens and spaces", async () => {
    const made = await voucherctl.json(...issue(`A-B C--D\n${"X-".repeat(63)}X\n`, 2));
    expect((await readCodes(made.id)).map(({ code_key }) => code_key.length)).toEqual([4, 64]);
  });

  it("quotes codes with commas and quotes in --out", async () => {
    const out = file("quoted.csv");
    const made = await voucherctl.json(...issue('COMMA,CODE\nQUOTE"CODE\n', 2, "--out", out));
    const { rows } = await servers.db.query("SELECT id FROM vouchers WHERE batch_id = $1 ORDER BY serial", [made.id]);
    expect(readFileSync(out, "utf8")).toBe(
      `id,code,serial\n${rows[0].id},"COMMA,CODE",1\n${rows[1].id},"QUOTE""CODE",2\n`,
    );
  });

  it("accepts a code that another organization already has", async () => {
    const other = await makePartner(servers.db);
    await issueVouchers(servers.db, other, 1, { codes: ["SHARED-AMONG-TWO"] });
    await voucherctl.json(...issue("SHARED-AMONG-TWO\n", 1));
  });

  it.each([
    ["fewer codes than --count", "FEWER-1\nFEWER-2\n", 3, /2.*3|3.*2/],
    ["more codes than --count", "MORE-1\nMORE-2\nMORE-3\n", 2, /more than 2/],
    ["no codes at all", "", 1, /0/],
    ["the same code twice", "TWICE-1\nTWICE-2\nTWICE-1\n", 3, /twice/],
    ["the same code twice once normalised", "NORM-O1L0\nnorm 0 i 1 o\n", 2, /twice/],
    ["a code of 3 symbols", "FINE-0001\nA-B-C\n", 2, /Line 2/],
    ["a code of 65 symbols", `FINE-0002\n${"X".repeat(65)}\n`, 2, /Line 2/],
    ["an empty line", "FINE-0003\n\nFINE-0004\n", 3, /Line 2/],
    ["letters beyond ASCII", "FINE-0005\nGRÖSSE-1\n", 2, /Line 2/],
    ["a tab inside a code", "FINE-0006\nTAB\tBED-1\n", 2, /Line 2/],
    ["a code that is the name of a call, in any spelling", "FINE-0009\nRe-1ease\n", 2, /Line 2 is Re-1ease/],
    ["a code that begins like a ticket", "FINE-0007\nrsv_12345\n", 2, /Line 2/],
    ["a code that begins like a ticket in upper case", "RSV_12345\n", 1, /Line 1/],
    ["a code that normalises to the prefix of a ticket", "FINE-0008\nr-sv_12345\n", 2, /Line 2/],
  ])("refuses a file with %s, and leaves neither a row nor a file", async (_what, content, count, sentence) => {
    const out = file("refused.csv");
    await expectFailure(issue(content, count, "--out", out), sentence);
    expect(existsSync(out)).toBe(false);
    expect(readdirSync(directory).filter((name) => name.includes("unfinished"))).toEqual([]);
  });

  it("refuses a code that the organization already has in any batch and spelling", async () => {
    await voucherctl.json(...issue("BEFORE-0001\n", 1));
    await expectFailure(issue("NEW-0001\nbefore OOOL\n", 2), /already/);
  });

  it("refuses a file that is missing or cannot be read", async () => {
    const missing = [...["batch", "issue", "--product", own.productId, "--count", "1", ...VALID], "--codes"];
    await expectFailure([...missing, file("missing.txt")], /missing\.txt/);
    await expectFailure([...missing, directory], /\S/);
  });
});

describe("voucherctl batch show", () => {
  it("prints a batch and counts its vouchers by their status now", async () => {
    const own = await makePartner(servers.db);
    const made = await voucherctl.json("batch", "issue", "--product", own.productId, "--count", "4", ...VALID);
    const { rows } = await servers.db.query("SELECT code FROM vouchers WHERE batch_id = $1 ORDER BY serial", [made.id]);
    await voucherctl.json("voucher", "void", rows[0].code, "--org", own.organizationId);
    const worker = await startWorkers(servers);
    const till = partnerClient(api.url, (await makeKey(servers.db, own.organizationId)).key);
    expect((await till.redeem({ code: rows[1].code, externalRef: "batch-show" })).status).toBe(200);
    await worker.close();
    const shown = {
      id: made.id,
      productId: own.productId,
      productName: "Pass",
      audience: "OpenToAll",
      count: 4,
      validUntil: "2099-12-31T23:59:59.000Z",
      retailPriceUsd: 50,
      priceUsd: 40.25,
      benefitMonths: 6,
      usageUnitLabel: "visit",
      createdAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      windows: { claim: null, buy: null },
      left: null,
    };
    expect(await voucherctl.json("batch", "show", made.id)).toStrictEqual({
      ...shown,
      active: 2,
      expired: 0,
      redeemed: 1,
      voided: 1,
    });
    await servers.db.query("UPDATE batches SET valid_until = '2020-01-01Z' WHERE id = $1", [made.id]);
    expect(await voucherctl.json("batch", "show", made.id)).toStrictEqual({
      ...shown,
      validUntil: "2020-01-01T00:00:00.000Z",
      ...{ active: 0, expired: 2, redeemed: 1, voided: 1 },
    });
    const { stdout } = await voucherctl.run(["batch", "show", made.id]);
    expect(stdout).toContain("4: 0 active, 2 expired, 1 redeemed, 1 voided");
    expect(stdout).not.toMatch(/window|Available/);
  });

  it("refuses an unknown batch, which it names, and a missing id", async () => {
    await expectFailure(["batch", "show", "bat_unknown"], /bat_unknown/);
    await expectFailure(["batch", "show"], /id/);
  });
});

describe("voucherctl voucher", () => {
  const org = () => ["--org", partner.organizationId];

  it("show prints a voucher by its code in any spelling, with its live reservation", async () => {
    const voucher = await issueVoucher(servers.db, partner, { validUntil: new Date("2099-01-01T00:00:00Z") });
    const { rows } = await servers.db.query("SELECT name FROM brands WHERE id = $1", [partner.brandId]);
    const shown = {
      id: voucher.id,
      code: voucher.code,
      serial: 1,
      status: "Active",
      redeemedAt: null,
      validUntil: "2099-01-01T00:00:00.000Z",
      retailPriceUsd: 50,
      priceUsd: 40.25,
      benefitMonths: 6,
      usageUnitLabel: "visit",
      productName: "Pass",
      productKey: "pass",
      type: "Subscription",
      brand: rows[0].name,
    };
    const before = await dumpRows(servers.db);
    for (const spelt of [voucher.code, voucher.code.toLowerCase().replaceAll("-", " ")]) {
      expect(await voucherctl.json("voucher", "show", spelt, ...org())).toStrictEqual({
        voucher: shown,
        reservation: null,
      });
    }
    expect(await dumpRows(servers.db)).toEqual(before);
    const key = await makeKey(servers.db, partner.organizationId);
    const reservation = (await partnerClient(api.url, key.key).reserve(voucher.code)).body;
    const reserved = await voucherctl.json("voucher", "show", voucher.code, ...org());
    expect(reserved).toStrictEqual({
      voucher: shown,
      reservation: {
        ticket: reservation.ticket,
        keyId: key.id,
        startedAt: expect.any(String),
        expiresAt: reservation.expiresAt,
      },
    });
    expect(JSON.stringify(reserved)).not.toContain(reservation.token);
    const expired = await issueVoucher(servers.db, partner, { validUntil: new Date("2020-01-01T00:00:00Z") });
    expect(await voucherctl.json("voucher", "show", expired.code, ...org())).toMatchObject({
      voucher: { status: "Expired" },
    });
  });

  it("void ends voucher and reservation, stores the reason, releases the lease and adds a seal job", async () => {
    const voucher = await issueVoucher(servers.db, partner);
    const key = await makeKey(servers.db, partner.organizationId);
    const till = partnerClient(api.url, key.key);
    const { ticket } = (await till.reserve(voucher.code)).body;
    const voided = await voucherctl.json(
      "voucher",
      "void",
      voucher.code.toLowerCase(),
      ...org(),
      "--reason",
      "printed twice",
    );
    expect(voided).toStrictEqual({ id: voucher.id, status: "Voided" });
    expect((await till.lookUp(voucher.code)).body).toMatchObject({ voucher: { status: "Voided" }, reservation: null });
    const { rows } = await servers.db.query("SELECT state, end_reason FROM reservations WHERE ticket = $1", [ticket]);
    expect(rows).toEqual([{ state: "Released", end_reason: "voided" }]);
    expect(await servers.redis.exists(servers.leaseKey(voucher.id))).toBe(0);

    const queue = new Queue(sealQueue.name, { prefix: servers.queuePrefix, connection: { url: servers.redisUrl } });
    const jobs = await queue.getWaiting();
    await queue.close();
    expect(jobs.map(({ data }) => data)).toContainEqual(expect.objectContaining({ voucherId: voucher.id }));
    expect((await till.events(voucher.code)).body.events[1]).toMatchObject({ sealStatus: "Pending" });
    const worker = await startWorkers(servers);
    const sealed = await until(async () => {
      const event = (await till.events(voucher.code)).body.events[1];
      return event.sealStatus === "Sealed" ? event : null;
    });
    await worker.close();
    expect(JSON.parse(sealed.payload)).toMatchObject({
      eventType: "voucher.instance.voided",
      actorConnectedId: null,
      data: { reason: "printed twice" },
    });
  });

  it("void seals the event itself without Redis and when Redis does not answer", async () => {
    const [one, two] = await issueVouchers(servers.db, partner, 2);
    const without = await voucherctl.run(["voucher", "void", one?.code ?? "", ...org(), "--json"], { REDIS_URL: "" });
    expect(without).toEqual({ exitCode: 0, stderr: "", stdout: `{"id":"${one?.id}","status":"Voided"}\n` });
    const closed = { REDIS_URL: `redis://127.0.0.1:${await findSteadyPort()}/0` };
    const away = await voucherctl.run(["voucher", "void", two?.code ?? "", ...org(), "--json"], closed);
    expect(away).toMatchObject({ exitCode: 0, stdout: `{"id":"${two?.id}","status":"Voided"}\n` });
    for (const voucher of [one, two])
      expect(await readRecorded(servers.db, voucher?.id ?? "")).toMatchObject({ lastSequence: 2, sealedSequence: 2 });
  });

  it("void succeeds when its event can be neither queued nor sealed, and leaves the seal to the workers", async () => {
    const [one, two] = await issueVouchers(servers.db, partner, 2);
    // The error of a seal that waits too long for the voucher's row.
    await servers.db.query(`
      CREATE FUNCTION refuse_seal() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN RAISE EXCEPTION 'canceling statement due to lock timeout' USING ERRCODE = 'lock_not_available'; END $$;
      CREATE TRIGGER refuse_seal BEFORE UPDATE ON voucher_events FOR EACH ROW EXECUTE FUNCTION refuse_seal()`);
    try {
      const run = (code = "", ...more: string[]) =>
        voucherctl.run(["voucher", "void", code, ...org(), ...more], { REDIS_URL: "" });
      expect(await run(one?.code)).toEqual({
        exitCode: 0,
        stderr: "",
        stdout: `Voucher ${one?.id} is voided.\nThe workers will seal the event in its history later.\n`,
      });
      const json = await run(two?.code, "--json");
      expect(json).toEqual({ exitCode: 0, stderr: "", stdout: `{"id":"${two?.id}","status":"Voided"}\n` });
    } finally {
      await servers.db.query("DROP TRIGGER refuse_seal ON voucher_events; DROP FUNCTION refuse_seal");
    }
    for (const { id: voucherId } of [one, two].flatMap((voucher) => voucher ?? [])) {
      expect(await readRecorded(servers.db, voucherId)).toMatchObject({ status: "Voided", sealedSequence: 1 });
      expect(await sealVoucher({ pool: servers.db }, voucherId)).toBe(1);
    }
  });

  it("void refuses a voided, redeemed or expired voucher with the reason", async () => {
    const [voided, used] = await issueVouchers(servers.db, partner, 2);
    const expired = await issueVoucher(servers.db, partner, { validUntil: new Date(Date.now() - 1_000) });
    await voucherctl.json("voucher", "void", voided?.code ?? "", ...org());
    const worker = await startWorkers(servers);
    const till = partnerClient(api.url, (await makeKey(servers.db, partner.organizationId)).key);
    expect((await till.redeem({ code: used?.code, externalRef: "used-before-void" })).status).toBe(200);
    await until(async () => {
      const { rows } = await servers.db.query(
        "SELECT count(*)::int AS n FROM voucher_events WHERE seal_status = 'Pending'",
      );
      return rows[0].n === 0;
    });
    await worker.close();
    await expectFailure(["voucher", "void", voided?.code ?? "", ...org()], /cancelled/);
    await expectFailure(["voucher", "void", used?.code ?? "", ...org()], /used/);
    await expectFailure(["voucher", "void", expired.code, ...org()], /expired/);
  });

  it.each([
    "show",
    "void",
  ])("%s refuses unknown codes, another organization's codes and an unknown organization", async (command) => {
    const theirs = await issueVoucher(servers.db, await makePartner(servers.db));
    for (const code of [theirs.code, "7Q4K-9MZX-2HTB-W8RC", "?", "größe"]) {
      await expectFailure(["voucher", command, code, ...org()], /^No voucher (of org_\w+ )?has this code\./);
    }
    await expectFailure(
      ["voucher", command, theirs.code, "--org", "org_unknown"],
      /^No voucher of org_unknown has this code\.$/m,
    );
  });

  it("show and void require code and organization; void refuses a reason that is too long", async () => {
    for (const command of ["show", "void"]) {
      await expectFailure(["voucher", command, "7Q4K-9MZX-2HTB-W8RC"], /--org/);
      await expectFailure(["voucher", command, ...org()], /code/);
    }
    await expectFailure(["voucher", "void", "7Q4K-9MZX-2HTB-W8RC", ...org(), "--reason", "x".repeat(201)], /--reason/);
  });
});

describe("voucherctl chain verify", () => {
  it("reports no broken chain in an intact database with Pending events", async () => {
    const voucher = await issueVoucher(servers.db, partner);
    await voucherctl.run(["voucher", "void", voucher.code, "--org", partner.organizationId], { REDIS_URL: "" });
    const { rows } = await servers.db.query(
      "SELECT (SELECT count(*)::int FROM vouchers) AS vouchers, (SELECT count(*)::int FROM voucher_events) AS events",
    );
    const before = await dumpRows(servers.db);
    expect(await voucherctl.json("chain", "verify", "--all")).toStrictEqual({ ...rows[0], broken: [] });
    expect(await voucherctl.json("chain", "verify", "--voucher", voucher.id)).toStrictEqual({
      vouchers: 1,
      events: 2,
      broken: [],
    });
    expect(await dumpRows(servers.db)).toEqual(before);
  });

  it("verifies every chain by default", async () => {
    expect(await voucherctl.json("chain", "verify")).toStrictEqual(await voucherctl.json("chain", "verify", "--all"));
  });

  it("refuses an unknown voucher, which it names, and --voucher together with --all", async () => {
    await expectFailure(["chain", "verify", "--voucher", "vch_unknown"], /vch_unknown/);
    await expectFailure(["chain", "verify", "--voucher", "vch_unknown", "--all"], /--all/);
  });

  describe("of a database whose rows were changed past its constraints", () => {
    let tampered: TestServers;
    let env: Record<string, string>;
    /** The change made to each voucher, by its id. */
    const done = new Map<string, string>();
    let intact: string;

    beforeAll(async () => {
      tampered = await openTestServers();
      env = { DATABASE_URL: tampered.adminUrl };
      const owner = await makePartner(tampered.db);
      const vouchers = await issueVouchers(tampered.db, owner, 11);
      intact = vouchers.pop()?.id ?? "";
      for (const { code } of vouchers) {
        await voucherctl.run(["voucher", "void", code, "--org", owner.organizationId, "--reason", "a"], {
          ...env,
          REDIS_URL: "",
        });
      }
      for (const voucher of vouchers) await sealVoucher({ pool: tampered.db }, voucher.id);
      await tampered.db.query(`
        ALTER TABLE voucher_events DISABLE TRIGGER USER;
        ALTER TABLE voucher_events DROP CONSTRAINT voucher_events_hash_matches_payload;
        ALTER TABLE voucher_events DROP CONSTRAINT voucher_events_no_fork;
        ALTER TABLE voucher_events DROP CONSTRAINT voucher_events_sealed_complete;
        ALTER TABLE vouchers DISABLE TRIGGER USER`);
      const event = (set: string, sequence = 2) =>
        `UPDATE voucher_events SET ${set} WHERE voucher_id = $1 AND sequence = ${sequence}`;
      const changes: Record<string, string> = {
        "payload changed": event('payload = replace(payload, \'reason":"a"\', \'reason":"b"\')'),
        "payload and hash changed": event(
          'payload = replace(payload, \'reason":"a"\', \'reason":"b"\'), record_hash = sha256(convert_to(replace(payload, \'reason":"a"\', \'reason":"b"\'), \'UTF8\'))',
        ),
        "first event and its hash changed": event(
          "payload = replace(payload, 'OpenToAll', 'ReferrerOnly'), record_hash = sha256(convert_to(replace(payload, 'OpenToAll', 'ReferrerOnly'), 'UTF8'))",
          1,
        ),
        "link changed": event("previous_hash = decode(repeat('ab', 32), 'hex')"),
        "time changed": event("occurred_at = occurred_at - interval '1 hour'"),
        "actor changed": event("actor_connected_id = 'key_of_another'"),
        "type changed": event("event_type = 'voucher.instance.expired'"),
        "tail cut off": "DELETE FROM voucher_events WHERE voucher_id = $1 AND sequence = 2",
        "beginning cut off": "DELETE FROM voucher_events WHERE voucher_id = $1 AND sequence = 1",
        "head changed": "UPDATE vouchers SET sealed_hash = decode(repeat('cd', 32), 'hex') WHERE id = $1",
      };
      for (const [index, [what, statement]] of Object.entries(changes).entries()) {
        const { id: voucherId = "" } = vouchers[index] ?? {};
        const { rowCount } = await tampered.db.query(statement, [voucherId]);
        expect(rowCount, what).toBe(1);
        done.set(voucherId, what);
      }
    });

    afterAll(() => tampered.close());

    it("exits with 1 and names exactly the broken vouchers, each once", async () => {
      const { exitCode, stdout, stderr } = await voucherctl.run(["chain", "verify", "--all", "--json"], env);
      expect({ exitCode, stderr }).toEqual({ exitCode: 1, stderr: "" });
      const result = JSON.parse(stdout);
      expect(Object.keys(result)).toEqual(["vouchers", "events", "broken"]);
      expect(result).toMatchObject({ vouchers: 11, events: 19 });
      const named = result.broken.map(({ voucherId }: { voucherId: string }) => done.get(voucherId)).sort();
      expect(named).toEqual([...done.values()].sort());
      for (const entry of result.broken) {
        expect(entry).toStrictEqual({
          voucherId: expect.any(String),
          sequence: expect.any(Number),
          problem: expect.stringMatching(/\S/),
        });
      }
    });

    it("exits with 1 for one broken voucher and with 0 for an unchanged one", async () => {
      const [broken = ""] = done.keys();
      const bad = await voucherctl.run(["chain", "verify", "--voucher", broken, "--json"], env);
      expect({ exitCode: bad.exitCode, stderr: bad.stderr }).toEqual({ exitCode: 1, stderr: "" });
      expect(JSON.parse(bad.stdout)).toMatchObject({ vouchers: 1, broken: [{ voucherId: broken, sequence: 2 }] });
      const good = await voucherctl.run(["chain", "verify", "--voucher", intact, "--json"], env);
      expect(good).toEqual({ exitCode: 0, stderr: "", stdout: '{"vouchers":1,"events":1,"broken":[]}\n' });
    });

    it("names the broken vouchers in its text output", async () => {
      const { exitCode, stdout } = await voucherctl.run(["chain", "verify", "--all"], env);
      expect(exitCode).toBe(1);
      for (const voucherId of done.keys()) expect(stdout).toContain(`BROKEN ${voucherId}`);
      expect(stdout).not.toContain(intact);
      expect(stdout).toContain("10 broken chains");
    });
  });
});
