import { globSync, readFileSync } from "node:fs";
import { defineConfig } from "vitest/config";

/** What `npm test` runs: each guarantee once, in under four minutes on two cores. */
const GUARANTEES = [
  "test/{unit,api,db,races,workers,limits,clients}/**/*.test.ts",
  "test/observability/{api-metrics,worker-metrics,metrics-port,names}.test.ts",
  "test/e2e/{migrate,smoke}.test.ts",
];

const onCluster = Boolean(process.env.TEST_CLUSTER_SHARDS);

/** Tests that read a queue's keys, watch the server or cut its connection: they need the one server of a single Redis. */
const NEEDS_ONE_REDIS = /queuePrefix|servers\.shard\b|monitorRedis|recordRedis|\.redisUrl|flushdb|countJobs/;

const notOnCluster = onCluster
  ? globSync(GUARANTEES).filter((file) => NEEDS_ONE_REDIS.test(readFileSync(file, "utf8")))
  : [];

export default defineConfig({
  test: {
    globalSetup: "test/support/global-setup.ts",
    reporters: ["default", "test/support/proved-reporter.ts"],
    pool: "forks",
    // A Redis Cluster has one database, which each file empties.
    maxWorkers: onCluster ? 1 : 2,
    // Longer than three patient starts in a row on a busy machine.
    testTimeout: 200_000,
    hookTimeout: 200_000,
    // A flake is a bug.
    retry: 0,
    // Each test file has its own Postgres database and starts from an empty Redis database.
    projects: [
      // Files share a process: loading the service once per file would take a sixth of the run.
      { extends: true, test: { name: "guarantees", include: GUARANTEES, exclude: notOnCluster, isolate: false } },
      // Campaigns, browsers, hostile input, benchmarks and long end-to-end runs.
      { extends: true, test: { name: "campaigns", include: ["test/**/*.test.ts"], exclude: GUARANTEES } },
    ],
  },
});
