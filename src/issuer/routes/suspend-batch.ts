import { resumeBatch as resume, suspendBatch as suspend } from "../../acts/batch/suspend.ts";
import { batchPortionsEndpoint } from "../batch-portions.ts";

export const suspendBatch = batchPortionsEndpoint(suspend, {
  operationId: "suspendBatch",
  summary: "Suspend the vouchers of a batch",
  description:
    "From the first response, none of them can be used until the batch is resumed. Their histories follow: each call " +
    "adds a part, and the service the rest.",
  done: "suspended",
  alreadyFinal: "that were redeemed, voided or suspended",
});

export const resumeBatch = batchPortionsEndpoint(resume, {
  operationId: "resumeBatch",
  summary: "Resume the vouchers of a batch",
  description:
    "They are again what they would be without the suspension of the batch, one after another. Vouchers that were " +
    "suspended individually stay so.",
  done: "resumed",
  alreadyFinal: "that were redeemed, voided, suspended individually or not suspended",
});
