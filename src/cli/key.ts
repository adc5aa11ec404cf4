import { isIP } from "node:net";
import { type Command, InvalidArgumentError, Option } from "commander";
import { selectKeys } from "../db/api-keys.ts";
import { findOrganization } from "../db/catalogue.ts";
import { makeAllowlist, SCOPES, type Scope } from "../domain/api-keys.ts";
import { AppError } from "../domain/errors.ts";
import { createKey, endKey, rotateKey } from "../services/manage-keys.ts";
import { action, duration, isoDate, name } from "./command.ts";

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
      .option("--allow-ip <cidr>", "address or network it may be used from; repeatable", network, [])
      .option("--expires <moment>", "when it stops working", isoDate)
      .option("--label <label>", "a name for people", name),
    async (ctx, options) => {
      const shown = await createKey(ctx, {
        organizationId: options.org ?? null,
        label: options.label ?? null,
        scopes: options.scope,
        allowIps: options.allowIp,
        expiresAt: options.expires ?? null,
      });
      ctx.print(shown, `Key ${shown.id}\n${shown.key}\nKeep it now: it is stored nowhere.`);
    },
  );
  action<{ org: string }>(
    key
      .command("list")
      .description("show an organization's keys, without their secrets")
      .requiredOption("--org <id>", "the organization"),
    async (ctx, options) => {
      if ((await findOrganization(ctx.pool, options.org)) === null) {
        throw new AppError("not_found", `There is no organization ${options.org}.`);
      }
      const keys = await selectKeys(ctx.pool, options.org);
      const words = keys.map((listed) => {
        const state =
          listed.revokedAt !== null
            ? "revoked"
            : listed.expiresAt !== null && listed.expiresAt <= new Date()
              ? "expired"
              : "works";
        return `${listed.id}  ${state}  ${listed.scopes.join(" ")}  ${listed.label ?? ""}`;
      });
      ctx.print({ keys }, words.join("\n") || "No keys.");
    },
  );
  action(
    key.command("revoke <id>").description("end a key for good; it stops working everywhere within a second"),
    async (ctx, _options, id = "") => {
      await endKey(ctx, id);
      ctx.print({ id, revoked: true }, `Key ${id} is revoked.`);
    },
  );
  action<{ grace: number }>(
    key
      .command("rotate <id>")
      .description("give a key a new secret; it is shown this once")
      .addOption(
        new Option("--grace <duration>", "how long the old secret still works")
          .argParser(duration)
          .default(duration("24h"), "24h"),
      ),
    async (ctx, options, id = "") => {
      const shown = await rotateKey(ctx, id, options.grace);
      ctx.print(shown, `Key ${shown.id}\n${shown.key}\nKeep it now: it is stored nowhere.`);
    },
  );
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
