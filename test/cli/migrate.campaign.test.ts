import { afterAll, beforeAll, expect, it } from "vitest";
import { type Ended, runNode } from "../support/child-process.ts";
import { findSteadyPort } from "../support/steady-port.ts";
import { useDatabase } from "../support/use-service.ts";

const { servers } = useDatabase();
const bare = `migrate_bare_${process.pid}`;
const low = `migrate_low_${process.pid}`;

beforeAll(async () => {
  await servers.db.query(`CREATE DATABASE ${bare}`);
  await servers.db.query(`CREATE ROLE ${low} LOGIN PASSWORD 'low'`);
});

afterAll(async () => {
  await servers.db.query(`DROP DATABASE ${bare} WITH (FORCE)`);
  await servers.db.query(`DROP ROLE ${low}`);
});

it("npm run migrate says if the database is already up to date", async () => {
  expect(await migrate(servers.ownerUrl)).toEqual({
    exitCode: 0,
    stdout: "The database is up to date.\n",
    stderr: "",
  });
});

it("npm run migrate reports a problem and its remedy in two lines, with voucherctl's exit codes", async () => {
  const closed = `postgres://wrong:secret@127.0.0.1:${await findSteadyPort()}/x`;
  const failures: [databaseUrl: string, exitCode: number, words: RegExp][] = [
    [
      closed,
      69,
      /^The database does not answer \(ECONNREFUSED\)\.\nIs it running, .* Run this again for the rest\.\n$/,
    ],
    ["nonsense", 78, /^DATABASE_URL .*\ndocs\/configuration\.md leads to every variable\.\n$/],
    ["", 78, /^DATABASE_URL .*\n.*\n$/],
    [
      address({ pathname: "/no_such_database" }),
      78,
      /^Postgres at .*"no_such_database" does not exist\. Create .*\.\n$/,
    ],
    [
      address({ username: low, password: "low", pathname: `/${bare}` }),
      78,
      /^The role of DATABASE_URL may not do this: .*\nUse the role that owns the database\.\n$/,
    ],
  ];
  const ended = await Promise.all(failures.map(([databaseUrl]) => migrate(databaseUrl)));
  for (const [index, [, exitCode, words]] of failures.entries()) {
    expect(ended[index]).toEqual({ exitCode, stdout: "", stderr: expect.stringMatching(words) });
  }
});

it("npm run migrate says that the database of an unreleased version must be created again", async () => {
  const { rows } = await servers.db.query("SELECT hash FROM migrations WHERE id = 1");
  await servers.db.query("UPDATE migrations SET hash = 'another' WHERE id = 1");
  const changed = await migrate(servers.ownerUrl);
  await servers.db.query("UPDATE migrations SET hash = $1 WHERE id = 1", [rows[0].hash]);
  expect(changed).toEqual({
    exitCode: 78,
    stdout: "",
    stderr: expect.stringMatching(/^An unreleased version .*\nDelete the folder \.data, or create a new database\.\n$/),
  });
});

it("npm run migrate prints the stack trace and the database's error for an unknown failure", async () => {
  await servers.db.query("ALTER TABLE migrations RENAME TO migrations_of_before");
  const again = await migrate(servers.ownerUrl);
  await servers.db.query("DROP TABLE IF EXISTS migrations");
  await servers.db.query("ALTER TABLE migrations_of_before RENAME TO migrations");
  expect(again).toEqual({
    exitCode: 70,
    stdout: "",
    stderr: expect.stringMatching(/already exists.*\n +at .*42723/s),
  });
});

/** Runs `npm run migrate`. */
function migrate(databaseUrl: string): Promise<Ended> {
  return runNode(["src/cli/migrate.ts"], { DATABASE_URL: databaseUrl });
}

/** Returns the URL of the test server, with another database or role than usual. */
function address(change: Partial<Pick<URL, "pathname" | "username" | "password">>): string {
  return Object.assign(new URL(servers.ownerUrl), change).href;
}
