import { execFile } from "node:child_process";
import { globSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type Ended, startProgram } from "../support/child-process.ts";
import { type PartnerClient, partnerClient } from "../support/client.ts";
import type { Snippet } from "../support/document-snippets.ts";
import { appendPending } from "../support/pending-events.ts";
import { readRecorded } from "../support/recorded.ts";
import {
  issueVoucher,
  issueVouchers,
  makeKey,
  makePartner,
  provisioning,
  type TestPartner,
} from "../support/supply.ts";
import { until } from "../support/until.ts";
import { useService } from "../support/use-service.ts";
import { voidVoucher } from "../support/void-voucher.ts";
import { CLIENTS, HAS, PROGRAM_OF, RUNNABLE, SNIPPETS, VERIFIERS } from "./guide-programs.ts";

// Runs every snippet and every file of the guide like a reader, in an empty folder, against a running service.

const { db, api } = useService();
let partner: TestPartner;
let keys: { shop: string; till: string };
let shop: PartnerClient;
let directory: string;
const ran = new Set<string>();

beforeAll(async () => {
  await openShop();
  directory = mkdtempSync(join(tmpdir(), "voucher-guide-"));
  for (const { name, code } of RUNNABLE) writeFileSync(join(directory, fileOf(name)), code);
  const files = [...CLIENTS.flatMap(({ client, settle }) => [client, settle]), ...Object.values(VERIFIERS)];
  for (const file of files) {
    const response = await fetch(`${api.url}/docs/${file}`);
    writeFileSync(join(directory, file), await response.text());
  }
});

afterAll(() => rmSync(directory, { recursive: true }));

describe.runIf(HAS.bash)("the guide's shell script for a checkout", () => {
  it("the guide's shell script for a checkout looks up, reserves and redeems, and ends its reservation", async () => {
    const { id, code } = await issue();
    const { exitCode, stdout } = await run("bash", "A checkout by hand", { CODE: code });
    expect(exitCode).toBe(0);
    expect(stdout).toMatch(/"status":"Active".*"redeemed":true.*"released":false/s);
    expect(await redeemOf(id)).toMatchObject({ externalRef: "shop-10001", ticket: expect.stringMatching(/^rsv_/) });
  });

  it("the guide's shell script for a checkout stops if the reference has redeemed another voucher", async () => {
    await openShop();
    const second = await issue();
    for (const externalRef of ["shop-10001", "till-4-20002"]) {
      expect((await shop.redeem({ code: (await issue()).code, externalRef })).status).toBe(200);
    }
    for (const start of ["A checkout by hand", "Shop and till"]) {
      const { exitCode, stderr } = await run("bash", start, { CODE: second.code, TILL_KEY: keys.till });
      expect({ exitCode, stderr }).toEqual({ exitCode: 1, stderr: expect.stringContaining("Do not deliver.") });
    }
    expect(await redeemOf(second.id)).toBeNull();
    await openShop();
  });

  it("the guide's shell script lets a till redeem with the token of the shop's reservation", async () => {
    const { id, code } = await issue();
    const { exitCode, stdout } = await run("bash", "Shop and till", { CODE: code, TILL_KEY: keys.till });
    expect({ exitCode, answer: JSON.parse(stdout) }).toMatchObject({ exitCode: 0, answer: { redeemed: true } });
    expect(await redeemOf(id)).toMatchObject({ externalRef: "till-4-20002" });
  });
});

/** An error of the service, or, if the code is null, the error page of a proxy. */
type Refusal = [status: number, code: string | null];

