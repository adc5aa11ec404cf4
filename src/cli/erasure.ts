import { readFileSync } from "node:fs";
import { type ErasedPerson, type ErasureResult, erasePerson } from "../acts/erase-person.ts";
import { listErasures, parseErasures, replayErasures } from "../acts/replay-erasures.ts";
import { confirmLoss, type Noun, verb } from "./command.ts";
import { UsageError } from "./exit-code.ts";
import { formatCount, formatTable, formatUtc, pluralize } from "./format.ts";
import { name, option, subject, time, YES } from "./options.ts";

export const person: Noun = {
  name: "person",
  description: "what identifies a person",
  verbs: {
    erase: verb({
      description: "erase what identifies a user, or the customer of an order or a voucher, permanently",
      options: {
        user: option("<subject>", "the subject of the user's tokens", subject),
        ref: option("<reference>", "a partner's reference, together with --org"),
        org: option("<id>", "the organization of --ref"),
        voucher: option("<id>", "one voucher, by its id"),
        reason: option("<reason>", "why; kept in the vouchers' sealed histories, so it must name no person", name),
        yes: YES,
      },
      help: "Hashes, times, amounts and codes stay. References are replaced, so that retries are still recognized.",
      examples: ["--user 7f3c… --yes", '--org org_… --ref order-20261121-0007 --reason "asked by the customer"'],
      async run(ctx, { user, org, ref, voucher, reason = null, yes }) {
        const person = personOf({ user, org, ref, voucher });
        await confirmLoss(ctx, yes, "This permanently erases what identifies the person.");
        const erased = await erasePerson(ctx, person, reason, () => ctx.signal.throwIfAborted());
        ctx.print(erased, () => describe(erased));
      },
    }),
  },
};

export const erasure: Noun = {
  name: "erasure",
  description: "erasures, to repeat them after a restore",
  verbs: {
    list: verb({
      description: "list what was erased, by ids and replaced texts: keep it with the backups",
      options: { since: option("<time>", "only erasures from this time on", time("start")) },
      examples: ["--since 2026-11-01 --json"],
      async run(ctx, { since = new Date(0) }) {
        const found = await listErasures(ctx, since);
        const rows = found.items.map(({ voucherId, sequences, erasedAt }) => ({
          cells: [formatUtc(new Date(erasedAt)), voucherId, sequences.join(", ")],
        }));
        ctx.print(found, () => formatTable(["TIME (UTC)", "VOUCHER", "EVENTS"], rows, "Nothing was erased."));
      },
    }),
    "replay <file>": verb({
      description: "erase again what erasure list --json has listed, after a restore",
      options: { yes: YES },
      examples: ["erasures.json --yes"],
      async run(ctx, { yes }, file) {
        const erasures = parseErasures(readFileSync(file, "utf8"));
        await confirmLoss(ctx, yes, `This permanently erases what ${file} lists.`);
        const { vouchers, events } = await replayErasures(ctx, erasures, () => ctx.signal.throwIfAborted());
        ctx.print({ vouchers, events }, () => describe({ vouchers, events }));
      },
    }),
  },
};

function personOf(given: { user?: string; org?: string; ref?: string; voucher?: string }): ErasedPerson {
  const { user, org, ref, voucher } = given;
  if ([user, ref, voucher].filter((one) => one !== undefined).length !== 1)
    throw new UsageError("Give one of --user, --ref with --org, or --voucher.");
  if (user !== undefined) return { by: "user", userId: user };
  if (voucher !== undefined) return { by: "voucher", voucherId: voucher };
  if (org === undefined || ref === undefined) throw new UsageError("--ref needs --org.");
  return { by: "reference", organizationId: org, externalRef: ref };
}

function describe({ vouchers, events, references }: Partial<ErasureResult>): string {
  const texts = references === undefined ? "" : `, and ${formatCount(references)} other texts`;
  return `Erased ${pluralize(events ?? 0, "event")} of ${pluralize(vouchers ?? 0, "voucher")}${texts}.`;
}
