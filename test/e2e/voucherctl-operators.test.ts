import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import packageJson from "../../package.json" with { type: "json" };
import { startNode } from "../support/child-process.ts";
import { partnerClient } from "../support/client.ts";
import { assertInvariants } from "../support/invariants.ts";
import { dumpRows } from "../support/row-dump.ts";
import { openTestServers, type TestServers } from "../support/servers.ts";
import { startApi, startWorkers, type TestApi, type TestWorker } from "../support/service.ts";
import { issueVouchers, makeKey, makePartner, type TestPartner } from "../support/supply.ts";
import { until, untilStarted } from "../support/until.ts";
import { openVoucherctl, type Voucherctl } from "../support/voucherctl.ts";

let servers: TestServers;
let voucherctl: Voucherctl;
let api: TestApi;
let workers: TestWorker;
let partner: TestPartner;
let directory: string;

beforeAll(async () => {
  servers = await openTestServers();
  voucherctl = openVoucherctl(servers);
  [api, workers] = await Promise.all([startApi(servers), startWorkers(servers)]);
  partner = await makePartner(servers.db);
  directory = mkdtempSync(join(tmpdir(), "voucherctl-operators-"));
});

afterAll(async () => {
  await assertInvariants(servers.db);
  await Promise.all([api.close(), workers.close()]);
  voucherctl.close();
  await servers.close();
  rmSync(directory, { recursive: true, force: true });
});

const file = (name: string) => join(directory, name);

async function issueBatch(count: number, options: Parameters<typeof issueVouchers>[3] = {}) {
  const vouchers = await issueVouchers(servers.db, partner, count, options);
  const { rows } = await servers.db.query("SELECT batch_id FROM vouchers WHERE id = $1", [vouchers[0]?.id]);
  return { batchId: rows[0].batch_id as string, vouchers };
}

/** Runs a command in a terminal, which script(1) provides, and answers its question. */
function onTerminal(args: readonly string[], answer: string): Promise<{ exitCode: number | null; output: string }> {
  const command = [process.execPath, "src/cli/main.ts", ...args].map((word) => `'${word}'`).join(" ");
  const child = spawn("script", ["-qec", command, "/dev/null"], {
    env: { PATH: process.env.PATH, TERM: "dumb", DATABASE_URL: servers.adminUrl, NO_COLOR: "1" },
  });
  let output = "";
  child.stdout.on("data", (text) => {
    output += text;
    if (/\[y\/N\] $/.test(output)) child.stdin.write(answer);
  });
  return new Promise((resolve) => child.once("close", (exitCode) => resolve({ exitCode, output })));
}

it("voucherctl --version prints the version of the package", async () => {
  expect(await voucherctl.run(["--version"])).toEqual({ exitCode: 0, stdout: `${packageJson.version}\n`, stderr: "" });
});

