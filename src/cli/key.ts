import { hasCap, sayCaps, sayToday } from "../acts/key/change.ts";
import { readKeys } from "../acts/read-keys.ts";
import type { ListedKey } from "../core/keys/db/api-keys.ts";
import { type Noun, verb } from "./command.ts";
import { formatDuration, formatTable, formatUtcWithZone, paint, type TableRow } from "./format.ts";
import { ORG } from "./options.ts";

export const key: Noun = {
  name: "key",
  description: "API keys of partners",
  verbs: {
    list: verb({
      description: "list an organization's keys, without their secrets",
      options: { org: ORG },
      examples: ["--org org_…"],
      async run(ctx, { org }) {
        const { keys, ...mark } = await readKeys(ctx, org);
        const headings = ["ID", "STATE", "SCOPES", "LAST USED", "LABEL"];
        ctx.print({ keys, ...mark }, () => formatTable(headings, keys.map(toRow), "No keys."));
      },
    }),
  },
};

const STATE_STYLE = { Active: "green", Expired: "yellow", Revoked: "red" } as const;

function toRow(key: ListedKey): TableRow {
  const { id, state, revokedAt, expiresAt, lastUsedAt, oldSecretsUntil, scopes, label, allowIps } = key;
  const expired = state === "Expired" || (state === "Revoked" && expiresAt !== null && expiresAt <= new Date());
  const note = [
    revokedAt && `revoked ${formatUtcWithZone(revokedAt)}`,
    expiresAt && `${expired ? "expired" : "expires"} ${formatUtcWithZone(expiresAt)}`,
    oldSecretsUntil &&
      revokedAt === null &&
      !expired &&
      `a previous secret is valid until ${formatUtcWithZone(oldSecretsUntil)}`,
    allowIps.length > 0 && `from ${allowIps.join(", ")}`,
    hasCap(key) && `${sayCaps(key)}, ${sayToday(key)}`,
  ].filter(Boolean);
  const allows = scopes.map((name) => name.replace("voucher.", "")).join(" ");
  const used = lastUsedAt === null ? "never" : `${formatDuration(Date.now() - lastUsedAt.getTime())} ago`;
  return {
    cells: [id, paint(STATE_STYLE[state], state.toLowerCase()), allows, used, label ?? ""],
    note: note.join("; "),
  };
}
