import { z } from "zod";
import { findBatchIssuedUnder } from "../../acts/db/issue-references.ts";
import { LISTS } from "../../acts/db/lists.ts";
import { withIssueReferences } from "../../acts/read-issue-references.ts";
import type { Confirming } from "../../core/commit/confirm-reads.ts";
import { normaliseReference } from "../../core/voucher/references.ts";
import { EXAMPLE } from "../../platform/api/example.ts";
import { count, input, productId, productName, text, timestamp, usd } from "../../platform/api/fields.ts";
import { problem } from "../../platform/api/problems.ts";
import { endpoint } from "../../platform/http/endpoint.ts";
import { ISSUER_KEY } from "../act-endpoint.ts";
import type { IssuerCall, IssuerDeps } from "../issuer.ts";
import { createdAt, ID_CURSOR, listOwn, onlyOf, pageOf, pageQuery } from "../lists.ts";

/** The fields of a batch, both in the list and on its own. */
export const BATCH_FIELDS = {
  id: text("The batch's id.", EXAMPLE.batchId),
  productId,
  productName,
  audience: text("`OpenToAll` or `ReferrerOnly`.", "OpenToAll"),
  count: count(1, "How many vouchers it has.", 500),
  validUntil: timestamp("When its vouchers expire.", EXAMPLE.validUntil),
  priceUsd: usd("Price of a voucher.", EXAMPLE.priceUsd),
  createdAt,
  issueRef: text(
    "The reference that it was issued under, or its replacement once the operator has erased it. Null if the " +
      "operator issued the batch.",
    "order-20261121-0007",
  ).nullable(),
};

const batch = z.object({
  ...BATCH_FIELDS,
  windows: z
    .array(text("`claim` or `buy`.", "buy"))
    .meta({ description: "The windows that it has.", examples: [["buy"]] }),
});

const issueRef = input
  .regex(/^[^\0]*$/, problem("controlCharacters"))
  .transform(normaliseReference)
  .optional()
  .meta({
    description: "Your reference, to list only the batch that was issued under it.",
    override: { type: "string" },
  });

export const batches = endpoint({
  path: "/issuer/batches",
  operationId: "listBatches",
  summary: "List your organization's batches",
  description:
    "All batches, those of one brand or product, or the one that was issued under a reference. It counts no " +
    "vouchers: read one batch for that.",
  access: ISSUER_KEY,
  query: z.object({ brand: onlyOf("brand"), product: onlyOf("product"), issueRef, ...pageQuery(ID_CURSOR) }),
  response: pageOf("BatchesPage", batch, "ids, new ones last"),
  responseDescription: "A page of batches.",
  handler: (deps: IssuerDeps & Confirming, { caller, query: { issueRef: given, ...query } }) => {
    const { organizationId } = caller;
    const findId = ({ pool }: IssuerCall) => findBatchIssuedUnder(pool, { organizationId, issueRef: String(given) });
    const list = [LISTS.batches, batch, withIssueReferences] as const;
    return listOwn(deps, caller, list, query, given === undefined ? undefined : findId);
  },
});
