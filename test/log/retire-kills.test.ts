import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { openLogSource } from "../../packages/tlog/src/log-source.ts";
import { parsePolicy } from "../../packages/tlog/src/policy.ts";
import { findPublished } from "../../src/db/log-checkpoints.ts";
import { findLogTree, selectLogTiles } from "../../src/db/log-tree.ts";
import { onSnapshot } from "../../src/db/transaction.ts";
import { auditLog } from "../../src/services/log/audit-log.ts";
import { auditServedLog } from "../../src/services/log/audit-served-log.ts";
import { startNode } from "../support/child-process.ts";
import { beginLog, makeLogFiles, makeNextLogFiles, NEXT_ORIGIN, ORIGIN, openSequencer } from "../support/log-setup.ts";
import { openTestServers } from "../support/servers.ts";
import { issueVouchers, makePartner } from "../support/supply.ts";
import { untilStarted } from "../support/until.ts";

it("log retire that is killed has done nothing, or the next run completes it", async () => {
  const servers = await openTestServers();
  const files = makeLogFiles();
  const next = makeNextLogFiles();
  const run = (of = files) => openSequencer(servers, of).run();
  try {
    await beginLog(servers.db, files);
    await issueVouchers(servers.db, await makePartner(servers.db), 10);
    await run();
    const directory = join(files.directory, "retired");
    const args = ["log", "retire", ORIGIN, "--reason", "the key leaked", "--checkpoint", files.anchor];
    const start = () => {
      const { ownerUrl, redisUrl } = servers;
      const env = { ...next.env, DATABASE_URL: ownerUrl, REDIS_URL: redisUrl };
      return startNode(["src/cli/main.ts", ...args, "--to", directory, "--json"], env);
    };
    const kill = async ({ child, ended, output }: ReturnType<typeof start>, reached: () => Promise<boolean>) => {
      try {
        await untilStarted(() => {
          if (child.exitCode !== null) throw new Error(`it ended: ${output()}`);
          return reached();
        });
      } finally {
        child.kill("SIGKILL");
        await ended;
      }
    };
    const origin = async () => (await findLogTree(servers.db))?.origin;
    /** A process that opens the pipe to write waits there for a reader. */
    const makePipe = (file: string) => execFileSync("mkfifo", [file]);

    // While it exports.
    mkdirSync(directory);
    makePipe(join(directory, "checkpoint"));
    writeFileSync(join(directory, "policy"), (await findPublished(servers.db))?.policy ?? "");
    await kill(start(), async () => existsSync(join(directory, "tile/entries/000.p/10")));
    rmSync(join(directory, "checkpoint"));
    expect([await origin(), existsSync(next.anchor)]).toEqual([ORIGIN, false]);

    // In its transaction.
    const tx = await servers.db.connect();
    await tx.query("BEGIN; LOCK TABLE log_witnesses IN SHARE MODE");
    await kill(start(), async () => {
      const waiting = "SELECT FROM pg_locks WHERE relation = 'log_witnesses'::regclass AND NOT granted";
      return (await servers.db.query(waiting)).rowCount === 1;
    });
    await tx.query("ROLLBACK");
    tx.release();
    // The server notices the death when it sends its next response.
    const locked = "SELECT FROM log_tree FOR UPDATE SKIP LOCKED";
    await untilStarted(async () => (await servers.db.query(locked)).rowCount === 1);
    expect([await origin(), existsSync(next.anchor)]).toEqual([ORIGIN, false]);
    expect(await run()).toMatchObject({ published: 10, refused: null });

    // After the commit, before it writes the anchor.
    const beforeAnchor = start();
    makePipe(`${next.anchor}.${beforeAnchor.child.pid}.next`);
    await kill(beforeAnchor, async () => (await origin()) === NEXT_ORIGIN);
    expect(existsSync(next.anchor)).toBe(false);
    expect(await run(next)).toMatchObject({ placed: 0, refused: expect.stringMatching(/No anchor and no witness/) });

    // After it has written the anchor.
    makePipe(join(directory, "last-checkpoint"));
    await kill(start(), async () => existsSync(next.anchor));
    rmSync(join(directory, "last-checkpoint"));

    const last = start();
    await last.ended;
    expect(JSON.parse(last.output())).toMatchObject({
      origin: ORIGIN,
      nextOrigin: NEXT_ORIGIN,
      size: 10,
      exported: 10,
    });
    const end = createHash("sha256").update(readFileSync(join(directory, "last-checkpoint")));
    const [bundle] = await selectLogTiles(servers.db, [{ level: 0, index: 0 }]);
    expect(bundle?.hashes.toString("hex", 10 * 32)).toBe(end.digest("hex"));
    expect(await run(next)).toMatchObject({ placed: 0, published: 11, refused: null });
    const audit = await onSnapshot(servers.db, auditLog);
    expect(audit).toMatchObject({ leaves: 11, events: 10, retirements: 1, problemCount: 0 });
    const log = openLogSource(directory);
    const policy = await parsePolicy(readFileSync(join(directory, "policy"), "utf8"));
    const exported = await auditServedLog({ log, histories: log, policy, vouchers: [] });
    expect(exported).toMatchObject({ leaves: 10, problemCount: 0 });
  } finally {
    await servers.close();
    files.remove();
    next.remove();
  }
});
