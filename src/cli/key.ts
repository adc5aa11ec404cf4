import { InvalidArgumentError } from "commander";
import { createKey, readKeys, rotateKey, type ShownKey } from "../acts/manage-keys.ts";
import { SCOPES } from "../core/keys/api-keys.ts";
import type { ListedKey } from "../core/keys/db/api-keys.ts";
import { isNetwork } from "../platform/addresses.ts";
import { confirmLoss, type Noun, verb } from "./command.ts";
import { formatDuration, formatSecret, formatTable, formatUtcWithZone, paint, type TableRow } from "./format.ts";
import { duration, name, ORG, option, repeatable, required, time, YES } from "./options.ts";

const GRACE_HELP = "grace period: how long the previous secrets stay valid at most";

export const key: Noun = {
  name: "key",
  description: "API keys of partners",
  verbs: {
    create: verb({
      description: "create a key; its secret is shown only once",
      options: {
        org: option("<id>", "its organization; without one, every request with the key is refused"),
        scope: required("<scope>", `what it allows; repeatable: ${SCOPES.join(", ")}`, repeatable("scope", SCOPES)),
        allowIp: option("<cidr>", "address or network it is accepted from; repeatable", network, [], "any address"),
        expires: option("<time>", "when it expires, or its last day", time("end")),
        label: option("<label>", "a name for your own use", name),
      },
      examples: [
        '--org org_… --scope voucher.read --scope voucher.redeem --label "till 1"',
        "--org org_… --scope voucher.read --allow-ip 192.0.2.0/24 --expires 2027-12-31",
      ],
      async run(ctx, { org = null, label = null, scope: scopes, allowIp: allowIps, expires: expiresAt = null }) {
        const shown = await createKey(ctx, { organizationId: org, label, scopes, allowIps, expiresAt });
        ctx.print(shown, () => describeSecret(shown));
        ctx.next("try it: curl -s URL/partner/vouchers/CODE -H 'X-Api-Key: KEY'");
      },
    }),
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
    "rotate <id>": verb({
      description: "give a key a new secret, which is shown only once",
      options: { yes: YES, grace: option("<duration>", GRACE_HELP, duration, duration("24h"), "24h") },
      examples: ["key_…", "key_… --grace 0s"],
      async run(ctx, { yes, grace }, id) {
        const atOnce = grace === 0;
        if (atOnce) {
          await confirmLoss(ctx, yes, `This ends the secrets of ${id} at once: every call with them is refused.`);
        }
        const shown = await rotateKey(ctx, id, grace);
        const old = atOnce ? "no longer valid" : `valid until ${formatUtcWithZone(shown.oldSecretsUntil)}`;
        ctx.print(shown, () => `${describeSecret(shown)}\nPrevious secrets are ${old}.`);
      },
    }),
  },
};

function describeSecret({ id, key, sandbox }: ShownKey): string {
  return `${sandbox ? "Sandbox key" : "Key"} ${id}\n${formatSecret(key)}`;
}

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
  ].filter(Boolean);
  const allows = scopes.map((name) => name.replace("voucher.", "")).join(" ");
  const used = lastUsedAt === null ? "never" : `${formatDuration(Date.now() - lastUsedAt.getTime())} ago`;
  return {
    cells: [id, paint(STATE_STYLE[state], state.toLowerCase()), allows, used, label ?? ""],
    note: note.join("; "),
  };
}

function network(text: string, previous: string[]): string[] {
  if (isNetwork(text)) return [...previous, text];
  throw new InvalidArgumentError("Give an IPv4 or IPv6 address or a network like 10.0.0.0/8.");
}
