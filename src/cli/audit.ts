import { isDeepStrictEqual } from "node:util";
import { type AuditEntry, selectAuditEntries } from "../acts/db/audit-entries.ts";
import { type Noun, verb } from "./command.ts";
import { formatDuration, formatTable, formatUtc, type TableRow } from "./format.ts";
import { integer, option } from "./options.ts";

/** Maximum number of entries in one list. */
const LIMIT_MAX = 10_000;
const LIMIT_DEFAULT = 20;

export const audit: Noun = {
  name: "audit",
  description: "what was changed with these commands, by whom and when",
  verbs: {
    list: verb({
      description: "list audit entries, newest first",
      options: {
        limit: option("<n>", "number of entries", integer(1, LIMIT_MAX), LIMIT_DEFAULT),
        entity: option("<id>", "only changes of this organization, key, batch, …"),
        user: option("<name>", "only changes by this operator or user"),
      },
      examples: ["", "--entity key_…", "--user zoe", "--limit 1000 --json"],
      async run(ctx, { entity = null, user = null, limit }) {
        const acts = await selectAuditEntries(ctx.pool, { entityId: entity, user, limit });
        const headings = ["TIME (UTC)", "BY", "COMMAND", "ENTITY"];
        ctx.print({ acts }, () => formatTable(headings, acts.map(toRow), "There are no audit entries."));
      },
    }),
  },
};

function toRow(entry: AuditEntry): TableRow {
  const [entity, more] = nameEntity(entry);
  const change = [describeChange(entry), more].filter(Boolean).join("; ");
  // Omits the usual way of identification, `command`.
  const known = entry.by === null || entry.by === "command" ? "" : ` (${entry.by})`;
  const by = `${entry.osUser}@${entry.host}${known}`;
  return { cells: [formatUtc(entry.at), by, entry.command, entity], note: change };
}

function nameEntity({ entityType, entityId }: AuditEntry): [name: string, more?: string] {
  if (entityType === "ReferralLink") return [`link ${entityId.slice(0, 12)}…`];
  if (entityType !== "Member") return [entityId];
  const slash = entityId.indexOf("/");
  return [entityId.slice(slash + 1), `organization ${entityId.slice(0, slash)}`];
}

/** The changes as text: the changed fields or, for a new or removed entity, all fields that have a value. */
function describeChange({ before, after }: Pick<AuditEntry, "before" | "after">): string {
  const names = Object.keys({ ...before, ...after }).filter((name) => !ENTRY_TIMES.includes(name));
  if (before === null || after === null) {
    const whole = before ?? after ?? {};
    return names
      .filter((name) => formatValue(whole[name]) !== NONE)
      .map((name) => `${formatName(name)} ${formatValue(whole[name])}`)
      .join("; ");
  }
  return names
    .filter((name) => !isDeepStrictEqual(before[name], after[name]))
    .map((name) => CHANGE[name]?.(after[name]) ?? `${formatName(name)} ${formatChange(before[name], after[name])}`)
    .join("; ");
}

/** For some fields, a text that explains the change better than the name and the values. */
const CHANGE: Record<string, (after: unknown) => string> = {
  advancedSeconds: (seconds) => `times advanced by ${formatDuration(Number(seconds) * 1_000)}`,
  secretsExpireAt: (times) =>
    `old secrets work until ${formatValue((times as (string | null)[]).filter(Boolean).sort().at(-1))}`,
  queueKeys: () => "keys of the queues deleted",
};

/** Maximum number of items that are listed. A change of more items is shown as counts. */
const ITEMS_MAX = 6;

/** The items that were added to a list and removed from it. For other values, the old and the new value. */
function formatChange(before: unknown, after: unknown): string {
  // The field may have had no value before the change.
  if (before === undefined) return formatValue(after);
  if (!Array.isArray(before) || !Array.isArray(after)) return `${formatValue(before)} → ${formatValue(after)}`;
  const added = after.filter((item) => !before.includes(item));
  const removed = before.filter((item) => !after.includes(item));
  if (added.length + removed.length > ITEMS_MAX) return `+${added.length} −${removed.length}`;
  return [...added.map((item) => `+${formatValue(item)}`), ...removed.map((item) => `−${formatValue(item)}`)].join(" ");
}

/** Fields that repeat the time of the audit entry. */
const ENTRY_TIMES = ["createdAt", "offeredAt", "changedAt"];

/** A field's name as words, without `Id`: `organizationId` becomes `organization`. */
function formatName(name: string): string {
  return name.replace(/Id$/, "").replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
}

const NONE = "none";

function formatValue(value: unknown): string {
  if (Array.isArray(value)) return value.map(formatValue).join(" ") || NONE;
  if (value === null || value === undefined) return NONE;
  if (typeof value === "string" && /^\d{4}-\d\d-\d\dT/.test(value)) return formatUtc(new Date(value));
  if (typeof value !== "object") return String(value);
  const parts = Object.entries(value).map(([name, part]) => `${formatName(name)} ${formatValue(part)}`);
  return parts.join(", ") || NONE;
}
