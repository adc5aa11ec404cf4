import { type Exchange, type History, refOf, type Violation } from "./history.ts";

/** Violations that are reported: one cause may break thousands. */
const REPORTED_MAX = 6;

/** A redemption that an answer shows. */
interface ShownRedemption {
  /** As `refOf` returns it. */
  ref: string;
  redeemedAtMs: number;
  exchange: Exchange;
}

/**
 * Checks that a list of redemptions never changes before its `completeUntil`: it has every redemption of its range that
 * any answer shows, before or after it. A full page ends at its last redemption.
 */
export function checkCompleteLists(history: History): Violation[] {
  const known = [...new Map(history.exchanges.flatMap(showsOf).map((one) => [one.ref, one])).values()];
  const byOrganization = Map.groupBy(known, ({ ref }) => ref.split(" ")[0]);
  const broken = history.of("list").flatMap((exchange): Violation[] => {
    const { ask, status, body } = exchange;
    if (status !== 200) return [];
    const listed = new Set(showsOf(exchange).map(({ ref }) => ref));
    const [fromMs, untilMs] = [Date.parse(ask.from), Date.parse(endOf(exchange, body))];
    const missing = (byOrganization.get(ask.key.organizationId) ?? []).filter(
      ({ ref, redeemedAtMs }) => redeemedAtMs >= fromMs && redeemedAtMs < untilMs && !listed.has(ref),
    );
    return missing.map(({ ref, exchange: shown }) => ({
      rule: "a list never changes before its completeUntil",
      detail: `it lacks ${ref}`,
      exchanges: [shown, exchange],
    }));
  });
  return broken.slice(0, REPORTED_MAX);
}

function endOf({ ask }: Exchange, body: Exchange["body"]): string {
  const isFull = ask.operation === "list" && body.redemptions.length >= ask.limit;
  return isFull ? body.redemptions.at(-1).redeemedAt : body.completeUntil;
}

function showsOf(exchange: Exchange): ShownRedemption[] {
  const { ask, status, body } = exchange;
  if (status !== 200) return [];
  const shown = (externalRef: string, redeemedAt: string): ShownRedemption => {
    const ref = "key" in ask ? refOf({ key: ask.key, externalRef }) : externalRef;
    return { ref, redeemedAtMs: Date.parse(redeemedAt), exchange };
  };
  switch (ask.operation) {
    case "redeem":
    case "redemption":
      return [shown(ask.externalRef, body.redeemedAt)];
    case "list":
      return body.redemptions.map((one: Record<string, string>) =>
        shown(String(one.externalRef), String(one.redeemedAt)),
      );
    default:
      return [];
  }
}