describe("voucherctl voucher find and history", () => {
  it("find a redeemed voucher by each identifier and show its history, as JSON and as text", async () => {
    const { batchId, vouchers } = await issueBatch(2);
    const [voucher] = vouchers;
    const till = partnerClient(api.url, (await makeKey(servers.db, partner.organizationId)).key);
    const { ticket } = (await till.reserve(voucher?.code ?? "")).body;
    const { redeemCode } = (await till.redeem({ code: ticket, externalRef: "order-cli" })).body;
    const found = await voucherctl.json("voucher", "find", "--ref", "order-cli");
    expect(found).toEqual({
      items: [expect.objectContaining({ id: voucher?.id, code: voucher?.code, batchId, externalRef: "order-cli" })],
    });
    for (const name of [
      ["--id", voucher?.id ?? ""],
      ["--code", voucher?.code ?? ""],
      ["--ticket", ticket],
      ["--redeem-code", redeemCode],
      ["--batch", batchId, "--serial", "1"],
      ["--ref", "order-cli", "--org", partner.organizationId],
    ]) {
      expect(await voucherctl.json("voucher", "find", ...name), name[0]).toEqual(found);
    }
    const history = await voucherctl.json("voucher", "history", voucher?.id ?? "");
    expect(Object.keys(history)).toEqual(["voucher", "events", "reservations", "redemption"]);
    expect(history.voucher.verifyUrl).toMatch(new RegExp(`/integrity/events/VoucherInstance/${voucher?.id}$`));
    expect(history.reservations).toEqual([expect.objectContaining({ ticket, state: "Consumed" })]);
    expect(history.redemption).toMatchObject({ externalRef: "order-cli", redeemCode });
    const { stdout } = await voucherctl.run(["voucher", "history", voucher?.code ?? ""]);
    expect(stdout).toMatch(
      /issued +Sealed\n[\s\S]*reserved\n +rsv_\w+ by key_[\s\S]*redeemed +Sealed\n +for order-cli by key_\w+ with rsv_/,
    );
  });

  it("report that nothing was found, and refuse none or two identifiers, and a serial or a batch alone", async () => {
    expect(await voucherctl.json("voucher", "find", "--ref", "never")).toEqual({ items: [] });
    for (const names of [[], ["--id", "vch_x", "--ref", "r"], ["--serial", "1"], ["--batch", "bat_x"]]) {
      const { exitCode, stderr } = await voucherctl.run(["voucher", "find", ...names]);
      expect({ exitCode, stderr }).toEqual({ exitCode: 2, stderr: expect.stringMatching(/--serial/) });
    }
    const { exitCode, stderr } = await voucherctl.run(["voucher", "history", "vch_unknown"]);
    expect({ exitCode, stderr }).toEqual({ exitCode: 1, stderr: expect.stringMatching(/^No voucher has/) });
  });
});

describe("voucherctl list", () => {
  it.each([
    "org",
    "brand",
    "product",
    "batch",
    "listing",
    "contract",
    "link",
  ])("%s has pages, and refuses an invalid --after", async (noun) => {
    const page = await voucherctl.json(noun, "list", "--limit", "1");
    expect(Object.keys(page)).toEqual(["items", "nextCursor"]);
    const text = await voucherctl.run([noun, "list"]);
    expect(text).toMatchObject({ exitCode: 0, stderr: "" });
    const foreign = await voucherctl.run([noun, "list", "--after", "!"]);
    expect(foreign).toMatchObject({ exitCode: 2, stderr: expect.stringMatching(/not a cursor/) });
  });

  it("continues after the previous page, and prints the command for the next page to standard error", async () => {
    await makePartner(servers.db);
    const first = await voucherctl.json("org", "list", "--limit", "1");
    expect(first).toEqual({ items: [expect.objectContaining({ id: first.nextCursor })], nextCursor: first.nextCursor });
    const second = await voucherctl.json("org", "list", "--limit", "1", "--after", first.nextCursor);
    expect(second.items[0].id > first.nextCursor).toBe(true);
    const { stderr } = await voucherctl.run(["org", "list", "--limit", "1"]);
    expect(stderr).toBe(`Next: the same command with --after ${first.nextCursor}\n`);
  });
});

