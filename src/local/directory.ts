import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** Where the embedded servers of a checkout keep their data. */
export const LOCAL_DIRECTORY = ".data";

/** The embedded servers, as `servers.json` keeps them between runs. */
export interface SavedServers {
  postgresPort: number;
  redisPort: number;
  postgresPassword: string;
  reservationTokenSecret: string;
  webhookSecret: string;
  opsToken: string;
}

/** The last `npm start`, as `servers.json` keeps it. */
export interface LastStart {
  port: number;
  baseUrl: string;
  /** Whether it used the embedded database. */
  embedded: boolean;
  /** The variables of the embedded database's log. */
  log: object | null;
}

/** What `servers.json` in a directory has. Empty without the file. */
export function readSaved(directory: string): Partial<SavedServers & LastStart> {
  try {
    return JSON.parse(readFileSync(join(directory, "servers.json"), "utf8"));
  } catch {
    return {};
  }
}

/** Adds fields to `servers.json`. Another process reads the file before or after the change, never half of it. */
export function save(directory: string, fields: SavedServers | LastStart): void {
  mkdirSync(directory, { recursive: true });
  const file = join(directory, "servers.json");
  const whole = `${file}.${process.pid}`;
  writeFileSync(whole, JSON.stringify({ ...readSaved(directory), ...fields }), { mode: 0o600 });
  renameSync(whole, file);
}

/** The environment, with the address of the last `npm start` and the log of the embedded database where it names none. */
export function withLastStart(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const { port, baseUrl, log } = readSaved(LOCAL_DIRECTORY);
  return {
    ...env,
    ...(port && !env.PORT && !env.BASE_URL && { PORT: String(port), BASE_URL: baseUrl }),
    ...(!env.DATABASE_URL && !env.LOG_KEY_FILE && log),
  };
}
