import type { History, Violation } from "./history.ts";

const RULE = "a key redeems up to its daily limit, and never above it";

/** A redemption of a key, with its day in UTC. */
interface Recorded {
  externalRef: string;
  day: string;
}

/**
 * Expects that a key never redeems more than its daily limit, that no call is refused below it, and that no other key
 * is refused. A redemption may precede a refusal if its first call was sent before the refusal arrived. If a primary
 * was lost, redemptions may be lost too. Then every call that was not refused may have redeemed.
 * @param recorded the key's redemptions in the database at the end.
 */
export function checkCap(
  history: History,
  recorded: readonly Recorded[],
  keyId: string,
  maxPerDay: number,
): Violation[] {
  const days = [...Map.groupBy(recorded, ({ day }) => day).values()];
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
      .map(({ length }) => ({ rule: RULE, detail: `it redeemed ${length}`, exchanges: [] })),
    ...history
      .of("redeem")
      .filter(({ ask, code, returnedMs }) => code === "cap_reached" && (ask.key.id !== keyId || !isReached(returnedMs)))
      .map((refusal) => ({ rule: RULE, detail: "a call was refused below the limit", exchanges: [refusal] })),
  ];
}
