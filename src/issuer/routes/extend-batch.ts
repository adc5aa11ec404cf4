import { extendBatch as act } from "../../acts/batch/extend.ts";
import { batchPortionsEndpoint } from "../batch-portions.ts";

export const extendBatch = batchPortionsEndpoint(act, {
  operationId: "extendBatch",
  summary: "Extend the vouchers of a batch",
  description:
    "Its active and expired vouchers get a later end, and its windows with the last of them. " +
    "`validUntil` must be in the future, and later than the batch's end.",
  done: "extended",
  alreadyFinal: "that were redeemed, voided or extended as far",
});
