import { checkAnswers } from "./answer-rules.ts";
import { checkCaps } from "./caps.ts";
import type { History, Violation } from "./history.ts";
import { checkErasures, checkIssuers } from "./issuer-rules.ts";
import { checkOrder } from "./order.ts";
import type { Records } from "./records.ts";
import { checkAcquisitions, checkRedeems, checkReleases, type Freeze } from "./rules.ts";

/**
 * Judges all calls of a deployment, with the database at the end. To judge only some of the calls, use `checkOrder`.
 * The rules for rows are in `test/support/invariants.ts`.
 * - `order.ts`: an order in real time explains all answers and the rows at the end. `model/voucher.ts` decides what is
 * right for a voucher at each moment.
 * - `rules.ts`: a call can have written each row at the row's time.
 * - `answer-rules.ts`, `issuer-rules.ts`, `caps.ts`: single answers, batches and contracts, daily limits.
 * @param freezes of the API processes, by process name.
 */
export function judge(
  history: History,
  records: Records,
  { redeemWaitMs, freezes }: { redeemWaitMs: number; freezes?: ReadonlyMap<string, readonly Freeze[]> },
): Violation[] {
  return [
    ...checkOrder(history, records.clock, records),
    ...checkRedeems(history, records, redeemWaitMs, freezes),
    ...checkAcquisitions(history, records),
    ...checkReleases(history, records),
    ...checkIssuers(history, records),
    ...checkErasures(history, records),
    ...checkCaps(history, records),
    ...checkAnswers(history, records),
  ];
}
