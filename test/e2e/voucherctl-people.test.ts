import { execFileSync, spawn } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { stripVTControlCharacters } from "node:util";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { newId } from "../../src/domain/ids.ts";
import { openTestServers, type TestServers } from "../support/servers.ts";
import { findSteadyPort } from "../support/steady-port.ts";
import { issueVouchers, makeKey, makePartner, type TestPartner } from "../support/supply.ts";
import { openVoucherctl, type Voucherctl } from "../support/voucherctl.ts";

const ESCAPE = "\x1b";

let servers: TestServers;
let voucherctl: Voucherctl;
let partner: TestPartner;
let code: string;
let batchId: string;

beforeAll(async () => {
  servers = await openTestServers();
  voucherctl = openVoucherctl(servers);
  partner = await makePartner(servers.db);
  await makeKey(servers.db, partner.organizationId, { allowIps: ["192.0.2.0/24"] });
  const [voucher] = await issueVouchers(servers.db, partner, 1_234, { validUntil: new Date("2099-12-31T23:59:59Z") });
  code = voucher?.code ?? "";
  batchId = (await servers.db.query("SELECT id FROM batches")).rows[0].id;
});

afterAll(async () => {
  voucherctl.close();
  await servers.close();
});

/** Every command that prints text for people. */
const shows = () => ({
  "key list": ["key", "list", "--org", partner.organizationId],
  "batch show": ["batch", "show", batchId],
  "voucher show": ["voucher", "show", code, "--org", partner.organizationId],
  "chain verify": ["chain", "verify", "--all"],
  "audit list": ["audit", "list"],
  "voucher find": ["voucher", "find", "--code", code],
  "voucher history": ["voucher", "history", code],
  "org list": ["org", "list"],
  "batch list": ["batch", "list", "--org", partner.organizationId],
});
const SHOWS = [
  "key list",
  "batch show",
  "voucher show",
  "chain verify",
  "audit list",
  "voucher find",
  "voucher history",
  "org list",
  "batch list",
] as const;

