import { spawn, spawnSync } from "node:child_process";
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
import { writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, describe, expect, it, onTestFinished } from "vitest";
import { startNode, startNpm } from "../support/child-process.ts";
import { partnerClient } from "../support/client.ts";
import { dumpRows } from "../support/row-dump.ts";
import { startWorkers } from "../support/service.ts";
import { issueVouchers, makeKey, makePartner } from "../support/supply.ts";
import { untilStarted } from "../support/until.ts";
import { useService } from "../support/use-service.ts";
import { useVoucherctl } from "../support/voucherctl.ts";

const { db, servers, partner, api } = useService({ workers: [] });
const voucherctl = useVoucherctl(servers);

const directory = mkdtempSync(join(tmpdir(), "voucherctl-batch-"));
const filesLike = (part: string) => readdirSync(directory).filter((name) => name.includes(part));
afterEach(() => expect(filesLike("unfinished")).toEqual([]));
afterAll(() => rmSync(directory, { recursive: true }));

const readBatch = async (batchId: string) => (await db.query("SELECT * FROM batches WHERE id = $1", [batchId])).rows[0];

describe("voucherctl batch issue", () => {
  it("batch issue creates a different random code for each voucher, and an audience that never changes", async () => {
    const { id } = await voucherctl.json(issue("--count 3 --audience ReferrerOnly"));
    const codes = (await readVouchers(id)).map(({ code }) => code);
    expect(new Set(codes).size).toBe(3);
    for (const code of codes) expect(code).toMatch(/^[0-9A-HJKMNP-TV-Z]{4}(-[0-9A-HJKMNP-TV-Z]{4}){3}$/);
    expect(await readBatch(id)).toMatchObject({ audience: "ReferrerOnly" });
    const change = db.query("UPDATE batches SET audience = 'OpenToAll' WHERE id = $1", [id]);
    await expect(change).rejects.toThrow(/audience/);
  });

  it("batch issue --out writes id, code and serial of each voucher to a file with mode 0600", async () => {
    const out = file("out.csv");
    const made = await voucherctl.json(issue(`--count 2001 --out ${out}`));
    expect(made).toMatchObject({ count: 2_001, firstSerial: 1, lastSerial: 2_001 });
    const rows = await readVouchers(made.id);
    expect(rows).toHaveLength(2_001);
    expect(readFileSync(out, "utf8")).toBe(
      ["id,code,serial\n", ...rows.map((row) => `${row.id},${row.code},${row.serial}\n`)].join(""),
    );
    expect(statSync(out).mode & 0o777).toBe(0o600);
    expect(filesLike("out.csv")).toEqual(["out.csv"]);
  });

  it.each([
    ["that nothing saved the codes", "", [/^Warning: these codes were not saved, .* batch export bat_\w+ --out FILE$/]],
    ["nothing about an end in the past that --force accepts", "--valid-until 2020-01-01 --force --claim", []],
    ["the name of the file", "--out {told.csv}", [/told\.csv/]],
    ["nothing when users can claim", "--claim", []],
    ["nothing when users can buy", "--buy", []],
  ])("batch issue prints %s", async (_, options, lines) => {
    const text = await voucherctl.text(issue(`--count 1 ${options.replace(/\{(.*)\}/, file("$1"))}`));
    expect(text.split("\n").slice(1, -1)).toEqual(lines.map((line) => expect.stringMatching(line)));
  });

  it("batch issue --out renames an existing file, and refuses to overwrite another run's unfinished file", async () => {
    const again = issue(`--count 1 --out ${file("again.csv", "")}`);
    const ids: string[] = [];
    for (const line of [/Only you can read this file\.\n$/, /to \S+again\.csv\.1\.\n$/, /to \S+again\.csv\.2\.\n$/]) {
      const text = await voucherctl.text(again);
      expect(text).toMatch(line);
      ids.push(/bat_\w+/.exec(text)?.[0] ?? "");
    }
    for (const [index, name] of ["again.csv.1", "again.csv.2", "again.csv"].entries()) {
      const [{ id, code }] = await readVouchers(ids[index] ?? "");
      expect(readFileSync(file(name), "utf8")).toBe(`id,code,serial\n${id},${code},1\n`);
    }
    const unfinished = file("killed.csv.unfinished", "id,code,serial\n");
    await voucherctl.fails(
      1,
      /another run .* or one was killed.*\n.*voucher show CODE --org ID.*\n.*remove it\. Then run this again\.\n$/,
      issue(`--count 1 --out ${file("killed.csv")}`),
    );
    expect(filesLike("killed")).toEqual(["killed.csv.unfinished"]);
    expect(readFileSync(unfinished, "utf8")).toBe("id,code,serial\n");
    rmSync(unfinished);
  });

  const startIssue = (options: string) =>
    startNode(["src/cli/main.ts", ...issue(options).split(" ")], { DATABASE_URL: servers.adminUrl });

  /** Starts a `batch issue` that has opened its file, and waits for a lock before it issues anything. */
  async function startBlocked(out: string, options = "") {
    const lock = await db.connect();
    await lock.query("BEGIN");
    await lock.query("LOCK TABLE batches IN SHARE MODE");
    const issuing = startIssue(`--count 2 --out ${out} ${options}`.trim());
    // The command creates this file after its check that `out` does not exist.
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

  it("only the first of two concurrent runs of batch issue with the same --out writes the file", async () => {
    const out = file("two.csv");
    const { unblock } = await startBlocked(out, "--json");
    await voucherctl.fails(1, /another run/, issue(`--count 1 --out ${out}`));
    const { exitCode, stdout } = await unblock();
    expect({ exitCode, count: JSON.parse(stdout).count }).toEqual({ exitCode: 0, count: 2 });
    expect(readFileSync(out, "utf8").split("\n")).toHaveLength(4);
  });

  it.each([
    "",
    "--json",
  ])("batch issue %s names the file with the codes if it cannot rename that file", async (json) => {
    const out = file(`renamed${json}.csv`);
    const { unblock } = await startBlocked(out, json);
    mkdirSync(out);
    const { exitCode, stdout, stderr } = await unblock();
    expect(exitCode).toBe(0);
    expect(stderr).toMatch(
      /^The file could not be renamed \(.*\)\. The codes are in \S+\.csv\.unfinished\.\n(Next: .*\n)?$/,
    );
    if (json !== "") expect(JSON.parse(stdout)).toMatchObject({ count: 2 });
    else expect(stdout).toContain(`The codes are in ${out}.unfinished. Only you can read this file.\n`);
    expect(readFileSync(`${out}.unfinished`, "utf8").split("\n")).toHaveLength(4);
    rmSync(`${out}.unfinished`);
  });

  it("batch issue ends within five seconds of Ctrl-C while the database is silent, and leaves no file", async () => {
    const { issuing, unblock } = await startBlocked(file("blocked.csv"));
    issuing.child.kill("SIGINT");
    // The test holds the lock until the process has ended.
    const { exitCode, stdout, stderr } = await issuing.ended;
    await unblock();
    expect({ exitCode, stdout }).toEqual({ exitCode: 69, stdout: "" });
    expect(stderr).toMatch(
      /did not end within five seconds .*\nRun voucherctl audit list to see whether anything was done\.\n$/,
    );
    expect(filesLike("blocked")).toEqual([]);
  });

  it("batch issue leaves no rows and no file when npm forwards Ctrl-C a second time", async () => {
    const before = await dumpRows(db);
    for (const round of [1, 2, 3]) {
      const out = file(`npm-${round}.csv`);
      const command = ["run", "-s", "voucherctl", "--", ...issue(`--count 1000000 --out ${out}`).split(" ")];
      const issuing = startNpm(command, { DATABASE_URL: servers.adminUrl });
      await untilStarted(() => existsSync(`${out}.unfinished`) && statSync(`${out}.unfinished`).size > 10_000);
      // A terminal sends its signals to the whole process group.
      process.kill(-(issuing.child.pid as number), "SIGINT");
      expect(await issuing.ended).toEqual({ exitCode: 130, stdout: "", stderr: "Interrupted. Nothing was issued.\n" });
      expect(filesLike("npm-")).toEqual([]);
    }
    expect(await dumpRows(db)).toEqual(before);
  });

  it("batch issue exits with 130 even if more signals arrive", async () => {
    const out = file("flood.csv");
    const issuing = startIssue(`--count 1000000 --out ${out}`);
    await untilStarted(() => existsSync(`${out}.unfinished`));
    const flood = setInterval(() => issuing.child.kill("SIGINT"), 1);
    expect(await issuing.ended).toMatchObject({ exitCode: 130, stderr: "Interrupted. Nothing was issued.\n" });
    clearInterval(flood);
  });

  it("batch issue keeps the file of codes when the connection is lost during a commit", async () => {
    await db.query(`
      CREATE FUNCTION go_away() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN RAISE EXCEPTION 'terminating connection' USING ERRCODE = 'admin_shutdown'; END $$;
      CREATE CONSTRAINT TRIGGER go_away AFTER INSERT ON batches DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW EXECUTE FUNCTION go_away()`);
    onTestFinished(async () => void (await db.query("DROP TRIGGER go_away ON batches; DROP FUNCTION go_away")));
    const out = file("doubtful.csv");
    await voucherctl.fails(
      69,
      new RegExp(
        [
          "^If the batch was issued after all, its codes are in \\S+doubtful\\.csv\\.unfinished\\.",
          "The database does not answer .*",
          ".*audit list to see whether anything was done\\.\n$",
        ].join("\n"),
      ),
      issue(`--count 2 --out ${out}`),
    );
    expect(readFileSync(`${out}.unfinished`, "utf8").split("\n")).toHaveLength(4);
    rmSync(`${out}.unfinished`);
  });
});

describe("voucherctl batch issue --codes", () => {
  const codes = (content: string | Buffer, count: number, options = "") =>
    issue(`--count ${count} --codes ${file(`${crypto.randomUUID()}.txt`, content)} ${options}`);

  it("batch issue --codes imports printed codes unchanged, in file order", async () => {
    const made = await voucherctl.json(codes("First-Code 01\nsecond/code?\n ~third~ \n", 3));
    expect(await readVouchers(made.id)).toMatchObject([
      { code: "First-Code 01", code_key: "F1RSTC0DE01" },
      { code: "second/code?", code_key: "SEC0ND/C0DE?" },
      { code: "~third~", code_key: "~TH1RD~" },
    ]);
    const client = partnerClient(api.url, (await makeKey(db, partner.organizationId)).key);
    expect((await client.lookUp("fIRST CODE-OL")).body.voucher).toMatchObject({ code: "First-Code 01", serial: 1 });
  });

  it("batch issue --codes accepts CRLF, no last newline, a byte order mark and codes of 4 to 64 symbols", async () => {
    const longest = `${"X-".repeat(63)}X`;
    for (const [content, ...expected] of [
      ["CRLF-0001\r\nCRLF-0002\r\n", "CRLF-0001", "CRLF-0002"],
      ["BARE-0001\nBARE-0002", "BARE-0001", "BARE-0002"],
      ["\ufeffMARK-0001\nMARK-0002\n", "MARK-0001", "MARK-0002"],
      [`A-B C--D\n${longest}\n`, "A-B C--D", longest],
    ] as const) {
      const { id } = await voucherctl.json(codes(content, 2));
      expect((await readVouchers(id)).map(({ code }) => code)).toEqual(expected);
    }
  });

  it("batch issue --codes reads a spreadsheet's Unicode text, and ignores blank lines at the end", async () => {
    const text = "UTF-0001\r\nUTF-0002\r\n\r\n  \r\n";
    for (const [at, mark] of ["\ufeff", ""].entries()) {
      const little = Buffer.from(mark + text.replaceAll("UTF", `LE${at}`), "utf16le");
      const big = Buffer.from(mark + text.replaceAll("UTF", `BE${at}`), "utf16le").swap16();
      for (const [content, name] of [
        [little, `LE${at}`],
        [big, `BE${at}`],
      ] as const) {
        const { id } = await voucherctl.json(codes(content, 2));
        expect((await readVouchers(id)).map(({ code }) => code)).toEqual([`${name}-0001`, `${name}-0002`]);
      }
    }
  });

  it("batch issue --codes first prints the number of codes, the first and last code, and their lengths", async () => {
    const { exitCode, stdout, stderr } = await voucherctl.run(codes("SHOW-00001\nSHOW-0002\nSHOW-00003\n", 3));
    expect({ exitCode, lines: stdout.split("\n").length }).toEqual({ exitCode: 0, lines: 2 });
    expect(stderr.split("\n")[0]?.split(". ")).toEqual([
      "3 codes from the file, the first SHOW-00001, the last SHOW-00003",
      "Characters, not counting separators: 8 (1), 9 (2).",
    ]);
    const command = codes("SHOW-0004\n", 1);
    const refused = await onTerminal(command, "n\n");
    expect(refused.output).toMatch(/1 code from the file, the first SHOW-0004[\s\S]*Nothing was issued\./);
    expect(refused.exitCode).toBe(1);
    expect((await onTerminal(command, "y\n")).output).toMatch(/Batch bat_\w+: 1 voucher/);
  });

  it("batch issue --codes reads the codes from a pipe", async () => {
    const path = file("pipe");
    spawnSync("mkfifo", [path]);
    const issued = voucherctl.json(issue(`--count 2 --codes ${path}`));
    await writeFile(path, "PIPE-0001\nPIPE-0002\n");
    expect(await issued).toMatchObject({ count: 2 });
  });

  it("batch export quotes codes that contain commas and quotes", async () => {
    const out = file("quoted.csv");
    const [one, two] = await issueVouchers(db, partner, 2, { codes: ["COMMA,CODE", 'QUOTE"CODE'] });
    const { rows } = await db.query("SELECT batch_id FROM vouchers WHERE id = $1", [one?.id]);
    await voucherctl.json(`batch export ${rows[0].batch_id} --out ${out}`);
    expect(readFileSync(out, "utf8")).toBe(`id,code,serial\n${one?.id},"COMMA,CODE",1\n${two?.id},"QUOTE""CODE",2\n`);
  });

  it("batch issue --codes refuses codes that the organization already has, in any spelling", async () => {
    await issueVouchers(db, await makePartner(db), 1, { codes: ["SHARED-AMONG-TWO"] });
    await voucherctl.json(codes("SHARED-AMONG-TWO\n", 1));
    await voucherctl.fails(
      1,
      /^Line 2 is a code that the organization already has\./m,
      codes("NEW CODE 0001\nshared among twO\n", 2),
    );
  });

  it.each([
    ["fewer codes than --count", "FEWER-1\nFEWER-2\n", 3, /2.*3|3.*2/],
    ["more codes than --count", "MORE-1\nMORE-2\nMORE-3\n", 2, /contains 3 codes, not 2/],
    ["no codes at all", "", 1, /0/],
    ["the same code twice", "TWICE-1\nTWICE-2\nTWICE-1\n", 3, /^Line 3 repeats the code of line 1\./m],
    ["the same code twice once normalised", "NORM-O1L0\nnorm 0 i 1 o\n", 2, /^Line 2 repeats the code of line 1\./m],
    ["a code of 3 symbols", "FINE-0001\nA-B-C\n", 2, /Line 2/],
    ["a code of 65 symbols", `FINE-0002\n${"X".repeat(65)}\n`, 2, /Line 2/],
    ["a blank line in the middle", "FINE-0003\n \nFINE-0004\n", 2, /^Line 2 is blank, and more lines follow\./],
    ["a blank line at the beginning", "\nFINE-0004\n", 1, /^Line 1 is blank/],
    [
      "a heading above codes with digits",
      "Gutschein\nFINE-0010\nFINE-0011\n",
      2,
      /^Line 1 looks like a heading: Gutschein\./,
    ],
    [
      "a heading above words",
      "\ufeffVoucher Code\nSUMMER\nWINTER\n",
      3,
      /^Line 1 looks like a heading: Voucher Code\./,
    ],
    ["quotes", '"FINE-0012"\r\n"FINE-0013"\r\n', 2, /^Line 1 contains a quotation mark\./],
    [
      "columns",
      "FINE-0014;12,50\nFINE-0015;12,50\n",
      2,
      /^Line 1 has more than a code: it contains a separator of columns/,
    ],
    ["columns from line 2 on", "FINE-0014\nFINE-0015,12.50\n", 2, /^Line 2 has more than a code/],
    [
      "a shortened number",
      "1234567890123456\n1.23457E+15\n",
      2,
      /^Line 2 is a number that a spreadsheet has shortened/,
    ],
    ["a shortened whole number", "1E+15\n", 1, /^Line 1 is a number that a spreadsheet has shortened/],
    ["an error of a spreadsheet", "FINE-0016\n#REF!\n", 2, /^Line 2 is the error message of a spreadsheet/],
    ["an error in German", "#BEZUG!\n", 1, /^Line 1 is the error message of a spreadsheet/],
    ["a column that was too narrow", "########\n", 1, /^Line 1 is the error message of a spreadsheet/],
    ["a formula", "=A1&B1\n", 1, /^Line 1 begins like a formula/],
    ["a date", "FINE-0017\n01.03.2026\n", 2, /^Line 2 is a date/],
    [
      "rounded numbers",
      [1, 2, 3, 4, 5].map((n) => `${n}23456789012345000\n`).join(""),
      5,
      /^Every code ends in zeros after 15 digits/,
    ],
    ["a workbook", "PK\u0003\u0004...", 1, /^The file is a workbook/],
    ["letters beyond ASCII", "FINE-0005\nGRÖSSE-1\n", 2, /Line 2/],
    ["a tab inside a code", "FINE-0006\nTAB\tBED-1\n", 2, /Line 2/],
    ["a code that is the name of a call, in any spelling", "FINE-0009\nRe-1ease\n", 2, /Line 2 is Re-1ease/],
    ["a code that begins like a ticket", "FINE-0007\nrsv_12345\n", 2, /Line 2/],
    ["a code that begins like a ticket in upper case", "RSV_12345\n", 1, /Line 1/],
    ["a code that normalises to the prefix of a ticket", "FINE-0008\nr-sv_12345\n", 2, /Line 2/],
  ])("batch issue --codes refuses a file with %s, and leaves no data", async (_, content, count, sentence) => {
    await voucherctl.fails(1, sentence, codes(content, count, `--out ${file("refused.csv")}`));
    expect(filesLike("refused")).toEqual([]);
  });

  it.each([
    ["--codes {missing.txt}", 1, /missing\.txt/],
    ["--codes {.}", 1, /^The file cannot be read: it is a directory\.\n$/],
    ["--out {nowhere/out.csv}", 1, /nowhere\/out\.csv\.unfinished: there is no such file or directory\.\n$/],
    ["--out {a-directory}", 1, /a-directory/],
    ["--product prd_unknown --out {never.csv}", 1, /prd_unknown/],
    [
      "--valid-until 2020-01-01 --out {never.csv}",
      2,
      /^--valid-until is in the past: 2020-01-01T23:59:59\.999Z\. --force accepts it\.\n/,
    ],
  ])("batch issue %s fails and leaves no file", async (options, exitCode, sentence) => {
    mkdirSync(file("a-directory"), { recursive: true });
    await voucherctl.fails(exitCode, sentence, issue(`--count 2 ${options.replace(/\{(.*)\}/, file("$1"))}`));
    expect(filesLike("never")).toEqual([]);
  });
});

it("users can claim or buy a batch's vouchers only if batch issue got --claim or --buy", async () => {
  const options = "--claim --buy --opens-at 2027-01-01 --closes-at 2028-01-01T00:00:00+01:00";
  const times = { opens_at: new Date("2027-01-01T00:00:00Z"), closes_at: new Date("2027-12-31T23:00:00Z") };
  for (const [given, windows, pickable] of [
    ["", [], 0],
    ["--claim", [{ kind: "claim", opens_at: null, closes_at: null }], 2],
    [options, ["buy", "claim"].map((kind) => ({ kind, ...times })), 2],
  ] as const) {
    const { id } = await voucherctl.json(issue(`--count 2 ${given}`));
    const query = "SELECT kind, opens_at, closes_at FROM batch_windows WHERE batch_id = $1 ORDER BY kind";
    expect((await db.query(query, [id])).rows, given).toEqual(windows);
    const count = "SELECT count(*) FILTER (WHERE pickable)::int AS n FROM vouchers WHERE batch_id = $1";
    expect((await db.query(count, [id])).rows[0].n, given).toBe(pickable);
  }
});

it("batch show prints a batch's claim and buy windows, and the vouchers left in each", async () => {
  const { id } = await voucherctl.json(issue("--count 2 --claim --buy --closes-at 2098-01-01T00:00:00Z"));
  const [voucher] = await readVouchers(id);
  await voucherctl.json(`voucher void ${voucher.code} --org ${partner.organizationId}`);
  const window = { opensAt: null, closesAt: "2098-01-01T00:00:00.000Z" };
  const show = `batch show ${id}`;
  expect(await voucherctl.json(show)).toMatchObject({ active: 1, windows: { claim: window, buy: window }, left: 1 });
  const describe = async (change: string) => {
    await db.query(`UPDATE batch_windows SET ${change} WHERE batch_id = $1 AND kind = 'buy'`, [id]);
    return voucherctl.text(show);
  };
  const open = "  Claim window  open until 2098-01-01 00:00:00 UTC\n";
  const left = "  Available     1 voucher\n";
  expect(await describe("opens_at = '2097-01-01Z'")).toContain(
    `${open}  Buy window    opens at 2097-01-01 00:00:00 UTC, closes at 2098-01-01 00:00:00 UTC\n${left}`,
  );
  expect(await describe("opens_at = NULL, closes_at = '2020-01-01Z'")).toContain(
    `${open}  Buy window    closed since 2020-01-01 00:00:00 UTC\n${left}`,
  );
  await db.query("UPDATE batches SET valid_until = '2021-01-01Z' WHERE id = $1", [id]);
  expect(await voucherctl.json(show)).toMatchObject({ expired: 1, left: 0 });
  expect(await voucherctl.text(show)).toContain("  Claim window  closed since 2021-01-01 00:00:00 UTC\n");
});

it("batch show counts a batch's vouchers by their current status", async () => {
  const made = await voucherctl.json(issue("--count 4"));
  const [voided, redeemed] = await readVouchers(made.id);
  await voucherctl.json(`voucher void ${voided.code} --org ${partner.organizationId}`);
  const worker = await startWorkers(servers);
  const till = partnerClient(api.url, (await makeKey(db, partner.organizationId)).key);
  expect((await till.redeem({ code: redeemed.code, externalRef: "batch-show" })).status).toBe(200);
  await worker.close();
  const shown = {
    id: made.id,
    productId: partner.productId,
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
    suspendedAt: null,
    suspensionReason: null,
    active: 2,
    suspended: 0,
    expired: 0,
    redeemed: 1,
    voided: 1,
  };
  expect(await voucherctl.json(`batch show ${made.id}`)).toStrictEqual(shown);
  await db.query("UPDATE batches SET valid_until = '2020-01-01Z' WHERE id = $1", [made.id]);
  const later = { ...shown, validUntil: "2020-01-01T00:00:00.000Z", active: 0, expired: 2 };
  expect(await voucherctl.json(`batch show ${made.id}`)).toStrictEqual(later);
  const text = await voucherctl.text(`batch show ${made.id}`);
  expect(text).toContain("4: 0 active, 0 suspended, 2 expired, 1 redeemed, 1 voided");
  expect(text).toContain("Price        $40.25, list price $50.00\n");
  expect(text).not.toMatch(/window|Available/);
});

it("batch export writes the file of batch issue again, with used codes, and adds an audit entry", async () => {
  const issued = file("issued.csv");
  const { id } = await voucherctl.json(issue(`--count 5100 --out ${issued}`));
  await db.query("UPDATE vouchers SET status = 'Voided' WHERE batch_id = $1 AND serial = 7", [id]);
  // Sets the voucher back, because the invariants refuse a voided voucher without an event.
  onTestFinished(async () => {
    await db.query("ALTER TABLE vouchers DISABLE TRIGGER vouchers_status_final");
    await db.query("UPDATE vouchers SET status = 'Active' WHERE batch_id = $1", [id]);
    await db.query("ALTER TABLE vouchers ENABLE TRIGGER vouchers_status_final");
  });
  const out = file("exported.csv", "older");
  expect(await voucherctl.json(`batch export ${id} --out ${out}`)).toEqual({ id, count: 5_100 });
  expect(readFileSync(out, "utf8")).toBe(readFileSync(issued, "utf8"));
  expect(statSync(out).mode & 0o777).toBe(0o600);
  expect(readFileSync(`${out}.1`, "utf8")).toBe("older");
  const { acts } = await voucherctl.json(`audit list --entity ${id}`);
  expect(acts[0]).toMatchObject({ command: "batch export", after: { codesExported: 5_100 } });
});

it("batch export leaves no file if the batch is unknown or its audit entry cannot be written", async () => {
  const { id } = await voucherctl.json(issue("--count 3"));
  await voucherctl.fails(1, /bat_unknown/, `batch export bat_unknown --out ${file("un.csv")}`);
  await db.query("ALTER TABLE audit_entries ADD CONSTRAINT full_up CHECK (false) NOT VALID");
  onTestFinished(async () => void (await db.query("ALTER TABLE audit_entries DROP CONSTRAINT full_up")));
  await voucherctl.fails(1, /full_up/, `batch export ${id} --out ${file("un.csv")}`);
  expect(filesLike("un.csv")).toEqual([]);
});

describe("voucherctl batch void", () => {
  const count = async (batchId: string, status: string): Promise<number> => {
    const query = "SELECT count(*)::int AS n FROM vouchers WHERE batch_id = $1 AND status = $2";
    return (await db.query(query, [batchId, status])).rows[0].n;
  };

  it("batch void reports how many vouchers were already redeemed, voided or expired", async () => {
    const { id } = await voucherctl.json(issue("--count 20"));
    await voucherctl.json(`batch void ${id}`);
    const text = `Batch ${id}: 0 vouchers voided. Redeemed, voided or expired before: 20.\n`;
    expect(await voucherctl.text(`batch void ${id}`)).toBe(text);
  });

  it("batch void stops on Ctrl-C and prints the voided number, and the next run voids the rest", async () => {
    const { id } = await voucherctl.json(issue("--count 20000"));
    const voiding = startNode(["src/cli/main.ts", "batch", "void", id], { DATABASE_URL: servers.adminUrl });
    await untilStarted(async () => (await count(id, "Voided")) > 0);
    voiding.child.kill("SIGINT");
    const ended = await voiding.ended;
    const first = await count(id, "Voided");
    const soFar = `Voided so far: ${first.toLocaleString("en-US")}. The same command voids the rest.\nInterrupted.\n`;
    expect(ended).toEqual({ exitCode: 130, stdout: "", stderr: soFar });
    expect(first).toBeLessThan(20_000);
    expect(await voucherctl.json(`batch void ${id}`)).toEqual({ voided: 20_000 - first, alreadyFinal: first });
  });
});

it("destructive voucherctl commands on a terminal ask for the answer y, unless --yes is given", async () => {
  const { id } = await voucherctl.json(issue("--count 2"));
  const [{ code }] = await readVouchers((await voucherctl.json(issue("--count 1"))).id);
  const key = (await makeKey(db, partner.organizationId)).id;
  const contract = (await voucherctl.json(`contract offer --brand ${partner.brandId} --user asked`)).id;
  await voucherctl.json(`contract accept ${contract}`);
  const commands: [command: string, question: RegExp][] = [
    [`batch void ${id}`, /voids all active vouchers of batch bat_\w+ \(2 in total\)/],
    [`voucher void ${code} --org ${partner.organizationId}`, /voids the voucher [\w-]+\./],
    [`key rotate ${key} --grace 0s`, /ends the secrets of key_\w+ at once/],
    [`key revoke ${key}`, /revokes the key key_\w+/],
    [`contract end ${contract}`, /ends contract ctr_\w+ and its links/],
    ["db adopt", /jobs in Redis are refused/],
  ];
  const before = await dumpRows(db);
  for (const [command, question] of commands) {
    const refused = { exitCode: 1, output: expect.stringMatching(question) };
    expect(await onTerminal(command, "n\n"), command).toMatchObject(refused);
  }
  expect(await dumpRows(db)).toEqual(before);
  for (const [command] of commands.slice(0, -1)) {
    const isFirst = command.startsWith("batch void");
    const { exitCode, output } = await onTerminal(isFirst ? command : `${command} --yes`, "y\n");
    expect({ exitCode, asked: output.includes("[y/N]") }, output).toEqual({ exitCode: 0, asked: isFirst });
  }
});

/** Runs a command in a terminal, which script(1) provides, and answers its question. */
function onTerminal(line: string, answer: string): Promise<{ exitCode: number | null; output: string }> {
  const child = spawn("script", ["-qec", `'${process.execPath}' src/cli/main.ts ${line}`, "/dev/null"], {
    env: { PATH: process.env.PATH, TERM: "dumb", DATABASE_URL: servers.adminUrl, NO_COLOR: "1" },
  });
  let output = "";
  child.stdout.on("data", (text) => {
    output += text;
    if (/\[y\/N\] $/.test(output)) child.stdin.write(answer);
  });
  return new Promise((resolve) => child.once("close", (exitCode) => resolve({ exitCode, output })));
}

it("org create on a terminal creates a second organization with the same name only after the answer y", async () => {
  const create = "org create --name Asked";
  await voucherctl.json(create);
  const organizations = async () =>
    (await db.query("SELECT count(*)::int AS n FROM organizations WHERE name = 'Asked'")).rows[0].n;
  const refused = await onTerminal(create, "\n");
  expect(refused.output).toMatch(/There is already org_\w+ with the name Asked\. Create another one\? \[y\/N\]/);
  expect(refused.exitCode).toBe(1);
  expect((await onTerminal(create, "\x04")).exitCode).toBe(1);
  expect((await onTerminal(create, "\x03")).exitCode).toBe(130);
  expect(await organizations()).toBe(1);
  expect((await onTerminal(create, "y\n")).exitCode).toBe(0);
  expect(await organizations()).toBe(2);
});

function file(name: string, content?: string | Buffer): string {
  const path = join(directory, name);
  if (content !== undefined) writeFileSync(path, content);
  return path;
}

const issue = (options: string, product = partner.productId) =>
  `batch issue --product ${product} --valid-until 2099-12-31T23:59:59Z ${options}`;

const readVouchers = async (batchId: string) =>
  (await db.query("SELECT id, code, serial, code_key FROM vouchers WHERE batch_id = $1 ORDER BY serial", [batchId]))
    .rows;
