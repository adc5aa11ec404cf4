import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { LOG_VECTORS_FILE, type LogVectors } from "../../../test/support/write-log-vectors.ts";
import { encodeHex } from "../src/bytes.ts";
import { hashLeaf, rootFromInclusion, verifyConsistency } from "../src/merkle.ts";
import { NotAccepted, parsePolicy } from "../src/policy.ts";
import { verifyProof } from "../src/receipt.ts";

const vectors: LogVectors = JSON.parse(readFileSync(LOG_VECTORS_FILE, "utf8"));
const { keys, leaves, roots, inclusionProofs, consistencyProofs, receipts, broken, unusual } = vectors;
const policy = await parsePolicy(vectors.policy);
const data = leaves.map((leaf) => Buffer.from(leaf, "hex"));
const rootOf = (size: number) => Buffer.from(roots.find((tree) => tree.size === size)?.root ?? "", "hex");

it("the published test vectors of the log have the keys, leaf and receipt of the design document", async () => {
  expect(keys.log.vkey).toBe("vouchers.example.com/log+412a5354+AVBhOSJS8YUZuac69DfFR5s+PPWy8XFhrhxffV8Q4pLe");
  expect(keys.witness.vkey).toBe("witness.example.net/w1+dae6b252+BGPV4NqRhsKCW8ThKxsfxdDySxDeCb5NYgPAxKGDiPZD");
  expect(leaves[2]).toMatch(/^58493e99.*307c98$/);
  expect(encodeHex(await hashLeaf(data[2] as Buffer))).toMatch(/^bd6a0c4f.*ff8f12$/);
  expect(receipts[2]?.receipt.length).toBe(1_466);
  expect(receipts[2]?.receipt).toContain("\n9\nW/CWE38o7Tx6TALeVO+pxAve1xO4Gv5r0XwTS1u537U=\n");
});

const bytes = (hashes: string) =>
  hashes
    .split(" ")
    .filter((node) => node !== "")
    .map((node) => Buffer.from(node, "hex"));

it("the verifier accepts each proof of the test vectors only for the proof's own leaf and tree", async () => {
  for (const { index, size, hashes } of inclusionProofs) {
    const proof = bytes(hashes);
    const leaf = await hashLeaf(data[index] as Buffer);
    expect(Buffer.from((await rootFromInclusion(index, size, leaf, proof)) ?? [])).toEqual(rootOf(size));
    expect(await rootFromInclusion(index, size, leaf, [...proof, leaf])).toBeNull();
    if (proof.length > 0) expect(await rootFromInclusion(index, size, leaf, proof.slice(1))).toBeNull();
    for (let other = 0; other < size; other++) {
      const found = await rootFromInclusion(other, size, leaf, proof);
      expect(found !== null && rootOf(size).equals(found), `${index} as ${other} in ${size}`).toBe(other === index);
    }
  }
  for (const { oldSize, size, hashes } of consistencyProofs) {
    const proof = bytes(hashes);
    const [oldRoot, root] = [rootOf(oldSize), rootOf(size)];
    expect(await verifyConsistency(oldSize, oldRoot, size, root, proof), `${oldSize} to ${size}`).toBe(true);
    expect(await verifyConsistency(oldSize, oldRoot, size, root, [...proof, root])).toBe(false);
    const forged = Buffer.from(oldRoot).fill(7, 31);
    if (oldSize > 0) expect(await verifyConsistency(oldSize, forged, size, root, proof)).toBe(false);
    for (const at of proof.keys()) {
      const changed = proof.with(at, Buffer.from(proof[at] as Buffer).fill(7, 0, 8));
      expect(await verifyConsistency(oldSize, oldRoot, size, root, changed)).toBe(false);
    }
  }
});

it("the published test vectors of the log have at least 24 different broken receipts", () => {
  expect(broken.length).toBeGreaterThanOrEqual(24);
  const all = [...broken, ...receipts].map(({ receipt }) => receipt);
  expect(new Set(all).size).toBe(all.length);
});

it.each(receipts)("the verifier accepts the receipt of $name", async ({ index, recordHash, receipt }) => {
  const proved = await verifyProof(receipt, policy);
  expect(proved).toMatchObject({ index, size: 9, origin: "vouchers.example.com/log" });
  expect(encodeHex(proved.recordHash)).toBe(recordHash);
  expect(proved.cosignatures.map(({ key, time }) => [key.name, time])).toEqual([
    ["witness.example.net/w1", 1_800_000_000],
  ]);
});

it.each(unusual)("the verifier accepts an unusual receipt: $name", async ({ receipt }) => {
  expect(await verifyProof(receipt, policy)).toMatchObject({ index: 0, size: 1 });
});

it.each(broken)("the verifier refuses a broken receipt: $name", async ({ receipt }) => {
  await expect(verifyProof(receipt, policy)).rejects.toThrow(NotAccepted);
});

it("the verifier accepts a proof without a payload only with the recordHash of the proof's leaf", async () => {
  const [good] = receipts;
  const proof = String(good?.receipt).replace(/^extra .*\n/m, "");
  const recordHash = data[0] as Buffer;
  expect((await verifyProof(proof, policy, recordHash)).index).toBe(0);
  await expect(verifyProof(proof, policy)).rejects.toThrow(/no recordHash/);
  await expect(verifyProof(proof, policy, data[1] as Buffer)).rejects.toThrow(/does not lead/);
  await expect(verifyProof(String(good?.receipt), policy, data[1] as Buffer)).rejects.toThrow(/not that of this/);
});

it("the verifier refuses a receipt in which any one bit was flipped", async () => {
  const good = Buffer.from(String(receipts[1]?.receipt));
  const accepted: number[] = [];
  for (let bit = 0; bit < good.length * 8; bit += 9) {
    const changed = Buffer.from(good);
    changed.writeUInt8(changed.readUInt8(bit >> 3) ^ (1 << (bit & 7)), bit >> 3);
    try {
      await verifyProof(changed.toString(), policy);
      accepted.push(bit);
    } catch (error) {
      expect(error).toBeInstanceOf(NotAccepted);
    }
  }
  expect(accepted).toEqual([]);
});
