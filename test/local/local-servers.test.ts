import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished, vi } from "vitest";
import { findStart, rememberStart } from "../../src/local/directory.ts";
import { identify } from "../../src/local/process-identity.ts";
import { pingRedis, redisUrl, startRedis, stopRedis } from "../../src/local/redis.ts";
import { addUser, findUsers, lockUsers } from "../../src/local/server-users.ts";
import { assertAnswering } from "../../src/local/servers.ts";
import { ServiceProcesses } from "../../src/local/service-processes.ts";
import { StartLog } from "../../src/local/start-log.ts";
import { findSteadyPort } from "../support/steady-port.ts";
import { until } from "../support/until.ts";

it.each([
  ["DATABASE_URL", (address: string) => ({ databaseUrl: `postgres://${address}/x`, redisUrl: null })],
  ["REDIS_URL", (address: string) => ({ databaseUrl: null, redisUrl: `redis://${address}` })],
  ["REDIS_URL", (address: string) => ({ databaseUrl: null, redisUrl: `redis://${address},${address}` })],
])("assertAnswering names %s if its server accepts a connection and stays silent", async (name, serversAt) => {
  const server = createServer().listen(0, "127.0.0.1");
  onTestFinished(() => void server.close());
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
  const reason = assertAnswering(serversAt(`127.0.0.1:${port}`)).catch(({ message }) => message);
  const [socket] = await once(server, "connection");
  onTestFinished(() => socket.destroy());
  await vi.advanceTimersByTimeAsync(10_000);
  expect(await reason).toMatch(
    new RegExp(`^${name}: \\w+ does not accept a connection: no answer within 10 seconds\\.$`),
  );
});

it("untilReady fails after a minute if a process accepts a connection and stays silent", async () => {
  const server = createServer().listen(0, "127.0.0.1");
  onTestFinished(() => void server.close());
  await once(server, "listening");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/readyz`;
  vi.useFakeTimers({ toFake: ["Date"] });
  onTestFinished(() => void vi.useRealTimers());
  const late = new AbortController();
  const limit = vi.spyOn(AbortSignal, "timeout").mockReturnValue(late.signal);
  onTestFinished(() => limit.mockRestore());
  const processes = new ServiceProcesses(new StartLog(join(makeFolder(), "start.log")), null, () => undefined);
  const reason = processes.untilReady(url).catch(({ message }) => message);
  const [socket] = await once(server, "connection");
  onTestFinished(() => socket.destroy());
  // Earlier test files in this process may have set other limits, which still apply.
  expect(limit).toHaveBeenCalledWith(60_000);
  vi.setSystemTime(Date.now() + 60_000);
  late.abort();
  expect(await reason).toBe(`${url} is not ready: no answer`);
});

function makeFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "voucher-directory-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  return folder;
}

/** Starts a process that waits, and returns its id. */
function startOther(script = "exec sleep 60"): number {
  const child = spawn("sh", ["-c", script], { stdio: ["ignore", "ignore", "inherit"] });
  onTestFinished(() => void child.kill());
  return Number(child.pid);
}

it("findStart ignores the record of an npm start whose process id now belongs to another process", () => {
  const folder = makeFolder();
  const file = join(folder, "servers.json");
  rememberStart(folder, { port: 3_000, baseUrl: "http://localhost:3000", own: [], settings: {} });
  const pid = startOther();
  const record = (changes: object) => {
    const saved = JSON.parse(readFileSync(file, "utf8"));
    writeFileSync(file, JSON.stringify({ ...saved, starts: [{ ...saved.starts[0], pid, ...changes }] }));
  };
  record({});
  expect(findStart(folder)).toBeNull();
  record({ identity: identify(pid) });
  expect(findStart(folder)).toMatchObject({ pid, port: 3_000 });
});

it("findUsers ignores the record of a process whose id now belongs to another process", () => {
  const root = makeFolder();
  addUser(root, { joined: 1 });
  expect(findUsers(root)).toMatchObject([{ joined: 1 }]);
  const fileOf = (pid: number) => join(root, "users", String(pid));
  renameSync(fileOf(process.pid), fileOf(startOther()));
  expect(findUsers(root)).toEqual([]);
});

it.runIf(process.platform === "linux")(
  "identify finds no process that has ended, even if its parent has not collected its exit status",
  async () => {
    const parent = startOther("exec 3>&1; sleep 0 & exec sleep 60");
    const child = await until(() => readFileSync(`/proc/${parent}/task/${parent}/children`, "utf8").trim());
    await until(() => /\) Z /.test(readFileSync(`/proc/${child}/stat`, "utf8")));
    expect(identify(parent)).not.toBeNull();
    expect(identify(Number(child))).toBeNull();
  },
);

it("the embedded Redis has a password, and only its owner can read its files and list .data", async () => {
  const root = makeFolder();
  await lockUsers(root, async () => undefined);
  const server = { directory: join(root, "redis"), port: await findSteadyPort(), password: "a-password-of-a-test" };
  await startRedis(server, () => undefined);
  onTestFinished(() => stopRedis(server));
  await pingRedis(redisUrl(server));
  await expect(pingRedis(redisUrl({ ...server, password: undefined }))).rejects.toThrow(/password/);
  const files = readdirSync(server.directory, { recursive: true, encoding: "utf8" });
  expect(files).toContain("redis.conf");
  const paths = ["redis", ...files.map((file) => join("redis", file))].map((path) => join(root, path));
  expect(paths.filter((path) => (statSync(path).mode & 0o077) !== 0)).toEqual([]);
  // Postgres, possibly as another user, can enter the folder but not list it.
  expect(statSync(root).mode & 0o777).toBe(0o711);
});
