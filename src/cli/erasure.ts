import { readFileSync } from "node:fs";
import type { ReplayResult } from "../acts/erase-person.ts";
import { erase } from "../acts/person/erase.ts";
import { findPersonProblem } from "../acts/person/named-person.ts";
import { showPerson } from "../acts/person/show.ts";
import { listErasures, parseErasures, replayErasures } from "../acts/replay-erasures.ts";
import { type CommandFace, verbOf } from "./act-verb.ts";
import { confirmLoss, type Noun, verb } from "./command.ts";
import { formatTable, formatUtc, pluralize } from "./format.ts";
import { option, time, YES } from "./options.ts";

/** How a command line names a person through a voucher. */
const BY_VOUCHER: CommandFace<never> = {
  options: { voucher: option("<id>", "one voucher, by its id") },
  findProblem: (options) => findPersonProblem(options),
  target: { argument: "", find: async (_ctx, { voucher = "" }) => String(voucher) },
};

export const person: Noun = {
  name: "person",
  description: "what identifies a person",
  verbs: { ...verbOf(showPerson, BY_VOUCHER), ...verbOf(erase, BY_VOUCHER) },
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
          cells: [formatUtc(new Date(erasedAt)), voucherId, sequences.join(", ") || "only reasons"],
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
        const done = await replayErasures(ctx, erasures, () => ctx.signal.throwIfAborted());
        ctx.print({ vouchers: done.vouchers, events: done.events }, () => describe(done));
      },
    }),
  },
};

function describe({ vouchers, events, otherEvents }: ReplayResult): string {
  const done = `Erased ${pluralize(events, "event")} of ${pluralize(vouchers, "voucher")}.`;
  const left = `Left ${pluralize(otherEvents, "listed event")} that occurred after the erasure.`;
  return otherEvents === 0 ? done : `${done} ${left}`;
}