// If the program of a language is missing, its tests count as skipped, with a warning.
describe.for(CLIENTS)("the guide's client in $language", ({ language, checkout, settle, externalRef, tellsRefund }) => {
  // Each test is a new order with a new reference.
  beforeEach(async (context) => {
    context.skip(!HAS[language], `${language} is not installed`);
    await openShop();
    rmSync(join(directory, `order-${externalRef}.json`), { force: true });
  });

  it(`the guide's client in ${language} redeems once when responses get lost, and shows the redeem code`, async () => {
    const { id, code } = await issue();
    const requests: string[] = [];
    const redeems = () => requests.filter(isRedeem).length;
    // The first call gets a 408, the second a 429. The response to the first redeem is lost. The second redeem gets a
    // 503 of the service, the third an error page of a proxy.
    const unreliable = passOn(
      (path): Refusal | undefined => {
        requests.push(path);
        if (requests.length === 1) return [408, "request_timeout"];
        if (requests.length === 2) return [429, "rate_limited"];
        if (!isRedeem(path)) return undefined;
        return redeems() === 2 ? [503, "unavailable"] : redeems() === 3 ? [404, null] : undefined;
      },
      (text, path) => (isRedeem(path) && redeems() === 1 ? null : text),
    );
    const { exitCode, stdout, stderr } = await serving(unreliable, (url) =>
      run(language, checkout, { CODE: code, API: url }),
    );
    const redeem = await redeemOf(id);
    expect({ exitCode, stderr, externalRef: redeem?.externalRef }).toEqual({ exitCode: 0, stderr: "", externalRef });
    expect(stdout).toContain(`Your code is ${redeem?.redeemCode}.`);
    expect(redeems()).toBe(4);
  });

  it(`the guide's client in ${language} repeats a redeem after a crash and shows the first redeem code`, async () => {
    const { id, code } = await issue();
    // The test kills the first run after its redeem has succeeded, before the response arrives.
    const { promise: redeemed, resolve } = Promise.withResolvers<void>();
    const silent = passOn(
      () => undefined,
      (text, path) => {
        if (!isRedeem(path)) return text;
        resolve();
        return new Promise(() => undefined);
      },
    );
    await serving(silent, async (url) => {
      const first = start(language, checkout, { CODE: code, API: url });
      await redeemed;
      first.child.kill("SIGKILL");
    });
    const { exitCode, stdout, stderr } = await run(language, checkout, { CODE: code });
    const redeem = await redeemOf(id);
    expect({ exitCode, stdout, stderr }).toEqual({
      exitCode: 0,
      stdout: `Thank you! Your code is ${redeem?.redeemCode}.\n`,
      stderr: "",
    });
  });

  it(`the guide's client in ${language} keeps a paid order after an inconclusive refusal`, async () => {
    const { id, code } = await issue();
    for (const refusal of [
      [401, "unknown_key"],
      [403, "address_not_allowed"],
      [404, "not_found"],
    ] satisfies Refusal[]) {
      const refusing = passOn((path) => (isRedeem(path) ? refusal : undefined));
      const { exitCode, stdout, stderr } = await serving(refusing, (url) =>
        run(language, checkout, { CODE: code, API: url }),
      );
      // The program prints one sentence, without a stack trace.
      expect({ exitCode, stdout, stderr }, refusal[1]).toEqual({
        exitCode: 1,
        stdout: "",
        stderr: expect.stringMatching(/^[^\n]+\n$/),
      });
      const order = JSON.parse(readFileSync(join(directory, `order-${externalRef}.json`), "utf8"));
      expect(order).toMatchObject({ paid: true, voucherId: id });
    }
    expect(await run(language, checkout, { CODE: code })).toMatchObject({ exitCode: 0 });
    expect(await redeemOf(id)).toMatchObject({ externalRef });
  });

  it(`the guide's client in ${language} shows the service's refusal to the customer and does not retry`, async () => {
    const { code } = await issue();
    await voidVoucher(provisioning(db), partner.organizationId, code, null);
    const { exitCode, stdout } = await run(language, checkout, { CODE: code });
    expect({ exitCode, stdout }).toEqual({
      exitCode: 0,
      stdout: "The issuer has cancelled this voucher. Another form of payment is needed.\n",
    });
  });

  it(`the guide's client in ${language} refunds the payment after a crash if the voucher is gone`, async () => {
    const { code } = await issue();
    // The first run charged the customer, and ended before it stored the charge.
    const order = { externalRef, code, paid: false };
    writeFileSync(join(directory, `order-${externalRef}.json`), JSON.stringify(order));
    expect((await shop.redeem({ code, externalRef: "another-order" })).status).toBe(200);
    const program = readFileSync(join(directory, checkout), "utf8").replace(/(?<=refund = ).*?(?=;?\n)/, tellsRefund);
    writeFileSync(join(directory, `refund-${checkout}`), program);
    const { exitCode, stdout, stderr } = await start(language, `refund-${checkout}`, { CODE: code }).ended;
    expect({ exitCode, stdout, stderr }).toMatchObject({
      exitCode: 0,
      stdout: expect.stringMatching(/^refunded\n./),
      stderr: "",
    });
  });

  it(`the guide's client in ${language} delivers nothing if the reference redeemed another voucher`, async () => {
    const [first, second] = [await issue(), await issue()];
    expect((await shop.redeem({ code: first.code, externalRef })).status).toBe(200);
    // A client must stop at either of two signs: the field `otherVoucher`, or another voucher's id.
    const onlyField = passOn(
      () => undefined,
      (text) => text.replaceAll(first.id, second.id),
    );
    const onlyId = passOn(
      () => undefined,
      (text) => text.replace('"otherVoucher":true,', ""),
    );
    for (const service of [onlyField, onlyId]) {
      rmSync(join(directory, `order-${externalRef}.json`), { force: true });
      const { exitCode, stdout, stderr } = await serving(service, (url) =>
        run(language, checkout, { CODE: second.code, API: url }),
      );
      const sentence = `${externalRef} has redeemed another voucher. Do not deliver.\n`;
      expect({ exitCode, stdout, stderr }).toEqual({ exitCode: 1, stdout: "", stderr: sentence });
    }
    expect((await shop.lookUp(second.code)).body.voucher.status).toBe("Active");
  });

  it(`the guide's client in ${language} adds up a whole day to the cent, and reports an incomplete day`, async () => {
    const vouchers = await issueVouchers(db, partner, 3);
    const times: string[] = [];
    for (const { code, serial } of vouchers) {
      times.push((await shop.redeem({ code, externalRef: `day-${serial}` })).body.redeemedAt);
    }
    const day = { FROM: times[0] ?? "", TO: new Date(Date.parse(times[2] ?? "") + 1).toISOString() };
    await until(async () => (await shop.redemptions()).body.completeUntil > day.TO);
    expect(await start(language, settle, day).ended).toEqual({
      exitCode: 0,
      stdout: "3 redemptions, 120.75 USD\n",
      stderr: "",
    });
    const { exitCode, stderr } = await start(language, settle, { ...day, TO: "2900-01-01T00:00:00+01:00" }).ended;
    expect({ exitCode, stderr }).toEqual({ exitCode: 1, stderr: expect.stringContaining("Not complete") });
  });

  it(`the guide's client in ${language} leaves the order undecided if no response arrives`, async () => {
    const scripts = {
      php: [
        "hopeless.php",
        '<?php require "voucher-client.php";',
        'try { (new VoucherClient(getenv("API"), "pvk_x", 1.5))->redeem("y", ["code" => "x"]); }',
        'catch (OutcomeUnknown) { echo "true\\n"; }',
      ],
      js: [
        "hopeless.mjs",
        'import { OutcomeUnknown, voucherClient } from "./voucher-client.mjs";',
        'const redeem = voucherClient(process.env.API, "pvk_x", 1500).redeem({ code: "x", externalRef: "y" });',
        "await redeem.catch((error) => console.log(error instanceof OutcomeUnknown));",
      ],
      python: [
        "hopeless.py",
        "from voucher_client import OutcomeUnknown, VoucherClient",
        "import os",
        "try:",
        '    VoucherClient(os.environ["API"], "pvk_x", 1.5).redeem("y", code="x")',
        "except OutcomeUnknown:",
        '    print("true")',
      ],
    } as const;
    const [script, ...lines] = scripts[language];
    writeFileSync(join(directory, script), `${lines.join("\n")}\n`);
    const { exitCode, stdout } = await serving(
      (request) => void request.socket.destroy(),
      (url) => start(language, script, { API: url }).ended,
    );
    expect({ exitCode, stdout }).toEqual({ exitCode: 0, stdout: "true\n" });
  });
});

