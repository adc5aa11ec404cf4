import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { stripVTControlCharacters } from "node:util";
import { beforeAll, describe, expect, inject, it, onTestFinished } from "vitest";
import { partnerClient } from "../support/client.ts";
import { makeContract, newUser, offerBatch } from "../support/marketplace.ts";
import { findBatchOf } from "../support/recorded.ts";
import { dumpRows } from "../support/row-dump.ts";
import { openTestServers } from "../support/servers.ts";
import { startWorkers } from "../support/service.ts";
import { findSteadyPort } from "../support/steady-port.ts";
import { issueVoucher, issueVouchers, makeKey, makePartner } from "../support/supply.ts";
import { useService } from "../support/use-service.ts";
import { useVoucherctl } from "../support/voucherctl.ts";

const { db, servers, api, partner, stranger, till, keys, issue } = useService({ workers: [] });
const voucherctl = useVoucherctl(servers);

const ESCAPE = "\x1b";
const MOMENT = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
const org = () => `--org ${partner.organizationId}`;

describe("failures of voucherctl", () => {
  /** The values that replace the names in braces in the commands. */
  let given: Record<string, string>;

  beforeAll(async () => {
    const { brandId, productId, organizationId } = partner;
    const [active, user] = [newUser("referrer"), newUser("referrer")];
    const revoked = await makeKey(db, organizationId);
    await voucherctl.json(`key revoke ${revoked.id}`);
    const [voided, used] = await issueVouchers(db, partner, 2);
    await voucherctl.run(`voucher void ${voided?.code} ${org()}`);
    const worker = await startWorkers(servers);
    expect((await till.redeem({ code: used?.code, externalRef: "used-before-void" })).status).toBe(200);
    await worker.close();
    const { batchId } = await offerBatch(db, partner, 1);
    given = {
      org: organizationId,
      brand: brandId,
      prd: productId,
      strangers: stranger.productId,
      user: active,
      revoked: revoked.id,
      voided: voided?.code ?? "",
      used: used?.code ?? "",
      listed: batchId,
      expired: (await issue({ validUntil: new Date(Date.now() - 1_000) })).code,
      theirs: (await issueVoucher(db, stranger)).code,
      active: await makeContract(db, brandId, active, "Active"),
      offered: await makeContract(db, brandId, user, "Offered"),
      ended: await makeContract(db, brandId, newUser(), "Ended"),
    };
  });

  const PRODUCT = "product create --brand {brand} --key k --name n --type Service --retail-price-usd 19.90 --price-usd";
  const KEY = "key create --org {org} --scope voucher.read";
  const ISSUE = "batch issue --product prd_x --count 1 --valid-until 2099-12-31";
  const OFFER = "contract offer --brand {brand} --user";
  const WEBHOOK = "webhook create --org {org} --url https://x.example/";
  const NO_BATCH = /^There is no batch bat_unknown\.\nvoucherctl audit list shows what was created, with ids\.\n$/;
  const NO_CODE = /^No voucher (of org_\w+ )?has this code( or id)?\./;
  const LONG = "x".repeat(256);

  /** Commands that fail, with their exit code and message. */
  const FAILURES: [exitCode: number, sentence: RegExp, ...commands: string[]][] = [
    [2, /^Unknown command 'kye'.\n\(Did you mean key\?\)\nSee voucherctl --help\n$/, "kye list"],
    [
      2,
      /^Unknown option '--jsno'.\n\(Did you mean --json\?\)\nSee voucherctl org create/,
      "org create --name x --jsno",
    ],
    [2, /^Required option '--name <name>' not specified.\nSee voucherctl org create --help\n$/, "org create --json"],
    [2, /Exit status:/, ""],
    [2, /rotate/, "key"],
    [2, /It must not be empty/, "org create --name ''", `${OFFER} ''`, `${KEY} --label ''`],
    [2, /It must not be empty/, `${PRODUCT} 12 --usage-unit-label ''`],
    [2, /It must be at most 200 characters long/, `voucher void 7Q4K --org o --reason ${LONG}`],
    [2, /It must be at most 255 characters long/, `member add --org {org} --role owner --user ${LONG}`],
    [2, /'--price-usd <dollars>' .* It must be dollars like/, `${PRODUCT} free`],
    [2, /'--retail-price-usd <dollars>' .* It must be dollars like/, `${PRODUCT} 12 --retail-price-usd=-1`],
    [2, /--type.*Allowed choices/, `${PRODUCT} 12 --type Gift`],
    [2, /--audience.*Allowed choices/, `${ISSUE} --audience Everyone`],
    [2, /--role.*Allowed choices/, "member add --org {org} --user u --role admin"],
    [2, /It must be one of voucher.read, voucher.redeem/, "key create --scope voucher.write"],
    [2, /It must be one of /, `${WEBHOOK} --event-type all`],
    [
      2,
      /--allow-ip/,
      ...["300.1.1.1", "10.0.0.0/33", "10.1.2.3/8", "example.org"].map((address) => `${KEY} --allow-ip ${address}`),
    ],
    [2, /missing required argument 'id'/i, "key revoke", "batch show", "contract end"],
    [2, /missing required argument 'file'/i, "statement verify"],
    [2, /too many arguments/i, "db trust-clock now", "db adopt this"],

    [
      1,
      /^There is no organization org_unknown\./,
      "brand create --org org_unknown --name x",
      "key list --org org_unknown",
    ],
    [1, /^There is no organization org_unknown\./, KEY.replace("{org}", "org_unknown")],
    [1, /^There is no organization org_unknown\./, "member add --org org_unknown --user u --role owner"],
    [1, /^There is no organization org_unknown\./, WEBHOOK.replace("{org}", "org_unknown")],
    [
      1,
      /brd_unknown/,
      `${PRODUCT.replace("{brand}", "brd_unknown")} 12`,
      "contract offer --brand brd_unknown --user u",
    ],
    [1, /pass/, `${PRODUCT.replace("--key k", "--key pass")} 12`],
    [1, /key_unknown/, "key revoke key_unknown --json", "key rotate key_unknown"],
    [1, /key_\w+/, "key rotate {revoked} --json"],
    [1, /prd_unknown/, ISSUE.replace("prd_x", "prd_unknown")],
    [2, /^--opens-at and --closes-at need a window: add --claim/, `${ISSUE} --opens-at 2027-01-01`],
    [2, /^--opens-at and --closes-at need a window/, `${ISSUE} --closes-at 2027-01-01`],
    [2, /--closes-at/, `${ISSUE} --buy --opens-at 2027-01-02 --closes-at 2027-01-01`],
    [2, /--opens-at must be earlier than --valid-until/, `${ISSUE} --buy --opens-at 2100-01-01`],
    [1, NO_BATCH, "batch show bat_unknown", "listing create --batch bat_unknown", "batch void bat_unknown"],
    ...["show", "void"].flatMap((verb): [number, RegExp, ...string[]][] => [
      [1, NO_CODE, ...["{theirs}", "?", "größe"].map((code) => `voucher ${verb} ${code} --org {org}`)],
      [1, NO_CODE, `voucher ${verb} {theirs} --org org_unknown`],
    ]),
    [1, /cancelled/, "voucher void {voided} --org {org}"],
    [1, /used/, "voucher void {used} --org {org}"],
    [1, /expired/, "voucher void {expired} --org {org}"],
    [2, /--serial/, ...["", "--id x --ref r", "--serial 1", "--batch bat_x"].map((names) => `voucher find ${names}`)],
    [2, /^\/nowhere cannot be read: .*no such file/, "statement verify /nowhere"],
    [1, /^The file is no statement of a month\./, "statement verify package.json"],
    [1, /^The file has no redemptions\./, "statement verify README.md"],
    [1, /^No voucher has/, "voucher history vch_unknown", "voucher history --ref unknown"],
    [2, /--ref/, "voucher history", "voucher history vch_x --ref r"],
    [1, /vch_unknown/, "chain verify --voucher vch_unknown"],
    [2, /--all/, "chain verify --voucher vch_unknown --all"],
    [1, /open contract/, `${OFFER} {user}`],
    [1, /ctr_unknown/, ...["accept", "decline", "end"].map((verb) => `contract ${verb} ctr_unknown`)],
    [1, /Offered/, "contract end {offered}"],
    [1, /Active/, "contract accept {active}", "contract decline {active}"],
    [1, /Ended/, "contract accept {ended}"],
    [1, /{strangers}/, "link create --contract {active} --product {strangers}"],
    [1, /ctr_unknown/, "link create --contract ctr_unknown --product {prd}"],
    [1, /prd_unknown/, "link create --contract {active} --product prd_unknown"],
    [1, /already/, "listing create --batch {listed}"],
    [2, /'--url <url>' .* It must not have a user name/, WEBHOOK.replace("x.example", "user:pw@x.example")],
    [1, /^url .*\n/, WEBHOOK.replace("x.example", "127.0.0.1")],
    [
      1,
      /no webhook endpoint whk_0/,
      ...["disable", "enable", "rotate", "deliveries"].map((verb) => `webhook ${verb} whk_0`),
    ],
    [1, /no webhook endpoint whk_0/, "webhook replay whk_0 --event-id vch_x-2"],
    [
      2,
      /^--to must be later than --from\./,
      "webhook replay whk_0",
      "webhook replay whk_0 --from 2026-11-22 --to 2026-11-21",
    ],
    // The command signs tokens only for a running `npm start`, because a service on DATABASE_URL would refuse them.
    [2, /DATABASE_URL/, "user token --user alice --ttl 1h"],
  ];

  it.each(
    FAILURES.flatMap(([exitCode, sentence, ...commands]) =>
      commands.map((command) => ({ exitCode, sentence, command })),
    ),
  )("voucherctl $command exits with $exitCode, prints $sentence and writes nothing", async ({
    exitCode,
    sentence,
    command,
  }) => {
    await voucherctl.fails(exitCode, new RegExp(fill(sentence.source, given), sentence.flags), fill(command, given));
  });

  it("voucherctl names the remedy if the database is silent (69), wrong or not migrated (78)", async () => {
    const closed = `postgres://wrong:secret@127.0.0.1:${await findSteadyPort()}/x`;
    const role = `people_${process.pid}`;
    await db.query(`CREATE ROLE ${role} LOGIN PASSWORD 'people'`);
    onTestFinished(async () => void (await db.query(`DROP ROLE ${role}`)));
    const changed = (change: Partial<URL>) => Object.assign(new URL(servers.adminUrl), change).href;
    const silent = /^The database does not answer \(E\w+\).\nIs it running, and is DATABASE_URL right\?\n$/;
    const bare = /not been migrated.*\nRun: npm run migrate\n$/;
    for (const [exitCode, words, command, DATABASE_URL] of [
      [69, silent, "audit list", closed],
      [69, silent, "audit list", "postgres://wrong@no-such-host.invalid/x"],
      [78, /^DATABASE_URL /, "chain verify --json", "nonsense"],
      [
        78,
        /no_such_database.* Create this database, or name another\.\n$/,
        "audit list",
        changed({ pathname: "/no_such_database" }),
      ],
      [78, /may not do this.*audit_entries/, "audit list", changed({ username: role, password: "people" })],
      // The test run's own database has no tables.
      ...["org create --name x", ISSUE, "chain verify --all"].map(
        (command) => [78, bare, command, inject("databaseUrl")] as const,
      ),
    ] as const) {
      await voucherctl.fails(exitCode, words, command, { DATABASE_URL });
    }
    await voucherctl.fails(78, /WEBHOOK_SECRET is not set/, WEBHOOK, { WEBHOOK_SECRET: "" });
    await db.query("ALTER FUNCTION assert_row_count (bigint, integer, text) RENAME TO assert_row_count_away");
    onTestFinished(
      async () => void (await db.query("ALTER FUNCTION assert_row_count_away RENAME TO assert_row_count")),
    );
    await voucherctl.fails(78, bare, `voucher void ${(await issue()).code} ${org()}`);
  });
});

