import { parseCheckpoint } from "#tlog/checkpoint.ts";
import { writeKeyFile } from "#tlog/key-file.ts";
import { COSIGNATURE_MAX_AGE, openLogSource } from "#tlog/log-source.ts";
import { monitorLog } from "#tlog/monitor.ts";
import { describeAge } from "#tlog/report.ts";
import {
  type CommandContext,
  confirmLoss,
  type Noun,
  verb,
  verbWithoutServers,
  withServers,
} from "../../cli/command.ts";
import { UsageError } from "../../cli/exit-code.ts";
import { formatCount, pluralize } from "../../cli/format.ts";
import { collect, flag, integer, option, required, YES } from "../../cli/options.ts";
import { readText } from "../../cli/read-text.ts";
import { withRedis } from "../../cli/with-redis.ts";
import { countIssuedVouchers } from "../../core/catalog/db/catalog.ts";
import { AppError } from "../../platform/api/errors.ts";
import { readWingConfig } from "../../platform/config.ts";
import { readDeploymentId } from "../../platform/db/deployment.ts";
import { confirmed } from "../../platform/db/durability.ts";
import { backfillTlog } from "../backfill-log.ts";
import { findPublished } from "../db/log-checkpoints.ts";
import { findTlogTree } from "../db/log-tree.ts";
import { tlogVariables } from "../declared.ts";
import { exportTlog } from "../export-log.ts";
import { initTlog } from "../init-log.ts";
import { readTlogSettings, type TlogSettings, TlogSettingsError } from "../log-settings.ts";
import { recoverTlog } from "../recover-log.ts";
import { retireTlog } from "../retire-log.ts";
import { auditDatabase, auditUrl } from "./log-audit.ts";
import { FILE_MAX, readPolicy } from "./receipt.ts";

const MAX_AGE_HELP = "refuse a checkpoint whose newest cosignature is older";
const SECONDS = integer(0, Number.MAX_SAFE_INTEGER);
const leavesOf = (count: number) => pluralize(count, "leaf", "leaves");

