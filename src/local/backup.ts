import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import pg from "pg";
import { readGivenServers } from "../platform/config.ts";
import { fail, Refused, readFileArgument, runTar } from "./backup-files.ts";
import { assertSameServers, LOCAL_DIRECTORY } from "./directory.ts";
import { chooseServers } from "./servers.ts";

// `npm run backup -- FILE`: a tar file of the embedded Postgres with its keys and secrets, also while the service runs.
// Redis needs no backup.

const USAGE = `Usage: npm run backup -- FILE

Writes a copy of the embedded database, its keys and its secrets to FILE, also
while npm start runs. npm run restore -- FILE brings it back.`;

/** Files of `.data` beside the database. */
const BESIDE = ["servers.json", "user-key.json", "user-keys.jwks.json", "log"];
/** Files that belong to the running server, or are in the backup in another form. */
const EXCLUDED = ["postmaster.pid", "postmaster.opts", "server.log", "pg_wal/*", "pg_replslot/*", "pg_stat_tmp/*"];

try {
  const file = readFileArgument(USAGE);
  const given = readGivenServers(process.env);
  if (given.databaseUrl !== null) {
    throw new Refused(
      "DATABASE_URL is set, and this copies the embedded database only. Use pg_dump: docs/operations.md.",
    );
  }
  assertSameServers({ ...given, redisUrl: "" });
  if (!existsSync(join(LOCAL_DIRECTORY, "postgres/PG_VERSION"))) {
    throw new Refused(`There is no embedded database in ${LOCAL_DIRECTORY}.`);
  }
  if (existsSync(file)) throw new Refused(`${file} exists already.`);
  const servers = await chooseServers(given, (line) => console.error(line));
  try {
    await writeBackup(servers.databaseUrl, file);
  } finally {
    await servers.release();
  }
  console.log(`The backup is in ${file}. It has the database and its secrets; only you can read it.`);
} catch (error) {
  fail(error);
}

/**
 * Copies the files of the running server between the begin and the end of a backup, and the WAL that makes them
 * consistent.
 */
async function writeBackup(databaseUrl: string, file: string): Promise<void> {
  const unfinished = `${file}.unfinished`;
  const staging = mkdtempSync(join(LOCAL_DIRECTORY, "backup-"));
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  try {
    // The slot ends with the connection, and keeps the WAL until then.
    await client.query("SELECT pg_create_physical_replication_slot('backup_' || pg_backend_pid(), true, true)");
    const begin = await client.query("SELECT pg_walfile_name(pg_backup_start('npm run backup', true)) AS wal");
    const exclude = EXCLUDED.map((pattern) => `--exclude=postgres/${pattern}`);
    const beside = BESIDE.filter((name) => existsSync(join(LOCAL_DIRECTORY, name)));
    await runTar(["-cf", unfinished, "-C", LOCAL_DIRECTORY, ...exclude, ...beside, "postgres"]);
    const end = await client.query("SELECT labelfile, pg_walfile_name(lsn) AS wal FROM pg_backup_stop(false)");
    const wal = join(staging, "postgres/pg_wal");
    mkdirSync(wal, { recursive: true });
    writeFileSync(join(staging, "postgres/backup_label"), end.rows[0].labelfile);
    for (const name of readdirSync(join(LOCAL_DIRECTORY, "postgres/pg_wal"))) {
      const isNeeded = /^[0-9A-F]{24}$/.test(name) && name >= begin.rows[0].wal && name <= end.rows[0].wal;
      if (isNeeded || name.endsWith(".history"))
        copyFileSync(join(LOCAL_DIRECTORY, "postgres/pg_wal", name), join(wal, name));
    }
    // The label comes last: a file without it is no backup.
    await runTar(["-rf", unfinished, "-C", staging, "postgres/pg_wal", "postgres/backup_label"]);
    renameSync(unfinished, file);
  } finally {
    await client.end();
    rmSync(staging, { recursive: true, force: true });
    rmSync(unfinished, { force: true });
  }
}
