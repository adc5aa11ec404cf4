import { voidBatch as act } from "../../acts/batch/void.ts";
import { bodyOf, valuesIn } from "../../acts/fields.ts";
import { type BatchVoidResult, readBatchSize, remainingOf } from "../../acts/void-batch.ts";
import { AppError } from "../../platform/api/errors.ts";
import { examples } from "../../platform/api/example.ts";
import { count, named, sampleOf } from "../../platform/api/fields.ts";
import { isLockTimeout } from "../../platform/db/transaction.ts";
import { endpoint } from "../../platform/http/endpoint.ts";
import { givenIn, ISSUER_KEY, idOf } from "../act-endpoint.ts";
import { type IssuerDeps, inIssuer, isEnd, KeyEnded, VOID_LOCK_WAIT_MS } from "../issuer.ts";

/** Longest wait for a connection. It leaves some time for the portion. Milliseconds. */
const PLACE_WAIT_MS = 2_000;

/**
 * This long after its arrival, a call begins no further range of vouchers and waits for no further lock. A range takes
 * less than half a second, so the response comes within five seconds, even on a busy machine. Milliseconds.
 */
const PORTION_MS = 2_500;

const voidedBatch = named("VoidedBatch", {
  voided: count(0, "Vouchers that this call has voided.", 480),
  alreadyFinal: count(0, "Vouchers that were redeemed, voided or expired before this call reached them.", 20),
  damaged: count(
    1,
    "Vouchers that cannot be voided until an operator repairs their histories. Absent without any.",
    1,
  ).optional(),
  remaining: count(0, "Vouchers that this call has not reached. If it is not 0, repeat the call.", 0),
});

examples.add(voidedBatch, { voided: { summary: "The batch is voided", value: sampleOf(voidedBatch) } });

export const voidBatch = endpoint({
  method: "post",
  path: "/issuer/batches/:id/void",
  operationId: "voidBatch",
  summary: "Void the active vouchers of a batch",
  description:
    "They can never be used again, and their reservations end. The response comes after at most five seconds: repeat " +
    "the call until `remaining` is 0. Each call begins where the last one ended.",
  access: ISSUER_KEY,
  parameters: { id: idOf("batch") },
  body: bodyOf(act.fields).meta({ id: "VoidBatchRequest" }),
  response: voidedBatch,
  responseDescription: "What this call has done.",
  handler: (deps: IssuerDeps, { caller, parameters: { id }, body, receivedAtMs }) =>
    inIssuer(
      deps,
      caller,
      async (ctx) => {
        await ctx.requireOwn("batch", id);
        const size = await readBatchSize(ctx, id);
        let soFar: BatchVoidResult = { voided: 0, alreadyFinal: 0 };
        try {
          soFar = await ctx.whileKeyWorks((assertGoing) =>
            act.run(
              { ...ctx, lockWaitMs: VOID_LOCK_WAIT_MS, endBy: receivedAtMs + PORTION_MS },
              id,
              valuesIn(act.fields, body),
              (_done, _total, counts) => {
                soFar = counts as BatchVoidResult;
                assertGoing();
              },
            ),
          );
        } catch (error) {
          const { voided } = soFar;
          if (error instanceof KeyEnded) {
            throw new AppError("unknown_key", (t) => t("inDetail.keyEnded.voided", { count: voided }));
          }
          if (!isEnd(error) && !isLockTimeout(error)) throw error;
        }
        return { ...soFar, remaining: remainingOf(size, soFar) };
      },
      [act.name, { id, ...givenIn(body) }],
      { maxMs: PLACE_WAIT_MS },
    ),
});
