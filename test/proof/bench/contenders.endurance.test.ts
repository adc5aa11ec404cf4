import { execFile, spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, it } from "vitest";
import { assertInvariants } from "../../support/invariants.ts";
import { CASES } from "./cases.ts";
import { installLibraries, LIBRARIES, startContender } from "./contenders.ts";
import { type KillsVerdict, playKills } from "./kills.ts";
import { playCase } from "./play-case.ts";
import { type BenchServers, openBenchServers, openStage, type Stage } from "./stage.ts";

const ROOT = fileURLToPath(new URL("../../..", import.meta.url));
const { signal } = new AbortController();
const say = () => undefined;
const PLAY = { rounds: 1, seconds: 1, warmUpSeconds: 0.5, signal, say };

/** The reason why npm could not install the packages, or null. */
const missing = await installLibraries().then(
  () => null,
  (error: Error) => error,
);

const HAS_PGBENCH = spawnSync("pgbench", ["--version"]).status === 0;

let servers: BenchServers;
let stage: Stage;
beforeAll(async () => {
  if (missing !== null) return;
  servers = await openBenchServers(say);
  stage = await openStage(servers, "contenders", ROOT, { signal, say });
});
afterAll(async () => {
  await stage?.close();
  await servers?.close();
});

it.for([
  ...LIBRARIES,
  "i",
] as const)("the benchmark's implementation %s redeems exactly the vouchers that its responses name", async (id, {
  skip,
}) => {
  if (missing !== null) skip(`the contenders' packages cannot be installed: ${missing.message}`);
  if (id === "i" && !HAS_PGBENCH) skip("pgbench is not on PATH");
  const running = await startContender(id, { ...stage, ...servers.nextRedis() });
  try {
    const [series] = await playCase(servers, CASES.redeem, 8, [{ running, stage }], PLAY);
    expect(series?.rounds[0]?.rate).toBeGreaterThan(0);
    await assertInvariants(stage.db);
  } finally {
    await running.end();
  }
});

it("the code of the benchmark's implementations matches the types of their packages", async ({ skip }) => {
  if (missing !== null) skip(`the contenders' packages cannot be installed: ${missing.message}`);
  const project = fileURLToPath(new URL("contenders", import.meta.url));
  const tsc = fileURLToPath(new URL("node_modules/typescript/bin/tsc", `file://${ROOT}`));
  const { stdout } = await promisify(execFile)(process.execPath, [tsc, "-p", project]).catch((error) => error);
  expect(stdout).toBe("");
});

/** One more than the processes and servers of baseline (a), so that a kill hits each of them. */
const KILLS = 5;

it("the benchmark's implementation a loses nothing when its processes and servers are killed", async () => {
  const verdict = await playKills("a", { kills: KILLS, seed: 2, root: ROOT, signal, say });
  expect(verdict).toMatchObject({ violations: [], newTwice: 0, redeemedTwice: 0, unanswered: 0 });
  expectKills(verdict, KILLS);
});

it.for(
  LIBRARIES,
)("the benchmark's implementation %s redeems nothing twice when its processes and servers are killed", async (id, {
  skip,
}) => {
  if (missing !== null) skip(`the contenders' packages cannot be installed: ${missing.message}`);
  const verdict = await playKills(id, { kills: 2, seed: 1, root: ROOT, signal, say });
  expect(verdict).toMatchObject({ violations: [], redeemedTwice: 0 });
  expectKills(verdict, 2);
});

function expectKills({ kills, confirmed }: KillsVerdict, count: number): void {
  expect(Object.values(kills).reduce((sum, of) => sum + of)).toBe(count);
  expect(confirmed).toBeGreaterThan(count);
}