describe("the guide's order with several vouchers", () => {
  beforeEach(openShop);
  const runOrder = (codes: readonly string[], url = api.url) =>
    run("js", "several-vouchers.mjs", { CODES: codes.join(" "), API: url });

  it("the guide's program for several vouchers redeems each by its ticket, under a separate reference", async () => {
    const vouchers = [await issue(), await issue()];
    const { exitCode, stdout } = await runOrder(vouchers.map(({ code }) => code));
    const redemptions = await Promise.all(vouchers.map(({ id }) => redeemOf(id)));
    const lines = redemptions.map((one, index) => `shop-10006-${index + 1}: ${one?.redeemCode}\n`);
    expect({ exitCode, stdout }).toEqual({ exitCode: 0, stdout: lines.join("") });
    for (const one of redemptions) expect(one?.ticket).toMatch(/^rsv_/);
  });

  it("the guide's program for several vouchers redeems none if one is refused before the payment", async () => {
    const [first, second] = [await issue(), await issue()];
    await voidVoucher(provisioning(db), partner.organizationId, second.code, null);
    const refused = await runOrder([first.code, second.code]);
    expect(refused).toMatchObject({
      exitCode: 0,
      stdout: "The issuer has cancelled this voucher. Another form of payment is needed.\n",
    });
    const twice = await runOrder([first.code, first.code.toLowerCase()]);
    expect(twice).toMatchObject({ exitCode: 0, stdout: "This voucher was entered twice.\n" });
    expect((await shop.lookUp(first.code)).body).toMatchObject({ voucher: { status: "Active" }, reservation: null });
  });

  it("the guide's program for several vouchers redeems the rest if one is refused after the payment", async () => {
    const vouchers = [await issue(), await issue()];
    const [first, second] = vouchers;
    const cancel = passOn((path, body) =>
      isRedeem(path) && body.includes("10006-1")
        ? voidVoucher(provisioning(db), partner.organizationId, first?.code ?? "", null)
        : undefined,
    );
    const { stdout } = await serving(cancel, (url) =>
      runOrder(
        vouchers.map(({ code }) => code),
        url,
      ),
    );
    const redemption = await redeemOf(second?.id ?? "");
    expect(stdout.split("\n")).toEqual([
      "shop-10006-1: The issuer has cancelled this voucher. Another form of payment is needed.",
      `shop-10006-2: ${redemption?.redeemCode}`,
      "",
    ]);
    expect(redemption?.externalRef).toBe("shop-10006-2");
  });

  it("the guide's program for several vouchers redeems by code if a reservation has ended", async () => {
    const { id, code } = await issue();
    const release = passOn((path, body) =>
      isRedeem(path) && body.includes("ticket") ? shop.release(JSON.parse(body).ticket) : undefined,
    );
    const { stdout } = await serving(release, (url) => runOrder([code], url));
    const redemption = await redeemOf(id);
    expect(stdout).toBe(`shop-10006-1: ${redemption?.redeemCode}\n`);
    expect(redemption).toMatchObject({ externalRef: "shop-10006-1", ticket: null });
  });
});

