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

// `npm run backup -- FILE`: writes the embedded Postgres, its keys and its secrets to a tar file, even while the
// service runs. Redis needs no backup.

const USAGE = `Usage: npm run backup -- FILE

Writes a copy of the embedded database, its keys and its secrets to FILE, also
while npm start runs. npm run restore -- FILE brings it back.`;

/** The other files of `.data` that belong to the backup. */
const BESIDE = ["servers.json", "user-key.json", "user-keys.jwks.json", "log"];
/** Files of the running server only, or files that the backup has in another form. */
const EXCLUDED = ["postmaster.pid", "postmaster.opts", "server.log", "pg_wal/*", "pg_replslot/*", "pg_stat_tmp/*"];

try {
  const file = readFileArgument(USAGE);
  const given = readGivenServers(process.env);
  if (given.databaseUrl !== null) {
    throw new Refused("DATABASE_URL is set, and this copies the embedded database only. Use pg_dump: docs/backup.md.");
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
 * Copies the files of the running server between the begin and the end of a backup, and the WAL that makes the copy
 * consistent.
 */
async function writeBackup(databaseUrl: string, file: string): Promise<void> {
  const unfinished = `${file}.unfinished`;
  const staging = mkdtempSync(join(LOCAL_DIRECTORY, "backup-"));
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  try {
    // The replication slot keeps the WAL until the connection ends.
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
    // The label is added last: a file without it is not a complete backup.
    await runTar(["-rf", unfinished, "-C", staging, "postgres/pg_wal", "postgres/backup_label"]);
    renameSync(unfinished, file);
  } finally {
    await client.end();
    rmSync(staging, { recursive: true, force: true });
    rmSync(unfinished, { force: true });
  }
}
