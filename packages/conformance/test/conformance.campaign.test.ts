// biome-ignore-all lint/suspicious/noTemplateCurlyInString: these are parts of the client that the tests replace.
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { type Ended, runNode } from "../../../test/support/child-process.ts";
import { issueVouchers, makeKey, makePartner } from "../../../test/support/supply.ts";
import { useService } from "../../../test/support/use-service.ts";
import { CHECKS, type CheckResult, VOUCHERS_NEEDED } from "../src/checks.ts";

const SAMPLE = readFileSync("docs/sandbox-client.mjs", "utf8");

const { api, servers } = useService();
const directory = mkdtempSync(join(tmpdir(), "voucher-sandbox-"));

afterAll(() => rmSync(directory, { recursive: true }));

let files = 0;

describe.concurrent("voucherctl sandbox check", () => {
  it("voucherctl sandbox check passes the sample client in every check", async () => {
    const { exitCode, passed, checks } = await checkClient(SAMPLE);
    expect(checks.map(({ name, result, sentences }) => ({ name, result, sentences }))).toEqual(
      CHECKS.map(({ name }) => ({ name, result: "right", sentences: [] })),
    );
    expect({ exitCode, passed }).toEqual({ exitCode: 0, passed: true });
  });

  it.each([
    {
      fault: "a new reference for every attempt",
      client: () =>
        sampleWith(
          ["const externalRef = `shop-${order}`;", ""],
          [
            "body: JSON.stringify(body),",
            'body: JSON.stringify(path === "redeem" ? { ...body, externalRef: `shop-${order}-${Date.now()}` } : body),',
          ],
          ["{ code, externalRef }", "{ code }"],
        ),
      checks: ["repeat", "lost answer", "busy service"],
      sentence: /^It used \d references for one order: .* Send every retry with the same externalRef/,
    },
    {
      fault: "a repeat counts as a failure",
      client: () =>
        sampleWith([
          "if (!ok) return refused(answer);\n  // Another",
          'if (!ok || answer.alreadyConfirmed) return { outcome: "refused" };\n  // Another',
        ]),
      checks: ["repeat", "lost answer"],
      sentence: /^It reported "refused" after a response with alreadyConfirmed: true\. That is a success/,
    },
    {
      fault: "a lost response counts as a failure",
      client: () =>
        sampleWith([
          "// No response, or an incomplete one. The outcome is unknown, so the same call is sent again.",
          'return { ok: false, answer: { status: 409, code: "network" } };',
        ]),
      checks: ["lost answer"],
      sentence: /^It reported "refused", but the voucher is redeemed for .* final response the outcome is unknown/,
    },
    {
      fault: "Retry-After is ignored",
      client: () => sampleWith(["if (retryAfter > 0) waitMs = retryAfter * 1000;", "if (retryAfter > 0) waitMs = 10;"]),
      checks: ["busy service"],
      sentence:
        /^It called again [01]\.\d seconds after a 503 with Retry-After: 2\. Wait as long as Retry-After says\.$/,
    },
    {
      fault: "a 409 is retried",
      client: () => sampleWith(["if (status < 500 && isFinal)", "if (attempt > 1 || status < 409 || status === 429)"]),
      checks: ["used voucher", "other checkout", "suspended voucher", "expired voucher"],
      sentence: /^It sent the redeem 3 times although each response was a 409\. A 409 is an answer: do not retry it\.$/,
    },
    {
      fault: "a daily limit counts as a busy service",
      client: () => sampleWith(['answer.code === "cap_reached" || ', ""]),
      checks: ["daily limit"],
      sentence: /^It reported "redeemed" for a till that has reached its daily limit\. It must report "refused"\.$/,
    },
    {
      fault: "a 409 counts as a success",
      client: () =>
        sampleWith([
          "if (!ok) return refused(answer);\n  // Another",
          'if (!ok) return { outcome: "redeemed" };\n  // Another',
        ]),
      checks: ["used voucher", "other checkout", "expired voucher"],
      sentence: /^It reported "redeemed" for (a|an) .*voucher.*\. It must report "refused"\.$/,
    },
    {
      fault: "a response about another voucher counts as a success",
      client: () => sampleWith(["answer.voucherInstanceId !== seen.answer.voucher.id", "false"]),
      checks: ["reused reference"],
      sentence:
        /^It reported the voucher vch_\w+ as redeemed, but that voucher is still Active: .* Compare voucherInstanceId/,
    },
    {
      fault: "one reference for all orders",
      client: () => sampleWith(["`shop-${order}`", "`shop-${order.slice(0, 14)}`"]),
      checks: ["lost answer", "slow answer", "busy service"],
      sentence: /^It used the reference \S+ for the orders \S+-1 and \S+-\d+\. A reference redeems one voucher, ever/,
    },
    {
      fault: "a cancelled order keeps its reservation",
      client: () =>
        sampleWith(['await call("POST", "release", { ticket: state.ticket, reason: "customer left" });', ""]),
      checks: ["cancelled order"],
      sentence:
        /^It reported "released" for a cancelled order, but the voucher is still reserved\. Release the reservation/,
    },
    {
      fault: "the vouchers of an order have one reference",
      client: () => sampleWith(["`shop-${order}-${index + 1}`", "`shop-${order}`"]),
      checks: ["several vouchers"],
      sentence: /^It reported "partly" for 2 vouchers, of which 2 can be redeemed\. It must report "redeemed"\.$/,
    },
    {
      fault: "each voucher of an order is redeemed as soon as it is reserved",
      client: () =>
        sampleWith([
          "tickets.push(answer.ticket);",
          `
            tickets.push(answer.ticket);
            const externalRef = "shop-" + order + "-" + tickets.length;
            await call("POST", "redeem", { ticket: answer.ticket, externalRef });`,
        ]),
      checks: ["several vouchers", "one of several"],
      sentence: /^It redeemed a voucher before all vouchers of the order were reserved\./,
    },
    {
      fault: "the other reservations of an order are kept when one voucher is refused",
      client: () =>
        sampleWith(['await call("POST", "release", { ticket, reason: "another voucher was refused" });', ";"]),
      checks: ["one of several"],
      sentence: /^Voucher 1 of a refused order is still reserved\. Release the reservations of the others/,
    },
    {
      fault: "an order is given up although one of its vouchers was redeemed",
      client: () =>
        sampleWith(
          ['count > 0 ? "partly" : "refused"', '"refused"'],
          ["{ outcome, redeemCodes, state", "{ outcome, state"],
        ),
      checks: ["one of several"],
      sentence:
        /^It redeemed voucher 1 of the order, but returned no redeemCode for it\. What is redeemed stays redeemed/,
    },
    {
      fault: "the customer gets no code",
      client: () => sampleWith(["redeemCode: answer.redeemCode", "thanks: true"]),
      checks: ["redeem", "reserve and pay"],
      sentence: /^It returned the redeemCode \(none\), but the service's response has \S+\. The customer needs it\.$/,
    },
  ])("voucherctl sandbox check rejects a client with the reason: $fault", async ({ client, checks, sentence }) => {
    const { exitCode, passed, wrong } = await checkClient(client());
    expect({ exitCode, passed }).toEqual({ exitCode: 1, passed: false });
    for (const name of checks)
      expect(
        wrong[name]?.filter((message) => sentence.test(message)),
        name,
      ).toHaveLength(1);
  });

  it("voucherctl sandbox check ends when a client's first step fails, has no result or is unsupported", async () => {
    for (const [content, message] of [
      ['throw new Error("no till");', /^The client ended with exit status 1: /],
      ['console.log("thank you");', /^The last line of the client's output is not a result/],
      ['console.log(\'{"outcome":"unsupported"}\');', /^The client has no step "checkout"/],
    ] as const) {
      const { exitCode, wrong } = await checkClient(content);
      expect(exitCode).toBe(1);
      expect(wrong).toEqual({ redeem: [expect.stringMatching(message)] });
    }
  });

  it("voucherctl sandbox check skips unsupported steps, and passes the client", async () => {
    const { exitCode, checks } = await checkClient(
      sampleWith([
        "const STEPS = { checkout: redeem, pay: redeem, reserve, cancel, basket: redeemAll };",
        "const STEPS = { checkout: redeem };",
      ]),
    );
    expect(exitCode).toBe(0);
    expect(checks.filter(({ result }) => result === "not tried").map(({ name }) => name)).toEqual([
      "reserve and pay",
      "reservation ends",
      "cancelled order",
      "several vouchers",
      "one of several",
    ]);
  });

  it("voucherctl sandbox check prints each check and its result as text", async () => {
    const { exitCode, stdout } = await check(await makeSandbox(), "echo nothing");
    expect(exitCode).toBe(1);
    expect(stdout).toContain("wrong      redeem: An order is paid with a voucher.\n           The last line");
    expect(stdout).toContain("not tried  expired voucher: A customer");
    expect(stdout).toMatch(/\nThe client failed 1 of 1 check\.\n$/);
  });

  it("voucherctl sandbox check exits 2 for a wrong key, code or address, and does not run the client", async () => {
    const sandbox = await makeSandbox(VOUCHERS_NEEDED - 1);
    const live = await makeKey(servers.db, (await makePartner(servers.db)).organizationId);
    const reader = await makeKey(servers.db, (await makePartner(servers.db, { sandbox: true })).organizationId);
    const expired = await makeSandbox();
    const advanced = await fetch(`${api.url}/sandbox/advance`, {
      method: "POST",
      headers: { "x-api-key": expired.key },
      body: JSON.stringify({ seconds: 400 * 86_400 }),
    });
    expect(advanced.status).toBe(200);
    const csv = sandbox.codes.slice(0, 1).map((code) => `vch_1,${code},1`);
    const website = createServer((_request, response) => response.end("<!doctype html>")).listen(0, "127.0.0.1");
    await once(website, "listening");
    const elsewhere = ["--url", `http://127.0.0.1:${(website.address() as AddressInfo).port}`];
    for (const [given, message, ...more] of [
      [{ ...sandbox, key: live.key }, "This key is live."],
      [{ ...sandbox, key: "pvt_123" }, "--key is not an API key"],
      [sandbox, `has ${VOUCHERS_NEEDED - 1} unused codes and ${VOUCHERS_NEEDED} are needed.`],
      [{ ...sandbox, key: reader.key }, "code 1 is not a voucher of this key's organization."],
      [expired, "12 vouchers expired, as in every check without --keep-vouchers."],
      // The format of the file that batch issue --out writes.
      [{ ...sandbox, codes: ["id,code,serial", ...csv] }, "has 1 unused code and 12 are needed."],
      [sandbox, "answered 200: this is not the partner API.", ...elsewhere],
    ] as const) {
      const { exitCode, stderr } = await check(given, `touch ${join(directory, "ran")}`, ...more);
      expect({ exitCode, stderr }).toEqual({ exitCode: 2, stderr: expect.stringContaining(message) });
    }
    website.close();
    expect(existsSync(join(directory, "ran"))).toBe(false);
  });
});

// test/pages/packages.campaign.test.ts installs the package.
it("the conformance package's command passes the sample client, and exits 2 if an option is missing", async () => {
  const { key, codes } = await makeSandbox();
  const options = [
    "packages/conformance/src/main.ts",
    "--key",
    key,
    "--url",
    api.url,
    "--codes",
    write(codes.join("\n")),
  ];
  const client = ["--client", `"${process.execPath}" docs/sandbox-client.mjs`];
  const passed = await runNode([...options, ...client], {});
  expect(passed).toMatchObject({
    exitCode: 0,
    stdout: expect.stringMatching(/\nThe client passed all 17 checks\.\n$/),
  });
  const wrong = await runNode(options, {});
  expect(wrong).toMatchObject({ exitCode: 2, stderr: "--client is missing. --help lists the options.\n" });
});

function write(content: string): string {
  files += 1;
  const file = join(directory, `file-${files}.mjs`);
  writeFileSync(file, content);
  return file;
}

interface Sandbox {
  key: string;
  codes: readonly string[];
}

async function makeSandbox(count = VOUCHERS_NEEDED): Promise<Sandbox> {
  const partner = await makePartner(servers.db, { sandbox: true });
  const { key } = await makeKey(servers.db, partner.organizationId);
  return { key, codes: (await issueVouchers(servers.db, partner, count)).map(({ code }) => code) };
}

/** Runs the command without DATABASE_URL, because it needs no database. */
function check({ key, codes }: Sandbox, client: string, ...more: string[]): Promise<Ended> {
  const options = ["--key", key, "--url", api.url, "--codes", write(codes.join("\n")), "--client", client];
  return runNode(["src/cli/main.ts", "sandbox", "check", ...options, ...more], {});
}

/** Runs the command for a JavaScript client on a new sandbox. */
async function checkClient(
  content: string,
): Promise<Ended & { passed: boolean; wrong: Record<string, string[]>; checks: CheckResult[] }> {
  const ended = await check(await makeSandbox(), `"${process.execPath}" "${write(content)}"`, "--json");
  expect(ended.stderr).toBe("");
  const { passed, checks } = JSON.parse(ended.stdout) as { passed: boolean; checks: CheckResult[] };
  const wrong = checks
    .filter(({ result }) => result === "wrong")
    .map(({ name, sentences }) => [name, sentences] as const);
  return { ...ended, passed, checks, wrong: Object.fromEntries(wrong) };
}

/** Returns the sample client with texts replaced. Fails if the client does not contain one of them. */
function sampleWith(...changes: [from: string, to: string][]): string {
  return changes.reduce((text, [from, to]) => {
    expect(text).toContain(from);
    return text.replace(from, to);
  }, SAMPLE);
}
