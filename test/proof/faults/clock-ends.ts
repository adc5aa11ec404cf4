import { isOpen } from "./attempts.ts";
import type { Exchange, History } from "./history.ts";
import { type Apply, nameOfCall, passes, type VoucherOperation, validityUntil } from "./register.ts";
import { ROUNDING_MS, type SteppedClock } from "./stepped-clock.ts";

// Reservations and validities end by the clock. Each end is an operation of its own, so that the order of a voucher's
// calls agrees with the clock.

/** A reservation or validity that the clock ends, and its end in milliseconds of the database's clock. */
interface End {
  voucherId: string;
  name: string;
  atMs: number;
}

/** Finds the end of each reservation whose ticket an answer contains, in milliseconds of the database's clock. */
export function readExpiries({ exchanges }: History): Map<string, { voucherId: string; expiresAtMs: number }> {
  const expiries = new Map<string, { voucherId: string; expiresAtMs: number }>();
  for (const { ask, status, body } of exchanges) {
    if (status !== 200 || !("voucher" in ask)) continue;
    const shown = ask.operation === "reserve" ? body : ask.operation === "lookUp" ? body.reservation : null;
    if (shown?.ticket == null) continue;
    expiries.set(shown.ticket, { voucherId: ask.voucher.id, expiresAtMs: Date.parse(shown.expiresAt) });
  }
  return expiries;
}

/** Makes an operation for each end by the clock in a history. */
export function clockEnds(history: History, clock: SteppedClock): VoucherOperation[] {
  const untilMs = history.exchanges.reduce((latest, { returnedMs }) => Math.max(latest, returnedMs), 0);
  const toMonotonic = readClocks(history);
  const vouchers = history.exchanges.flatMap(({ ask }) => ("voucher" in ask ? [ask.voucher] : []));
  const validities = new Map(vouchers.map(({ id, validUntilMs }) => [id, validUntilMs]));
  const ends: End[] = [
    ...[...readExpiries(history)].map(([name, { voucherId, expiresAtMs }]) => ({ voucherId, name, atMs: expiresAtMs })),
    ...[...validities].flatMap(([voucherId, atMs]) =>
      atMs === undefined ? [] : { voucherId, name: validityUntil(null), atMs },
    ),
    ...readExtensions(history),
  ];
  const passed = ends.flatMap(({ voucherId, name, atMs }): VoucherOperation[] => {
    const [first, last] = [toMonotonic(clock.first(atMs)), toMonotonic(clock.last(atMs))];
    const over = { ...last, voucherId, exchange: null, apply: passes(name, "over") };
    if (clock.first(atMs) === clock.last(atMs)) return [over];
    const unclear = { fromMs: first.fromMs, untilMs: first.fromMs, apply: passes(name, "unclear") };
    return [{ ...unclear, voucherId, exchange: null }, over];
  });
  return [...passed.filter(({ fromMs }) => fromMs <= untilMs), ...unnamedEnds(history, clock)];
}

function readExtensions(history: History): Iterable<End> {
  const ends = history.of("extend").map(({ ask: { voucher, validUntil } }) => {
    const atMs = Date.parse(validUntil);
    return { voucherId: voucher.id, name: validityUntil(atMs), atMs };
  });
  return new Map(ends.map((end) => [`${end.voucherId} ${end.name}`, end])).values();
}

/**
 * Makes the ends of reservations whose answer is missing. Such an end comes at least a reservation's duration after the
 * request.
 */
function unnamedEnds({ exchanges }: History, clock: SteppedClock): VoucherOperation[] {
  const durationMs = clock.hasStepped ? 0 : shortestReservationMs(exchanges) - ROUNDING_MS;
  return exchanges.flatMap((exchange): VoucherOperation[] => {
    const { ask, number, code, invokedMs } = exchange;
    if (ask.operation !== "reserve" || !(isOpen(exchange) || code === "voucher_busy")) return [];
    const name = nameOfCall(number);
    const apply: Apply = (was) => {
      const { hold } = was;
      return hold?.ticket === null && hold.call === number ? passes(name, "over")(was) : [];
    };
    const fromMs = invokedMs + Math.max(0, durationMs);
    return [{ fromMs, untilMs: Number.POSITIVE_INFINITY, voucherId: ask.voucher.id, exchange, apply }];
  });
}

/**
 * Finds the shortest reservation that a look-up shows, because all reservations of a run have this duration. Zero if no
 * look-up shows one. Milliseconds.
 */
function shortestReservationMs(exchanges: readonly Exchange[]): number {
  let shortest = Number.POSITIVE_INFINITY;
  for (const { ask, status, body } of exchanges) {
    if (ask.operation !== "lookUp" || status !== 200 || body.reservation === null) continue;
    const { startedAt, expiresAt } = body.reservation;
    shortest = Math.min(shortest, Date.parse(expiresAt) - Date.parse(startedAt));
  }
  return Number.isFinite(shortest) ? shortest : 0;
}

/** Returns a function from a moment of the host's clock to the possible range of the monotonic clock. */
export function readClocks({ exchanges }: History): (hostMs: number) => { fromMs: number; untilMs: number } {
  let [least, most] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
  for (const { sentAtMs, invokedMs, endedAtMs, returnedMs } of exchanges) {
    least = Math.min(least, sentAtMs - invokedMs, endedAtMs - returnedMs);
    most = Math.max(most, sentAtMs - invokedMs, endedAtMs - returnedMs);
  }
  return (hostMs) => ({ fromMs: hostMs - most - ROUNDING_MS, untilMs: hostMs - least + ROUNDING_MS });
}
