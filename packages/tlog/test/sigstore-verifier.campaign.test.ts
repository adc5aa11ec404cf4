import { createPublicKey } from "node:crypto";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { expect, it } from "vitest";
import { LOG_VECTORS_FILE, type LogVectors } from "../../../test/support/write-log-vectors.ts";
import { parseVerifierKey } from "../src/note.ts";

// Sigstore's verifier checks the log's checkpoint and inclusion proof. It does not know cosignatures, and reads only
// its own kind of entries. So the test calls the two modules that can verify any log.
const require = createRequire(import.meta.url);
const { verifyCheckpoint } = require("@sigstore/verify/dist/tlog/checkpoint.js");
const { verifyMerkleInclusion } = require("@sigstore/verify/dist/tlog/merkle.js");

const { keys, receipts, leaves }: LogVectors = JSON.parse(readFileSync(LOG_VECTORS_FILE, "utf8"));
const logKey = await parseVerifierKey("log", keys.log.vkey);

it.each(receipts)("@sigstore/verify accepts the checkpoint and the proof of $name", ({ index, receipt }) => {
  verify(receipt, leaves[index] ?? "");
});

it("@sigstore/verify refuses a receipt with a changed leaf, index, node, size, root or signature", () => {
  const { index, receipt } = receipts[2] ?? { index: 0, receipt: "" };
  const leaf = leaves[index] ?? "";
  const lines = receipt.split("\n");
  const last = lines.findIndex((line) => line.startsWith("— vouchers"));
  // Changes the receipt's lines with the index, the nodes, the origin, the size, the root and the log's signature.
  for (const at of [2, 3, 4, 5, 6, last - 4, last - 3, last - 2, last]) {
    const line = lines[at] ?? "";
    const place = line.length - 4;
    const digit = line[place] === "3" ? "4" : "3";
    const changed = lines.with(
      at,
      line.length > 20 ? line.slice(0, place) + digit + line.slice(place + 1) : `${line}3`,
    );
    expect(() => verify(changed.join("\n"), leaf), line).toThrow();
  }
  expect(() => verify(receipt, leaves[index + 1] ?? "")).toThrow();
});

/** Verifies a receipt's checkpoint and the proof of a leaf. @throws Error */
function verify(receipt: string, leaf: string): void {
  const [proof = "", ...checkpoint] = receipt.split("\n\n");
  const [, , index = "", ...hashes] = proof.split("\n");
  const entry = {
    canonicalizedBody: Buffer.from(leaf, "hex"),
    inclusionProof: {
      logIndex: index.replace("index ", ""),
      hashes: hashes.map((hash) => Buffer.from(hash, "base64")),
      checkpoint: { envelope: checkpoint.join("\n\n") },
    },
  };
  const jwk = { kty: "OKP", crv: "Ed25519", x: Buffer.from(logKey?.publicKey ?? []).toString("base64url") };
  const publicKey = createPublicKey({ key: jwk, format: "jwk" });
  const log = { logID: Buffer.from(logKey?.id ?? []), baseURL: logKey?.name, publicKey };
  verifyMerkleInclusion(entry, verifyCheckpoint(entry, [log]));
}