describe("the text output of voucherctl", () => {
  it.each(SHOWS)("%s has no colours without a terminal, unless FORCE_COLOR asks for them", async (name) => {
    const args = shows()[name];
    const plain = await voucherctl.run(args);
    expect(plain).toMatchObject({ exitCode: 0, stderr: "" });
    expect(plain.stdout).not.toContain(ESCAPE);
    const coloured = await voucherctl.run(args, { FORCE_COLOR: "1" });
    expect(coloured.stdout).toContain(`${ESCAPE}[`);
    expect(stripVTControlCharacters(coloured.stdout)).toBe(plain.stdout);
    const json = await voucherctl.run([...args, "--json"], { FORCE_COLOR: "1" });
    expect(json.stdout).not.toContain(ESCAPE);
  });

  it.each(SHOWS)("%s fits 80 columns and has no trailing spaces", async (name) => {
    const { stdout } = await voucherctl.run(shows()[name]);
    // Notes are wrapped to the terminal's width, and not wrapped without a terminal. Addresses are never wrapped.
    const lines = stdout.split("\n").filter((line) => !/^ {20}|https?:/.test(line));
    expect(lines.filter((line) => line.length > 80 || line.endsWith(" "))).toEqual([]);
  });

  it("has colours and progress on a terminal; NO_COLOR turns off colours, --json turns off both", () => {
    // script(1) gives the command a terminal for both its outputs.
    const onTerminal = (args: string, env: Record<string, string> = {}) =>
      execFileSync("script", ["-qec", `"${process.execPath}" src/cli/main.ts ${args}`, "/dev/null"], {
        env: { PATH: process.env.PATH, TERM: "xterm-256color", DATABASE_URL: servers.adminUrl, ...env },
        encoding: "utf8",
        stdio: ["ignore", "pipe", "inherit"],
      });
    const progress = `\rVerified 1,234 of 1,234 vouchers  100%`;
    const green = `${ESCAPE}[32mevery chain is intact${ESCAPE}[39m`;
    const seen = onTerminal("chain verify");
    expect(seen).toContain(progress);
    // The progress line is removed before the result is printed.
    expect(seen.endsWith(`\r${ESCAPE}[K1,234 vouchers, 1,234 events: ${green}.\r\n`)).toBe(true);
    const plain = onTerminal("chain verify", { NO_COLOR: "1" });
    expect(plain).toContain(progress);
    expect(plain).toContain(": every chain is intact.");
    expect(onTerminal("chain verify --json")).toBe('{"vouchers":1234,"events":1234,"broken":[]}\r\n');
  });

  it("formats counts with separators, prices in dollars and times with a zone", async () => {
    const { stdout } = await voucherctl.run(["batch", "show", batchId]);
    expect(stdout).toMatch(/^Batch bat_\w+\n/);
    expect(stdout).toContain("Price        $40.25, list price $50.00\n");
    expect(stdout).toContain("Valid until  2099-12-31 23:59:59 UTC\n");
    expect(stdout).toContain("Vouchers     1,234: 1,234 active, 0 expired, 0 redeemed, 0 voided\n");
    expect((await voucherctl.run(["chain", "verify"])).stdout).toBe(
      "1,234 vouchers, 1,234 events: every chain is intact.\n",
    );
  });

  it("key list shows columns, the last use of a key, and its limits below", async () => {
    const { stdout } = await voucherctl.run(["key", "list", "--org", partner.organizationId]);
    const [head = "", row = "", note = "", ...rest] = stdout.split("\n");
    expect(head).toMatch(/^ID {30}STATE {3}SCOPES/);
    expect(row).toMatch(/^key_\w{26} {2}active {2}read redeem {2}never$/);
    expect(note).toBe(`${" ".repeat(head.indexOf("STATE"))}from 192.0.2.0/24`);
    expect(rest).toEqual([""]);
    const id = row.slice(0, 30);
    await servers.db.query("INSERT INTO api_key_uses VALUES ($1, now() - interval '3 days')", [id]);
    const used = await voucherctl.run(["key", "list", "--org", partner.organizationId]);
    expect(used.stdout).toMatch(/read redeem {2}3 d ago\n/);
  });

  it("audit list shows who changed which entity, and its fields before and after", async () => {
    const { id } = await makeKey(servers.db, partner.organizationId);
    await voucherctl.run(["key", "revoke", id]);
    const rotated = (await makeKey(servers.db, partner.organizationId)).id;
    await voucherctl.run(["key", "rotate", rotated]);
    expect((await voucherctl.run(["audit", "list", "--entity", rotated])).stdout).toMatch(
      /: old secrets work until [-\d]{10} [:\d]{8}\n/,
    );
    const sandbox = await voucherctl.json("org", "create", "--name", "Tests", "--sandbox");
    await servers.db.query("SELECT advance_sandbox($1, 864000, 'key_1', 'api', 'host')", [sandbox.id]);
    expect((await voucherctl.run(["audit", "list", "--entity", sandbox.id])).stdout).toContain(
      "by api@host: times advanced by 10 d; vouchers expired 0; reservations ended 0\n",
    );
    const { stdout } = await voucherctl.run(["audit", "list", "--entity", id]);
    expect(stdout).toMatch(
      new RegExp(
        `^TIME \\(UTC\\) +COMMAND +ENTITY\n[-\\d]{10} [:\\d]{8}  key revoke +${id}\n +by \\S+@\\S+: revoked at none → [-\\d]{10} [:\\d]{8}\n`,
      ),
    );
    expect((await voucherctl.run(["audit", "list", "--entity", "key_none"])).stdout).toBe(
      "There are no audit entries.\n",
    );
  });

  it("user token needs no server and starts none", () => {
    const directory = mkdtempSync(join(tmpdir(), "voucherctl-token-"));
    try {
      const token = execFileSync(process.execPath, [resolve("src/cli/main.ts"), "user", "token", "--user", "alice"], {
        cwd: directory,
        env: { PATH: process.env.PATH },
        encoding: "utf8",
      });
      expect(token).toMatch(/^ey[\w-]+\.[\w-]+\.[\w-]+\n$/);
      expect(readdirSync(join(directory, ".data")).sort()).toEqual(["user-key.json", "user-keys.jwks.json"]);
    } finally {
      rmSync(directory, { recursive: true });
    }
  });

  it("ends without an error when the reader of its output stops reading", async () => {
    for (let n = 0; n < 3; n++) await voucherctl.run(["org", "create", "--name", `Reader ${n}`]);
    const shell = spawn("sh", ["-c", `"${process.execPath}" src/cli/main.ts audit list --json | head -c 1`], {
      env: { PATH: process.env.PATH, DATABASE_URL: servers.adminUrl },
    });
    let stderr = "";
    shell.stderr.on("data", (text) => {
      stderr += text;
    });
    expect(await new Promise((resolve) => shell.once("close", resolve))).toBe(0);
    expect(stderr).toBe("");
  });
});

