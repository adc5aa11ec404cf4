import { createHash } from "node:crypto";

// A second implementation of RFC 6962's tree by its definition: slow, and without code of the service.

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

/** PROOF(m, D[n]) of RFC 6962, section 2.1.2, for 0 < m. */
export function naiveProof(m: number, leaves: readonly Uint8Array[], isWhole = true): Buffer[] {
  const n = leaves.length;
  if (m === n) return isWhole ? [] : [naiveRoot(leaves)];
  const k = naiveSplit(n);
  return m <= k
    ? [...naiveProof(m, leaves.slice(0, k), isWhole), naiveRoot(leaves.slice(k))]
    : [...naiveProof(m - k, leaves.slice(k), false), naiveRoot(leaves.slice(0, k))];
}

function naiveSplit(n: number): number {
  let k = 1;
  while (k * 2 < n) k *= 2;
  return k;
}
