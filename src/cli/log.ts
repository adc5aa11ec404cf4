import { parseCheckpoint } from "../../packages/tlog/src/checkpoint.ts";
import { writeKeyFile } from "../../packages/tlog/src/key-file.ts";
import { COSIGNATURE_MAX_AGE, openLogSource } from "../../packages/tlog/src/log-source.ts";
import { monitorLog } from "../../packages/tlog/src/monitor.ts";
import { describeAge } from "../../packages/tlog/src/report.ts";
import { readLogConfig } from "../config.ts";
import { AppError } from "../contract/errors.ts";
import { countIssuedVouchers } from "../db/catalog.ts";
import { readDeploymentId } from "../db/deployment.ts";
import { findPublished } from "../db/log-checkpoints.ts";
import { findLogTree } from "../db/log-tree.ts";
import { withLastStart } from "../local/directory.ts";
import { backfillLog } from "../services/log/backfill-log.ts";
import { exportLog } from "../services/log/export-log.ts";
import { initLog } from "../services/log/init-log.ts";
import { type LogSettings, LogSettingsError, readLogSettings } from "../services/log/log-settings.ts";
import { recoverLog } from "../services/log/recover-log.ts";
import { retireLog } from "../services/log/retire-log.ts";
import { action, actionWithoutServers, type CommandContext, type Noun, withServers } from "./command.ts";
import { confirmLoss, withYes } from "./confirm.ts";
import { UsageError } from "./exit-code.ts";
import { formatCount, pluralize } from "./format.ts";
import { auditDatabase, auditUrl } from "./log-audit.ts";
import { collect, integer } from "./option-parsers.ts";
import { readPolicy, readText } from "./receipt.ts";
import { withRedis } from "./with-redis.ts";

const MAX_AGE_HELP = "refuse a checkpoint whose newest cosignature is older";

