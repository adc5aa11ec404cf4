import { cpSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import type { ServerResponse } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { makeServiceCall } from "#conformance/service.ts";
import { startProgram } from "../support/child-process.ts";
import { type PartnerRequest, startPartnerServer } from "../support/partner-server.ts";

// Runs the files from the guides against servers whose answers are like those of a proxy or a gateway.

const directory = mkdtempSync(join(tmpdir(), "voucher-client-files-"));

beforeAll(() => {
  cpSync("docs", directory, { recursive: true });
  for (const [file, lines] of Object.entries(REDEEMS)) writeFileSync(join(directory, file), lines.join("\n"));
});
afterAll(() => rmSync(directory, { recursive: true }));

type Answer = (response: ServerResponse) => unknown;

const text =
  (status: number, body: string, headers: Record<string, string> = {}): Answer =>
  (response) =>
    response.writeHead(status, headers).end(body);
/** Half of a refusal: the connection breaks while the client reads the response. */
const cut: Answer = (response) => {
  response.writeHead(403, { "content-length": "200" });
  response.write('{"error":"x","code":"voucher_used"', () => response.socket?.destroy());
};
const refusal = (status: number, code: string) => text(status, JSON.stringify({ error: "No.", code, requestId: "r" }));
/** The service's answer to each call of the programs here. */
const ANSWERED = {
  id: "bat_1",
  items: [{ code: "a code" }],
  nextCursor: null,
  redeemed: true,
  voucher: { id: "vch_1" },
  voucherInstanceId: "vch_1",
};

/** Answers that do not come from the service, so they prove nothing about a redemption. */
const ODD: [name: string, answer: Answer][] = [
  ["a page", text(404, "<h1>Not Found</h1>")],
  ["a gateway's message", text(403, '{"message":"Forbidden"}')],
  ["a gateway's error", text(404, '{"status":404,"error":"Not Found","path":"/"}')],
  ["a code that is a number", text(404, '{"code":5,"error":"no route"}')],
  ["a nested error", text(409, '{"error":{"code":"Conflict","message":"x"},"code":"Conflict"}')],
  ["an empty list", text(403, "[]")],
  ["null", text(401, "null")],
  ["a text", text(404, '"not found"')],
  ["nothing", text(400, "")],
  ["null as a success", text(200, "null")],
  ["a cut refusal", cut],
];

/** Answers the first call with a body by `odd`, which gets the call's number, and all other calls like the service. */
const oddOnce = (odd: Answer) => {
  let calls = 0;
  return (response: ServerResponse, { body }: PartnerRequest) => {
    if (body !== "") calls += 1;
    if (calls === 1 && body !== "") odd(response);
    else text(200, JSON.stringify({ ...ANSWERED, redeemCode: `code-${calls}` }))(response);
  };
};

const CLIENTS = [
  ["redeem.mjs", process.execPath],
  ["redeem.py", "python3"],
  ["redeem.php", "php"],
] as const;
const STEP = { key: "pvk_x", order: "1", product: "prd_1", count: 1, validUntil: "2099-12-31", code: "x", state: null };
const SAMPLES = [
  ["sandbox-client.mjs", "checkout", '"outcome":"redeemed","redeemCode":"code-2"'],
  ["sandbox-issuer.mjs", "issue", '"outcome":"issued"'],
] as const;

it.each(CLIENTS)("%s repeats a redeem after a response from elsewhere than the service", async (file, program) => {
  const outcomes = ODD.map(async ([name, odd]) => [
    name,
    await against(oddOnce(odd), (url) => start(program, [file], url)),
  ]);
  const right = { exitCode: 0, stdout: "code-2\n", stderr: "" };
  expect(await Promise.all(outcomes)).toEqual(ODD.map(([name]) => [name, right]));
});

it.each(CLIENTS)("%s reports an unknown outcome if the service sent none of the responses", async (file, program) => {
  const run = (url: string) => start(program, [file], url);
  const { stdout } = await against(text(404, "<h1>Not Found</h1>"), (url) =>
    start(program, [file], url, { PATIENCE: "2" }),
  );
  expect(stdout).toMatch(/^OutcomeUnknown/);
  expect(await against(oddOnce(refusal(404, "voucher_not_found")), run)).toMatchObject({
    stdout: "VoucherRefused voucher_not_found\n",
  });
});

it.each(
  CLIENTS,
)("%s reports a failed redeem with its reason at once if waiting does not help", async (file, program) => {
  // A server without TLS, and a host that no name server knows.
  await against(text(200, "{}"), async (url) => {
    for (const [address, why] of [
      [url.replace("http:", "https:"), /wrong.version|packet length|record layer/i],
      ["http://vouchers.invalid", /ENOTFOUND|not known/],
    ] as const) {
      const { stdout, exitCode } = await start(program, [file], address, { PATIENCE: "3600" });
      expect({ exitCode, stdout }).toEqual({ exitCode: 0, stdout: expect.stringMatching(/^OutcomeUnknown/) });
      expect(stdout).toMatch(why);
    }
    return null;
  });
});

it.each(SAMPLES)("%s repeats a step after a response from elsewhere than the service", async (file, step, outcome) => {
  const outcomes = ODD.map(async ([name, odd]) => [name, (await runSample(file, step, oddOnce(odd))).stdout]);
  expect(await Promise.all(outcomes)).toEqual(ODD.map(([name]) => [name, expect.stringContaining(outcome)]));
});

it("sandbox-client.mjs reports a refusal only if the response proves that the service refused", async () => {
  for (const [status, code, outcome] of [
    [401, "unknown_key", "unknown"],
    [403, "address_not_allowed", "unknown"],
    [404, "not_found", "unknown"],
    [404, "voucher_not_found", "refused"],
    [409, "voucher_used", "refused"],
  ] as const) {
    const { stdout } = await runSample("sandbox-client.mjs", "checkout", oddOnce(refusal(status, code)));
    expect(JSON.parse(stdout), code).toMatchObject({ outcome });
  }
});

it.each([
  ["back-office.mjs", process.execPath],
  ["back_office.py", "python3"],
])("%s ends with the text of a refusal, even if a proxy sent the refusal", async (file, program) => {
  for (const [odd, message] of [
    [text(403, '{"message":"x"}'), "/brands answered 403"],
    [text(403, "[]"), "/brands answered 403"],
    [text(404, "<h1>Not Found</h1>"), "/brands answered 404"],
    [refusal(401, "unknown_key"), "No."],
    [cut, "(No.|/brands answered 403)"],
  ] as const) {
    const answers = [odd];
    const next = (response: ServerResponse) => (answers.shift() ?? refusal(401, "unknown_key"))(response);
    const { exitCode, stderr } = await against(next, (url) => start(program, [file], url));
    expect({ exitCode, stderr }).toEqual({ exitCode: 1, stderr: expect.stringMatching(`^${message}\n$`) });
  }
});

const SENDERS: [name: string, send: (url: string) => Promise<unknown>][] = [
  ...CLIENTS.map(([file, program]) => [file, (url: string) => start(program, [file], url)] as const),
  ...[...SAMPLES, ["sandbox-client.mjs", "reserve"] as const].map(
    ([file, step]) => [`${file} ${step}`, (url: string) => startSample(file, step, url)] as const,
  ),
  ...(
    [
      ["back-office.mjs", process.execPath],
      ["back_office.py", "python3"],
      ["verify-chain.mjs", process.execPath],
      ["verify_chain.py", "python3"],
      ["verify-chain.php", "php"],
      ["verify-chain.sh", "bash"],
    ] as const
  ).map(([file, program]) => [file, (url: string) => start(program, [file], url)] as const),
].map(([name, send]) => [name, send]);

it.each([
  ...SENDERS,
  [
    "the conformance kit",
    (url: string) =>
      makeServiceCall(url, "pvt_x", new AbortController().signal)("/any", () => true).catch((error) => error),
  ],
] as typeof SENDERS)("%s follows no redirect, so that no other address gets the key", async (_name, send) => {
  for (const status of [302, 308]) {
    const asked: string[] = [];
    const elsewhere = await startPartnerServer({
      answer(response, request) {
        asked.push(String(request.headers["x-api-key"]));
        text(200, JSON.stringify(ANSWERED))(response);
      },
    });
    let redirects = 0;
    await against((response) => {
      if (redirects++ > 0) return refusal(404, "voucher_not_found")(response);
      return text(status, "", { location: `http://127.0.0.1:${elsewhere.port}/` })(response);
    }, send);
    expect({ status, redirected: redirects > 0, asked }).toEqual({ status, redirected: true, asked: [] });
    await elsewhere.close();
  }
});

/** Programs that redeem with each client. They print the redeem code, or the name and code of the error. */
const REDEEMS = {
  "redeem.mjs": [
    'import { voucherClient } from "./voucher-client.mjs";',
    'const vouchers = voucherClient(process.env.API, "pvk_x", 1000 * process.env.PATIENCE);',
    'const redeem = vouchers.redeem({ code: "x", externalRef: "y" });',
    "const say = ({ constructor, code, message }) => console.log(constructor.name, code ?? message);",
    "await redeem.then(({ redeemCode }) => console.log(redeemCode), say);",
  ],
  "redeem.py": [
    "from voucher_client import OutcomeUnknown, VoucherClient, VoucherRefused",
    "import os",
    'vouchers = VoucherClient(os.environ["API"], "pvk_x", float(os.environ["PATIENCE"]))',
    "try:",
    '    print(vouchers.redeem("y", code="x")["redeemCode"])',
    "except (OutcomeUnknown, VoucherRefused) as error:",
    '    print(type(error).__name__, getattr(error, "code", error))',
  ],
  "redeem.php": [
    '<?php require "voucher-client.php";',
    '$vouchers = new VoucherClient(getenv("API"), "pvk_x", (float) getenv("PATIENCE"));',
    'try { echo $vouchers->redeem("y", ["code" => "x"])["redeemCode"], "\\n"; }',
    'catch (OutcomeUnknown | VoucherRefused $e) { echo get_class($e), " ", $e->reason ?? $e->getMessage(), "\\n"; }',
  ],
};

/** Runs `work` with the address of a new server that gives these answers. */
async function against<T>(
  answer: (response: ServerResponse, request: PartnerRequest) => unknown,
  work: (url: string) => Promise<T>,
): Promise<T> {
  const { port, close } = await startPartnerServer({ answer });
  return work(`http://127.0.0.1:${port}`).finally(close);
}

/** Starts a file of the folder, like a reader of the guide. */
const start = (program: string, args: readonly string[], url: string, env: Record<string, string> = {}) =>
  startProgram(program, args, { API: url, KEY: "pvk_x", RUN: "1", CODE: "x", PATIENCE: "40", ...env }, directory).ended;

const startSample = (file: string, step: string, api: string) =>
  start("bash", ["-c", `"${process.execPath}" ${file} <<< "$STEP"`], api, {
    STEP: JSON.stringify({ ...STEP, codes: [STEP.code], step, api }),
  });

const runSample = (file: string, step: string, answer: Parameters<typeof against>[0]) =>
  against(answer, (url) => startSample(file, step, url));
