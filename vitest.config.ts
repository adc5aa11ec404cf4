import { defineConfig } from "vitest/config";

/** What `npm test` runs: each guarantee once, in under four minutes on two cores. */
const GUARANTEES = [
  "test/{unit,api,db,races,workers,limits,clients}/**/*.test.ts",
  "test/observability/{api-metrics,worker-metrics,metrics-port,names}.test.ts",
  "test/e2e/{migrate,smoke}.test.ts",
  "packages/client/test/*.test.ts",
  "packages/tlog/test/{note,tree,vectors,witness}.test.ts",
];

/** Runs of minutes that `npm run test:endurance` makes and CI does not: it must end within twenty minutes. */
const ENDURANCE = [
  "test/bench/bench.test.ts",
  "test/clients/generators.test.ts",
  "test/faults/{postgres-failover,webhook-load,webhooks}.test.ts",
  "test/guards/*.test.ts",
  "test/log/dump-restore.test.ts",
];

/** Campaigns that compare times with times in quiet: they run alone, because a neighbour would be what they measure. */
const TIMINGS = ["test/hostile/{caller-floods,drop}.test.ts"];

const onCluster = Boolean(process.env.TEST_CLUSTER_SHARDS);

/** What `npm run test:cluster` leaves out: it puts proxies in front of the one server. Tests marked `itOnOneRedis` are skipped there, too. */
const NOT_ON_CLUSTER = ["test/workers/awaited-queue.test.ts"];

export default defineConfig({
  test: {
    globalSetup: "test/support/global-setup.ts",
    reporters: ["default", "test/support/proved-reporter.ts"],
    pool: "forks",
    // Longer than three patient starts in a row on a busy machine.
    testTimeout: 200_000,
    hookTimeout: 200_000,
    // A flake is a bug.
    retry: 0,
    // Each test file has its own Postgres database and starts from an empty Redis database.
    projects: [
      {
        extends: true,
        test: {
          name: "guarantees",
          include: GUARANTEES,
          exclude: [...ENDURANCE, ...(onCluster ? NOT_ON_CLUSTER : [])],
          // Files share a process: loading the service once per file would take a sixth of the run.
          isolate: false,
          // Five on two cores, because most tests wait for something. A Redis Cluster has one database, which each file empties.
          maxWorkers: onCluster ? 1 : 5,
        },
      },
      // Campaigns, browsers, hostile input, benchmarks and long end-to-end runs.
      {
        extends: true,
        test: {
          name: "campaigns",
          include: ["{test,packages}/**/*.test.ts"],
          exclude: [...GUARANTEES, ...ENDURANCE, ...TIMINGS],
          maxWorkers: onCluster ? 1 : 2,
          sequence: { groupOrder: 1 },
        },
      },
      {
        extends: true,
        test: { name: "timings", include: TIMINGS, maxWorkers: 1, sequence: { groupOrder: 2 } },
      },
      {
        extends: true,
        test: { name: "endurance", include: ENDURANCE, maxWorkers: 1, sequence: { groupOrder: 3 } },
      },
    ],
  },
});