export const log: Noun = {
  name: "log",
  description: "the transparency log over all sealed events",
  addVerbs(noun) {
    actionWithoutServers<{ origin: string; out: string }>(
      noun
        .command("keygen")
        .description("make the key that signs the log, and print its vkey, which partners pin")
        .requiredOption("--origin <name>", "the log's name, such as vouchers.example.com/log")
        .requiredOption("--out <file>", "the key file; never overwritten"),
      ["log keygen --origin vouchers.example.com/log --out log.key"],
      async (ctx, { origin, out }) => {
        const vkey = await writeKeyFile("log", origin, out);
        ctx.print({ vkey }, () => vkey);
      },
    );
    action<{ acceptAnchor?: boolean }>(
      noun
        .command("init")
        .description("begin the log of this database, and write its first anchors")
        .option("--accept-anchor", "write missing anchors; give it only if no other tree was ever signed")
        .addHelpText("after", "\nReads LOG_KEY_FILE, LOG_ORIGIN, LOG_ANCHOR and LOG_POLICY."),
      ["log init"],
      async (ctx, { acceptAnchor = false }) => {
        const result = await initLog(ctx, await readSettings(), acceptAnchor);
        const { origin, size, begun, anchorsWritten } = result;
        ctx.print(result, () =>
          [
            begun ? `The log ${origin} begins.` : `The log ${origin} has ${pluralize(size, "leaf", "leaves")}.`,
            ...anchorsWritten.map((file) => `Wrote the anchor ${file}.`),
          ].join("\n"),
        );
      },
    );
    action(
      noun.command("checkpoint").description("show the size of the log and the served checkpoint"),
      ["log checkpoint", "log checkpoint --json"],
      async (ctx) => {
        const [tree, published] = [await findLogTree(ctx.pool), await findPublished(ctx.pool)];
        if (tree === null)
          throw new AppError("not_found", "This database has no log. Begin it with: voucherctl log init");
        const signatures = published === null ? [] : (parseCheckpoint(published.note)?.note.signatures ?? []);
        const result = {
          origin: tree.origin,
          size: tree.size,
          publishedSize: published?.size ?? 0,
          publishedAgeMs: published?.ageMs ?? null,
          signers: signatures.map(({ name }) => name),
        };
        ctx.print(result, () =>
          published === null
            ? `The log ${tree.origin} has ${pluralize(tree.size, "leaf", "leaves")}. No checkpoint is served yet.`
            : `${published.note}\nServed for ${Math.round(published.ageMs / 1_000)} s. The tree has ${pluralize(tree.size, "leaf", "leaves")}.`,
        );
      },
    );
    const audit = noun
      .command("audit")
      .description("recompute the log, and compare it with every sealed event; exit status 1 when they differ")
      .option("--url <address>", "audit a served log instead, as anyone can, without a database")
      .option("--policy <file>", "with --url: your own copy of the policy")
      .option("--voucher <id>", "with --url: compare the public events of this voucher; repeatable", collect)
      .option(
        "--max-age <seconds>",
        `with --url: ${MAX_AGE_HELP}`,
        integer(0, Number.MAX_SAFE_INTEGER),
        COSIGNATURE_MAX_AGE,
      )
      .addHelpText(
        "after",
        `
With a database, needs about 100 bytes of temporary disk space per event on the
database server. Compares the database with the anchors in LOG_ANCHOR and with
the witnesses of LOG_POLICY or, without it, of the served policy.
With --url, fetches every leaf and tile, and verifies the checkpoint. It cannot
tell whether the leaves are events of vouchers that were not named.`,
      );
    actionWithoutServers<{ url?: string; policy?: string; voucher?: string[]; maxAge: number }>(
      audit,
      ["log audit", "log audit --url https://vouchers.example.com --policy policy --voucher vch_…"],
      async (interaction, { url, policy, voucher = [], maxAge }) => {
        if (url !== undefined && policy !== undefined)
          return auditUrl(interaction, url, { policy: await readPolicy(policy), vouchers: voucher, maxAge });
        if (url !== undefined)
          throw new UsageError("--url needs --policy: a policy of the audited service proves nothing.");
        if (policy !== undefined || voucher.length > 0) throw new UsageError("--policy and --voucher need --url.");
        await withServers(interaction, auditDatabase);
      },
    );
    action(
      noun.command("backfill").description("add the events that were sealed before the log began"),
      ["log backfill"],
      async (ctx) => {
        const progress = ctx.progress("Added", "events", await countIssuedVouchers(ctx.pool));
        const events = await backfillLog(ctx, (soFar) => {
          ctx.signal.throwIfAborted();
          progress.advance(soFar);
        });
        ctx.print({ events }, () => `Added ${pluralize(events, "event")} to the log.`);
      },
    );
    action<{ to: string }>(
      noun
        .command("export")
        .description("write the served log as files that any web server can serve")
        .requiredOption("--to <directory>", "where to"),
      ["log export --to /var/www/log"],
      async (ctx, { to }) => {
        const size = await exportLog(ctx.pool, to);
        ctx.print({ size }, () => `Wrote ${pluralize(size, "leaf", "leaves")} to ${to}.`);
      },
    );
    action<{ from: string }>(
      noun
        .command("recover")
        .description("restore the part of the log that a restored database lacks, from a copy")
        .requiredOption("--from <copy>", "a monitor's or an export's directory, or the address of a cache")
        .addHelpText(
          "after",
          "\nReads LOG_KEY_FILE and LOG_ANCHOR. Events that this database still has keep\ntheir leaves. The leaves of the others are recorded as lost.",
        ),
      ["log recover --from /srv/mirror", "log recover --from https://mirror.example.net/log"],
      async (ctx, { from }) => {
        const source = openLogSource(from);
        const recovered = await recoverLog(ctx, await readSettings(), source);
        const { firstIndex, leaves, lost, added, missing } = recovered;
        const lostLeaves = lost.reduce((sum, run) => sum + run.leaves, 0);
        ctx.print(recovered, () =>
          [
            `Recovered ${pluralize(leaves, "leaf", "leaves")} from ${formatCount(firstIndex)} on, and added ${formatCount(added)} that only this database had.`,
            ...(lost.length > 0
              ? [`This database has lost the events of ${pluralize(lostLeaves, "leaf", "leaves")}:`]
              : []),
            ...lost.map((run) => `  ${run.firstIndex} to ${run.firstIndex + run.leaves - 1}`),
            ...(missing > 0
              ? [
                  `An anchor has ${pluralize(missing, "more leaf", "more leaves")}. Recover them from another copy. If there is none: voucherctl log retire --accept-loss`,
                ]
              : []),
          ].join("\n"),
        );
      },
    );
    const retire = withYes(noun.command("retire"))
      .description("end a log, and go on with its tree under a new name and key")
      .argument("<origin>", "the name of the log that ends")
      .requiredOption("--reason <text>", "why, for the record")
      .requiredOption("--to <directory>", "a new directory for the export of the log")
      .option("--checkpoint <file>", "an anchor or another checkpoint of the log; repeatable", collect)
      .option("--accept-loss", "retire the log even if this database lacks leaves that it has signed")
      .addHelpText(
        "after",
        `
Use it when the key leaked or was lost, when the log needs a new name, or when
no copy has some of its leaves. Stop the workers of the log first, and connect
as the owner of the database. LOG_KEY_FILE is a new key with a new name,
LOG_ANCHOR a new file, and LOG_POLICY names the new key. All events keep their
leaves. Run it again if it was interrupted.`,
      );
    action<{ reason: string; to: string; checkpoint?: string[]; acceptLoss?: boolean; yes?: true }>(
      retire,
      ['log retire vouchers.example.com/log --reason "key leaked" --checkpoint log.anchor --to log-1'],
      async (ctx, { reason, to, checkpoint = [], acceptLoss = false, yes }, origin = "") => {
        const settings = await readSettings();
        await confirmLoss(ctx, { yes }, `This permanently ends the log ${origin}.`);
        await assertNoLogWorker(ctx);
        const checkpoints = checkpoint.map((file) => ({ file, text: readText(file) }));
        const retired = await retireLog(ctx, settings, { origin, reason, directory: to, checkpoints, acceptLoss });
        const { nextOrigin, size, exported, lastSize, anchorsWritten } = retired;
        ctx.print(retired, () =>
          [
            `${origin} is retired. ${nextOrigin} goes on with its ${pluralize(size, "leaf", "leaves")}.`,
            `Leaf ${formatCount(size)} is the hash of the last checkpoint, which has ${pluralize(lastSize, "leaf", "leaves")}: ${to}/last-checkpoint.`,
            `Exported ${pluralize(exported, "leaf", "leaves")} to ${to}.`,
            ...anchorsWritten.map((file) => `Wrote the anchor ${file}.`),
          ].join("\n"),
        );
        ctx.next("start the workers of the log with the new key, and give partners the new policy");
      },
    );
    actionWithoutServers<{
      policy: string;
      state: string;
      keep?: boolean;
      receipt?: string[];
      retired?: string;
      maxAge: number;
    }>(
      noun
        .command("monitor")
        .description("check that a log continues what was seen before; exit status 1 when it contradicts that")
        .argument("<url>", "the log's address, such as https://vouchers.example.com/log")
        .requiredOption("--policy <file>", "your own copy of the policy")
        .requiredOption("--state <directory>", "remembers the last checkpoint")
        .option("--keep", "also keep every leaf: a copy to recover the log from")
        .option("--receipt <file>", "a receipt that must be in the log; repeatable", collect)
        .option("--retired <origin>", "the log seen before, when it was retired and this one goes on")
        .option("--max-age <seconds>", MAX_AGE_HELP, integer(0, Number.MAX_SAFE_INTEGER), COSIGNATURE_MAX_AGE)
        .addHelpText("after", "\nNeeds no database. Run it regularly, for example by cron."),
      ["log monitor https://vouchers.example.com/log --policy policy --state seen --keep"],
      async (ctx, { policy, state, keep = false, receipt = [], retired, maxAge }, url = "") => {
        const options = { source: openLogSource(url), state, keep, retired, policy: await readPolicy(policy), maxAge };
        const monitored = await monitorLog({ ...options, receipts: receipt.map(readText) });
        const { origin, size, before, receipts, cosignedAge } = monitored;
        ctx.print(
          monitored,
          () =>
            `${origin} has ${pluralize(size, "leaf", "leaves")} and continues the ${formatCount(before)} seen before. ${pluralize(receipts, "receipt")} checked. ${describeAge(cosignedAge)}`,
        );
      },
    );
  },
};

/**
 * Refuses while a worker of the queue `log` runs. Without REDIS_URL, checks nothing. A worker that still runs may then sign one more
 * checkpoint before the log refuses its key.
 */
async function assertNoLogWorker(ctx: CommandContext): Promise<void> {
  const { redisUrl, log } = ctx;
  if (redisUrl === null) return;
  const isWorking = await withRedis({ redisUrl, log }, async (redis) => {
    const { hasWorker } = await import("../queues/read-shards.ts");
    return hasWorker(redis, await readDeploymentId(ctx.pool), "log", ctx.queueShards);
  });
  if (isWorking) throw new AppError("invalid_request", "A worker of the queue log is running. Stop all of them first.");
}

/** Reads the log's settings from the environment. @throws ConfigError, LogSettingsError */
async function readSettings(): Promise<LogSettings> {
  const config = readLogConfig(withLastStart(process.env));
  const { keyFile } = config;
  if (keyFile === null) throw new LogSettingsError("LOG_KEY_FILE is not set.");
  return readLogSettings({ ...config, keyFile });
}
