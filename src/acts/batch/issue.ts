import { z } from "zod";
import { reference } from "../../core/voucher/api/typed-fields.ts";
import { normaliseReference } from "../../core/voucher/references.ts";
import { AUDIENCES, WINDOW_KINDS, type WindowKind } from "../../core/voucher/voucher.ts";
import { count, sandbox, text as shown, flag as told } from "../../platform/api/fields.ts";
import { problem, problemIn } from "../../platform/api/problems.ts";
import { act, problemWith } from "../act.ts";
import { findIssuedUnder } from "../db/issue-references.ts";
import { choice, choices, flag, integer, ofPrograms, optional, type Readable, time, type Values } from "../fields.ts";
import { COUNT_MAX, type IssuedVoucher, type IssueReference, ReferenceTaken, writeBatch } from "../issue-batch.ts";
import type { ReadLines } from "../printed-codes.ts";
import type { AuditContext } from "../with-audit-entry.ts";
import { formatCount, formatUtcWithZone, pluralize } from "../words.ts";

/** How an interface supplies the codes of a new batch, or receives them. */
export interface Codes {
  /** Printed codes to import. Without them, new codes are made. */
  codes?: ReadLines | null;
  /** Receives every chunk after it was written. The vouchers exist only after the act has ended. */
  onChunk?: (vouchers: readonly IssuedVoucher[]) => Promise<void> | void;
}

/** Maximum number of vouchers that a program issues in one call. */
const PROGRAM_COUNT_MAX = 100_000;

const OPENS_AT = optional(time("Opens at", "start", { onlyFor: "people" }));
const CLOSES_AT = optional(time("Closes at", "end", { future: true, onlyFor: "people" }));

const anObject = { error: problem("notObject") };
const windowOf = (kind: WindowKind) =>
  z
    .object(
      {
        opensAt: OPENS_AT.json.default(null).meta({ description: "When it opens; null: with the issue." }),
        closesAt: CLOSES_AT.json.default(null).meta({ description: "When it closes; null: when the vouchers expire." }),
      },
      anObject,
    )
    .optional()
    .meta({ description: `The window through which users ${kind}. Without it, they cannot.` });

const FIELDS = {
  // A program waits for the response, so it may issue fewer vouchers in one call than a command.
  count: { ...integer("Number of vouchers", 1, COUNT_MAX), json: integer("", 1, PROGRAM_COUNT_MAX).json },
  validUntil: time("Valid until", "end", { future: true }),
  audience: choice("Who may claim or buy", AUDIENCES, {
    hint: "This cannot be changed later.",
    initial: "OpenToAll",
  }),
  windows: choices("Open to users", WINDOW_KINDS, {
    hint: "None: only who has a code can use it.",
    initial: [],
    flags: { claim: "let users claim the vouchers, through a window", buy: "let users buy them, through a window" },
    onlyFor: "people",
  }),
  opensAt: OPENS_AT,
  closesAt: CLOSES_AT,
  mayBePast: flag("issue them even if --valid-until or --closes-at is in the past", {
    option: "force",
    commandOnly: true,
  }),
  windowsOfPrograms: ofPrograms(
    "The windows through which users may claim or buy",
    z.object({ claim: windowOf("claim"), buy: windowOf("buy") }, anObject).default({}),
    "windows",
  ),
  issueRef: ofPrograms(
    "Your reference",
    reference(
      "Your reference for the batch, such as the order's number. It issues at most one.",
      "order-20261121-0007",
    ),
  ),
};

/** The windows of a new batch, each with the name prefix of its time fields. */
function windowsOf(values: Readable<typeof FIELDS>) {
  const { windows = [], opensAt = null, closesAt = null, windowsOfPrograms = {} } = values;
  if (windowsOfPrograms === null) return windows.map((kind) => ({ kind, prefix: "" as const, opensAt, closesAt }));
  return WINDOW_KINDS.flatMap((kind) => {
    const given = windowsOfPrograms[kind];
    return given === undefined ? [] : [{ kind, prefix: `windows.${kind}.` as const, ...given }];
  });
}

const ISSUED = z.object({
  id: shown("The batch's id."),
  count: count(1, "How many vouchers it has.", 500),
  firstSerial: count(1, "The first serial.", 1),
  lastSerial: count(1, "The last serial.", 500),
  sandbox,
});