it("voucherctl statement verify accepts an unchanged statement of the service", async () => {
  const headers = { "x-api-key": keys.till.key };
  const served = await (await fetch(`${api.url}/partner/statements/2025-03`, { headers })).text();
  const folder = mkdtempSync(join(tmpdir(), "statement-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const file = join(folder, "statement.json");
  writeFileSync(file, served);
  const { lines, ...statement } = JSON.parse(served);
  expect(await voucherctl.json("statement verify", file)).toEqual(statement);
  expect(await voucherctl.text(`statement verify ${file}`)).toBe(
    `The statement of 2025-03 is right: 0 redemptions, $0.00.\nSHA-256 of its redemptions: ${statement.rowsHash}\n`,
  );
});

describe("text output of voucherctl", () => {
  let own: { organizationId: string; code: string; batchId: string };

  beforeAll(async () => {
    const made = await makePartner(db);
    await makeKey(db, made.organizationId, { allowIps: ["192.0.2.0/24"] });
    const [voucher] = await issueVouchers(db, made, 1_234, { validUntil: new Date("2099-12-31T23:59:59Z") });
    own = { ...made, code: voucher?.code ?? "", batchId: await findBatchOf(db, voucher?.id ?? "") };
  });

  it("voucherctl's text output fits in 80 columns, and has colours in a file only with FORCE_COLOR", async () => {
    const { organizationId, code, batchId } = own;
    for (const line of [
      ...[`key list --org ${organizationId}`, `batch list --org ${organizationId}`, "org list", "chain verify --all"],
      ...["audit list", `batch show ${batchId}`, `voucher show ${code} --org ${organizationId}`],
      ...[`voucher find --code ${code}`, `voucher history ${code}`],
    ]) {
      const plain = await voucherctl.text(line);
      expect(plain).not.toContain(ESCAPE);
      // Notes are indented by 20 spaces and wrapped only for a terminal. Addresses are never wrapped.
      const lines = plain.split("\n").filter((row) => !/^ {20}|https?:/.test(row));
      expect(lines.filter((row) => row.length > 80 || row.endsWith(" "))).toEqual([]);
      const coloured = (await voucherctl.run(line, { FORCE_COLOR: "1" })).stdout;
      expect(coloured, line).toContain(`${ESCAPE}[`);
      expect(stripVTControlCharacters(coloured)).toBe(plain);
      expect((await voucherctl.run(`${line} --json`, { FORCE_COLOR: "1" })).stdout).not.toContain(ESCAPE);
    }
  });

  it("voucherctl's text output on a terminal has a progress bar, and colours unless NO_COLOR is set", async () => {
    /** Runs voucherctl with a terminal for both its outputs, which script(1) provides. */
    const onTerminal = (line: string, env: Record<string, string> = {}) =>
      execFileSync("script", ["-qec", `"${process.execPath}" src/cli/main.ts ${line}`, "/dev/null"], {
        env: { PATH: process.env.PATH, TERM: "xterm-256color", DATABASE_URL: servers.adminUrl, ...env },
        encoding: "utf8",
        stdio: ["ignore", "pipe", "inherit"],
      });
    const { rows } = await db.query(
      "SELECT count(DISTINCT voucher_id)::int AS vouchers, count(*)::int AS events FROM voucher_events",
    );
    const { vouchers, events } = rows[0];
    const progress = new RegExp(`\rVerified [\\d,]+ of ${vouchers.toLocaleString("en-US")} vouchers  100%`);
    const green = `${ESCAPE}[32mevery chain is intact${ESCAPE}[39m`;
    const seen = onTerminal("chain verify");
    expect(seen).toMatch(progress);
    const result = `${vouchers.toLocaleString("en-US")} vouchers, ${events.toLocaleString("en-US")} events: `;
    // The program removes the progress line before it prints the result.
    expect(seen.endsWith(`\r${ESCAPE}[K${result}${green}.\r\n`)).toBe(true);
    const plain = onTerminal("chain verify", { NO_COLOR: "1" });
    expect(plain).toMatch(progress);
    expect(plain).toContain(`${result}every chain is intact.`);
    expect(onTerminal("chain verify --json")).toBe(
      `${JSON.stringify({ vouchers, events, erased: 0, broken: [] })}\r\n`,
    );
  });

  it("key list prints columns, each key's last use, and a separate line for the key's limits", async () => {
    const list = `key list --org ${own.organizationId}`;
    const [head = "", row = "", note = "", ...rest] = (await voucherctl.text(list)).split("\n");
    expect(head).toMatch(/^ID {30}STATE {3}SCOPES/);
    expect(row).toMatch(/^key_\w{26} {2}active {2}read redeem {2}never$/);
    expect(note).toBe(`${" ".repeat(head.indexOf("STATE"))}from 192.0.2.0/24`);
    expect(rest).toEqual([""]);
    await db.query("INSERT INTO api_key_uses VALUES ($1, now() - interval '3 days')", [row.slice(0, 30)]);
    expect(await voucherctl.text(list)).toMatch(/read redeem {2}3 d ago\n/);
    await voucherctl.json(`key rotate ${row.slice(0, 30)}`);
    expect(await voucherctl.text(list)).toMatch(
      /valid until [-\d]{10} [:\d]{8} UTC, last used: 3 d ago; the new one: never/,
    );
  });

  it("audit list shows who changed which entity, with the fields before and after", async () => {
    const listOf = (id: string) => voucherctl.text(`audit list --entity ${id}`);
    const { id } = await makeKey(db, partner.organizationId);
    await voucherctl.json(`key rotate ${id}`);
    expect(await listOf(id)).toMatch(/ {2}old secrets work until [-\d]{10} [:\d]{8}\n/);
    await voucherctl.json(`key revoke ${id}`);
    expect(await listOf(id)).toMatch(
      new RegExp(
        [
          "^TIME \\(UTC\\) +BY +COMMAND +ENTITY",
          `[-\\d]{10} [:\\d]{8}  \\S+@\\S+ +key revoke +${id}`,
          " +revoked at none → [-\\d]{10} [:\\d]{8}\n",
        ].join("\n"),
      ),
    );
    const sandbox = await makePartner(db, { sandbox: true });
    await db.query("SELECT advance_sandbox($1, 864000, 'key_1', 'api', 'host')", [sandbox.organizationId]);
    expect(await listOf(sandbox.organizationId)).toContain(
      "  times advanced by 10 d; vouchers expired 0; reservations ended 0\n",
    );
    expect(await listOf("key_none")).toBe("There are no audit entries.\n");
  });

  it("voucherctl ends without an error when the reader of its text output closes the pipe", () => {
    const shell = spawnSync("sh", ["-c", `"${process.execPath}" src/cli/main.ts audit list --json | head -c 1`], {
      env: { PATH: process.env.PATH, DATABASE_URL: servers.adminUrl },
      encoding: "utf8",
    });
    expect(shell).toMatchObject({ status: 0, stderr: "" });
  });

  it("voucherctl user token needs no server", () => {
    const cwd = mkdtempSync(join(tmpdir(), "voucherctl-token-"));
    onTestFinished(() => rmSync(cwd, { recursive: true }));
    const args = [resolve("src/cli/main.ts"), "user", "token", "--user", "alice"];
    const token = execFileSync(process.execPath, args, { cwd, env: { PATH: process.env.PATH }, encoding: "utf8" });
    expect(token).toMatch(/^ey[\w-]+\.[\w-]+\.[\w-]+\n$/);
    expect(readdirSync(join(cwd, ".data")).sort()).toEqual(["user-key.json", "user-keys.jwks.json"]);
  });

  it.each([
    "contract offer --brand {brand} --user joe --ends-at 2020-01-01",
    "key create --scope voucher.read --expires 2020-01-01",
  ])("voucherctl %s refuses an end time in the past", async (command) => {
    const sentence = /^--(ends-at|expires) is in the past: 2020-01-01T23:59:59\.999Z\.\n$/;
    await voucherctl.fails(1, sentence, command.replace("{brand}", partner.brandId));
  });

  it.each([
    ["org create --name Words", /^Organization Words: org_[0-9a-z]{26}\n$/],
    ["member add --org {org} --user zoe --role owner", /^zoe is owner of org_\w+\.\n$/],
    [
      "contract offer --brand {brand} --user ann --ends-at 2099-06-30",
      /to ann\. It ends at 2099-06-30 23:59:59 UTC\.\n$/,
    ],
    ["contract decline {offered}", /^Contract ctr_\w+ is Declined\.\n$/],
    ["link create --contract {active} --product {prd}", /^The link: http:\/\/\S+\/r\/[0-9a-z]{12}\n$/],
    ["listing create --batch {both}", /^Listing lst_[0-9a-z]{26} offers batch bat_\w+\.\n$/],
    [
      "listing create --batch {none}",
      /\nWarning: users cannot buy these vouchers, because the batch has no buy window\.\n$/,
    ],
    [
      "key create --scope voucher.read --expires 2099-01-01",
      /^Key key_\w+\npvk_\w+\nSave it now: it is not stored and cannot be shown again\.\n$/,
    ],
  ])("the output of voucherctl %s matches %s", async (command, text) => {
    const { organizationId, brandId, productId } = partner;
    const issued = `batch issue --product ${productId} --count 1 --valid-until 2099-01-01 --buy`;
    const given = {
      org: organizationId,
      brand: brandId,
      prd: productId,
      both: (await voucherctl.json(issued)).id,
      offered: await makeContract(db, brandId, newUser(), "Offered"),
      active: await makeContract(db, brandId, newUser()),
      none: await findBatchOf(db, (await issue()).id),
    };
    expect(await voucherctl.text(fill(command, given))).toMatch(text);
  });

  it.each([
    ["an organization", "org create --name", "brand create --org {id} --name NAME"],
    ["a brand", "brand create --org {org} --name", "product create --brand {id} --key KEY --name NAME --type TYPE …"],
    [
      "a product",
      "product create --brand {brand} --type Service --retail-price-usd 2 --price-usd 1 --key {key} --name",
      "batch issue --product {id} --count N --valid-until TIME --out FILE.csv",
    ],
  ])("voucherctl warns that a name of %s already exists, except with --json or --force", async (_, line, next) => {
    const create = () => fill(line, { org: partner.organizationId, brand: partner.brandId, key: newUser("key") });
    const { id } = await voucherctl.json(`${create()} Twice`);
    const { exitCode, stdout, stderr } = await voucherctl.run(`${create()} TWICE`);
    const [created = ""] = /(org|brd|prd)_\w+/.exec(stdout) ?? [];
    expect({ exitCode, isNew: created !== id }).toEqual({ exitCode: 0, isNew: true });
    expect(stderr).toMatch(new RegExp(`^Warning: .*${id}.*\nNext: voucherctl ${fill(next, { id: created })}\n$`));
    await voucherctl.text(`${create()} TWICE --force`);
    // `json` fails if the command prints a warning. Here it prints none.
    await voucherctl.json(`${create()} Twice`);
  });
});

it("org create --sandbox creates a sandbox, and all commands mark its data as a sandbox's", async () => {
  const mark = { sandbox: true };
  const { id, ...more } = await voucherctl.json("org create --name Tests --sandbox");
  expect(more).toStrictEqual(mark);
  const brand = await voucherctl.json(`brand create --org ${id} --name Tests`);
  const terms = "--key k --name n --type Product --retail-price-usd 2 --price-usd 1";
  const product = await voucherctl.json(`product create --brand ${brand.id} ${terms}`);
  const directory = mkdtempSync(join(tmpdir(), "voucherctl-sandbox-"));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  const out = join(directory, "codes.csv");
  const batch = await voucherctl.json(
    `batch issue --product ${product.id} --count 1 --valid-until 2099-01-01 --out ${out}`,
  );
  const show = `voucher show ${readFileSync(out, "utf8").split("\n")[1]?.split(",")[1]} --org ${id}`;
  const key = await voucherctl.json(`key create --org ${id} --scope voucher.read`);
  const secret = { key: expect.stringMatching(/^pvt_/), ...mark };
  expect(key).toMatchObject(secret);
  expect(await voucherctl.json(`key rotate ${key.id}`)).toMatchObject(secret);
  expect(batch).toMatchObject(mark);
  for (const line of [`batch show ${batch.id}`, show, `key list --org ${id}`])
    expect(await voucherctl.json(line)).toMatchObject(mark);
  expect(await voucherctl.text(show)).toMatch(/^ *Sandbox {2,}for tests, has no value$/m);
  expect(await voucherctl.json(`key list ${org()}`)).not.toHaveProperty("sandbox");
});

it("product create sets no term and no label by default, and accepts another brand's product key", async () => {
  const terms = "--key pass --name Taken --type Service --retail-price-usd 19.90 --price-usd 12";
  const { brandId } = await makePartner(db);
  await db.query("UPDATE products SET key = 'other' WHERE brand_id = $1", [brandId]);
  const { id } = await voucherctl.json(`product create --brand ${brandId} ${terms}`);
  const stored = { retail_price_usd: 19.9, price_usd: 12, benefit_months: 0, usage_unit_label: null };
  expect(await readRow("products", id)).toMatchObject(stored);
});

it("key create prints a working API key once, and key rotate and key revoke make it invalid", async () => {
  const own = `--org ${(await makePartner(db)).organizationId}`;
  expect(await voucherctl.json(`key list ${own}`)).toStrictEqual({ keys: [] });
  const [expiresAt, scopes] = ["2099-01-02T03:04:05.000Z", ["voucher.read", "voucher.redeem"]];
  const options = `--scope ${scopes.join(" --scope ")} --label newer --allow-ip 192.0.2.0/24 --expires ${expiresAt}`;
  const older = await voucherctl.json(`key create ${own} --scope voucher.read`);
  const newer = await voucherctl.json(`key create ${own} ${options}`);
  const lookUp = async (key: string) => (await partnerClient(api.url, key).lookUp("7Q4K-9MZX-2HTB-W8RC")).status;
  expect(await lookUp(older.key)).toBe(404);
  const rotated = await voucherctl.json(`key rotate ${older.id}`);
  expect(Date.parse(rotated.oldSecretsUntil) - Date.now()).toBeGreaterThan(86_000_000);
  expect([await lookUp(older.key), await lookUp(rotated.key)]).toEqual([404, 404]);
  const last = await voucherctl.json(`key rotate ${older.id} --grace 0s`);
  // A process learns within a second that a key's secret has ended, so the test waits.
  await sleep(1_000);
  expect([await lookUp(older.key), await lookUp(rotated.key)]).toEqual([401, 401]);
  expect(await lookUp(last.key)).toBe(404);
  await voucherctl.json(`key revoke ${older.id}`);
  await sleep(1_000);
  expect(await lookUp(last.key)).toBe(401);
  const uncapped = { maxPerDay: null, maxAmountPerDayUsd: null, redemptionsToday: 0, amountTodayUsd: 0 };
  const unused = {
    ...uncapped,
    createdAt: MOMENT,
    lastUsedAt: null,
    currentSecretUsedAt: null,
    oldSecretsUsedAt: null,
    oldSecretsUntil: null,
  };
  const limited = { label: "newer", scopes, allowIps: ["192.0.2.0/24"], expiresAt, revokedAt: null, state: "Active" };
  const ended = { label: null, scopes: ["voucher.read"], allowIps: [], expiresAt: null, state: "Revoked" };
  const listed = await voucherctl.json(`key list ${own}`);
  expect(listed).toStrictEqual({
    keys: [
      { ...unused, id: newer.id, ...limited },
      expect.objectContaining({ id: older.id, ...ended, revokedAt: MOMENT }),
    ],
  });
  const text = await voucherctl.text(`key list ${own}`);
  expect(text).toContain("revoked");
  const seen = JSON.stringify([listed, text, await dumpRows(db)]);
  for (const { key } of [older, newer, rotated, last]) expect(seen).not.toContain(key.slice(4));
});

it("each list command prints one page, and on stderr the command for the next page", async () => {
  for (const noun of "org brand product batch listing contract link".split(" ")) {
    expect(Object.keys(await voucherctl.json(`${noun} list --limit 1`))).toEqual(["items", "nextCursor"]);
    await voucherctl.text(`${noun} list`);
    await voucherctl.fails(2, /not a cursor/, `${noun} list --after !`);
  }
  const line = "org list --limit 1";
  const { items, nextCursor } = await voucherctl.json(line);
  expect(items).toEqual([expect.objectContaining({ id: nextCursor })]);
  expect((await voucherctl.json(`${line} --after ${nextCursor}`)).items[0].id > nextCursor).toBe(true);
  expect((await voucherctl.run(line)).stderr).toBe(`Next: the same command with --after ${nextCursor}\n`);
});

it("voucherctl accepts a unique name of an organization, brand or product instead of its id", async () => {
  const { id } = await voucherctl.json("org create --name 'Named Shop' --sandbox");
  const brand = await voucherctl.json("brand create --org 'named shop' --name 'Named Brand'");
  expect((await voucherctl.json("brand list --org 'Named Shop'")).items).toMatchObject([brand]);
  expect(await voucherctl.json("product list --brand 'Named Brand'")).toMatchObject({ items: [] });
  expect((await voucherctl.json("org list --name 'named shop'")).items).toMatchObject([{ id, sandbox: true }]);
  expect(await voucherctl.text("org list --name 'named shop'")).toMatch(/Named Shop \(sandbox\)$/m);
  await voucherctl.fails(1, /^There is no organization No Shop\./, "key list --org 'No Shop'");
  const other = await voucherctl.json("org create --name 'NAMED SHOP' --force");
  expect((await voucherctl.json("org list --name 'NAMED SHOP'")).items).toMatchObject([{}, { sandbox: false }]);
  await voucherctl.fails(
    1,
    new RegExp(`^Several have the name Named Shop, .*${other.id}\\.`),
    "key list --org 'Named Shop'",
  );
});

it("voucher find finds a redeemed voucher by each identifier, and voucher history prints its events", async () => {
  const voucher = await issue();
  const { ticket } = (await till.reserve(voucher.code)).body;
  const worker = await startWorkers(servers);
  const { redeemCode } = (await till.redeem({ code: ticket, externalRef: "order-cli" })).body;
  await worker.close();
  const batchId = await findBatchOf(db, voucher.id);
  const item = { id: voucher.id, code: voucher.code, batchId, externalRef: "order-cli" };
  const found = await voucherctl.json("voucher find --ref order-cli");
  expect(found).toEqual({ items: [expect.objectContaining(item)] });
  for (const name of [
    ...[`--id ${voucher.id}`, `--code ${voucher.code}`, `--ticket ${ticket}`, `--redeem-code ${redeemCode}`],
    ...[`--batch ${batchId} --serial 1`, `--ref order-cli ${org()}`],
  ]) {
    expect(await voucherctl.json(`voucher find ${name}`), name).toEqual(found);
  }
  expect(await voucherctl.json("voucher find --ref never")).toEqual({ items: [] });
  const history = await voucherctl.json(`voucher history ${voucher.id}`);
  expect(Object.keys(history)).toEqual(["voucher", "events", "reservations", "redemption"]);
  expect(history.voucher.verifyUrl).toMatch(new RegExp(`/integrity/events/VoucherInstance/${voucher.id}$`));
  expect(history.reservations).toEqual([expect.objectContaining({ ticket, state: "Consumed" })]);
  expect(history.redemption).toMatchObject({ externalRef: "order-cli", redeemCode });
  expect(await voucherctl.json("voucher history --ref order-cli")).toEqual(history);
  expect(await voucherctl.text(`voucher history ${voucher.code}`)).toMatch(
    /issued +Sealed\n[\s\S]*reserved\n +rsv_\w+ by key_[\s\S]*redeemed +Sealed\n +for order-cli by key_\w+ with rsv_/,
  );
});

it("voucher show prints a voucher with its live reservation, by its code in any spelling", async () => {
  const voucher = await issue({ validUntil: new Date("2099-01-01T00:00:00Z") });
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
    brand: (await readRow("brands", partner.brandId)).name,
  };
  for (const spelt of [voucher.code, voucher.code.toLowerCase().replaceAll("-", " ")]) {
    const found = await voucherctl.json(`voucher show '${spelt}' ${org()}`);
    expect(found).toStrictEqual({ voucher: shown, reservation: null });
  }
  const { ticket, token, expiresAt } = (await till.reserve(voucher.code)).body;
  const reserved = await voucherctl.json(`voucher show ${voucher.code} ${org()}`);
  const reservation = { ticket, keyId: keys.till.id, startedAt: expect.any(String), expiresAt };
  expect(reserved).toStrictEqual({ voucher: shown, reservation });
  expect(JSON.stringify(reserved)).not.toContain(token);
  const expired = await issue({ validUntil: new Date("2020-01-01T00:00:00Z") });
  const found = await voucherctl.json(`voucher show ${expired.code} ${org()}`);
  expect(found).toMatchObject({ voucher: { status: "Expired" } });
});

it("voucher void voids a voucher and ends its reservation without Redis, and seals the reason", async () => {
  const voucher = await issue();
  const { ticket } = (await till.reserve(voucher.code)).body;
  await voucherctl.run(`voucher void ${voucher.code.toLowerCase()} ${org()} --reason 'printed twice'`, {
    REDIS_URL: "",
  });
  expect((await till.lookUp(voucher.code)).body).toMatchObject({ voucher: { status: "Voided" }, reservation: null });
  const { rows } = await db.query("SELECT state, end_reason FROM reservations WHERE ticket = $1", [ticket]);
  expect(rows).toEqual([{ state: "Released", end_reason: "voided" }]);
  // The reservation's lease remains in Redis until it expires, but the refusal names the voucher's state.
  expect((await till.reserve(voucher.code)).body.code).toBe("voucher_voided");
  const sealed = (await till.events(voucher.code)).body.events[1];
  expect(JSON.parse(sealed.payload)).toMatchObject({
    eventType: "voucher.instance.voided",
    actorConnectedId: null,
    data: { reason: "printed twice" },
  });
});

it("chain verify accepts an intact database, and names each broken voucher once", async () => {
  const tampered = await openTestServers();
  servers.onClose(() => tampered.close());
  const env = { DATABASE_URL: tampered.adminUrl };
  const owner = await makePartner(tampered.db);
  const vouchers = await issueVouchers(tampered.db, owner, 11);
  const intact = vouchers.pop()?.id ?? "";
  for (const { code } of vouchers) {
    await voucherctl.run(`voucher void ${code} --org ${owner.organizationId} --reason a`, env);
  }
  const verify = async (options: string) => {
    const { exitCode, stdout, stderr } = await voucherctl.run(`chain verify ${options} --json`, env);
    return { exitCode, stderr, ...JSON.parse(stdout) };
  };
  const whole = { exitCode: 0, stderr: "", vouchers: 11, events: 21, erased: 0, broken: [] };
  for (const options of ["", "--all"]) expect(await verify(options)).toStrictEqual(whole);
  await tampered.db.query(`
    ALTER TABLE voucher_events DISABLE TRIGGER USER;
    ALTER TABLE voucher_events DROP CONSTRAINT voucher_events_hash_matches_payload;
    ALTER TABLE voucher_events DROP CONSTRAINT voucher_events_no_fork;
    ALTER TABLE voucher_events DROP CONSTRAINT voucher_events_sealed_complete;
    ALTER TABLE vouchers DISABLE TRIGGER USER`);
  const event = (set: string, sequence = 2) =>
    `UPDATE voucher_events SET ${set} WHERE voucher_id = $1 AND sequence = ${sequence}`;
  const payload = (from: string, to: string) => `replace(payload, '${from}', '${to}')`;
  const rehash = (text: string) => `payload = ${text}, record_hash = sha256(convert_to(${text}, 'UTF8'))`;
  const changes: Record<string, string> = {
    "payload changed": event(`payload = ${payload('reason":"a"', 'reason":"b"')}`),
    "payload and hash changed": event(rehash(payload('reason":"a"', 'reason":"b"'))),
    "first event and its hash changed": event(rehash(payload("OpenToAll", "ReferrerOnly")), 1),
    "link changed": event("previous_hash = decode(repeat('ab', 32), 'hex')"),
    "time changed": event("occurred_at = occurred_at - interval '1 hour'"),
    "actor changed": event("actor_connected_id = 'key_of_another'"),
    "type changed": event("event_type = 'voucher.instance.expired'"),
    "tail cut off": "DELETE FROM voucher_events WHERE voucher_id = $1 AND sequence = 2",
    "beginning cut off": "DELETE FROM voucher_events WHERE voucher_id = $1 AND sequence = 1",
    "head changed": "UPDATE vouchers SET sealed_hash = decode(repeat('cd', 32), 'hex') WHERE id = $1",
  };
  for (const [index, [what, statement]] of Object.entries(changes).entries()) {
    expect((await tampered.db.query(statement, [vouchers[index]?.id])).rowCount, what).toBe(1);
  }
  const { broken, ...counts } = await verify("--all");
  expect(counts).toStrictEqual({ exitCode: 1, stderr: "", vouchers: 11, events: 19, erased: 0 });
  const ids = vouchers.map(({ id }) => id).sort();
  const problem = { sequence: expect.any(Number), problem: expect.stringMatching(/\S/) };
  expect(broken).toStrictEqual(ids.map((voucherId) => ({ voucherId, ...problem })));
  const text = await voucherctl.run("chain verify --all", env);
  expect(text).toMatchObject({ exitCode: 1, stdout: expect.stringContaining("10 broken chains") });
  for (const id of ids) expect(text.stdout).toContain(`BROKEN ${id}`);
  expect(text.stdout).not.toContain(intact);
  const [first] = vouchers;
  const one = { exitCode: 1, vouchers: 1, broken: [{ voucherId: first?.id, sequence: 2 }] };
  expect(await verify(`--voucher ${first?.id}`)).toMatchObject(one);
  expect(await verify(`--voucher ${intact}`)).toMatchObject({ exitCode: 0, vouchers: 1, events: 1, broken: [] });
});

async function readRow(table: string, id: string) {
  return (await db.query(`SELECT * FROM ${table} WHERE id = $1`, [id])).rows[0];
}

const fill = (text: string, given: Record<string, string>) =>
  text.replace(/\{(\w+)\}/g, (_, name: string) => given[name] ?? "");
