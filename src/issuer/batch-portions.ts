import type { z } from "zod";
import type { Act } from "../acts/act.ts";
import { type BatchResult, readBatchSize, remainingOf } from "../acts/change-batch.ts";
import { bodyOf, type Fields, type Values, valuesIn } from "../acts/fields.ts";
import { AppError, type ERRORS_OF } from "../platform/api/errors.ts";
import { examples } from "../platform/api/example.ts";
import { count, named, sampleOf } from "../platform/api/fields.ts";
import { isLockTimeout } from "../platform/db/transaction.ts";
import { endpoint } from "../platform/http/endpoint.ts";
import { givenIn, ISSUER_KEY, idOf } from "./act-endpoint.ts";
import { type IssuerCall, type IssuerDeps, inIssuer, isEnd, KeyEnded, LOCK_WAIT_MS } from "./issuer.ts";

/** Maximum wait for a connection, so that time is left for the changes. Milliseconds. */
const PLACE_WAIT_MS = 2_000;

/**
 * When this time has passed since a call's arrival, the call begins no further range of vouchers and waits for no
 * further lock. A range takes less than half a second, so the response comes within five seconds, even on a busy
 * machine. Milliseconds.
 */
const PORTION_MS = 2_500;

type Participle = "voided" | "extended" | "suspended" | "resumed";

interface BatchPortions<Done extends Participle> {
  operationId: keyof typeof ERRORS_OF;
  summary: string;
  /** What the act means for a voucher, as sentences. */
  description: string;
  /** The name of the field with the number of changed vouchers. Descriptions use the name as a participle. */
  done: Done;
  /** Describes the vouchers to which the act does not apply, for example "that were redeemed". */
  alreadyFinal: string;
}

/** The endpoint of an act that changes the vouchers of a batch. A caller repeats the call until no voucher remains. */
export function batchPortionsEndpoint<F extends Fields, Done extends Participle>(
  act: Act<F, BatchResult<Done>>,
  { operationId, summary, description, done, alreadyFinal }: BatchPortions<Done>,
) {
  const { name, fields } = act;
  const verb = String(name.split(" ")[1]);
  const response = named(`${done.charAt(0).toUpperCase()}${done.slice(1)}Batch`, {
    [done]: count(0, `Vouchers that this call has ${done}.`, 480),
    alreadyFinal: count(0, `Vouchers ${alreadyFinal} before this call reached them.`, 20),
    damaged: count(
      1,
      `Vouchers that cannot be ${done} until an operator repairs their histories. Absent without any.`,
      1,
    ).optional(),
    remaining: count(0, "Vouchers that this call has not reached. If it is not 0, repeat the call.", 0),
  });
  examples.add(response, { [done]: { summary: `The batch is ${done}`, value: sampleOf(response) } });
  return endpoint({
    method: "post",
    path: `/issuer/batches/:id/${verb}`,
    operationId,
    summary,
    description:
      `${description} The response comes after at most five seconds: repeat the call until \`remaining\` is 0. Each ` +
      "call begins where the last one ended.",
    access: ISSUER_KEY,
    parameters: { id: idOf("batch") },
    body: bodyOf(fields).meta({ id: `${operationId.charAt(0).toUpperCase()}${operationId.slice(1)}Request` }),
    response: response as unknown as z.ZodType<BatchResult<Done> & { remaining: number }>,
    responseDescription: "What this call has done.",
    handler: (deps: IssuerDeps, { caller, parameters: { id }, body, receivedAtMs }) =>
      inIssuer(
        deps,
        caller,
        async (ctx) => {
          await ctx.requireOwn("batch", id);
          return runPortion(ctx, act, done, id, valuesIn(fields, body), receivedAtMs + PORTION_MS);
        },
        [name, { id, ...givenIn(body) }],
        { maxMs: PLACE_WAIT_MS },
      ),
  });
}

/**
 * Runs the act until the given time on the monotonic clock. Returns how many vouchers it has changed, to how many it no
 * longer applied, and how many remain.
 */
async function runPortion<F extends Fields, Done extends Participle>(
  ctx: IssuerCall,
  act: Act<F, BatchResult<Done>>,
  done: Done,
  id: string,
  values: Values<F>,
  endBy: number,
): Promise<BatchResult<Done> & { remaining: number }> {
  const size = await readBatchSize(ctx, id);
  let soFar = { [done]: 0, alreadyFinal: 0 } as BatchResult<Done>;
  try {
    soFar = await ctx.whileKeyWorks((assertGoing) =>
      act.run({ ...ctx, lockWaitMs: LOCK_WAIT_MS, endBy }, id, values, (_done, _total, counts) => {
        soFar = counts as BatchResult<Done>;
        assertGoing();
      }),
    );
  } catch (error) {
    if (error instanceof KeyEnded) {
      const ended: Participle = done;
      throw new AppError("unknown_key", (t) => t(`inDetail.keyEnded.${ended}`, { count: soFar[done] }));
    }
    if (!isEnd(error) && !isLockTimeout(error)) throw error;
  }
  return { ...soFar, remaining: remainingOf(size, soFar) };
}