const ISSUED_UNDER_REFERENCE = ISSUED.extend({
  alreadyIssued: told("Whether the reference had issued this batch before. Then nothing was issued now.").meta({
    examples: [false],
  }),
  otherBatch: z.literal(true).optional().meta({
    description: "Present if the reference had issued a batch with other content than this request asks for.",
  }),
});

interface Issued extends z.output<typeof ISSUED> {
  /** Whether this batch was already issued under the reference. `otherBatch`: whether another batch was. */
  alreadyIssued: boolean;
  otherBatch?: true;
}

/** The reference in its stored form, with the call's `terms`. */
function referenceOf(productId: string, values: Values<typeof FIELDS>): IssueReference | null {
  const { issueRef, count: size, validUntil, audience, windowsOfPrograms: windows } = values;
  if (issueRef === null) return null;
  const terms = JSON.stringify({ productId, count: size, validUntil, audience, windows });
  return { issueRef: normaliseReference(issueRef), terms };
}

/** The batch that the organization has already issued under the reference. */
async function findFirst(
  { pool }: Pick<AuditContext, "pool">,
  productId: string,
  values: Values<typeof FIELDS>,
): Promise<Issued | null> {
  const reference = referenceOf(productId, values);
  const found = reference && (await findIssuedUnder(pool, { productId, ...reference }));
  if (found === null) return null;
  const { id, count: size, isSame } = found;
  return {
    id,
    count: size,
    firstSerial: 1,
    lastSerial: size,
    alreadyIssued: true,
    ...(!isSame && { otherBatch: true }),
  };
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
  fields: FIELDS,
  rules(values, refuse) {
    const { windows, opensAt, closesAt, validUntil } = values;
    if (windows?.length === 0 && (opensAt || closesAt)) {
      refuse("windows", (nameOf) =>
        problemIn("needWindow", {
          times: `${nameOf("opensAt")} and ${nameOf("closesAt")}`,
          windows: nameOf("windows"),
        }),
      );
    }
    for (const { prefix, ...times } of windowsOf(values)) {
      const order = (field: "opensAt" | "closesAt", key: "earlierThan" | "laterThan", than: string) =>
        refuse(`${prefix}${field}`, (nameOf) =>
          problemWith(`${prefix}${field}`, problemIn(key, { name: nameOf(than) })).say(nameOf),
        );
      if (times.opensAt && validUntil && times.opensAt >= validUntil) order("opensAt", "earlierThan", "validUntil");
      if (times.opensAt && times.closesAt && times.closesAt <= times.opensAt)
        order("closesAt", "laterThan", `${prefix}opensAt`);
    }
  },
  ends(values) {
    const ofPrograms = windowsOf(values).filter(({ prefix }) => prefix !== "");
    return Object.fromEntries(ofPrograms.map(({ prefix, closesAt }) => [`${prefix}closesAt`, closesAt]));
  },
  progress: { doing: "Issuing", of: "vouchers", done: "issued" },
  result: ISSUED,
  response: ISSUED_UNDER_REFERENCE,
  repeated: (ctx, productId, values) => findFirst(ctx, productId, values),
  async run(ctx: AuditContext & Codes, productId, values, advance): Promise<Issued> {
    const { codes = null, onChunk } = ctx;
    const { count: size, validUntil, audience } = values;
    const windows = Object.fromEntries(
      windowsOf(values).map(({ kind, opensAt, closesAt }) => [kind, { opensAt, closesAt }]),
    );
    const reference = referenceOf(productId, values);
    const input = { productId, count: size, validUntil, audience, windows, codes, reference };
    try {
      const issued = await writeBatch(ctx, input, async (vouchers) => {
        advance(vouchers.at(-1)?.serial ?? 0, size);
        await onChunk?.(vouchers);
      });
      return { ...issued, alreadyIssued: false };
    } catch (error) {
      const first = error instanceof ReferenceTaken ? await findFirst(ctx, productId, values) : null;
      if (first === null) throw error;
      return first;
    }
  },
  said: ({ id, firstSerial, lastSerial, sandbox: isSandbox }, { count: size, validUntil }) =>
    `${isSandbox ? "Sandbox batch" : "Batch"} ${id}: ${pluralize(size, "voucher")}, serials ` +
    `${formatCount(firstSerial)} to ${formatCount(lastSerial)}, valid until ${formatUtcWithZone(validUntil)}.`,
  next: ({ id }, { windows }) =>
    windows.includes("buy") ? `voucherctl listing create --batch ${id}` : `voucherctl batch show ${id}`,
});
