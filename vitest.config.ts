import { availableParallelism } from "node:os";
import { resolve } from "node:path";
import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";

// The suffix of a file's name is its class. A file without a suffix is a guarantee. CONTRIBUTING.md has the rule.

/** The slower tests, and those of generators, documents, plans and the campaigns' judges. */
const CAMPAIGNS = ["**/*.{campaign,browser}.test.ts"];
/**
 * Campaigns that compare times under load with times without. They run alone, because other files would change the
 * times.
 */
const TIMINGS = ["**/*.timing.test.ts"];
/** Runs of several minutes. `npm run test:endurance` runs them and CI does not. */
const ENDURANCE = ["**/*.endurance.test.ts"];

/** Installed packages, which contain tests. The benchmark installs some in the folder of its contenders. */
const INSTALLED = "**/node_modules/**";

const onCluster = Boolean(process.env.TEST_CLUSTER_SHARDS);

/**
 * Files that `npm run test:cluster` leaves out, because they put proxies in front of a single server. Tests marked
 * `itOnOneRedis` are skipped there too.
 */
const NOT_ON_CLUSTER = ["test/platform/queues/awaited-queue.test.ts"];

/**
 * The campaigns that take minutes on a slow machine, longest first. Vitest knows the duration of a file only if it has
 * run here before.
 */
const LONG = [
  "test/proof/faults/faults",
  "test/local/start",
  "test/pages/site",
  "test/proof/faults/server-faults",
  "test/proof/faults/order-faults",
  "test/platform/http/proxies",
  "packages/conformance/test/conformance",
  "test/local/backup",
  "test/proof/faults/set-back",
  "test/wings",
  "test/proof/faults/confirmed-answers",
  "test/proof/faults/other-timelines",
  "test/cli/voucherctl-batch",
  "test/pages/integration-guide",
  "test/console/operator-pages",
  "test/pages/chain-page",
  "test/cli/voucherctl",
  "test/acts/suspend",
];

function rankOf({ moduleId }: TestSpecification): number {
  const at = LONG.findIndex((name) => moduleId.includes(`/${name}.`));
  return at < 0 ? LONG.length : at;
}

class LongestFirst extends BaseSequencer {
  /** If a file of minutes started last, a core would have no other work meanwhile. */
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    return (await super.sort(files)).toSorted((a, b) => rankOf(a) - rankOf(b));
  }
}

// The test processes, one per file for campaigns, need not compile the service again.
process.env.NODE_COMPILE_CACHE ??= resolve("node_modules/.cache/node");

export default defineConfig({
  test: {
    // Node runs TypeScript directly, in the tests and in the service. Vite would first transform each file.
    experimental: { viteModuleRunner: false, nodeLoader: false },
    sequence: { sequencer: LongestFirst },
    globalSetup: "test/support/global-setup.ts",
    reporters: ["default", "test/support/proved-reporter.ts"],
    pool: "forks",
    // Ends only a hopeless test. Several waits of a test may each take minutes on a slow machine.
    testTimeout: 900_000,
    hookTimeout: 900_000,
    // Files share a process, because loading the service once per file would take a sixth of `npm test`.
    isolate: false,
    // An unstable test is a bug.
    retry: 0,
    // Each test file has its own Postgres database and starts from an empty Redis database.
    projects: [
      // The files of `npm test`: each guarantee once, in two minutes on two cores.
      {
        extends: true,
        test: {
          name: "guarantees",
          include: ["{test,packages}/**/*.test.ts"],
          exclude: [INSTALLED, ...CAMPAIGNS, ...TIMINGS, ...ENDURANCE, ...(onCluster ? NOT_ON_CLUSTER : [])],
          // Three per core, because most tests wait for something. With more, tests on a slow machine would exceed the
          // service's own limits of seconds. Each has its own Redis database, or shares the single one of a cluster.
          maxWorkers: onCluster ? 1 : Math.min(3 * availableParallelism(), 7),
        },
      },
      {
        extends: true,
        test: {
          name: "campaigns",
          include: CAMPAIGNS,
          exclude: [INSTALLED],
          // A campaign keeps a third of a core busy, and waits for the rest of its time.
          maxWorkers: onCluster ? 1 : Math.min(2 * availableParallelism(), 7),
          sequence: { groupOrder: 1 },
        },
      },
      {
        extends: true,
        test: { name: "timings", include: TIMINGS, exclude: [INSTALLED], maxWorkers: 1, sequence: { groupOrder: 2 } },
      },
      {
        extends: true,
        test: {
          name: "endurance",
          include: ENDURANCE,
          exclude: [INSTALLED],
          isolate: true,
          maxWorkers: 1,
          sequence: { groupOrder: 3 },
        },
      },
    ],
  },
});