export const log: Noun = {
  name: "log",
  description: "the transparency log over all sealed events",
  verbs: {
    keygen: verbWithoutServers({
      description: "make the key that signs the log, and print its vkey, which partners pin",
      options: {
        origin: required("<name>", "the log's name, such as vouchers.example.com/log"),
        out: required("<file>", "the key file; never overwritten"),
      },
      examples: ["--origin vouchers.example.com/log --out log.key"],
      async run(ctx, { origin, out }) {
        const vkey = await writeKeyFile("log", origin, out);
        ctx.print({ vkey }, () => vkey);
      },
    }),
    init: verb({
      description: "begin the log of this database, and write its first anchors",
      options: { acceptAnchor: flag("write missing anchors; give it only if no other tree was ever signed") },
      help: "Reads LOG_KEY_FILE, LOG_ORIGIN, LOG_ANCHOR and LOG_POLICY.",
      async run(ctx, { acceptAnchor = false }) {
        const result = await confirmed(ctx.pool, async () => initTlog(ctx, await readSettings(ctx), acceptAnchor));
        const { origin, size, begun, anchorsWritten } = result;
        const state = begun ? "begins" : `has ${leavesOf(size)}`;
        ctx.print(result, () => [`The log ${origin} ${state}.`, ...anchorsWritten.map(describeAnchor)].join("\n"));
      },
    }),
    checkpoint: verb({
      description: "show the size of the log and the served checkpoint",
      examples: ["", "--json"],
      async run(ctx) {
        const [tree, published] = [await findTlogTree(ctx.pool), await findPublished(ctx.pool)];
        if (tree === null)
          throw new AppError("not_found", "This database has no log. Begin it with: voucherctl log init");
        const { origin, size } = tree;
        const signatures = published === null ? [] : (parseCheckpoint(published.note)?.note.signatures ?? []);
        const { size: publishedSize = 0, ageMs: publishedAgeMs = null } = published ?? {};
        const result = { origin, size, publishedSize, publishedAgeMs, signers: signatures.map(({ name }) => name) };
        ctx.print(result, () =>
          published === null
            ? `The log ${origin} has ${leavesOf(size)}. No checkpoint is served yet.`
            : `${published.note}\nServed for ${Math.round(published.ageMs / 1_000)} s. The tree has ${leavesOf(size)}.`,
        );
      },
    }),
    audit: verbWithoutServers({
      description: "recompute the log, and compare it with every sealed event; exit status 1 when they differ",
      options: {
        url: option("<address>", "audit a served log instead, as anyone can, without a database"),
        policy: option("<file>", "with --url: your own copy of the policy"),
        voucher: option("<id>", "with --url: compare the public events of this voucher; repeatable", collect),
        maxAge: option("<seconds>", `with --url: ${MAX_AGE_HELP}`, SECONDS, COSIGNATURE_MAX_AGE),
      },
      help: `With a database, needs about 100 bytes of temporary disk space per event on the
database server. Compares the database with the anchors in LOG_ANCHOR and with
the witnesses of LOG_POLICY or, without it, of the served policy.
With --url, fetches every leaf and tile, and verifies the checkpoint. It cannot
tell whether the leaves are events of vouchers that were not named.`,
      examples: ["", "--url https://vouchers.example.com --policy policy --voucher vch_…"],
      async run(interaction, { url, policy, voucher: vouchers = [], maxAge }) {
        if (url !== undefined && policy !== undefined)
          return auditUrl(interaction, url, { policy: await readPolicy(policy), vouchers, maxAge });
        if (url !== undefined)
          throw new UsageError("--url needs --policy: a policy of the audited service proves nothing.");
        if (policy !== undefined || vouchers.length > 0) throw new UsageError("--policy and --voucher need --url.");
        await withServers(interaction, auditDatabase);
      },
    }),
    backfill: verb({
      description: "add the events that were sealed before the log began",
      async run(ctx) {
        const progress = ctx.progress("Added", "events", await countIssuedVouchers(ctx.pool));
        const advance = (soFar: number) => {
          ctx.signal.throwIfAborted();
          progress.advance(soFar);
        };
        const events = await confirmed(ctx.pool, () => backfillTlog(ctx, advance));
        ctx.print({ events }, () => `Added ${pluralize(events, "event")} to the log.`);
      },
    }),
    export: verb({
      description: "write the served log as files that any web server can serve",
      options: { to: required("<directory>", "where to") },
      examples: ["--to /var/www/log"],
      async run(ctx, { to }) {
        const size = await exportTlog(ctx.pool, to);
        ctx.print({ size }, () => `Wrote ${leavesOf(size)} to ${to}.`);
      },
    }),
    recover: verb({
      description: "restore the part of the log that a restored database lacks, from a copy",
      options: { from: required("<copy>", "a monitor's or an export's directory, or the address of a cache") },
      help: `Reads LOG_KEY_FILE and LOG_ANCHOR. Events that this database still has keep
their leaves. The leaves of the others are recorded as lost. Once no leaf is
missing, processes admit a server that they refused as set back.`,
      examples: ["--from /srv/mirror", "--from https://mirror.example.net/log"],
      async run(ctx, { from }) {
        const recovered = await confirmed(ctx.pool, async () =>
          recoverTlog(ctx, await readSettings(ctx), openLogSource(from)),
        );
        const { firstIndex, leaves, lost, added, missing } = recovered;
        const lostLeaves = lost.reduce((sum, run) => sum + run.leaves, 0);
        ctx.print(recovered, () =>
          [
            `Recovered ${leavesOf(leaves)} from ${formatCount(firstIndex)} on, and added ${formatCount(added)} ` +
              "that only this database had.",
            lost.length > 0 && `This database has lost the events of ${leavesOf(lostLeaves)}:`,
            ...lost.map((run) => `  ${run.firstIndex} to ${run.firstIndex + run.leaves - 1}`),
            missing > 0 &&
              `An anchor has ${pluralize(missing, "more leaf", "more leaves")}. Recover them from another copy. ` +
                "If there is none: voucherctl log retire --accept-loss",
          ]
            .filter(Boolean)
            .join("\n"),
        );
      },
    }),
    retire: verb({
      description: "end a log, and go on with its tree under a new name and key",
      argument: ["<origin>", "the name of the log that ends"],
      options: {
        yes: YES,
        reason: required("<text>", "why, for the record"),
        to: required("<directory>", "a new directory for the export of the log"),
        checkpoint: option("<file>", "an anchor or another checkpoint of the log; repeatable", collect),
        acceptLoss: flag("retire the log even if this database lacks leaves that it has signed"),
      },
      help: `Use it when the key leaked or was lost, when the log needs a new name, or when
no copy has some of its leaves. Stop the workers of the log first, and connect
as the owner of the database. LOG_KEY_FILE is a new key with a new name,
LOG_ANCHOR a new file, and LOG_POLICY names the new key. All events keep their
leaves. Run it again if it was interrupted.`,
      examples: ['vouchers.example.com/log --reason "key leaked" --checkpoint log.anchor --to log-1'],
      async run(ctx, { reason, to, checkpoint = [], acceptLoss = false, yes }, origin) {
        const settings = await readSettings(ctx);
        await confirmLoss(ctx, yes, `This permanently ends the log ${origin}.`);
        await assertNoTlogWorker(ctx);
        const checkpoints = checkpoint.map((file) => ({ file, text: readText(file, FILE_MAX) }));
        const retired = await confirmed(ctx.pool, () =>
          retireTlog(ctx, settings, { origin, reason, directory: to, checkpoints, acceptLoss }),
        );
        const { nextOrigin, size, exported, lastSize, anchorsWritten } = retired;
        ctx.print(retired, () =>
          [
            `${origin} is retired. ${nextOrigin} goes on with its ${leavesOf(size)}.`,
            `Leaf ${formatCount(size)} is the hash of the last checkpoint, which has ${leavesOf(lastSize)}: ` +
              `${to}/last-checkpoint.`,
            `Exported ${leavesOf(exported)} to ${to}.`,
            ...anchorsWritten.map(describeAnchor),
          ].join("\n"),
        );
        ctx.next("start the workers of the log with the new key, and give partners the new policy");
      },
    }),
    monitor: verbWithoutServers({
      description: "check that a log continues what was seen before; exit status 1 when it contradicts that",
      argument: ["<url>", "the log's address, such as https://vouchers.example.com/log"],
      options: {
        policy: required("<file>", "your own copy of the policy"),
        state: required("<directory>", "remembers the last checkpoint"),
        keep: flag("also keep every leaf: a copy to recover the log from"),
        receipt: option("<file>", "a receipt that must be in the log; repeatable", collect),
        retired: option("<origin>", "the log seen before, when it was retired and this one goes on"),
        maxAge: option("<seconds>", MAX_AGE_HELP, SECONDS, COSIGNATURE_MAX_AGE),
      },
      help: "Needs no database. Run it regularly, for example by cron.",
      examples: ["https://vouchers.example.com/log --policy policy --state seen --keep"],
      async run(ctx, { policy, keep = false, receipt = [], ...options }, url) {
        const source = openLogSource(url);
        const given = { ...options, source, keep, policy: await readPolicy(policy) };
        const monitored = await monitorLog({ ...given, receipts: receipt.map((file) => readText(file, FILE_MAX)) });
        const { origin, size, before, receipts, cosignedAge } = monitored;
        const seen = `${origin} has ${leavesOf(size)} and continues the ${formatCount(before)} seen before.`;
        const checked = `${pluralize(receipts, "receipt")} checked.`;
        ctx.print(monitored, () => `${seen} ${checked} ${describeAge(cosignedAge)}`);
      },
    }),
  },
};

const describeAnchor = (file: string) => `Wrote the anchor ${file}.`;

/**
 * Refuses while a worker of the queue `log` runs, because it could sign one more checkpoint before the log refuses its
 * key. Without REDIS_URL, the command cannot check this.
 */
async function assertNoTlogWorker(ctx: CommandContext): Promise<void> {
  const { redisUrl, log } = ctx;
  if (redisUrl === null) return;
  const isWorking = await withRedis({ redisUrl, log }, async (redis) => {
    const { hasWorker } = await import("../../platform/queues/read-shards.ts");
    return hasWorker(redis, await readDeploymentId(ctx.pool), "log", ctx.queueShards);
  });
  if (isWorking) throw new AppError("invalid_request", "A worker of the queue log is running. Stop all of them first.");
}

/** Reads the log's settings from the environment. @throws ConfigError, TlogSettingsError */
async function readSettings(ctx: Pick<CommandContext, "host">): Promise<TlogSettings> {
  const config = tlogVariables.of(readWingConfig(ctx.host.readEnvironment(), tlogVariables));
  const { keyFile } = config;
  if (keyFile === null) throw new TlogSettingsError("LOG_KEY_FILE is not set.");
  return readTlogSettings({ ...config, keyFile });
}
