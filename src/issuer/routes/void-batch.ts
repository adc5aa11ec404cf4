import { voidBatch as act } from "../../acts/batch/void.ts";
import { batchPortionsEndpoint } from "../batch-portions.ts";

export const voidBatch = batchPortionsEndpoint(act, {
  operationId: "voidBatch",
  summary: "Void the active vouchers of a batch",
  description: "They can never be used again, and their reservations end.",
  done: "voided",
  alreadyFinal: "that were redeemed, voided or expired",
});
