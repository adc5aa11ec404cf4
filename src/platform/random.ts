import { randomBytes, randomFillSync } from "node:crypto";

const POOL_BYTES = 8_192;
const pool = Buffer.alloc(POOL_BYTES);
let used = POOL_BYTES;

/**
 * Returns bytes from the operating system's secure generator. Fetches them in blocks, because each fetch takes
 * microseconds.
 */
export function pooledRandomBytes(size: number): Uint8Array {
  if (size > POOL_BYTES) return randomBytes(size);
  if (used + size > POOL_BYTES) {
    randomFillSync(pool);
    used = 0;
  }
  used += size;
  return new Uint8Array(pool.subarray(used - size, used));
}
