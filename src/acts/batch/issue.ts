import { z } from "zod";
import { AUDIENCES } from "../../core/voucher/voucher.ts";
import { count, sandbox, text as shown } from "../../platform/api/fields.ts";
import { problemIn } from "../../platform/api/problems.ts";
import { act, problemWith } from "../act.ts";
import { choice, choices, flag, integer, optional, time } from "../fields.ts";
import { COUNT_MAX, type IssuedVoucher, writeBatch } from "../issue-batch.ts";
import type { ReadLines } from "../printed-codes.ts";
import type { AuditContext } from "../with-audit-entry.ts";
import { formatCount, formatUtcWithZone, pluralize } from "../words.ts";

/** What a face may do with the codes of a new batch. */
export interface Codes {
  /** Printed codes to import instead of new ones. */
  codes?: ReadLines | null;
  /** Receives every chunk once it is written. The vouchers exist only after the act has ended. */
  onChunk?: (vouchers: readonly IssuedVoucher[]) => Promise<void> | void;
}

export const issueBatch = act({
  name: "batch issue",
  on: "product",
  creates: "batch",
  role: "admin",
  scope: "issuer",
  title: "Issue a batch of vouchers",
  about: "If it ends early, nothing is issued.",
  examples: [
    "--product prd_… --count 100000 --valid-until 2027-12-31 --out codes.csv",
    "--product prd_… --count 500 --valid-until 2027-12-31 --codes printed.txt",
    "--product prd_… --count 500 --valid-until 2027-12-31 --buy --audience ReferrerOnly",
  ],
  fields: {
    count: integer("Number of vouchers", 1, COUNT_MAX),
    validUntil: time("Valid until", "end", { future: true }),
    audience: choice("Who may claim or buy", AUDIENCES, {
      hint: "This cannot be changed later.",
      initial: "OpenToAll",
    }),
    windows: choices("Open to users", ["claim", "buy"], {
      hint: "None: only who has a code can use it.",
      initial: [],
      flags: { claim: "let users claim the vouchers, through a window", buy: "let users buy them, through a window" },
    }),
    opensAt: optional(time("Opens at", "start")),
    closesAt: optional(time("Closes at", "end", { future: true })),
    mayBePast: flag("issue them even if --valid-until or --closes-at is in the past", {
      option: "force",
      commandOnly: true,
    }),
  },
  rules({ windows, opensAt, closesAt, validUntil }, refuse) {
    const order = (field: "opensAt" | "closesAt", key: "earlierThan" | "laterThan", than: string) =>
      refuse(field, (nameOf) => problemWith(field, problemIn(key, nameOf(than))).say(nameOf));
    if (windows?.length === 0 && (opensAt || closesAt)) {
      refuse("windows", (nameOf) =>
        problemIn("needWindow", `${nameOf("opensAt")} and ${nameOf("closesAt")}`, nameOf("windows")),
      );
    }
    if (opensAt && opensAt >= validUntil) order("opensAt", "earlierThan", "validUntil");
    if (opensAt && closesAt && closesAt <= opensAt) order("closesAt", "laterThan", "opensAt");
  },
  progress: { doing: "Issuing", of: "vouchers", done: "issued" },
  result: z.object({
    id: shown("The batch's id."),
    count: count(1, "How many vouchers it has.", 500),
    firstSerial: count(1, "The first serial.", 1),
    lastSerial: count(1, "The last serial.", 500),
    sandbox,
  }),
  async run(ctx: AuditContext & Codes, productId, { windows: kinds, opensAt, closesAt, ...terms }, advance) {
    const { codes = null, onChunk } = ctx;
    const windows = Object.fromEntries(kinds.map((kind) => [kind, { opensAt, closesAt }]));
    return writeBatch(ctx, { ...terms, productId, windows, codes }, async (vouchers) => {
      advance(vouchers.at(-1)?.serial ?? 0, terms.count);
      await onChunk?.(vouchers);
    });
  },
  said: ({ id, firstSerial, lastSerial, sandbox: isSandbox }, { count: size, validUntil }) =>
    `${isSandbox ? "Sandbox batch" : "Batch"} ${id}: ${pluralize(size, "voucher")}, serials ` +
    `${formatCount(firstSerial)} to ${formatCount(lastSerial)}, valid until ${formatUtcWithZone(validUntil)}.`,
  next: ({ id }, { windows }) =>
    windows.includes("buy") ? `voucherctl listing create --batch ${id}` : `voucherctl batch show ${id}`,
});
