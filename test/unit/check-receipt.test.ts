import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { parsePolicy } from "../../src/domain/log/policy.ts";
import { verifyProof } from "../../src/domain/log/receipt.ts";
import { LOG_VECTORS_FILE, type LogVectors } from "../support/write-log-vectors.ts";

// The script of the pages runs here as in a browser: to verify, it needs WebCrypto but no page.
const SCRIPT: string = "../../src/http/pages/static/check-receipt.js";
const { verifyReceipt, parsePolicy: parseInBrowser } = await import(SCRIPT);

const vectors: LogVectors = JSON.parse(readFileSync(LOG_VECTORS_FILE, "utf8"));
const policy = parsePolicy(vectors.policy);
const { log, witness } = vectors.keys;
const good = String(vectors.receipts[2]?.receipt);

const messageOf = (verify: () => unknown) => {
  try {
    return verify() && "accepted";
  } catch (error) {
    return (error as Error).message;
  }
};
const inBrowser = (receipt: string, policyText = vectors.policy): Promise<string> =>
  verifyReceipt(receipt, policyText).then(
    () => "accepted",
    (error: Error) => error.message,
  );

describe("the pages' verifier of receipts", () => {
  it("accepts every good receipt, with what it proves", async () => {
    for (const { index, recordHash, receipt } of vectors.receipts) {
      expect(await verifyReceipt(receipt, vectors.policy)).toMatchObject({
        ...{ index, recordHash, size: 9, origin: "vouchers.example.com/log", canVerify: true },
        witnesses: [{ name: "witness.example.net/w1", time: 1_800_000_000 }],
      });
    }
  });

  it.each(vectors.broken)("refuses a receipt for the reason that the service gives, because $name", async ({
    receipt,
  }) => {
    const reason = messageOf(() => verifyProof(receipt, policy));
    expect(reason).not.toBe("accepted");
    expect(await inBrowser(receipt)).toBe(reason);
  });

  it("decides like the service when any byte is changed", async () => {
    const receipt = Buffer.from(good);
    for (let at = 0; at < receipt.length; at += 5) {
      const changed = Buffer.from(receipt);
      changed.writeUInt8(changed.readUInt8(at) ^ (1 << (at % 7)), at);
      const text = changed.toString();
      expect(await inBrowser(text), `byte ${at}`).toBe(messageOf(() => verifyProof(text, policy)));
    }
  });

  it.each([
    ["another log's key", `log ${log.vkey.replace("412a", "412b")}\nquorum none\n`],
    ["no quorum", `log ${log.vkey}\n`],
    ["two quorums", `log ${log.vkey}\nquorum none\nquorum none\n`],
    ["no last line end", `log ${log.vkey}\nquorum none`],
    ["a control character", `log ${log.vkey}\u0007\nquorum none\n`],
    ["an unknown word", `log ${log.vkey}\nmirror x\nquorum none\n`],
    ["a repeated key", `log ${log.vkey}\nlog ${log.vkey}\nquorum none\n`],
    ["a witness in place of the log", `log ${witness.vkey}\nquorum none\n`],
    ["a name twice", `log ${log.vkey}\nwitness w ${witness.vkey}\ngroup w 1 w\nquorum w\n`],
    ["a member that is not defined", `log ${log.vkey}\ngroup g 1 w\nquorum g\n`],
    ["a threshold that cannot be met", `log ${log.vkey}\nwitness w ${witness.vkey}\ngroup g 2 w\nquorum g\n`],
    ["an address that is none", `log ${log.vkey} here\nquorum none\n`],
    ["a group that is met", `log ${log.vkey}\nwitness w ${witness.vkey} https://w.test\ngroup g any w\nquorum g\n`],
    ["a thousand lines", `log ${log.vkey}\n${"#\n".repeat(998)}quorum none\n`],
    ["more than a thousand lines", `log ${log.vkey}\n${"#\n".repeat(999)}quorum none\n`],
    ["comments and tabs", `# mine\n\nlog\t${log.vkey}\nquorum none\n`],
  ])("reads a policy like the service: %s", async (_, text) => {
    expect(await inBrowser(good, text)).toBe(messageOf(() => verifyProof(good, parsePolicy(text))));
  });

  it.each<[string, (text: string) => string, RegExp]>([
    ["in UTF-16", (text) => Buffer.from(`\uFEFF${text}`, "utf16le").toString(), /UTF-16 .* save it as UTF-8\.$/],
    ["with a byte order mark", (text) => `\uFEFF${text}`, /byte order mark/],
    ["with CR and LF", (text) => text.replaceAll("\n", "\r\n"), /end with CR and LF\. .* remove each CR\.$/],
    ["without its last line end", (text) => text.slice(0, -1), /has no end: it was cut\. Download/],
    ["that is a web page", () => "<!doctype html>\n", /^This is a web page, not a/],
    ["that is JSON", () => '{"error":"x"}\n', /^This is JSON, such as an error/],
  ])("names the cause and the way out for a receipt and a policy %s", async (_, change, reason) => {
    for (const verify of [
      () => inBrowser(change(good)),
      () => messageOf(() => verifyProof(change(good), policy)),
      () => messageOf(() => parsePolicy(change(vectors.policy))),
    ]) {
      expect(await verify()).toMatch(reason);
    }
  });

  it("accepts a vkey alone as a policy without witnesses", async () => {
    expect(await inBrowser(good, `${log.vkey}\n`)).toBe("accepted");
    expect(await parseInBrowser(log.vkey)).toMatchObject({ witnesses: [], quorum: null });
    expect(await inBrowser(good, `${witness.vkey}\n`)).toMatch(/has no key of a log/);
  });

  it("verifies a proof without a payload for the recordHash that it is given, and for no other", async () => {
    const proof = good.replace(/^extra .*\n/m, "");
    const leaf = (at: number) => Buffer.from(String(vectors.leaves[at]), "hex");
    expect(await verifyReceipt(proof, vectors.policy, () => leaf(2))).toMatchObject({ index: 2, payload: null });
    await expect(verifyReceipt(proof, vectors.policy, () => leaf(3))).rejects.toThrow(/does not lead/);
    expect(await inBrowser(proof)).toMatch(/no recordHash/);
  });
});
