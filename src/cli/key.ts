import { InvalidArgumentError, Option } from "commander";
import type { ListedKey } from "../db/api-keys.ts";
import { isNetwork, SCOPES, type Scope } from "../domain/api-keys.ts";
import { createKey, endKey, readKeys, rotateKey, type ShownKey } from "../services/admin/manage-keys.ts";
import { action, type Noun } from "./command.ts";
import { confirmLoss, withYes } from "./confirm.ts";
import { formatDuration, formatUtcWithZone } from "./format.ts";
import { formatSecret, formatTable, type TableRow } from "./layout.ts";
import { duration, isoDate, name, repeatable } from "./option-parsers.ts";
import { paint } from "./paint.ts";

interface CreateOptions {
  org?: string;
  scope: Scope[];
  allowIp: string[];
  expires?: Date;
  label?: string;
}

export const key: Noun = {
  name: "key",
  description: "API keys of partners",
  addVerbs(noun) {
    action<CreateOptions>(
      noun
        .command("create")
        .description("create a key; its secret is shown only once")
        .option("--org <id>", "its organization; without one, every request with the key is refused")
        .requiredOption(
          "--scope <scope>",
          `what it allows; repeatable: ${SCOPES.join(", ")}`,
          repeatable("scope", SCOPES),
        )
        .addOption(
          new Option("--allow-ip <cidr>", "address or network it is accepted from; repeatable")
            .argParser(network)
            .default([], "any address"),
        )
        .option("--expires <time>", "when it expires", isoDate)
        .option("--label <label>", "a name for your own use", name),
      [
        'key create --org org_… --scope voucher.read --scope voucher.redeem --label "till 1"',
        "key create --org org_… --scope voucher.read --allow-ip 192.0.2.0/24 --expires 2027-12-31",
      ],
      async (ctx, options) => {
        const shown = await createKey(ctx, {
          organizationId: options.org ?? null,
          label: options.label ?? null,
          scopes: options.scope,
          allowIps: options.allowIp,
          expiresAt: options.expires ?? null,
        });
        const expired = options.expires !== undefined && options.expires <= new Date();
        ctx.print(shown, () => `${describeSecret(shown)}${expired ? "\nWarning: this key has already expired." : ""}`);
        ctx.next("try it: curl -s URL/partner/vouchers/CODE -H 'X-Api-Key: KEY'");
      },
    );
    action<{ org: string }>(
      noun
        .command("list")
        .description("list an organization's keys, without their secrets")
        .requiredOption("--org <id>", "the organization"),
      ["key list --org org_…"],
      async (ctx, options) => {
        const { keys, ...mark } = await readKeys(ctx, options.org);
        ctx.print({ keys, ...mark }, () =>
          keys.length === 0
            ? "No keys."
            : formatTable(["ID", "STATE", "SCOPES", "LAST USED", "LABEL"], keys.map(toRow)),
        );
      },
    );
    action<{ yes?: true }>(
      withYes(noun.command("revoke <id>")).description(
        "revoke a key permanently; it stops working everywhere within a second",
      ),
      ["key revoke key_…"],
      async (ctx, options, id = "") => {
        await confirmLoss(ctx, options, `This permanently revokes the key ${id}: every call with it is refused.`);
        await endKey(ctx, id);
        ctx.print({ id, revoked: true }, () => `Key ${id} is revoked.`);
      },
    );
    action<{ grace: number; yes?: true }>(
      withYes(noun.command("rotate <id>"))
        .description("give a key a new secret, which is shown only once")
        .addOption(
          new Option("--grace <duration>", "grace period: how long the previous secrets stay valid at most")
            .argParser(duration)
            .default(duration("24h"), "24h"),
        ),
      ["key rotate key_…", "key rotate key_… --grace 0s"],
      async (ctx, options, id = "") => {
        if (options.grace === 0) {
          await confirmLoss(ctx, options, `This ends the secrets of ${id} at once: every call with them is refused.`);
        }
        const shown = await rotateKey(ctx, id, options.grace);
        const old =
          options.grace === 0
            ? "Previous secrets are no longer valid."
            : `Previous secrets are valid until ${formatUtcWithZone(shown.oldSecretsUntil)}.`;
        ctx.print(shown, () => `${describeSecret(shown)}\n${old}`);
      },
    );
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
    ...(revokedAt === null ? [] : [`revoked ${formatUtcWithZone(revokedAt)}`]),
    ...(expiresAt === null ? [] : [`${expired ? "expired" : "expires"} ${formatUtcWithZone(expiresAt)}`]),
    ...(oldSecretsUntil === null || revokedAt !== null || expired
      ? []
      : [`a previous secret is valid until ${formatUtcWithZone(oldSecretsUntil)}`]),
    ...(allowIps.length === 0 ? [] : [`from ${allowIps.join(", ")}`]),
  ];
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
