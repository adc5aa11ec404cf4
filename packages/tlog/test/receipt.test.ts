import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { LOG_VECTORS_FILE, type LogVectors } from "../../../test/support/write-log-vectors.ts";
import { encodeBase64 } from "../src/bytes.ts";
import { NotAccepted, parsePolicy } from "../src/policy.ts";
import { formatProof, parseProof, verifyProof } from "../src/receipt.ts";

const vectors: LogVectors = JSON.parse(readFileSync(LOG_VECTORS_FILE, "utf8"));
const policy = await parsePolicy(vectors.policy);
const [{ receipt: RECEIPT, index: INDEX } = { receipt: "", index: 0 }] = vectors.receipts;
const PROOF = RECEIPT.replace(/^extra .*\n/m, "");
/** One line of a proof: a hash. */
const HASH = encodeBase64(new Uint8Array(32));

it("a receipt is the same after it is read and written again, with or without its payload", () => {
  for (const text of [RECEIPT, PROOF]) expect(formatProof(parseProof(text))).toBe(text);
  expect(parseProof(RECEIPT)).toMatchObject({ index: INDEX, extra: expect.any(Uint8Array) });
  expect(parseProof(PROOF).extra).toBeNull();
  expect(parseProof(PROOF.replace(/^index .*/m, "index 9007199254740991")).index).toBe(2 ** 53 - 1);
});

it("a receipt may have up to 63 hashes, the height of the largest tree", () => {
  const withHashes = (count: number) =>
    PROOF.replace(/\n\n.*/s, (end) => `\n${`${HASH}\n`.repeat(count)}${end.slice(1)}`);
  const own = parseProof(PROOF).hashes.length;
  expect(parseProof(withHashes(63 - own)).hashes).toHaveLength(63);
  expect(() => parseProof(withHashes(64 - own))).toThrow("A line of the proof is not a hash in base64.");
});

const NO_INDEX = "The line of the index is missing or not a decimal number.";
const NO_HASH = "A line of the proof is not a hash in base64.";

it.each<[what: string, change: (text: string) => string, message: string]>([
  ["another header", (text) => text.replace("@v1", "@v2"), "The first line is not c2sp.org/tlog-proof@v1."],
  ["nothing before its header", (text) => `\n\n${text}`, "The first line is not c2sp.org/tlog-proof@v1."],
  ["nothing after its header", (text) => text.replace(/\n.*?\n\n/s, "\n\n"), NO_INDEX],
  ["no empty line", (text) => text.replaceAll("\n\n", "\n"), "The proof has no empty line before its checkpoint."],
  ["loose base64", (text) => text.replace("extra ", "extra ="), "The line of the payload is not in base64."],
  ["no index", (text) => text.replace(/^index .*\n/m, ""), NO_INDEX],
  ["a word before its index", (text) => text.replace(/^index /m, "the index "), NO_INDEX],
  ["a word after its index", (text) => text.replace(/^(index .*)$/m, "$1 x"), NO_INDEX],
  ["an index beyond 2^53", (text) => text.replace(/^index .*$/m, "index 9007199254740993"), NO_INDEX],
  ["an empty hash", (text) => text.replace(/^(index .*\n)/m, "$1 \n"), NO_HASH],
  ["a short hash", (text) => text.replace(/^(index .*\n)/m, "$1AAAA\n"), NO_HASH],
  [
    "a checkpoint without a signature",
    (text) => text.replace(/\n\n.*\n\n/s, "\n\n"),
    "The checkpoint is not well formed.",
  ],
  [
    "CRLF",
    (text) => text.replaceAll("\n", "\r\n"),
    "The lines of the receipt end with CR and LF. Download the receipt again, with curl -o, or remove each CR.",
  ],
])("a receipt with %s is refused with a message", (_what, change, message) => {
  expect(() => parseProof(change(RECEIPT))).toThrow(NotAccepted);
  expect(() => parseProof(change(RECEIPT))).toThrow(new NotAccepted(message));
});

it("the verifier accepts a receipt with a wrong signature only if its caller asked to ignore signatures", async () => {
  const forged = RECEIPT.replace(/.{8}\n$/, (end) => (end.startsWith("A") ? `B${end.slice(1)}` : `A${end.slice(1)}`));
  await expect(verifyProof(forged, policy)).rejects.toThrow(/^In the checkpoint, the signature of .* is wrong\.$/);
  expect(await verifyProof(forged, policy, null, false)).toMatchObject({ index: INDEX });
});

it("a receipt whose hashes do not lead to the root is refused with the reason", async () => {
  const longer = RECEIPT.replace(/^(index .*\n)/m, `$1${HASH}\n`);
  await expect(verifyProof(longer, policy)).rejects.toThrow(
    new NotAccepted("The proof is not one for this index in a tree of this size."),
  );
  const other = RECEIPT.replace(/^(index .*\n)(.*\n)/m, `$1${HASH}\n`);
  await expect(verifyProof(other, policy)).rejects.toThrow(
    new NotAccepted("The proof does not lead to the checkpoint's root."),
  );
});
