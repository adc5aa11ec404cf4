import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { hasPythonModule } from "../support/has-program.ts";
import { LOG_VECTORS_FILE, type LogVectors } from "../support/write-log-vectors.ts";

const { keys, receipts, broken }: LogVectors = JSON.parse(readFileSync(LOG_VECTORS_FILE, "utf8"));

/** The verifiers that partners may copy from docs/. */
const STAND_ALONE = [
  { name: "docs/verify-receipt.mjs", command: process.execPath, script: "docs/verify-receipt.mjs" },
  { name: "docs/verify-receipt.py", command: "python3", script: "docs/verify-receipt.py" },
];

const HAS_CRYPTOGRAPHY = hasPythonModule("cryptography", "python3-cryptography");

describe.each(STAND_ALONE)("$name", ({ command, script }) => {
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

  const run = (receipt: string, vkeys = [keys.log.vkey, keys.witness.vkey]) => {
    const file = join(directory, "receipt");
    writeFileSync(file, receipt);
    return spawnSync(command, [script, file, ...vkeys], { encoding: "utf8" });
  };

  it("accepts a receipt and prints its payload", () => {
    const { status, stdout } = run(String(receipts[2]?.receipt));
    expect(status).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ eventType: "voucher.instance.redeemed", sequence: 2 });
  });

  it("refuses every broken receipt with a sentence", () => {
    for (const { name, receipt } of broken) {
      const { status, stdout, stderr } = run(receipt);
      expect({ status, stdout, stderr }, name).toEqual({
        status: 1,
        stdout: "",
        stderr: expect.stringMatching(/^Refused: .+\.\n$/),
      });
    }
  });

  it("refuses a malformed vkey and a signature that is too short with a sentence", () => {
    const receipt = String(receipts[2]?.receipt);
    const cut = (vkey: string) => vkey.replace(/\+([^+]+)\+(.+)$/, "+$1+AVBh");
    const short = receipt.replace(/^(— \S*witness\S* \S{8})\S+$/m, "$1");
    expect(short).not.toBe(receipt);
    for (const [given, ...vkeys] of [
      [receipt, cut(keys.log.vkey)],
      [receipt, keys.log.vkey, cut(keys.witness.vkey)],
      [receipt, keys.log.vkey.replace(/\+[^+]+$/, "")],
      [receipt, keys.log.vkey, "a witness"],
      [short, keys.log.vkey, keys.witness.vkey],
    ] as const) {
      expect(run(given, vkeys), vkeys.join(" ")).toMatchObject({
        status: 1,
        stdout: "",
        stderr: expect.stringMatching(/^Refused: [^\n]+\.\n$/),
      });
    }
  });

  it("asks for the log's vkey", () => {
    const { status, stderr } = run(String(receipts[2]?.receipt), []);
    expect({ status, stderr }).toEqual({ status: 1, stderr: "Refused: name a receipt and the vkey of its log.\n" });
  });
});