describe("a name that is already in use", () => {
  it("is used again with a warning without a terminal, and silently with --json and --force", async () => {
    const { organizationId, brandId } = partner;
    const product = ["--type", "Service", "--retail-price-usd", "2", "--price-usd", "1"];
    for (const [first, ...again] of [
      [
        ["org", "create", "--name", "Twice"],
        ["org", "create", "--name", "TWICE"],
      ],
      [
        ["brand", "create", "--org", organizationId, "--name", "Twice"],
        ["brand", "create", "--org", organizationId, "--name", "twice"],
      ],
      [
        ["product", "create", "--brand", brandId, "--key", "t1", "--name", "Twice", ...product],
        ["product", "create", "--brand", brandId, "--key", "t2", "--name", "Twice", ...product],
      ],
    ]) {
      const { id } = await voucherctl.json(...(first ?? []));
      for (const args of again) {
        const warned = await voucherctl.run(args);
        expect(warned).toMatchObject({
          exitCode: 0,
          stderr: expect.stringMatching(new RegExp(`^Warning: .*${id}.*\nNext: `)),
        });
        expect(warned.stdout).not.toContain(id);
        const forced = await voucherctl.run([...args.map((word) => (word === "t2" ? "t3" : word)), "--force"]);
        expect(forced).toMatchObject({ exitCode: 0, stderr: expect.stringMatching(/^Next: /) });
      }
    }
    // With --json, it prints no warning.
    await voucherctl.json("org", "create", "--name", "Twice");
  });

  it("requires confirmation on a terminal: y creates another one, any other answer creates nothing", async () => {
    await voucherctl.json("org", "create", "--name", "Asked");
    const count = async () =>
      (await servers.db.query("SELECT count(*)::int AS n FROM organizations WHERE name = 'Asked'")).rows[0].n;
    const args = ["org", "create", "--name", "Asked"];
    const refused = await onTerminal(args, "\n");
    expect(refused.output).toMatch(/There is already org_\w+ with the name Asked\. Create another one\? \[y\/N\]/);
    expect(refused.exitCode).toBe(1);
    expect((await onTerminal(args, "\x04")).exitCode).toBe(1);
    expect((await onTerminal(args, "\x03")).exitCode).toBe(130);
    expect(await count()).toBe(1);
    expect((await onTerminal(args, "y\n")).exitCode).toBe(0);
    expect(await count()).toBe(2);
  });
});

describe("voucherctl batch issue with a --valid-until in the past", () => {
  it("is wrong usage, issues nothing and writes no file, unless --force is given", async () => {
    const before = await dumpRows(servers.db);
    const args = ["batch", "issue", "--product", partner.productId, "--count", "1", "--valid-until", "2020-01-01"];
    const { exitCode, stderr } = await voucherctl.run([...args, "--out", file("past.csv")]);
    expect({ exitCode, stderr }).toEqual({ exitCode: 2, stderr: expect.stringMatching(/in the past.*--force/) });
    expect(readdirSync(directory)).toEqual([]);
    expect(await dumpRows(servers.db)).toEqual(before);
    expect(await voucherctl.json(...args, "--force")).toMatchObject({ count: 1 });
  });
});

describe("the line after a create", () => {
  it("suggests the next command with the new id, on standard error, and is absent with --json", async () => {
    const { stdout, stderr } = await voucherctl.run(["org", "create", "--name", "Guided"]);
    const [id = ""] = /org_\w+/.exec(stdout) ?? [];
    expect(stderr).toBe(`Next: voucherctl brand create --org ${id} --name NAME\n`);
    expect(await voucherctl.json("org", "create", "--name", "Guided quietly")).toHaveProperty("id");
  });
});

describe("voucherctl batch export", () => {
  it("writes the same file as batch issue, including the codes of used vouchers, and records the export", async () => {
    const issued = file("issued.csv");
    const options = ["--product", partner.productId, "--count", "5100", "--valid-until", "2099-01-01", "--out", issued];
    const { id } = await voucherctl.json("batch", "issue", ...options);
    await servers.db.query("UPDATE vouchers SET status = 'Voided' WHERE batch_id = $1 AND serial = 7", [id]);
    const out = file("exported.csv");
    writeFileSync(out, "older");
    try {
      expect(await voucherctl.json("batch", "export", id, "--out", out)).toEqual({ id, count: 5_100 });
      expect(readFileSync(out, "utf8")).toBe(readFileSync(issued, "utf8"));
      expect(statSync(out).mode & 0o777).toBe(0o600);
      expect(readFileSync(`${out}.1`, "utf8")).toBe("older");
      const { acts } = await voucherctl.json("audit", "list", "--entity", id);
      expect(acts[0]).toMatchObject({ command: "batch export", after: { codesExported: 5_100 } });
    } finally {
      // A voided voucher without an event breaks the invariants.
      await servers.db.query("ALTER TABLE vouchers DISABLE TRIGGER vouchers_status_final");
      await servers.db.query("UPDATE vouchers SET status = 'Active' WHERE batch_id = $1", [id]);
      await servers.db.query("ALTER TABLE vouchers ENABLE TRIGGER vouchers_status_final");
    }
  });

  it("leaves no file when its audit entry cannot be written, and refuses an unknown batch", async () => {
    const { batchId } = await issueBatch(3);
    await servers.db.query(`
      CREATE FUNCTION refuse_entry() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'no entry'; END $$;
      CREATE TRIGGER refuse_entry BEFORE INSERT ON audit_entries FOR EACH ROW EXECUTE FUNCTION refuse_entry()`);
    try {
      const { exitCode } = await voucherctl.run(["batch", "export", batchId, "--out", file("unrecorded.csv")]);
      expect(exitCode).toBe(1);
    } finally {
      await servers.db.query("DROP TRIGGER refuse_entry ON audit_entries; DROP FUNCTION refuse_entry");
    }
    const unknown = await voucherctl.run(["batch", "export", "bat_unknown", "--out", file("unknown.csv")]);
    expect(unknown).toMatchObject({ exitCode: 1, stderr: expect.stringMatching(/bat_unknown/) });
    expect(readdirSync(directory).filter((name) => name.startsWith("un"))).toEqual([]);
  });
});

