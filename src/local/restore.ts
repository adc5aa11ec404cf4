import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { join, resolve } from "node:path";
import { openAdminContext } from "../acts/open-acts.ts";
import { verifyAllChains } from "../core/chain/verify-chains.ts";
import { readGivenServers } from "../platform/config.ts";
import { migrateDatabase } from "../platform/db/migrate.ts";
import { openLogger } from "../platform/logger.ts";
import { fail, Refused, readFileArgument, runTar } from "./backup-files.ts";
import { LOCAL_DIRECTORY, type SavedServers, save } from "./directory.ts";
import { findUsers, lockUsers } from "./server-users.ts";
import { chooseServers, stopLastServers } from "./servers.ts";

// `npm run restore -- FILE`: replaces the embedded database by that of a backup. Keeps the present one under another
// name.

const USAGE = `Usage: npm run restore -- FILE

Brings back the database of a file of npm run backup. What was changed since is
lost. The present database is kept under another name. Stop npm start first.`;

const NEXT = `What was redeemed since the backup can be redeemed again. Before npm start:
  1. npm run voucherctl -- log checkpoint   if its size is below that in .data/log/anchor,
     npm run voucherctl -- log recover --from COPY, or log retire --accept-loss
  2. npm run voucherctl -- db adopt         the processes refuse a server that was set back
Then ask partners to repeat every redeem since the backup with its own externalRef.`;

try {
  const file = resolve(readFileArgument(USAGE));
  const given = readGivenServers(process.env);
  if (given.databaseUrl !== null)
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
} catch (error) {
  fail(error);
}

/** @throws Refused while a process uses the database. */
function assertUnused(root: string): void {
  if (findUsers(root).length > 0) throw new Refused("Processes use the database. Stop npm start first.");
}

/** Puts the files of the backup in place. Returns the directory of the earlier database, if there was one. */
async function replaceFiles(root: string, file: string): Promise<string | null> {
  const staging = mkdtempSync(join(root, "restore-"));
  try {
    await runTar(["-xf", file, "-C", staging, "--no-same-owner"]);
    if (process.getuid?.() === 0) spawnSync("chown", ["-R", "postgres:postgres", join(staging, "postgres")]);
    return await lockUsers(root, async () => {
      // A process may have started since the first look.
      assertUnused(root);
      // A server keeps writing into a directory that is renamed, and could then no longer be found.
      await stopLastServers(root);
      return exchange(root, staging);
    });
  } finally {
    rmSync(staging, { recursive: true, force: true });
  }
}

/** Exchanges the present files for the unpacked ones. Returns the directory of the earlier database, if any. */
function exchange(root: string, staging: string): string | null {
  const { postgresPassword, reservationTokenSecret, webhookSecret, opsToken } = JSON.parse(
    readFileSync(join(staging, "servers.json"), "utf8"),
  ) as SavedServers;
  const database = join(root, "postgres");
  const before = existsSync(database) ? `${database}.${new Date().toISOString().replaceAll(/[:.]/g, "-")}` : null;
  if (before !== null) renameSync(database, before);
  renameSync(join(staging, "postgres"), database);
  save(root, { postgresPassword, reservationTokenSecret, webhookSecret, opsToken });
  // Existing keys and the existing anchor of the log are newer than the backup. The anchor shows what was lost.
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