describe("the client in TypeScript, installed from its package", () => {
  /** Packs the client as its publisher does, and unpacks it where npm installs packages. */
  beforeAll(async () => {
    const packages = join(directory, "node_modules");
    mkdirSync(packages);
    await runFile("npm", ["pack", "-w", "partner-voucher-client", "--pack-destination", directory]);
    const [archive = ""] = globSync(join(directory, "partner-voucher-client-*.tgz"));
    await runFile("tar", ["-xzf", archive, "-C", packages]);
    renameSync(join(packages, "package"), join(packages, "partner-voucher-client"));
    writeFileSync(join(directory, "package.json"), '{ "type": "module" }');
  });
  beforeEach(openShop);

  it("the client in TypeScript, installed from its package, redeems a voucher and verifies its history", async () => {
    const { id, code } = await issue();
    const { exitCode, stdout } = await run("ts", "checkout.ts", { CODE: code });
    const redeem = await redeemOf(id);
    expect({ exitCode, stdout, externalRef: redeem?.externalRef }).toEqual({
      exitCode: 0,
      stdout: `Thank you! Your code is ${redeem?.redeemCode}.\n2 sealed events, intact\n`,
      externalRef: "shop-10004",
    });
  });

  it("the client in TypeScript, installed from its package, delivers nothing for a used reference", async () => {
    const [first, second] = [await issue(), await issue()];
    await shop.redeem({ code: first.code, externalRef: "shop-10004" });
    const { exitCode, stdout } = await run("ts", "checkout.ts", { CODE: second.code });
    expect({ exitCode, stdout }).toEqual({
      exitCode: 0,
      stdout: "Two orders have the same number. Give nothing away.\n1 sealed events, intact\n",
    });
    expect(await redeemOf(second.id)).toBeNull();
  });

  it("the client in TypeScript, installed from its package, shows the service's refusal to the customer", async () => {
    const { code } = await issue();
    await shop.redeem({ code, externalRef: "another order" });
    const { stdout } = await run("ts", "checkout.ts", { CODE: code });
    expect(stdout).toMatch(/^This voucher has already been used\. Another form of payment is needed\.\n/);
  });

  it("the client in TypeScript, installed from its package, type-checks under strict rules", async () => {
    const options = ["--strict", "--noEmit", "--module", "nodenext", "--target", "es2024", "--skipLibCheck"];
    const types = ["--types", "node", "--typeRoots", resolve("node_modules/@types")];
    await runFile(resolve("node_modules/.bin/tsc"), [...options, ...types, "checkout.ts"], { cwd: directory });
  });
});

const runFile = promisify(execFile);

