import { execFile, spawnSync } from "node:child_process";
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join, resolve } from "node:path";
import { parseArgs, promisify } from "node:util";
import pg from "pg";
import { openAdminContext } from "../acts/open-acts.ts";
import { verifyAllChains } from "../core/chain/verify-chains.ts";
import { readGivenServers } from "../platform/config.ts";
import { migrateDatabase } from "../platform/db/migrate.ts";
import { openLogger } from "../platform/logger.ts";
import { onPath } from "./debian-packages.ts";
import { assertSameServers, LOCAL_DIRECTORY, type SavedServers, save } from "./directory.ts";
import { findUsers, lockUsers } from "./server-users.ts";
import { chooseServers, stopLastServers } from "./servers.ts";

// `npm run backup -- FILE` writes the embedded Postgres, its keys and its secrets to a tar file, even while the service
// runs. `npm run restore -- FILE` replaces the embedded database by the database of a backup, and keeps the current one
// under another name. Redis needs no backup.

const run = promisify(execFile);

/** The commands. Each takes the name of the file, and throws {@link Refused} if it cannot begin. */
const COMMANDS = {
  backup: {
    usage: `Usage: npm run backup -- FILE

Writes a copy of the embedded database, its keys and its secrets to FILE, also
while npm start runs. npm run restore -- FILE brings it back.`,
    run: backUp,
  },
  restore: {
    usage: `Usage: npm run restore -- FILE

Brings back the database of a file of npm run backup. What was changed since is
lost. The present database is kept under another name. Stop npm start first.`,
    run: restore,
  },
};

const NEXT = `What was redeemed since the backup can be redeemed again. Before npm start:
  1. npm run voucherctl -- erasure replay FILE   erases again what was erased since, by your kept list
  2. npm run voucherctl -- log checkpoint        if its size is below that in .data/log/anchor,
     npm run voucherctl -- log recover --from COPY, or log retire --accept-loss
  3. npm run voucherctl -- db adopt              the processes refuse a server that was set back
Then ask partners to repeat every redeem since the backup with its own externalRef.`;

/** The files in `.data`, besides the database's directory, that belong to the backup. */
const BESIDE = ["servers.json", "user-key.json", "user-keys.jwks.json", "log"];
/**
 * What the backup leaves out of the database's directory: files that only the running server needs, and files that the
 * backup contains in another form.
 */
const EXCLUDED = ["postmaster.pid", "postmaster.opts", "server.log", "pg_wal/*", "pg_replslot/*", "pg_stat_tmp/*"];

/** Thrown when another process of this folder must end first, or for wrong arguments. The message is for the user. */
class Refused extends Error {
  readonly exitCode: number;

  constructor(message: string, exitCode = 1) {
    super(message);
    this.exitCode = exitCode;
  }
}

try {
  const [name = "", ...args] = process.argv.slice(2);
  const command = COMMANDS[name as keyof typeof COMMANDS];
  await command.run(readFileArgument(command.usage, args));
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exit(error instanceof Refused ? error.exitCode : 1);
}

/** Reads FILE, the only argument. @throws Refused with `usage` for any other arguments. */
function readFileArgument(usage: string, args: string[]): string {
  try {
    const options = { help: { type: "boolean", short: "h" } } as const;
    const { values, positionals } = parseArgs({ args, allowPositionals: true, options });
    const [file, ...others] = positionals;
    if (values.help) {
      console.log(usage);
      process.exit(0);
    }
    if (file !== undefined && others.length === 0) return file;
  } catch {
    // An unknown option ends in the same error as other wrong arguments.
  }
  throw new Refused(usage, 2);
}

async function backUp(file: string): Promise<void> {
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
}

/** Copies the files of the running Postgres in its backup mode, and then the WAL that makes the copy consistent. */
async function writeBackup(databaseUrl: string, file: string): Promise<void> {
  const unfinished = `${file}.unfinished`;
  const staging = mkdtempSync(join(LOCAL_DIRECTORY, "backup-"));
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  try {
    // A temporary replication slot makes the server keep the WAL until this connection ends.
    await client.query("SELECT pg_create_physical_replication_slot('backup_' || pg_backend_pid(), true, true)");
    const begin = await client.query("SELECT pg_walfile_name(pg_backup_start('npm run backup', true)) AS wal");
    const exclude = EXCLUDED.map((pattern) => `--exclude=postgres/${pattern}`);
    const beside = BESIDE.filter((name) => existsSync(join(LOCAL_DIRECTORY, name)));
    await runTar(["-cf", unfinished, "-C", LOCAL_DIRECTORY, ...exclude, ...beside, "postgres"]);
    const stopped = await client.query("SELECT labelfile, pg_walfile_name(lsn) AS wal FROM pg_backup_stop(false)");
    const wal = join(staging, "postgres/pg_wal");
    mkdirSync(wal, { recursive: true });
    writeFileSync(join(staging, "postgres/backup_label"), stopped.rows[0].labelfile);
    for (const name of readdirSync(join(LOCAL_DIRECTORY, "postgres/pg_wal"))) {
      const isNeeded = /^[0-9A-F]{24}$/.test(name) && name >= begin.rows[0].wal && name <= stopped.rows[0].wal;
      if (isNeeded || name.endsWith(".history"))
        copyFileSync(join(LOCAL_DIRECTORY, "postgres/pg_wal", name), join(wal, name));
    }
    // The label is added last, so that a file with the label is a complete backup.
    await runTar(["-rf", unfinished, "-C", staging, "postgres/pg_wal", "postgres/backup_label"]);
    renameSync(unfinished, file);
  } finally {
    await client.end();
    rmSync(staging, { recursive: true, force: true });
    rmSync(unfinished, { force: true });
  }
}

