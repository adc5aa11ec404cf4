import { z } from "zod";
import { type Confirming, readConfirmed } from "../../core/commit/confirm-reads.ts";
import { foundVoucher } from "../../core/look-up/api/voucher-history.ts";
import { findVouchers } from "../../core/look-up/find-vouchers.ts";
import { normaliseCode } from "../../core/voucher/codes.ts";
import { guardMisses, type MissGuard } from "../../core/voucher/resolve-voucher.ts";
import { EXAMPLE } from "../../platform/api/example.ts";
import { pickFields, sampleOf, text } from "../../platform/api/fields.ts";
import { endpoint } from "../../platform/http/endpoint.ts";
import { ISSUER_KEY } from "../act-endpoint.ts";
import { type IssuerDeps, inIssuer } from "../issuer.ts";
import { pageOf } from "../lists.ts";
import { typedCode } from "../one-voucher.ts";

const { id, serial, brand, productName, productKey, status, validUntil, suspension, redeemedAt, sandbox } =
  foundVoucher.shape;

const voucher = z.object({
  id,
  code: text("The voucher's code.", EXAMPLE.code),
  serial,
  batchId: text("The batch's id.", EXAMPLE.batchId),
  brand,
  productName,
  productKey,
  status,
  validUntil,
  suspension,
  redeemedAt,
  sandbox,
});

export const vouchers = endpoint({
  path: "/issuer/vouchers",
  operationId: "findVouchers",
  summary: "Find a voucher by its code",
  description:
    "The voucher of your organization with this code, as a list of one; an empty list if there is none, which counts " +
    "as a miss. It neither reserves nor redeems.",
  access: ISSUER_KEY,
  query: z.object({ code: typedCode }),
  response: pageOf("FoundVouchersPage", voucher, "ids", sampleOf(voucher, { status: "Active", redeemedAt: null })),
  responseDescription: "The voucher, or nothing.",
  handler: (deps: IssuerDeps & MissGuard & Confirming, { caller, query: { code: value } }) =>
    readConfirmed(deps, async () => {
      const query = { by: "code", value } as const;
      const find = () => inIssuer(deps, caller, (ctx) => findVouchers(ctx, caller.organizationId, query));
      const found = await (normaliseCode(value) === null
        ? find()
        : guardMisses(deps, caller, find, (vouchers) => vouchers.length === 0));
      return { items: found.map((one) => pickFields(voucher, one)), nextCursor: null };
    }),
});
