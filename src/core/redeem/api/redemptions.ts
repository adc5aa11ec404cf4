import { z } from "zod";
import { EXAMPLE, examples } from "../../../platform/api/example.ts";
import {
  named,
  queryCursor,
  queryInteger,
  queryTime,
  sampleOf,
  sandbox,
  text,
  timestamp,
  verifyUrl,
} from "../../../platform/api/fields.ts";
import { problem, wholeProblem } from "../../../platform/api/problems.ts";
import { redeemedVoucher } from "./redeem.ts";

/** Maximum number of redemptions on one page. */
const REDEMPTIONS_LIMIT_MAX = 1_000;

export const externalRefInPath = text(
  "Your reference, URL-encoded, in any form that a redeem would accept as the same. Some proxies change a " +
    "reference with a slash: use the query then.",
  EXAMPLE.externalRef,
);

/** A reference in a query string. */
const externalRefInQuery = z
  .string({ error: (issue) => (issue.input === undefined ? problem("required") : problem("notOneValue")) })
  .meta({ description: "Your reference.", examples: [EXAMPLE.externalRef] });

export const receiptQuery = z.object({ externalRef: externalRefInQuery });

/** The query of an organization's list of redemptions. */
export const redemptionsQuery = z
  .object({
    from: queryTime("Lists redemptions at or after this time; omit it for all.", "2026-11-21T00:00:00+01:00"),
    to: queryTime(
      "Lists redemptions before this time; omit it for a list without an end.",
      "2026-11-22T00:00:00+01:00",
    ),
    cursor: queryCursor(
      "The previous page's `nextCursor`; omit it for the first page. It remembers `from` and `to`: omit them, or " +
        "send the same ones.",
    ),
    limit: queryInteger(1, REDEMPTIONS_LIMIT_MAX, 100, "Maximum number of redemptions on the page."),
    externalRef: externalRefInQuery.optional().meta({
      description: "Your reference: the list has only the redemption under it. The other parameters do not apply.",
    }),
  })
  .refine(({ from, to }) => from === undefined || to === undefined || from < to, wholeProblem("fromBeforeTo"));

export type RedemptionsQuery = z.output<typeof redemptionsQuery>;

export const listedRedemption = named("ListedRedemption", {
  externalRef: text("The reference under which the voucher was redeemed.", EXAMPLE.externalRef),
  ...redeemedVoucher,
  ticket: text("The reservation that the redemption consumed; null when there was none.", EXAMPLE.ticket).nullable(),
  keyId: text("The API key that redeemed.", EXAMPLE.keyId),
  keyLabel: text("The key's label, such as the name of a till; null when it has none.", "Till 3").nullable(),
  verifyUrl,
});

export type ListedRedemptionView = z.output<typeof listedRedemption>;

export const redemptionsResponse = named("RedemptionsPage", {
  redemptions: z
    .array(listedRedemption)
    .meta({ description: "In ascending order of `redeemedAt`, then of `voucherInstanceId`." }),
  nextCursor: text(
    "Send it as `cursor` to get what follows, now or on another day. Null only on the last page of a list whose " +
      "`to` is before `completeUntil`.",
    EXAMPLE.redemptionsCursor,
  ).nullable(),
  completeUntil: timestamp(
    "Redemptions before this time are final: all are listed, and none is ever added. Later ones are listed by a " +
      "later call. Usually two to four seconds ago.",
    EXAMPLE.completeUntil,
  ),
  sandbox,
});

export type RedemptionsResponse = z.output<typeof redemptionsResponse>;

const CSV_COLUMNS = [
  ...([
    "externalRef",
    "voucherInstanceId",
    "redeemCode",
    "serial",
    "productName",
    "productKey",
    "discountPriceUsd",
  ] as const),
  ...(["benefitMonths", "redeemedAt", "ticket", "keyId", "keyLabel", "verifyUrl"] as const),
];

/**
 * Redemptions as CSV (RFC 4180): the header, then one part per page. Keeps values that spreadsheets read as formulas.
 */
export async function* redemptionsCsv(pages: AsyncIterable<ListedRedemptionView[]>): AsyncGenerator<string> {
  const quote = (text: string) => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  const lineOf = (values: unknown[]) => `${values.map((value) => quote(String(value ?? ""))).join(",")}\r\n`;
  yield lineOf([...CSV_COLUMNS]);
  for await (const page of pages) yield page.map((one) => lineOf(CSV_COLUMNS.map((column) => one[column]))).join("");
}

examples.add(redemptionsResponse, {
  last: {
    summary: "The last page of a day that is over",
    value: { redemptions: [sampleOf(listedRedemption)], nextCursor: null, completeUntil: EXAMPLE.completeUntil },
  },
  open: {
    summary: "Nothing new yet: keep the cursor",
    value: { redemptions: [], nextCursor: EXAMPLE.redemptionsCursor, completeUntil: EXAMPLE.completeUntil },
  },
});