describe("voucherctl batch void", () => {
  it("voids the remaining Active vouchers and prints their number", async () => {
    const { batchId } = await issueBatch(20);
    expect(await voucherctl.json("batch", "void", batchId, "--reason", "recalled")).toEqual({
      voided: 20,
      alreadyFinal: 0,
    });
    const { stdout } = await voucherctl.run(["batch", "void", batchId]);
    expect(stdout).toBe(`Batch ${batchId}: 0 vouchers voided. 20 were redeemed, voided or expired before.\n`);
    const unknown = await voucherctl.run(["batch", "void", "bat_unknown"]);
    expect(unknown).toMatchObject({ exitCode: 1, stderr: expect.stringMatching(/bat_unknown/) });
  });

  it("stops on Ctrl-C, says how many it voided, and voids the rest when it runs again", async () => {
    const { batchId } = await issueBatch(20_000);
    const voided = async (): Promise<number> =>
      (
        await servers.db.query("SELECT count(*)::int AS n FROM vouchers WHERE batch_id = $1 AND status = 'Voided'", [
          batchId,
        ])
      ).rows[0].n;
    const voiding = startNode(["src/cli/main.ts", "batch", "void", batchId], { DATABASE_URL: servers.adminUrl });
    await untilStarted(async () => (await voided()) > 0);
    voiding.child.kill("SIGINT");
    const { exitCode, stdout, stderr } = await voiding.ended;
    const first = await voided();
    expect({ exitCode, stdout, stderr }).toEqual({
      exitCode: 130,
      stdout: "",
      stderr: `Voided so far: ${first.toLocaleString("en-US")}. The same command voids the rest.\nInterrupted.\n`,
    });
    expect(first).toBeLessThan(20_000);
    expect(await voucherctl.json("batch", "void", batchId)).toEqual({ voided: 20_000 - first, alreadyFinal: first });
  });

  it("asks for confirmation on a terminal, and voids nothing without it", async () => {
    const { batchId } = await issueBatch(2);
    const refused = await onTerminal(["batch", "void", batchId], "n\n");
    expect(refused).toMatchObject({
      exitCode: 1,
      output: expect.stringMatching(/all active vouchers of batch bat_\w+ \(2 in total\)/),
    });
    const active = async () =>
      (
        await servers.db.query("SELECT count(*)::int AS n FROM vouchers WHERE batch_id = $1 AND status = 'Active'", [
          batchId,
        ])
      ).rows[0].n;
    expect(await active()).toBe(2);
    expect((await onTerminal(["batch", "void", batchId], "y\n")).exitCode).toBe(0);
    await until(async () => (await active()) === 0);
  });
});

it("no run leaves an unfinished file", () => {
  expect(existsSync(directory)).toBe(true);
  expect(readdirSync(directory).filter((name) => name.includes("unfinished"))).toEqual([]);
});
