import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it, onTestFinished } from "vitest";
import { migrateDatabase } from "../../../src/platform/db/migrate.ts";
import { type DatabaseUser, openDatabaseUser } from "../../support/database-user.ts";
import { promote } from "../../support/own-postgres.ts";
import { openTestServers, type TestServers } from "../../support/servers.ts";
import { findSteadyPort } from "../../support/steady-port.ts";
import { until } from "../../support/until.ts";
import { FaultPostgres } from "./fault-postgres.ts";

// One server with copies and standbys, which all share a Redis. At each moment, processes may use only one of them.

let servers: TestServers;

beforeAll(async () => {
  servers = await openTestServers();
});

afterAll(() => servers?.close());

it("copies of a server wait while the original writes mark rows, and one replaces an original that hangs", async () => {
  const { postgres, open, makeMarks } = await openOriginal();
  const backup = await postgres.startHotCopy({ promoted: true });
  let originals = [open(postgres.url), open(postgres.url)];
  for (const each of originals) await makeMarks(each);
  const [promoted, copy] = [await postgres.startHotCopy({ promoted: true }), await postgres.startHotCopy()];
  const waiting = [backup, promoted, copy].map(({ url }) => open(url));
  const wait = async () => {
    for (const each of originals) await makeMarks(each);
    const place = expect.stringMatching(/makes marks: 127\.0\.0\.1:\d+ on timeline 1\./);
    for (const each of waiting) expect(await each.refusal()).toMatchObject({ state: "unavailable", message: place });
  };
  await wait();
  await promote(copy.url);
  await wait();
  await servers.redis.flushdb();
  await wait();
  await Promise.all(originals.map((each) => each.close()));
  originals = [open(postgres.url), open(postgres.url)];
  await wait();
  await postgres.freeze();
  const successor = await until(async () => {
    const answers = await Promise.all(waiting.map((each) => each.asks()));
    return waiting[answers.indexOf("ok")];
  });
  await makeMarks(successor);
  postgres.thaw();
  // Processes of the other servers, including the resumed original, use no server.
  const others = [...originals, ...waiting.filter((each) => each !== successor)];
  for (const each of others) await until(async () => (await each.refusal())?.state === "unavailable");
  for (let marks = 0; marks < 3; marks++) await makeMarks(successor);
  for (const each of others) {
    const message = expect.stringMatching(/makes marks: 127\.0\.0\.1:\d+ on timeline 2\./);
    expect(await each.refusal()).toMatchObject({ state: "unavailable", message });
  }
  const late = open(postgres.url);
  await until(async () => (await late.refusal())?.state === "unavailable");
  await until(async () => (await successor.asks()) === "ok");
});

it("a deployment fails over to its synchronous standby, not to a promoted older backup", async () => {
  const { postgres, open, makeMarks } = await openOriginal({ standby: true });
  const own = [open(postgres.url), open(postgres.url)];
  for (const each of own) await makeMarks(each);
  const backup = await postgres.startHotCopy({ promoted: true });
  for (const each of own) await makeMarks(each);
  const stray = open(backup.url);
  const seen: string[] = [];
  let isOver = false;
  const watched = (async () => {
    while (!isOver) seen.push(await stray.asks());
  })();
  await until(async () => (await stray.asks()) === "unavailable");
  await postgres.promoteStandby();
  for (const each of own) await makeMarks(each);
  // The original's processes cannot commit for longer than a copy must wait for their marks.
  await postgres.freeze();
  await until(async () => (await stray.asks()) === "copied");
  postgres.thaw();
  for (const each of own) await makeMarks(each);
  isOver = true;
  await watched;
  expect(seen).not.toContain("ok");
});

/** Starts a Postgres. Processes opened with `open` use the same Redis. All end with the test. */
async function openOriginal(how: { standby?: boolean } = {}) {
  const directory = mkdtempSync(join(tmpdir(), "voucher-timelines-"));
  // Under root, Postgres runs as another user, who must read this folder.
  chmodSync(directory, 0o755);
  const postgres = new FaultPostgres(join(directory, "postgres"), await findSteadyPort(), how);
  const users: DatabaseUser[] = [];
  onTestFinished(async () => {
    for (const each of users) await each.close();
    await postgres.close();
    rmSync(directory, { recursive: true, force: true });
  });
  await postgres.start();
  await migrateDatabase(postgres.url);
  return {
    postgres,
    open(databaseUrl: string): DatabaseUser {
      const user = openDatabaseUser({ databaseUrl, redisUrl: servers.redisUrl });
      users.push(user);
      return user;
    },
    /** Waits until a process uses its server and has seen a newer mark (a random id in a table there) than before. */
    makeMarks(user: DatabaseUser) {
      const before = user.newest()?.position ?? 0;
      return until(async () => (await user.asks()) === "ok" && (user.newest()?.position ?? 0) > before);
    },
  };
}
