import { createHash } from "node:crypto";

// A second implementation of RFC 6962's tree, as its text defines it: slow, on lists of leaves, and without code of the service.

const sha256 = (...parts: Uint8Array[]) => parts.reduce((h, part) => h.update(part), createHash("sha256")).digest();

/** MTH(D[n]) of section 2.1. */
export function naiveRoot(leaves: readonly Uint8Array[]): Buffer {
  const [only] = leaves;
  if (only === undefined) return sha256();
  if (leaves.length === 1) return sha256(Buffer.of(0), only);
  const k = naiveSplit(leaves.length);
  return sha256(Buffer.of(1), naiveRoot(leaves.slice(0, k)), naiveRoot(leaves.slice(k)));
}

/** PATH(m, D[n]) of section 2.1.1. */
export function naivePath(m: number, leaves: readonly Uint8Array[]): Buffer[] {
  if (leaves.length === 1) return [];
  const k = naiveSplit(leaves.length);
  return m < k
    ? [...naivePath(m, leaves.slice(0, k)), naiveRoot(leaves.slice(k))]
    : [...naivePath(m - k, leaves.slice(k)), naiveRoot(leaves.slice(0, k))];
}

/** PROOF(m, D[n]) of section 2.1.2, for 0 < m. */
export function naiveProof(m: number, leaves: readonly Uint8Array[], isWhole = true): Buffer[] {
  const n = leaves.length;
  if (m === n) return isWhole ? [] : [naiveRoot(leaves)];
  const k = naiveSplit(n);
  return m <= k
    ? [...naiveProof(m, leaves.slice(0, k), isWhole), naiveRoot(leaves.slice(k))]
    : [...naiveProof(m - k, leaves.slice(k), false), naiveRoot(leaves.slice(0, k))];
}

/** Section 2.1.3.2 of RFC 9162: whether a path leads from a leaf to the root. */
export function naiveIncluded(
  index: number,
  size: number,
  leaf: Uint8Array,
  path: readonly Uint8Array[],
  root: Buffer,
) {
  if (index >= size) return false;
  let [fn, sn] = [index, size - 1];
  let r = sha256(Buffer.of(0), leaf);
  for (const p of path) {
    if (sn === 0) return false;
    if (fn % 2 === 1 || fn === sn) {
      r = sha256(Buffer.of(1), p, r);
      while (fn % 2 === 0 && fn !== 0) [fn, sn] = [fn >> 1, sn >> 1];
    } else r = sha256(Buffer.of(1), r, p);
    [fn, sn] = [fn >> 1, sn >> 1];
  }
  return sn === 0 && r.equals(root);
}

function naiveSplit(n: number): number {
  let k = 1;
  while (k * 2 < n) k *= 2;
  return k;
}
