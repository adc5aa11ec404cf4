import { z } from "zod";
import { EXAMPLE, examples } from "../../../platform/api/example.ts";
import {
  brand,
  count,
  flag,
  named,
  productId,
  productKey,
  productName,
  sampleOf,
  sandbox,
  sha256,
  text,
  timestamp,
  usd,
} from "../../../platform/api/fields.ts";

export const monthInPath = text("The month in UTC, such as `2026-11`.", "2026-11");

const redemptions = count(0, "The number of redemptions.", 3);
const amountUsd = usd("The sum of their `discountPriceUsd`.", 59.7);

const statementLine = named("StatementLine", {
  brand,
  productId,
  productName,
  productKey,
  keyId: text("The API key that redeemed.", EXAMPLE.keyId),
  keyLabel: text("The key's label, such as the name of a till; null when it has none.", "Till 3").nullable(),
  redemptions,
  amountUsd,
});

export const statementResponse = named("Statement", {
  organizationId: text("The organization's id.", "org_01m7zjmag0eh3rfc1w5c2x8y3b"),
  month: monthInPath,
  final: flag(
    "Whether nothing can be added to the month and the log, where it is on, has signed the statement. " +
      "From its first answer with `true` on, it is always the " +
      "same, also after names were changed or texts were erased.",
  ),
  completeUntil: timestamp(
    "The statement has all redemptions of the month before this time. The month's end once it is final.",
    "2026-12-01T00:00:00.000Z",
  ),
  redemptions,
  amountUsd,
  firstRedeemedAt: timestamp("The time of the first redemption; null without one.", EXAMPLE.redeemedAt).nullable(),
  lastRedeemedAt: timestamp("The time of the last redemption; null without one.", EXAMPLE.redeemedAt).nullable(),
  lines: z
    .array(statementLine)
    .meta({ description: "One line for each brand, product and key, in the order of names." }),
  rowsHash: sha256(
    "The lower-case hex SHA-256 of the statement's CSV file without its first line. Null until it is final.",
  ).nullable(),
  note: text(
    "A signed note by the log's key over month, organization, totals and `rowsHash`. Null where the log is not on, " +
      "and until the statement is final.",
    "Voucher statement\nmonth 2026-11\norganization org_…\n…\n\n— vouchers.example.com/log QSpTVC…\n",
  ).nullable(),
  sandbox,
});

export type Statement = z.output<typeof statementResponse>;

examples.add(statementResponse, {
  final: {
    summary: "A month that is over",
    value: sampleOf(statementResponse, {
      final: true,
      lines: [sampleOf(statementLine)],
      rowsHash: "5c1f9b7a1b1a4a1e0b8b8f3f1d2b6f8c3e9a7d5c4b2a190817263544f3e2d1c0",
    }),
  },
});

/** The first line of a statement's CSV file. */
export const STATEMENT_COLUMNS = "voucherInstanceId,redeemedAt,discountPriceUsd,recordHash\r\n";
