import { execFileSync } from "node:child_process";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type pg from "pg";
import { type LocalPostgres, postgresUrl, startPostgres, stopPostgres } from "../../src/local/postgres.ts";
import { makeDataDirectory } from "./data-directory.ts";
import { openLastingPool } from "./lasting-pool.ts";
import { findSteadyPort } from "./steady-port.ts";
import { untilStarted } from "./until.ts";

/** A Postgres server for one test file, which may create and change roles. */
export interface OwnPostgres {
  /** A pool of the superuser. */
  superuser: pg.Pool;
  /** The address of a database for a login, by default the superuser. */
  url(database: string, login?: { name: string; password: string }): string;
  /** Reads the server's log, which includes every statement. */
  readLog(): string;
  restart(): Promise<void>;
  /** Copies the files of the stopped server, and starts it again. */
  saveFiles(): Promise<void>;
  /** Stops the server and restores the saved files, if wanted as a standby that is promoted. */
  setBack(how?: { promoted: boolean }): Promise<void>;
  close(): Promise<void>;
}

/** Starts an embedded server. */
export async function openOwnPostgres(settings: string[] = []): Promise<OwnPostgres> {
  const directory = makeDataDirectory("voucher-own-postgres-");
  const server: LocalPostgres = {
    directory: join(directory, "postgres"),
    port: await findSteadyPort(),
    password: "superuser-of-one-test-file",
    settings: ["fsync=off", "log_statement=all", ...settings],
  };
  await startPostgres(server);
  const superuser = openLastingPool({ connectionString: postgresUrl(server), max: 2 });
  return {
    superuser,
    url(database, login) {
      const url = new URL(postgresUrl(server, database));
      if (login !== undefined) Object.assign(url, { username: login.name, password: login.password });
      return url.href;
    },
    readLog: () => readFileSync(join(server.directory, "server.log"), "utf8"),
    async restart() {
      await stopPostgres(server);
      await startPostgres(server);
    },
    async saveFiles() {
      await stopPostgres(server);
      rmSync(`${server.directory}-saved`, { recursive: true, force: true });
      execFileSync("cp", ["-a", server.directory, `${server.directory}-saved`]);
      await startPostgres(server);
    },
    async setBack({ promoted } = { promoted: false }) {
      await stopPostgres(server);
      rmSync(server.directory, { recursive: true });
      execFileSync("cp", ["-a", `${server.directory}-saved`, server.directory]);
      if (promoted) writeFileSync(join(server.directory, "standby.signal"), "");
      await startPostgres(server);
      if (promoted) await promote(postgresUrl(server));
    },
    async close() {
      await superuser.end();
      await stopPostgres(server);
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

/**
 * Promotes the standby at an address, once it has replayed its WAL. Asks repeatedly in short statements, because the
 * replay pauses for up to 30 seconds for a long statement that could still see removed rows, such as a `pg_promote`
 * that waits for the replay.
 */
export async function promote(url: string): Promise<void> {
  const db = openLastingPool({ connectionString: url, max: 1 });
  const ask = "SELECT CASE WHEN pg_is_in_recovery() THEN NOT pg_promote(wait => false) ELSE true END AS is_primary";
  await untilStarted(async () => {
    // The replay may end any statement that conflicts with it.
    const answer = await db.query(ask).catch(() => null);
    return answer?.rows[0].is_primary;
  });
  await db.end();
}
