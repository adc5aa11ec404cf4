import { randomBytes } from "node:crypto";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import type { AdminContext } from "../admin-context.ts";
import { readLogConfig } from "../config.ts";
import { formatSecretKey } from "../domain/log/note.ts";
import { auditedCommand } from "../services/admin/with-audit-entry.ts";
import { initLog, type LogInit } from "../services/log/init-log.ts";
import { readLogSettings } from "../services/log/log-settings.ts";

/** The log's variables for the embedded servers. */
export interface LocalLog {
  LOG_KEY_FILE: string;
  LOG_ANCHOR: string;
}

/** Makes the key of the embedded servers' log, once, named after the address that the service has at that time. */
export function useLocalLog(directory: string, baseUrl: string): LocalLog {
  const folder = join(resolve(directory), "log");
  const key = join(folder, "key");
  if (!existsSync(key)) {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    const origin = `${baseUrl.replace(/^\w+:\/\//, "")}/log`;
    writeFileSync(key, `${formatSecretKey("log", origin, randomBytes(32))}\n`, { mode: 0o600 });
  }
  return { LOG_KEY_FILE: key, LOG_ANCHOR: `file:${join(folder, "anchor")}` };
}

/**
 * Begins the log of the embedded database.
 * @throws AppError when the anchor knows a log that the database has not.
 */
export function beginLocalLog(admin: AdminContext, env: LocalLog): Promise<LogInit> {
  const settings = readLogSettings({ ...readLogConfig({ ...env }), keyFile: env.LOG_KEY_FILE }, false);
  return initLog({ ...admin, audited: auditedCommand("start", {}) }, settings, false);
}
