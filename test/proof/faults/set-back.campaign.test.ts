import pg from "pg";
import { afterAll, afterEach, beforeAll, beforeEach, expect, it, onTestFinished } from "vitest";
import { acceptLoss } from "../../../src/platform/db/marks.ts";
import { migrateDatabase } from "../../../src/platform/db/migrate.ts";
import type { Mark } from "../../../src/platform/marks.ts";
import { type DatabaseUser, openDatabaseUser } from "../../support/database-user.ts";
import { type OwnPostgres, openOwnPostgres } from "../../support/own-postgres.ts";
import { itOnOneRedis, openTestServers, type TestServers } from "../../support/servers.ts";
import { readShared } from "../../support/shared-marks.ts";
import { openTcpProxy } from "../../support/tcp-proxy.ts";
import { until } from "../../support/until.ts";

let server: OwnPostgres;
let servers: TestServers;
const opened: (() => Promise<void>)[] = [];

beforeAll(async () => {
  [server, servers] = await Promise.all([openOwnPostgres(), openTestServers()]);
  await migrateDatabase(server.url("postgres"));
});

beforeEach(() => servers.redis.flushdb());

afterEach(async () => {
  for (const close of opened.splice(0)) await close();
});

afterAll(async () => {
  await server?.close();
  await servers?.close();
});

/** What may make a server's write-ahead log longer, or add marks to it. */
const GROWTH: [string, () => Promise<unknown>][] = [
  [
    "another database of the server writes",
    async () => {
      await server.superuser.query("CREATE DATABASE other");
      const other = new pg.Client({ connectionString: server.url("other") });
      await other.connect();
      await other.query("CREATE TABLE rows AS SELECT generate_series(1, 100000)");
      await other.end();
      await server.superuser.query("DROP DATABASE other");
    },
  ],
  ["the log is switched", () => server.superuser.query("SELECT pg_switch_wal()")],
  [
    "a base backup is taken",
    async () => {
      const client = await server.superuser.connect();
      await client.query("SELECT pg_backup_start('copy', fast => true)");
      await client.query("SELECT pg_backup_stop(wait_for_archive => false)");
      client.release();
    },
  ],
  ["it is started again", () => server.restart()],
  [
    "a process that knew nothing of the refusal writes marks up to the same position",
    async () => {
      const stranger = openProcess();
      for (let seen = 0; seen < 6; seen++) await untilItRemembers(stranger);
      await stranger.close();
    },
  ],
];

it("a running process refuses Postgres with older files until an operator accepts the loss", async () => {
  const known = openProcess();
  await untilItRemembers(known);
  const { serverId: origin } = known.deployment;
  await loseMarks([known]);
  expect(known.deployment.serverId).not.toBe(origin);
  for (const [what, grow] of GROWTH) {
    await grow();
    expect(await firstAnswer(known), what).toBe("copied");
  }
  expect((await newestOnServer()).position).toBeGreaterThan(known.newest()?.position ?? 0);
  await acceptLoss(server.superuser);
  await untilItRemembers(known);
});

it("an operator's acceptance of a loss does not admit files that are set back later", async () => {
  const known = openProcess();
  await acceptLoss(server.superuser);
  await loseMarks([known]);
  expect((await server.superuser.query("SELECT FROM accepted_losses")).rowCount).toBeGreaterThan(0);
  await acceptLoss(server.superuser);
  await untilItRemembers(known);
});

it("a process accepts a promoted standby unless it lacks commits that every standby must have", async () => {
  const known = openProcess();
  // Adds as many marks as in several minutes, so that every standby must have the older marks.
  const writeMinutes = () =>
    server.superuser.query(
      "INSERT INTO database_marks (made_at) SELECT clock_timestamp() FROM generate_series(1, 400)",
    );
  await writeMinutes();
  await untilItRemembers(known);
  await server.saveFiles();
  await untilItRemembers(known);
  await server.setBack({ promoted: true });
  await untilItRemembers(known);
  await server.saveFiles();
  await writeMinutes();
  await untilItRemembers(known);
  await server.setBack({ promoted: true });
  await untilRefused(known);
  await acceptLoss(server.superuser);
  await untilItRemembers(known);
});

it("a process that starts after files were set back refuses them because Redis has newer mark ids", async () => {
  const running = openProcess(shares());
  await loseMarks([running]);
  await untilRedisKnows(running);
  const started = openProcess(shares());
  await untilRefused(started);
  // Redis has lost the marks. A starting process waits until running processes have written back theirs.
  await servers.redis.flushdb();
  const late = openProcess(shares());
  await untilRefused(late);
  await running.close();
  expect(await started.asks()).toBe("copied");
  await acceptLoss(server.superuser);
  for (const each of [started, late]) await untilItRemembers(each);
  await until(async () => {
    const shared = await readMemory();
    const position = shared?.newest?.position ?? 0;
    return position > (started.newest()?.position ?? 0) - 2 && shared?.acceptedLosses.length;
  });
});

itOnOneRedis(
  "a process that started without Redis refuses its server if the server lacks a mark row in Redis",
  async () => {
    const proxy = await openTcpProxy(servers.redisUrl);
    onTestFinished(() => proxy.close());
    const running = openProcess(shares());
    await loseMarks([running]);
    proxy.cut();
    const alone = openProcess({ redisUrl: proxy.url });
    await untilItRemembers(alone);
    proxy.mend();
    await untilRefused(alone);
    await acceptLoss(server.superuser);
    for (const each of [running, alone]) await untilItRemembers(each);
  },
);