async function restore(given: string): Promise<void> {
  const file = resolve(given);
  if (readGivenServers(process.env).databaseUrl !== null)
    throw new Refused("DATABASE_URL is set, and this restores the embedded database only.");
  if (!existsSync(file)) throw new Refused(`There is no file ${file}.`);
  const listed = (await runTar(["-tf", file])).split("\n");
  for (const name of ["servers.json", "postgres/PG_VERSION", "postgres/backup_label"]) {
    if (!listed.includes(name)) throw new Refused(`${file} is not a whole file of npm run backup: it lacks ${name}.`);
  }
  const root = resolve(LOCAL_DIRECTORY);
  mkdirSync(root, { recursive: true });
  assertUnused(root);
  const aside = await replaceFiles(root, file);
  if (aside !== null) console.log(`The database of before is in ${aside}.`);
  await examine();
}

/** @throws Refused while a process uses the database. */
function assertUnused(root: string): void {
  if (findUsers(root).length > 0) throw new Refused("Processes use the database. Stop npm start first.");
}

/** Replaces the current files by those of the backup. Returns the directory of the previous database, or null. */
async function replaceFiles(root: string, file: string): Promise<string | null> {
  const staging = mkdtempSync(join(root, "restore-"));
  try {
    await runTar(["-xf", file, "-C", staging, "--no-same-owner"]);
    if (process.getuid?.() === 0) spawnSync("chown", ["-R", "postgres:postgres", join(staging, "postgres")]);
    return await lockUsers(root, async () => {
      // Checks again, because a process may have started meanwhile.
      assertUnused(root);
      // Stops servers that still run. They would keep writing into the renamed directory, and no later start would find
      // them.
      await stopLastServers(root);
      return exchange(root, staging);
    });
  } finally {
    rmSync(staging, { recursive: true, force: true });
  }
}

/** Exchanges the current files for the unpacked files. Returns the directory of the previous database, if any. */
function exchange(root: string, staging: string): string | null {
  const { postgresPassword, reservationTokenSecret, webhookSecret, opsToken } = JSON.parse(
    readFileSync(join(staging, "servers.json"), "utf8"),
  ) as SavedServers;
  const database = join(root, "postgres");
  const before = existsSync(database) ? `${database}.${new Date().toISOString().replaceAll(/[:.]/g, "-")}` : null;
  if (before !== null) renameSync(database, before);
  renameSync(join(staging, "postgres"), database);
  save(root, { postgresPassword, reservationTokenSecret, webhookSecret, opsToken });
  // Keeps existing keys and the log's existing anchor. They are newer than the backup, and the anchor shows which part
  // of the log the restore has lost.
  for (const name of readdirSync(staging)) {
    if (name !== "servers.json" && !existsSync(join(root, name))) renameSync(join(staging, name), join(root, name));
  }
  return before;
}

/** Starts the restored server, migrates it, verifies every history, and prints the next steps. */
async function examine(): Promise<void> {
  const servers = await chooseServers(readGivenServers(process.env), (line) => console.error(line));
  const admin = openAdminContext(servers.databaseUrl, openLogger("fatal", "restore"));
  try {
    await migrateDatabase(servers.databaseUrl, { onWait: (message) => console.error(message) });
    const { vouchers, events, broken } = await verifyAllChains(admin, () => undefined);
    if (broken.length > 0) throw new Error(`${broken.length} histories are broken: npm run voucherctl -- chain verify`);
    console.log(`Restored ${vouchers} vouchers with ${events} events. Every history verifies.\n${NEXT}`);
  } finally {
    await admin.close();
    await servers.release();
  }
}

/**
 * Runs tar. Only the owner may read the files that it writes. A file may change while tar reads it, because the WAL in
 * the backup repairs its copy.
 */
async function runTar(args: readonly string[]): Promise<string> {
  if (onPath("tar") === null) throw new Refused("There is no program tar.");
  const umask = process.umask(0o077);
  try {
    const running = run("tar", [...args], { maxBuffer: 64 * 1024 * 1024, env: { ...process.env, LC_ALL: "C" } });
    return (await running).stdout;
  } catch (error) {
    // GNU tar ends with status 1 if files have changed or disappeared, and with 2 after real errors.
    if ((error as { code?: unknown }).code === 1 && isGnuTar()) return "";
    throw new Refused(`tar failed: ${String((error as { stderr?: string }).stderr ?? error).trim()}`);
  } finally {
    process.umask(umask);
  }
}

function isGnuTar(): boolean {
  return spawnSync("tar", ["--version"], { encoding: "utf8" }).stdout.includes("GNU tar");
}
