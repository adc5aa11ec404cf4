import { type AskFor, acquisitionOf, type Exchange, type History } from "./history.ts";
import type { RecordedAcquisition, Records } from "./records.ts";
import type { SteppedClock } from "./stepped-clock.ts";
import type { Violation } from "./violation.ts";

type Acquire = Exchange<AskFor<"acquire">>;

/** Both clocks round to milliseconds. */
const ROUNDING_MS = 2;

/** Compares the answers to claims and purchases with what the database contains at the end. */
export function checkAcquisitions(history: History, records: Records): Violation[] {
  const calls = history.of("acquire");
  const byAcquisition = Map.groupBy(calls, (call) => acquisitionOf(call.ask));
  const byBatch = Map.groupBy(records.acquisitions.values(), (acquisition) => acquisition.batchId);
  return [
    ...[...byAcquisition].flatMap(([acquisition, answers]) =>
      checkAcquisition(acquisition, answers, records.acquisitions.get(acquisition), records.clock),
    ),
    ...[...records.acquisitions.values()].flatMap((recorded) =>
      checkAcquisitionWasRequested(recorded, byAcquisition.get(recorded.acquisition) ?? [], records.clock),
    ),
    ...calls.flatMap((call) => checkSoldOut(call, byBatch.get(call.ask.offer.batchId) ?? [], records.clock)),
    ...checkSupply(calls, byBatch),
  ];
}

function checkAcquisition(
  acquisition: string,
  calls: readonly Acquire[],
  recorded: RecordedAcquisition | undefined,
  clock: SteppedClock,
): Violation[] {
  const violations: Violation[] = [];
  const report = (rule: string, detail: string, exchanges: Acquire[]) =>
    void violations.push({ rule, detail: `${acquisition}: ${detail}`, exchanges });
  const confirmed = calls.filter((call) => call.status === 200);

  const untrue = confirmed.filter(
    ({ ask, body }) => body.voucherId !== recorded?.voucherId || recorded?.batchId !== ask.offer.batchId,
  );
  if (untrue.length > 0)
    report("an acquired voucher stays the user's", `the database contains ${JSON.stringify(recorded)}`, untrue);

  const first = confirmed.filter((call) => call.body.alreadyConfirmed === false);
  if (first.length > 1) report("an acquisition is new once", "several answers call it new", first);

  const denied = calls.filter(
    ({ status, sentAtMs }) =>
      status === 409 && recorded !== undefined && clock.last(recorded.acquiredAtMs) < sentAtMs - ROUNDING_MS,
  );
  if (denied.length > 0) report("a repeated acquisition is recognised", "the repeat was refused", denied);
  return violations;
}

function checkAcquisitionWasRequested(
  recorded: RecordedAcquisition,
  calls: readonly Acquire[],
  clock: SteppedClock,
): Violation[] {
  const mayHaveAcquired = calls.some(
    ({ status, failure, body, sentAtMs }) =>
      sentAtMs <= clock.last(recorded.acquiredAtMs) + ROUNDING_MS &&
      failure !== "refused" &&
      (status === null || status >= 500 || (status === 200 && body.alreadyConfirmed === false)),
  );
  if (mayHaveAcquired) return [];
  const detail = `${recorded.acquisition}: no call can have acquired ${recorded.voucherId}`;
  return [{ rule: "an acquisition has a call", detail, exchanges: calls }];
}

/** Supply never grows, so "sold out" is true if nothing is left when the answer arrives. */
function checkSoldOut(call: Acquire, acquired: readonly RecordedAcquisition[], clock: SteppedClock): Violation[] {
  if (call.code !== "sold_out") return [];
  const gone = acquired.filter(({ acquiredAtMs }) => clock.first(acquiredAtMs) <= call.endedAtMs + ROUNDING_MS).length;
  if (gone >= call.ask.offer.supply) return [];
  const detail = `${call.ask.offer.supply - gone} vouchers of ${call.ask.offer.batchId} were left`;
  return [{ rule: "sold out means that nothing is left", detail, exchanges: [call] }];
}

function checkSupply(
  calls: readonly Acquire[],
  byBatch: ReadonlyMap<string, readonly RecordedAcquisition[]>,
): Violation[] {
  const offers = new Map(calls.map(({ ask }) => [ask.offer.batchId, ask.offer]));
  return [...offers.values()].flatMap(({ batchId, supply }): Violation[] => {
    const vouchers = byBatch.get(batchId)?.map(({ voucherId }) => voucherId) ?? [];
    if (vouchers.length <= supply && new Set(vouchers).size === vouchers.length) return [];
    const detail = `${batchId} had ${supply} vouchers and ${vouchers.length} acquisitions of ${new Set(vouchers).size} vouchers`;
    return [{ rule: "no voucher is acquired twice or beyond supply", detail, exchanges: [] }];
  });
}