it("a process that starts after all others have stopped knows only the commits that Redis names", async () => {
  const known = openProcess(shares());
  await loseMarks([known]);
  await untilRedisKnows(known);
  await known.close();
  const started = openProcess(shares());
  await untilRefused(started);
  await started.close();
  await servers.redis.flushdb();
  await untilItRemembers(openProcess(shares()));
});

it("mark rows are kept for a day, and a process that knows only older rows is admitted like a new one", async () => {
  const frozen = openProcess();
  await untilItRemembers(frozen);
  const position = frozen.newest()?.position ?? 0;
  frozen.deployment.close();
  const sequence = "pg_get_serial_sequence('database_marks', 'position')";
  const skip = (to: number) => server.superuser.query(`SELECT setval(${sequence}, $1)`, [to]);
  const addMark = async () => {
    await server.superuser.query("UPDATE database_marks SET made_at = 'epoch'");
    await server.superuser.query("SELECT add_mark()");
    const { rows } = await server.superuser.query("SELECT min(position)::int AS oldest FROM database_marks");
    return rows[0].oldest;
  };
  const reconnects = async () => {
    const sessions = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'test'";
    await server.superuser.query(sessions);
    return until(async () => {
      const answer = await frozen.asks();
      return answer !== "lost" && answer;
    });
  };
  await skip(position + 86_399);
  await addMark();
  await until(async () => (await addMark()) > position - 2);
  expect(await addMark()).toBeLessThanOrEqual(position + 86_400);
  expect(await reconnects()).toBe("ok");
  await skip(position + 2 * 86_400);
  await until(async () => (await addMark()) > position);
  expect(await reconnects()).toBe("ok");
});

it("new mark rows are written after a clock change, and a process remembers no unconfirmed mark row", async () => {
  const known = openProcess();
  for (const step of ["1 day", "-1 day"]) {
    await server.superuser.query("UPDATE database_marks SET made_at = made_at + $1::interval", [step]);
    await untilItRemembers(known);
  }
  const setStandby = async (name: string) => {
    await server.superuser.query("SET synchronous_commit = local");
    await server.superuser.query(`ALTER SYSTEM SET synchronous_standby_names = '${name}'`);
    await server.superuser.query("SELECT pg_reload_conf()");
    await until(
      async () =>
        (await server.superuser.query("SHOW synchronous_standby_names")).rows[0].synchronous_standby_names === name,
    );
  };
  await setStandby("gone");
  const waiting = "SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND application_name = 'test'";
  const first = await until(async () => (await server.superuser.query(waiting)).rows[0]);
  const remembered = known.newest();
  await server.superuser.query("SELECT pg_terminate_backend($1)", [first.pid]);
  // The mark that no standby has is visible, but not confirmed. The next mark waits as well.
  await until(async () => (await server.superuser.query(waiting)).rows.some(({ pid }) => pid !== first.pid));
  expect((await newestOnServer()).position).toBeGreaterThan(remembered?.position ?? 0);
  expect([known.newest(), await known.asks()]).toEqual([remembered, "ok"]);
  await setStandby("");
  await untilItRemembers(known);
});

function openProcess(how: { redisUrl?: string } = {}): DatabaseUser {
  const process = openDatabaseUser({ databaseUrl: server.url("postgres"), ...how });
  opened.push(process.close);
  return process;
}

/** Waits for the first answer of a starting process, however long it takes to connect. */
const firstAnswer = (each: DatabaseUser) =>
  until(async () => {
    const answer = await each.asks();
    return answer !== "lost" && answer;
  });

const newestOnServer = async (): Promise<Mark> =>
  (await server.superuser.query("SELECT position::int, id FROM database_marks ORDER BY position DESC LIMIT 1")).rows[0];

/** Waits until a process uses the server and remembers a mark that is new on the server. */
async function untilItRemembers(each: DatabaseUser) {
  const { position = 0 } = (await newestOnServer()) ?? {};
  return until(async () => (await each.asks()) === "ok" && (each.newest()?.position ?? 0) > position && each.newest());
}

/** Sets the server's files back to just before the newest mark of the processes. */
async function loseMarks(processes: DatabaseUser[], how?: { promoted: boolean }) {
  await server.saveFiles();
  for (const each of processes) await untilItRemembers(each);
  await server.setBack(how);
  for (const each of processes) await untilRefused(each);
}

/** Waits until a process says that the files were set back. At first it only says that another server makes marks. */
const untilRefused = (each: DatabaseUser) => until(async () => (await each.asks()) === "copied");

/** Reads what the processes share in Redis. */
async function readMemory() {
  const { rows } = await server.superuser.query("SELECT id FROM deployment");
  return readShared(servers.redis, rows[0].id);
}

/** Waits until Redis has a process's newest mark, from which starting processes can learn. */
async function untilRedisKnows(each: DatabaseUser) {
  await until(async () => (await readMemory())?.newest?.id === each.newest()?.id);
}

const shares = () => ({ redisUrl: servers.redisUrl });
