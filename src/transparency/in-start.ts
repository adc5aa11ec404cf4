import { existsSync, mkdirSync } from "node:fs";
import { join, resolve } from "node:path";
import { writeKeyFile } from "#tlog/key-file.ts";
import type { AdminContext } from "../acts/open-acts.ts";
import { auditedCommand } from "../acts/with-audit-entry.ts";
import { readWingConfig } from "../platform/config.ts";
import { tlogVariables } from "./declared.ts";
import { initTlog } from "./init-log.ts";
import { readTlogSettings } from "./log-settings.ts";

/** Creates the key file of the embedded servers' log if it is missing. The log's name follows from `baseUrl`. */
async function useLocalTlog(directory: string, baseUrl: string) {
  const folder = join(resolve(directory), "log");
  const keyFile = join(folder, "key");
  if (!existsSync(keyFile)) {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    await writeKeyFile("log", `${baseUrl.replace(/^\w+:\/\//, "")}/log`, keyFile);
  }
  return { LOG_KEY_FILE: keyFile, LOG_ANCHOR: `file:${join(folder, "anchor")}` };
}

/**
 * Begins the log of the embedded database, if the database has none.
 * @throws AppError `invalid_request` when the database does not match the key or the anchor.
 */
async function beginLocalTlog(admin: AdminContext, env: Record<string, string>) {
  const { keyFile, ...config } = tlogVariables.of(readWingConfig(env, tlogVariables));
  const settings = await readTlogSettings({ ...config, keyFile: String(keyFile) });
  await initTlog({ ...admin, audited: auditedCommand("start", {}) }, settings, false);
}

/** The log of `npm start`. */
export const start = { use: useLocalTlog, begin: beginLocalTlog };
