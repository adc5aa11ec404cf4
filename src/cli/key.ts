import { isIP } from "node:net";
import { type Command, InvalidArgumentError, Option } from "commander";
import { type ListedKey, selectKeys } from "../db/api-keys.ts";
import { findOrganization } from "../db/catalogue.ts";
import { makeAllowlist, SCOPES, type Scope } from "../domain/api-keys.ts";
import { AppError } from "../domain/errors.ts";
import { createKey, endKey, rotateKey, type ShownKey } from "../services/manage-keys.ts";
import { action } from "./command.ts";
import { showDuration, showMomentUtc } from "./figures.ts";
import { layTable, type TableRow } from "./layout.ts";
import { duration, isoDate, name } from "./option-parsers.ts";
import { paint } from "./paint.ts";

interface CreateOptions {
  org?: string;
  scope: Scope[];
  allowIp: string[];
  expires?: Date;
  label?: string;
}

/** `key`: the partners' API keys. */
export function addKeyCommands(program: Command): void {
  const key = program.command("key").description("API keys of partners");
  action<CreateOptions>(
    key
      .command("create")
      .description("make a key; it is shown this once")
      .option("--org <id>", "the organization it is bound to; without one every call with it is refused")
      .requiredOption(`--scope <scope>`, `what it may do; repeatable: ${SCOPES.join(", ")}`, scope)
      .addOption(
        new Option("--allow-ip <cidr>", "address or network it may be used from; repeatable")
          .argParser(network)
          .default([], "any address"),
      )
      .option("--expires <moment>", "when it stops working", isoDate)
      .option("--label <label>", "a name for people", name),
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
      await ctx.print(shown, () => `${describeSecret(shown)}${expired ? "\nIt has expired already." : ""}`);
    },
  );
  action<{ org: string }>(
    key
      .command("list")
      .description("show an organization's keys, without their secrets")
      .requiredOption("--org <id>", "the organization"),
    ["key list --org org_…"],
    async (ctx, options) => {
      if ((await findOrganization(ctx.pool, options.org)) === null) {
        throw new AppError("not_found", `There is no organization ${options.org}.`);
      }
      const keys = await selectKeys(ctx.pool, options.org);
      await ctx.print({ keys }, () =>
        keys.length === 0 ? "No keys." : layTable(["ID", "STATE", "SCOPES", "LAST USED", "LABEL"], keys.map(toRow)),
      );
    },
  );
  action(
    key.command("revoke <id>").description("end a key for good; it stops working everywhere within a second"),
    ["key revoke key_…"],
    async (ctx, _options, id = "") => {
      await endKey(ctx, id);
      await ctx.print({ id, revoked: true }, () => `Key ${id} is revoked.`);
    },
  );
  action<{ grace: number }>(
    key
      .command("rotate <id>")
      .description("give a key a new secret; it is shown this once")
      .addOption(
        new Option("--grace <duration>", "how long secrets from before still work, at most")
          .argParser(duration)
          .default(duration("24h"), "24h"),
      ),
    ["key rotate key_…", "key rotate key_… --grace 0s"],
    async (ctx, options, id = "") => {
      const shown = await rotateKey(ctx, id, options.grace);
      const old =
        options.grace === 0
          ? "No secret from before works any more."
          : `Secrets from before work until ${showMomentUtc(shown.oldSecretsUntil)}.`;
      await ctx.print(shown, () => `${describeSecret(shown)}\n${old}`);
    },
  );
}

function describeSecret({ id, key }: ShownKey): string {
  return `Key ${id}\n${paint("bold", key)}\nKeep it now: it is stored nowhere and never shown again.`;
}

function toRow(key: ListedKey): TableRow {
  const { id, revokedAt, expiresAt, lastUsedAt, oldSecretsUntil, scopes, label, allowIps } = key;
  const expired = expiresAt !== null && expiresAt <= new Date();
  const state =
    revokedAt !== null ? paint("red", "revoked") : expired ? paint("yellow", "expired") : paint("green", "works");
  const note = [
    ...(revokedAt === null ? [] : [`revoked ${showMomentUtc(revokedAt)}`]),
    ...(expiresAt === null ? [] : [`${expired ? "ended" : "ends"} ${showMomentUtc(expiresAt)}`]),
    ...(oldSecretsUntil === null || revokedAt !== null || expired
      ? []
      : [`an old secret works until ${showMomentUtc(oldSecretsUntil)}`]),
    ...(allowIps.length === 0 ? [] : [`from ${allowIps.join(", ")}`]),
  ];
  // All scopes are about vouchers.
  const may = scopes.map((name) => name.replace("voucher.", "")).join(" ");
  const used = lastUsedAt === null ? "never" : `${showDuration(Date.now() - lastUsedAt.getTime())} ago`;
  return { cells: [id, state, may, used, label ?? ""], note: note.join("; ") };
}

function scope(text: string, before: Scope[] = []): Scope[] {
  const known = SCOPES.find((candidate) => candidate === text);
  if (known === undefined) throw new InvalidArgumentError(`Scopes are ${SCOPES.join(" and ")}.`);
  return [...new Set([...before, known])];
}

function network(text: string, before: string[]): string[] {
  const [address = "", bits, ...rest] = text.split("/");
  try {
    if (isIP(address) === 0 || rest.length > 0 || (bits !== undefined && !/^\d{1,3}$/.test(bits))) throw new Error();
    makeAllowlist([text]);
  } catch {
    throw new InvalidArgumentError("Give an IPv4 or IPv6 address or a network like 10.0.0.0/8.");
  }
  return [...before, text];
}
