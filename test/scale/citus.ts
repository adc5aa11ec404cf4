import { spawnSync } from "node:child_process";

// Runs the test suite on Citus, and before it a test that moves a bucket (docs/scaling.md) under load:
//
//   node test/scale/citus.ts NODE NODE NODE [-- test/api/redeem.test.ts …]
//
// Each NODE is the address of a superuser's database on a server with Citus 13 (`shared_preload_libraries=citus`, `wal_level=logical`,
// `max_prepared_transactions` above 0), such as postgres://postgres@127.0.0.1:5432/postgres. The first is the coordinator. Everything
// happens in databases that the tests create on each node and drop. Building Citus and starting the servers is left to you.

const [nodes = [], files = []] = splitAt(process.argv.slice(2), "--");

if (nodes.length < 3) {
  process.stderr.write("Give the addresses of a coordinator and at least two workers.\n");
  process.exit(64);
}

/** Runs vitest on the nodes and returns whether every test passed. */
function runTests(project: string, tests: readonly string[]): boolean {
  const { status } = spawnSync("npx", ["vitest", "run", "--project", project, ...tests], {
    stdio: "inherit",
    env: { ...process.env, TEST_CITUS_NODES: nodes.join(",") },
  });
  return status === 0;
}

const moved = runTests("endurance", ["test/scale/bucket-move.test.ts"]);
const passed = runTests("guarantees", files);
process.exitCode = moved && passed ? 0 : 1;

function splitAt(words: readonly string[], separator: string): string[][] {
  const at = words.indexOf(separator);
  return at < 0 ? [[...words]] : [words.slice(0, at), words.slice(at + 1)];
}