describe.for(["bash", "js", "python", "php"] as const)("the guide's verifier in %s", (language) => {
  beforeEach((context) => context.skip(!HAS[language], `${language} is not installed`));
  const verify = (env: Record<string, string>) => start(language, VERIFIERS[language], env).ended;

  it(`the guide's verifier in ${language} accepts each event of a real chain, and reports Pending events`, async () => {
    const { id, code } = await issue();
    await shop.redeem({ code, externalRef: `verified in ${language}`, note: 'für "Jürgen" 😀\\n\n\u0085' });
    await appendPending(db, id, 2);
    const { exitCode, stdout, stderr } = await verify({ CODE: code });
    expect({ exitCode, stderr, lines: stdout.trimEnd().split("\n") }).toEqual({
      exitCode: 0,
      stderr: "",
      lines: [
        "1 voucher.instance.issued ok",
        "2 voucher.instance.redeemed ok",
        "3 voucher.instance.claimed pending",
        "4 voucher.instance.bought pending",
      ],
    });
  });
});

it.each([
  ["settlement", CLIENTS.map(({ settle }) => settle)],
  ["history", Object.values(VERIFIERS)],
])("this file runs every script of the guide: docs/%s.md", (page, scripts) => {
  const rows = readFileSync(`docs/${page}.md`, "utf8").matchAll(/^\| \[(.+?)\]/gm);
  expect(Array.from(rows, ([, name]) => name).toSorted()).toEqual(scripts.toSorted());
});

it("this file runs every snippet of the guide", () => {
  const expected = RUNNABLE.filter(({ language }) => language === "ts" || HAS[language as keyof typeof HAS]);
  const unrun = (one: Snippet) => !ran.has(one.name);
  expect(expected.filter(unrun).map(({ name }) => name)).toEqual([]);
  expect(expected.length).toBeGreaterThan(0);
  expect([...new Set(SNIPPETS.map(({ language }) => language))].toSorted()).toEqual([
    "bash",
    "js",
    "json",
    // A test of the log runs this snippet, because the snippet needs a signed statement.
    "sh",
    "text",
    "ts",
  ]);
});

/** Creates a new organization, which the snippets use from now on. */
async function openShop(): Promise<void> {
  partner = await makePartner(db);
  const [shopKey, tillKey] = await Promise.all([
    makeKey(db, partner.organizationId),
    makeKey(db, partner.organizationId),
  ]);
  keys = { shop: shopKey.key, till: tillKey.key };
  shop = partnerClient(api.url, keys.shop);
}

/** The file of a snippet, if the snippet names one. */
function fileOf(name: string): string {
  return /^[\w-]+\.(mjs|ts|py|php|sh)/.exec(name)?.[0] ?? `${name.replaceAll(/\W+/g, "-")}.sh`;
}

/** Starts a file of the folder, like a reader of the guide. */
const start = (language: string, file: string, env: Record<string, string>) =>
  startProgram(PROGRAM_OF[language] ?? "", [file], { API: api.url, KEY: keys.shop, ...env }, directory);

function run(language: string, name: string, env: Record<string, string>): Promise<Ended> {
  const snippet = RUNNABLE.find((one) => one.language === language && one.name.startsWith(name));
  if (snippet === undefined) throw new Error(`the guide has no ${language} snippet ${name}`);
  ran.add(snippet.name);
  return start(language, fileOf(snippet.name), env).ended;
}

async function redeemOf(voucherId: string) {
  return (await readRecorded(db, voucherId)).redemption;
}

async function serving<T>(listener: RequestListener, work: (url: string) => Promise<T>): Promise<T> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  try {
    return await work(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

/** Passes calls on unless `before` refuses them, and changes the answers' text. Null: the answer is lost. */
const passOn =
  (
    before: (path: string, body: string) => unknown,
    change: (text: string, path: string) => string | null | Promise<string> = (text) => text,
  ): RequestListener =>
  async (request, response) => {
    const body = await new Response(request as never).text();
    const path = request.url ?? "";
    const refused = await before(path, body);
    if (Array.isArray(refused)) {
      const [status, code] = refused as Refusal;
      return void response
        .writeHead(status, { "retry-after": "1" })
        .end(code === null ? "<h1>Not Found</h1>" : `{"error":"x","code":"${code}","requestId":"x"}`);
    }
    const headers = { "x-api-key": keys.shop };
    const answer = await fetch(`${api.url}${path}`, {
      method: request.method ?? "",
      headers,
      ...(body !== "" && { body }),
    });
    const text = await change(await answer.text(), path);
    if (text === null) request.socket.destroy();
    else response.writeHead(answer.status, { "content-type": "application/json" }).end(text);
  };

const issue = () => issueVoucher(db, partner);
const isRedeem = (path: string) => path.endsWith("/redeem");
