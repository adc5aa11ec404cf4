import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    globalSetup: "test/support/global-setup.ts",
    // Each test file has a process of its own, with a database and a Redis database of its own.
    pool: "forks",
    maxWorkers: 2,
    // Far above what any test needs; some start a dozen processes on a machine that is busy with other tests.
    testTimeout: 60_000,
    hookTimeout: 60_000,
    // A flake is a bug.
    retry: 0,
  },
});
