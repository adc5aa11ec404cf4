import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { hasPythonModule } from "../support/has-program.ts";
import { LOG_VECTORS_FILE, type LogVectors } from "../support/write-log-vectors.ts";

const { keys, receipts, broken, unusual }: LogVectors = JSON.parse(readFileSync(LOG_VECTORS_FILE, "utf8"));

// Programs that run a script for each receipt of a folder, in one process, and print the exit status after each.
const NODE_DRIVER = `const [script, folder, count, ...keys] = process.argv.slice(1);
process.exit = (status) => { throw { status }; };
console.error = console.log;
for (let at = 0; at < count; at++) {
  process.argv = ["node", script, folder + "/" + at, ...keys];
  const ended = await import(process.cwd() + "/" + script + "?" + at).then(() => 0, (error) => error.status ?? error);
  console.log("==", ended);
}`;
const PYTHON_DRIVER = `import runpy, sys
script, folder, count, *keys = sys.argv[1:]
sys.stderr = sys.stdout
for at in range(int(count)):
    sys.argv, ended = [script, f"{folder}/{at}", *keys], 0
    try:
        runpy.run_path(script)
    except SystemExit as end:
        ended = end.code
    except BaseException as error:
        ended = repr(error)
    print("==", ended)`;

/** The verifiers that partners may copy from docs/. */
const STAND_ALONE = [
  {
    name: "docs/verify-receipt.mjs",
    command: process.execPath,
    script: "docs/verify-receipt.mjs",
    driver: ["--input-type=module", "-e", NODE_DRIVER],
  },
  {
    name: "docs/verify-receipt.py",
    command: "python3",
    script: "docs/verify-receipt.py",
    driver: ["-c", PYTHON_DRIVER],
  },
];

const HAS_CRYPTOGRAPHY = hasPythonModule("cryptography", "python3-cryptography");

describe.each(STAND_ALONE)("the stand-alone verifier $name", ({ command, script, driver }) => {
  let directory: string;

  beforeAll(() => {
    directory = mkdtempSync(join(tmpdir(), "receipt-"));
  });

  afterAll(() => {
    rmSync(directory, { recursive: true });
  });

  beforeEach(({ skip }) => {
    if (command === "python3" && !HAS_CRYPTOGRAPHY) skip("Python has no module cryptography");
  });

  const run = (receipt: string | Buffer, vkeys = [keys.log.vkey, keys.witness.vkey]) => {
    const file = join(directory, "receipt");
    writeFileSync(file, receipt);
    return spawnSync(command, [script, file, ...vkeys], { encoding: "utf8" });
  };

  it("the stand-alone verifiers say in one sentence that a receipt is valid, and print its payload", () => {
    const { status, stdout, stderr } = run(String(receipts[2]?.receipt));
    expect(status).toBe(0);
    expect(stderr).toMatch(/^Valid: the log \S+ has this event, and each of 1 given witness keys has [^\n]+\.\n$/);
    expect(JSON.parse(stdout)).toMatchObject({ eventType: "voucher.instance.redeemed", sequence: 2 });
  });

  it("the stand-alone verifiers refuse every broken receipt, and accept every unusual valid receipt", () => {
    const all = [...broken, ...unusual];
    for (const [at, { receipt }] of all.entries()) writeFileSync(join(directory, String(at)), receipt);
    const given = [script, directory, String(all.length), keys.log.vkey, keys.witness.vkey];
    const { stdout, stderr } = spawnSync(command, [...driver, ...given], { encoding: "utf8" });
    const runs = stdout.split(/^== (.+)\n/m);
    expect(stderr).toBe("");
    for (const [at, { name }] of all.entries()) {
      const [printed = "", ended] = runs.slice(at * 2);
      if (at < broken.length) expect([printed, ended], name).toEqual([expect.stringMatching(/^Refused: .+\.\n$/), "1"]);
      else expect([printed, ended], name).toEqual([expect.stringMatching(/^Valid: .+\.\n\{.*\}\n$/s), "0"]);
    }
  });

  it("the stand-alone verifiers refuse a malformed public key and a signature that is too short", () => {
    const receipt = String(receipts[2]?.receipt);
    const cut = (vkey: string) => vkey.replace(/\+([^+]+)\+(.+)$/, "+$1+AVBh");
    const short = receipt.replace(/^(— \S*witness\S* \S{8})\S+$/m, "$1");
    expect(short).not.toBe(receipt);
    for (const [given, ...vkeys] of [
      [receipt, cut(keys.log.vkey)],
      [receipt, keys.log.vkey, cut(keys.witness.vkey)],
      [receipt, keys.log.vkey.replace(/\+[^+]+$/, "")],
      [receipt, keys.log.vkey, "a witness"],
    ] as const) {
      const unverified = { status: 2, stdout: "", stderr: expect.stringMatching(/^Cannot verify: [^\n]+\.\n$/) };
      expect(run(given, vkeys), vkeys.join(" ")).toMatchObject(unverified);
    }
    expect(run(short)).toMatchObject({ status: 1, stdout: "", stderr: expect.stringMatching(/^Refused: [^\n]+\.\n$/) });
  });

  it("the stand-alone verifiers name the cause and the remedy for a receipt that was changed", () => {
    const text = String(receipts[2]?.receipt);
    for (const [changed, reason] of [
      [text.replaceAll("\n", "\r\n"), /end with CR and LF; download .* or remove each CR/],
      [Buffer.from(`\uFEFF${text}`, "utf16le"), /UTF-16 .*; save it as UTF-8/],
      [`\uFEFF${text}`, /byte order mark; save it as UTF-8/],
      [text.slice(0, -1), /last line has no end, .*; download it again/],
      ["<!doctype html>\n<h1>502</h1>\n", /a web page; compare the address/],
      ['{"error":"Not yet."}\n', /JSON, such as an error of the service; read it/],
    ] as const) {
      expect(run(changed)).toMatchObject({ status: 1, stderr: expect.stringMatching(reason) });
    }
  });

  it("the stand-alone verifiers exit with 2 without the log's public key or the receipt's file", () => {
    const { status, stderr } = run(String(receipts[2]?.receipt), []);
    expect([status, stderr]).toEqual([2, "Cannot verify: name a receipt and the vkey of its log.\n"]);
    const missing = spawnSync(command, [script, join(directory, "missing"), keys.log.vkey], { encoding: "utf8" });
    expect(missing.status).toBe(2);
    expect(missing.stderr).toMatch(/^Cannot verify: the file cannot be read/);
  });
});

it("docs/verify-receipt.py has a separate exit status for a missing Python package", () => {
  // Without the site directories, Python finds its own modules only.
  const ended = spawnSync("python3", ["-I", "-S", "docs/verify-receipt.py", "receipt", keys.log.vkey]);
  const missing = "Cannot verify: Python lacks the package cryptography; run: pip install cryptography.\n";
  expect([ended.status, ended.stderr.toString()]).toEqual([69, missing]);
});
