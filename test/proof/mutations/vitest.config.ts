import { defineConfig } from "vitest/config";

/** The tests of the mutated files. They need no server, so that each mutation takes less than a second. */
export default defineConfig({
  test: {
    include: [
      "test/core/voucher/{codes,decisions,ids,references}.test.ts",
      "test/core/{reserve/{reservation-token,signed-cursor},chain/chain,chain/chain-vectors}.test.ts",
      "test/{marketplace/offer,core/keys/api-keys}.test.ts",
      "test/cli/voucherctl-format.test.ts",
      "packages/tlog/test/{note,receipt,tree,vectors}.test.ts",
      "packages/client/test/{retries,verifiers}.test.ts",
    ],
    // Long, because a test that fails while it waits for a core would count as one that found a mutation. Milliseconds.
    testTimeout: 60_000,
  },
});
