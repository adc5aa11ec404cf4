import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { naivePath, naiveProof, naiveRoot } from "../../../test/support/naive-merkle.ts";
import { LOG_VECTORS_FILE, type LogVectors, renderLogVectors } from "../../../test/support/write-log-vectors.ts";

// This file is separate, because its tests take seconds, and the verifier's tests run once for each mutation.

const PUBLISHED = readFileSync(LOG_VECTORS_FILE, "utf8");
const { leaves, roots, inclusionProofs, consistencyProofs }: LogVectors = JSON.parse(PUBLISHED);
const data = leaves.map((leaf) => Buffer.from(leaf, "hex"));

it("generating the published test vectors of the log again yields the same bytes", async () => {
  expect(await renderLogVectors()).toBe(PUBLISHED);
});

it("the published test vectors of the log have the same roots and proofs as a second implementation", () => {
  const numbers = Array.from({ length: 70_000 }, (_, index) => createHash("sha256").update(String(index)).digest());
  for (const { leaves: kind, size, root } of roots) {
    expect(naiveRoot((kind === "events" ? data : numbers).slice(0, size)).toString("hex"), `${size}`).toBe(root);
  }
  for (const { index, size, hashes } of inclusionProofs) {
    expect(naivePath(index, data.slice(0, size)), `${index} in ${size}`).toEqual(bytes(hashes));
  }
  for (const { oldSize, size, hashes } of consistencyProofs.filter((proof) => proof.oldSize > 0)) {
    expect(naiveProof(oldSize, data.slice(0, size)), `${oldSize} to ${size}`).toEqual(bytes(hashes));
  }
});

const bytes = (hashes: string) =>
  hashes
    .split(" ")
    .filter((node) => node !== "")
    .map((node) => Buffer.from(node, "hex"));