describe("the failures of voucherctl", () => {
  /** Expects a sentence, and one that says what to do next. */
  async function fails(exitCode: number, words: RegExp, args: readonly string[], env: Record<string, string> = {}) {
    const ended = await voucherctl.run(args, env);
    expect(ended, args.join(" ")).toEqual({ exitCode, stdout: "", stderr: expect.stringMatching(words) });
    expect(ended.stderr).not.toMatch(/^\s+at .+:\d+/m);
    expect(ended.stderr).not.toContain(ESCAPE);
  }

  it("exits with 1 on a refusal and says what to do next", async () => {
    const [org, batch] = [newId("org"), newId("bat")];
    const next = "voucherctl audit list shows what was created, with ids.\n";
    await fails(1, new RegExp(`^There is no organization ${org}.\n${next}$`), [
      "brand",
      "create",
      "--org",
      org,
      "--name",
      "x",
    ]);
    await fails(1, new RegExp(`^There is no batch ${batch}.\n${next}$`), ["batch", "show", batch]);
    await fails(1, new RegExp(`^There is no batch ${batch}.\n${next}$`), ["listing", "create", "--batch", batch]);
    await fails(1, /^\/nowhere\/codes.csv.unfinished: there is no such file or directory.\n$/, [
      ...["batch", "issue", "--product", partner.productId, "--count", "1", "--valid-until", "2099-01-01"],
      ...["--out", "/nowhere/codes.csv"],
    ]);
    await fails(1, /^No voucher .+\n/, ["voucher", "show", "7Q4K", "--org", partner.organizationId]);
  });

  it("exits with 2 on a wrong command line and suggests a correction", async () => {
    await fails(2, /^Unknown command 'kye'.\n\(Did you mean key\?\)\nSee voucherctl --help\n$/, ["kye", "list"]);
    await fails(2, /^Unknown command 'rovoke'.\n\(Did you mean revoke\?\)\nSee voucherctl key --help\n$/, [
      "key",
      "rovoke",
    ]);
    await fails(2, /^Unknown option '--jsno'.\n\(Did you mean --json\?\)\nSee voucherctl org create --help\n$/, [
      ...["org", "create", "--name", "x", "--jsno"],
    ]);
    await fails(2, /^Required option '--name <name>' not specified.\nSee voucherctl org create --help\n$/, [
      "org",
      "create",
    ]);
    await fails(2, /^--opens-at and --closes-at need a window/, [
      ...[
        "batch",
        "issue",
        "--product",
        "prd_x",
        "--count",
        "1",
        "--valid-until",
        "2099-01-01",
        "--opens-at",
        "2098-01-01",
      ],
    ]);
    expect(await voucherctl.run([])).toMatchObject({
      exitCode: 2,
      stdout: "",
      stderr: expect.stringContaining("Exit status:"),
    });
    expect(await voucherctl.run(["key"])).toMatchObject({
      exitCode: 2,
      stdout: "",
      stderr: expect.stringContaining("rotate"),
    });
  });

  it("exits with 69 when the database does not answer", async () => {
    const closed = await findSteadyPort();
    await fails(
      69,
      // A command that only reads cannot have done anything.
      /^The database does not answer \(ECONNREFUSED\).\nIs it running, and is DATABASE_URL right\?\n$/,
      ["audit", "list"],
      {
        DATABASE_URL: `postgres://wrong:secret@127.0.0.1:${closed}/x`,
      },
    );
    await fails(69, /^The database does not answer \(E\w+\).\n/, ["audit", "list"], {
      DATABASE_URL: "postgres://wrong@no-such-host.invalid/x",
    });
  });

  it("exits with 78 on a bad variable, an unknown database, a role without rights and a missing migration", async () => {
    await fails(78, /^DATABASE_URL /, ["audit", "list"], { DATABASE_URL: "nonsense" });
    const other = new URL(servers.adminUrl);
    other.pathname = "/no_such_database";
    await fails(78, /no_such_database.*\nCheck DATABASE_URL.\n$/, ["audit", "list"], { DATABASE_URL: other.href });
    const bare = new URL(inject("databaseUrl"));
    await fails(78, /not been migrated.*\nRun: npm run migrate\n$/, ["audit", "list"], { DATABASE_URL: bare.href });

    // A database of an earlier release may lack a function and no table or column.
    await servers.db.query("ALTER FUNCTION assert_row_count (bigint, integer, text) RENAME TO assert_row_count_away");
    try {
      const voiding = ["voucher", "void", code, "--org", partner.organizationId];
      await fails(78, /not been migrated.*\nRun: npm run migrate\n$/, voiding);
    } finally {
      await servers.db.query("ALTER FUNCTION assert_row_count_away RENAME TO assert_row_count");
    }

    const role = `people_${process.pid}`;
    await servers.db.query(`CREATE ROLE ${role} LOGIN PASSWORD 'people'`);
    try {
      const low = new URL(servers.adminUrl);
      [low.username, low.password] = [role, "people"];
      await fails(78, /may not do this.*audit_entries/, ["audit", "list"], { DATABASE_URL: low.href });
    } finally {
      await servers.db.query(`DROP ROLE ${role}`);
    }
  });
});
