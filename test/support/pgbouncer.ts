import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startProgram } from "./child-process.ts";
import { findSteadyPort } from "./steady-port.ts";
import { untilStarted } from "./until.ts";

export interface PgBouncer {
  /** The address of a database through PgBouncer. */
  through(databaseUrl: string): string;
  close(): Promise<void>;
}

/**
 * Starts PgBouncer in front of all databases of a server, with the settings of Debian's package and further lines of
 * its file.
 * @param logins addresses of any database, whose users may log in.
 * @param ofDatabases further settings of the databases.
 */
export async function startPgBouncer(
  server: { port: string; logins: readonly string[] },
  settings: readonly string[],
  ofDatabases = "",
): Promise<PgBouncer> {
  const folder = mkdtempSync(join(tmpdir(), "voucher-pgbouncer-"));
  chmodSync(folder, 0o777);
  const port = await findSteadyPort();
  const users = server.logins
    .map((login) => new URL(login))
    .map(({ username, password }) => `"${username}" "${password}"`);
  writeFileSync(join(folder, "users"), users.join("\n"));
  const lines = [
    "[databases]",
    `* = host=127.0.0.1 port=${server.port} ${ofDatabases}`,
    "[pgbouncer]",
    `logfile = ${join(folder, "log")}`,
    `pidfile = ${join(folder, "pid")}`,
    "listen_addr = 127.0.0.1",
    `listen_port = ${port}`,
    "unix_socket_dir =",
    "auth_type = md5",
    `auth_file = ${join(folder, "users")}`,
    ...settings,
  ];
  writeFileSync(join(folder, "pgbouncer.ini"), lines.join("\n"));
  // PgBouncer refuses to run as root.
  const user = process.getuid?.() === 0 ? ["-u", "postgres"] : [];
  const { child, ended, output } = startProgram("pgbouncer", ["-q", ...user, join(folder, "pgbouncer.ini")], {});
  await untilStarted(() => {
    if (child.exitCode !== null) throw new Error(`pgbouncer did not start: ${output()}`);
    return accepts(port);
  });
  return {
    through: (databaseUrl) => Object.assign(new URL(databaseUrl), { port: String(port) }).href,
    async close() {
      child.kill("SIGKILL");
      await ended;
      rmSync(folder, { recursive: true });
    },
  };
}

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1", () => resolve(true));
    socket.once("error", () => resolve(false)).once("connect", () => socket.destroy());
  });
}
