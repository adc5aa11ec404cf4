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
  const { id, state, revokedAt, expiresAt, lastUsedAt, scopes, label, allowIps } = key;
  const expired = state === "Expired" || (state === "Revoked" && expiresAt !== null && expiresAt <= new Date());
  const note = [
    revokedAt && `revoked ${formatUtcWithZone(revokedAt)}`,
    expiresAt && `${expired ? "expired" : "expires"} ${formatUtcWithZone(expiresAt)}`,
    revokedAt === null && !expired && describeSecrets(key),
    allowIps.length > 0 && `from ${allowIps.join(", ")}`,
    hasCap(key) && `${sayCaps(key)}, ${sayToday(key)}`,
  ].filter(Boolean);
  const allows = scopes.map((name) => name.replace("voucher.", "")).join(" ");
  return {
    cells: [id, paint(STATE_STYLE[state], state.toLowerCase()), allows, formatUse(lastUsedAt), label ?? ""],
    note: note.join("; "),
  };
}

/**
 * Shows whether a rotation is complete: the last use of a key's current and previous secrets, while a previous one is
 * valid.
 */
function describeSecrets({ currentSecretUsedAt, oldSecretsUsedAt, oldSecretsUntil }: ListedKey): string | null {
  if (oldSecretsUntil === null) return null;
  const until = `a previous secret is valid until ${formatUtcWithZone(oldSecretsUntil)}`;
  return `${until}, last used: ${formatUse(oldSecretsUsedAt)}; the new one: ${formatUse(currentSecretUsedAt)}`;
}

const formatUse = (usedAt: Date | null) =>
  usedAt === null ? "never" : `${formatDuration(Date.now() - usedAt.getTime())} ago`;
