import type { History, Violation } from "./history.ts";
import type { RecordedRedemption, Records } from "./records.ts";

const RULE = "a key redeems up to its daily limit, and never above it";

/**
 * Expects that a key never redeems more than its daily limit, that no call is refused below the limit, and that no
 * other key is refused. A call may be refused only if, before the refusal arrived, callers had sent as many references
 * of one day's redemptions as the limit allows. If a primary was lost, any call without a refusal may have redeemed.
 */
export function checkCaps(history: History, records: Records): Violation[] {
  const ofKey = Map.groupBy(records.redemptionsByRef.values(), ({ keyId }) => keyId);
  const strange = history
    .of("redeem")
    .filter(({ ask, code }) => code === "cap_reached" && !records.caps.has(ask.key.id));
  return [
    ...[...records.caps].flatMap(([keyId, maxPerDay]) => checkCap(history, ofKey.get(keyId) ?? [], keyId, maxPerDay)),
    ...strange.map((refusal) => ({ rule: RULE, detail: "a key without a limit was refused", exchanges: [refusal] })),
  ];
}

function checkCap(
  history: History,
  recorded: readonly RecordedRedemption[],
  keyId: string,
  maxPerDay: number,
): Violation[] {
  const dayOf = ({ redeemedAtMs }: RecordedRedemption) => new Date(redeemedAtMs).toISOString().slice(0, 10);
  const days = [...Map.groupBy(recorded, dayOf).values()];
  const calls = history.of("redeem").filter(({ ask }) => ask.key.id === keyId);
  const isLossy = history.losses.length + history.setBacks.length > 0;
  const perhaps = isLossy ? calls.filter(({ code }) => code !== "cap_reached") : [];
  const possible = [...days, perhaps.map(({ ask }) => ask)].map((each) => new Set(each.map((one) => one.externalRef)));
  const sentMs = new Map<string, number>();
  for (const { ask, invokedMs } of calls)
    sentMs.set(ask.externalRef, Math.min(invokedMs, sentMs.get(ask.externalRef) ?? invokedMs));
  const isReached = (atMs: number) =>
    possible.some((refs) => [...refs].filter((ref) => (sentMs.get(ref) ?? atMs) < atMs).length >= maxPerDay);
  return [
    ...days
      .filter(({ length }) => length > maxPerDay)
      .map(({ length }) => ({ rule: RULE, detail: `${keyId} redeemed ${length}`, exchanges: [] })),
    ...calls
      .filter(({ code, returnedMs }) => code === "cap_reached" && !isReached(returnedMs))
      .map((refusal) => ({ rule: RULE, detail: "a call was refused below the limit", exchanges: [refusal] })),
  ];
}
