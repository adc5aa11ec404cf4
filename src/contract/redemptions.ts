import { z } from "zod";
import { EXAMPLE, EXAMPLE_VERIFY_URL, examples } from "./example.ts";
import { queryCursor, queryInteger, queryTime, sandbox, timestamp, verifyUrl } from "./fields.ts";
import { REDEEMED_VOUCHER, redeemedVoucher } from "./redeem.ts";

/** Maximum number of redemptions on one page. */
const REDEMPTIONS_LIMIT_MAX = 1_000;

export const externalRefInPath = z.string().meta({
  description: "Your reference, URL-encoded. Surrounding spaces are removed.",
  examples: [EXAMPLE.externalRef],
});

/** The query of an organization's list of redemptions. */
export const redemptionsQuery = z
  .object({
    from: queryTime("Lists redemptions at or after this time; omit it for all.", "2026-11-21T00:00:00+01:00"),
    to: queryTime(
      "Lists redemptions before this time; omit it for a list without an end.",
      "2026-11-22T00:00:00+01:00",
    ),
    cursor: queryCursor(
      "The previous page's `nextCursor`; omit it for the first page. It remembers `from` and `to`: omit them, or send the same ones.",
    ),
    limit: queryInteger(1, REDEMPTIONS_LIMIT_MAX, 100, "Maximum number of redemptions on the page."),
  })
  .refine(({ from, to }) => from === undefined || to === undefined || from < to, "from must be before to");

export type RedemptionsQuery = z.output<typeof redemptionsQuery>;

export const listedRedemption = z
  .object({
    externalRef: z.string().meta({
      description: "The reference under which the voucher was redeemed.",
      examples: [EXAMPLE.externalRef],
    }),
    ...redeemedVoucher,
    ticket: z
      .string()
      .nullable()
      .meta({
        description: "The reservation that the redemption consumed; null when there was none.",
        examples: [EXAMPLE.ticket],
      }),
    verifyUrl,
  })
  .meta({ id: "ListedRedemption" });

export type ListedRedemptionView = z.output<typeof listedRedemption>;

export const redemptionsResponse = z
  .object({
    redemptions: z
      .array(listedRedemption)
      .meta({ description: "In ascending order of `redeemedAt`, then of `voucherInstanceId`." }),
    nextCursor: z
      .string()
      .nullable()
      .meta({
        description:
          "Send it as `cursor` to get what follows, now or on another day. Null only on the last page of a list whose `to` is before `completeUntil`.",
        examples: [EXAMPLE.redemptionsCursor],
      }),
    completeUntil: timestamp(
      "Redemptions before this time are final: all are listed, and none is ever added. Later ones are listed by a later call. Usually two to four seconds ago.",
      EXAMPLE.completeUntil,
    ),
    sandbox,
  })
  .meta({ id: "RedemptionsPage" });

export type RedemptionsResponse = z.output<typeof redemptionsResponse>;

const LISTED: ListedRedemptionView = {
  externalRef: EXAMPLE.externalRef,
  ...REDEEMED_VOUCHER,
  ticket: EXAMPLE.ticket,
  verifyUrl: EXAMPLE_VERIFY_URL,
};

examples.add(redemptionsResponse, {
  last: {
    summary: "The last page of a day that is over",
    value: { redemptions: [LISTED], nextCursor: null, completeUntil: EXAMPLE.completeUntil },
  },
  open: {
    summary: "Nothing new yet: keep the cursor",
    value: { redemptions: [], nextCursor: EXAMPLE.redemptionsCursor, completeUntil: EXAMPLE.completeUntil },
  },
});
