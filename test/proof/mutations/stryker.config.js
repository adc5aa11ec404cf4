/**
 * Mutates the rules that need no server, and the verifiers for partners: `npm run test:mutations`. `-- --mutate
 * src/core/redeem/redeem.ts` limits it to one file. README.md lists the surviving mutations with reasons.
 */
export default {
  testRunner: "vitest",
  vitest: { configFile: "test/proof/mutations/vitest.config.ts" },
  mutate: [
    "src/core/voucher/{codes,ids,references,reservation,voucher}.ts",
    "src/core/{redeem/redeem,reserve/{reservation-token,signed-cursor},chain/chain}.ts",
    "src/{marketplace/offer,marketplace/audience,core/keys/api-keys}.ts",
    "src/platform/times.ts",
    "packages/tlog/src/{bytes,checkpoint,merkle,note,policy,receipt}.ts",
    "packages/client/src/{call,history,receipt,webhook}.ts",
  ],
  // A mutation of a constant is tried with every test of its file: a tenth of them would take most of the time.
  ignoreStatic: true,
  // Stryker looks for a TypeScript with a compiler in JavaScript, to move the paths of this file. There are none to
  // move.
  tsconfigFile: "none",
  // Maximum time for which a test on a busy machine may wait for a core. Milliseconds.
  timeoutMS: 30_000,
  reporters: ["clear-text", "progress-append-only", "html", "json"],
  clearTextReporter: { logTests: false },
  htmlReporter: { fileName: ".data/mutations/report.html" },
  jsonReporter: { fileName: ".data/mutations/report.json" },
  tempDirName: ".data/mutations/copies",
  cleanTempDir: "always",
  thresholds: { high: 95, low: 90, break: 90 },
};
