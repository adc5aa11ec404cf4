import { isDeepStrictEqual } from "node:util";
import type { Command } from "commander";
import { type AdminAct, selectActs } from "../db/admin-acts.ts";
import { action } from "./command.ts";
import { showMoment } from "./figures.ts";
import { layTable, type TableRow } from "./layout.ts";
import { integer } from "./option-parsers.ts";

/** Most acts that are listed at once. */
const LIMIT_MAX = 10_000;
const LIMIT = 20;

/** `audit`: what administration did. */
export function addAuditCommands(program: Command): void {
  const audit = program.command("audit").description("what was done with these commands, by whom and when");
  action<{ limit: number; entity?: string }>(
    audit
      .command("list")
      .description("show recorded acts, the newest first")
      .option("--limit <n>", "how many", integer(1, LIMIT_MAX), LIMIT)
      .option("--entity <id>", "only what was done to this organization, key, batch, …"),
    ["audit list", "audit list --entity key_…", "audit list --limit 1000 --json"],
    async (ctx, options) => {
      const acts = await selectActs(ctx.pool, options.entity ?? null, options.limit);
      await ctx.print({ acts }, () =>
        acts.length === 0 ? "Nothing is recorded." : layTable(["WHEN (UTC)", "WHAT", "TO WHAT"], acts.map(toRow)),
      );
    },
  );
}

function toRow(act: AdminAct): TableRow {
  const { entity, more } = nameEntity(act);
  const change = [describeChange(act), more].filter(Boolean).join("; ");
  return {
    cells: [showMoment(act.at), act.command, entity],
    note: `by ${act.osUser}@${act.host}: ${change}`,
  };
}

/** An entity in the width of an id, and what that leaves out. */
function nameEntity({ entityType, entityId }: AdminAct): { entity: string; more?: string } {
  switch (entityType) {
    case "ReferralLink":
      return { entity: `link ${entityId.slice(0, 12)}…` };
    case "Member": {
      const slash = entityId.indexOf("/");
      return { entity: entityId.slice(slash + 1), more: `organization ${entityId.slice(0, slash)}` };
    }
    default:
      return { entity: entityId };
  }
}

/** What is different afterwards; of something new, what it is. */
function describeChange({ before, after }: Pick<AdminAct, "before" | "after">): string {
  const names = Object.keys({ ...before, ...after }).filter((name) => !MOMENTS_OF_ACTS.includes(name));
  if (before === null || after === null) {
    const whole = before ?? after ?? {};
    return names
      .filter((name) => showValue(whole[name]) !== NONE)
      .map((name) => `${showName(name)} ${showValue(whole[name])}`)
      .join("; ");
  }
  return names
    .filter((name) => !isDeepStrictEqual(before[name], after[name]))
    .map((name) => `${showName(name)} ${showChange(before[name], after[name])}`)
    .join("; ");
}

/** More entries than this are counted instead of named. */
const ENTRIES_MAX = 6;

/** Of a list, what came and went; of anything else, what it was and is. */
function showChange(before: unknown, after: unknown): string {
  if (!Array.isArray(before) || !Array.isArray(after)) return `${showValue(before)} → ${showValue(after)}`;
  const came = after.filter((entry) => !before.includes(entry));
  const went = before.filter((entry) => !after.includes(entry));
  if (came.length + went.length > ENTRIES_MAX) return `+${came.length} −${went.length}`;
  return [...came.map((entry) => `+${showValue(entry)}`), ...went.map((entry) => `−${showValue(entry)}`)].join(" ");
}

/** What an act's own moment says already. */
const MOMENTS_OF_ACTS = ["createdAt", "offeredAt", "changedAt"];

/** `organizationId` in words: what follows is the id. */
function showName(name: string): string {
  return name.replace(/Id$/, "").replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
}

const NONE = "none";

function showValue(value: unknown): string {
  if (Array.isArray(value)) return value.map(showValue).join(" ") || NONE;
  if (value === null || value === undefined) return NONE;
  if (typeof value === "string" && /^\d{4}-\d\d-\d\dT/.test(value)) return showMoment(new Date(value));
  return String(value);
}
