import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach } from "vitest";
import { openLogSource } from "#tlog/log-source.ts";
import { monitorLog } from "#tlog/monitor.ts";
import { parsePolicy } from "#tlog/policy.ts";
import { onSnapshot } from "../../src/platform/db/transaction.ts";
import { auditTlog } from "../../src/transparency/audit-log.ts";
import { exportTlog } from "../../src/transparency/export-log.ts";
import { recoverTlog } from "../../src/transparency/recover-log.ts";
import {
  beginTlog,
  beginWithBackup,
  makeNextTlogFiles,
  makeTlogFiles,
  openSequencer,
  settingsOf,
  type TlogFiles,
} from "./log-setup.ts";
import { openTestServers, type TestServers } from "./servers.ts";
import { issueVouchers, makePartner, provisioning, type TestPartner } from "./supply.ts";
import { lazily } from "./use-service.ts";

/**
 * Opens a database with a partner for each test of a file, and the files of a log and of the log after its retirement.
 * Returns operations for the tests. Their parameter `of` selects the log. Files that a test names are in the directory
 * of the first log.
 */
export function useLog() {
  let opened: { servers: TestServers; partner: TestPartner; files: TlogFiles; next: TlogFiles } | null = null;
  const now = () => {
    if (opened === null) throw new Error("the log is not open: use it inside a test or a hook");
    return opened;
  };
  beforeEach(async () => {
    const servers = await openTestServers();
    opened = { servers, partner: await makePartner(servers.db), files: makeTlogFiles(), next: makeNextTlogFiles() };
  });
  afterEach(async () => {
    const { servers, files, next } = now();
    await servers.close();
    files.remove();
    next.remove();
  });
  const db = lazily(() => now().servers.db);
  const files = lazily(() => now().files);
  const at = (name: string) => join(files.directory, name);
  const policyIn = (name: string) => parsePolicy(readFileSync(at(`${name}/policy`), "utf8"));
  return {
    servers: lazily(() => now().servers),
    db,
    files,
    next: lazily(() => now().next),
    partner: lazily(() => now().partner),
    at,
    issue: (count: number) => issueVouchers(db, now().partner, count),
    begin: (acceptAnchor = false) => beginTlog(db, files, acceptAnchor),
    /** Opens a sequencer that remembers nothing, like a new process. */
    open: (of: TlogFiles = files, anchors?: string[]) => openSequencer(now().servers, of, anchors),
    /** Runs one pass of a new sequencer. */
    run: (of: TlogFiles = files) => openSequencer(now().servers, of).run(),
    audit: () => onSnapshot(db, auditTlog),
    exportTo: (name: string) => exportTlog(db, at(name)),
    recoverFrom: async (name: string, of: TlogFiles = files) =>
      recoverTlog(provisioning(db), await settingsOf(of), openLogSource(at(name))),
    policyIn,
    monitor: async (name: string, options: Partial<Parameters<typeof monitorLog>[0]> = {}) =>
      monitorLog({
        source: openLogSource(at(name)),
        policy: options.policy ?? (await policyIn(name)),
        state: at("seen"),
        keep: false,
        receipts: [],
        ...options,
      }),
    beginWithBackup: (counts: { kept: number; lost: number }) =>
      beginWithBackup(now().servers, files, now().partner, counts),
  };
}
