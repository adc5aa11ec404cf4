import { openLogSource } from "#tlog/log-source.ts";
import type { Policy } from "#tlog/policy.ts";
import { describeAge } from "#tlog/report.ts";
import type { CommandContext, Interaction } from "../../cli/command.ts";
import { EXIT } from "../../cli/exit-code.ts";
import { formatCount, paint, pluralize } from "../../cli/format.ts";
import { readWingConfig } from "../../platform/config.ts";
import { onSnapshot } from "../../platform/db/transaction.ts";
import { askOutside, auditTlog } from "../audit-log.ts";
import { auditServedTlog } from "../audit-served-log.ts";
import { findTlogTree } from "../db/log-tree.ts";
import { tlogVariables } from "../declared.ts";
import { readPolicy } from "./receipt.ts";

export async function auditDatabase(ctx: CommandContext): Promise<void> {
  const progress = ctx.progress("Compared", "events", (await findTlogTree(ctx.pool))?.size ?? 0);
  const { anchors, policyFile } = tlogVariables.of(readWingConfig(ctx.host.readEnvironment(), tlogVariables));
  const begun = await askOutside(ctx.pool, anchors, policyFile === null ? null : await readPolicy(policyFile));
  const onEvents = (events: number) => {
    ctx.signal.throwIfAborted();
    progress.advance(events);
  };
  const audit = await onSnapshot(ctx.pool, (tx) => auditTlog(tx, onEvents, begun));
  printAudit(
    ctx,
    audit,
    `${pluralize(audit.leaves, "leaf", "leaves")}, ${pluralize(audit.events, "event")}, \
${formatCount(audit.waiting)} waiting, ${formatCount(audit.erased)} erased, ${formatCount(audit.lost)} lost, \
${pluralize(audit.retirements, "retired log")}.
Compared with ${pluralize(audit.anchors, "anchor")} and ${pluralize(audit.witnesses, "witness", "witnesses")}; \
${formatCount(audit.silentWitnesses)} did not answer`,
  );
}

export async function auditUrl(
  ctx: Interaction,
  url: string,
  options: { policy: Policy; vouchers: string[]; maxAge: number },
): Promise<void> {
  const address = url.replace(/\/$/, "");
  const progress = ctx.progress("Read", "leaves", 0);
  const audit = await auditServedTlog({
    log: openLogSource(`${address}/log`),
    histories: openLogSource(`${address}/integrity/events`),
    ...options,
    onLeaves: (leaves) => {
      ctx.signal.throwIfAborted();
      progress.advance(leaves);
    },
  });
  const events =
    options.vouchers.length === 0
      ? "no voucher named"
      : `${pluralize(audit.events, "public event")} compared, ${formatCount(audit.waiting)} waiting`;
  printAudit(
    ctx,
    audit,
    `${audit.origin}: ${pluralize(audit.leaves, "leaf", "leaves")}, ${pluralize(audit.tiles, "tile")}, ${events}. ` +
      `${describeAge(audit.cosignedAge)} In all`,
  );
}

function printAudit(ctx: Interaction, audit: { problems: string[]; problemCount: number }, summary: string): void {
  ctx.print(audit, () =>
    [
      ...audit.problems.map((problem) => `${paint("red", "WRONG")} ${problem}`),
      `${summary}: ${pluralize(audit.problemCount, "problem")}.`,
    ].join("\n"),
  );
  if (audit.problemCount > 0) process.exitCode = EXIT.refused;
}
