import type { Operation } from "../linearize.ts";
import { decide, type Outcome, type Voucher, type VoucherCall } from "../model/voucher.ts";
import type { Exchange } from "./history.ts";

// What is known of a voucher between overlapping calls: its state, the expiries that the clock has passed, and what is
// lost if the primary is lost.

export interface Register {
  status: "Active" | "Redeemed" | "Voided";
  redemption: Redemption | null;
  suspended: boolean;
  /**
   * The end of validity that the last extension set, in milliseconds of the database's clock. Null without an
   * extension.
   */
  end: number | null;
  /**
   * How many {@link counted} changes took effect. `linearize` needs a change of state from each of them. For a repeat,
   * only this number changes.
   */
  turns: number;
  /** The last reservation until a call ends it, even if the clock has passed its end. */
  hold: Hold | null;
  /** The tickets of reservations that calls have ended, or that were lost with a primary. */
  over: string[];
  /**
   * The ends of reservations and validities that the clock has passed, by name. "unclear" while the clock steps back
   * and forth over an end. Answers may then show either state.
   */
  clock: Record<string, "unclear" | "over">;
  /** The state before each change that may be lost with the primary. */
  earlier: Kept[];
  losses: number;
}

/** The state that the voucher has again if a primary is lost. */
type Kept = Pick<Register, "status" | "redemption" | "suspended" | "end" | "hold" | "over">;

interface Redemption {
  externalRef: string;
  /** The redemption in an answer. */
  at: string | null;
  /** Whether the redemption was lost with a primary. Then no answer may show it. */
  isLost: boolean;
}

interface Hold {
  keyId: string;
  /** Null until an answer shows it. */
  ticket: string | null;
  /** The number of the call that reserved, or 0 once the ticket is known. */
  call: number;
}

/** An operation on a voucher, and the exchange from which it comes. */
export type VoucherOperation = Operation<Register> & { voucherId: string; exchange: Exchange | null };
export type Apply = VoucherOperation["apply"];

export const ACTIVE: Register = {
  status: "Active",
  redemption: null,
  suspended: false,
  end: null,
  turns: 0,
  hold: null,
  over: [],
  clock: {},
  earlier: [],
  losses: 0,
};

/** Returns the name in `clock` of the validity with this end. */
export const validityUntil = (end: number | null): string => (end === null ? "validity" : `validity until ${end}`);
/** The name of a reservation whose ticket no answer has shown yet. */
export const nameOfCall = (call: number): string => `reserved by #${call}`;
const nameOfHold = ({ ticket, call }: Hold): string => ticket ?? nameOfCall(call);

const endOfHold = ({ hold, clock }: Register) => (hold === null ? "over" : clock[nameOfHold(hold)]);

/** Whether the voucher may be without a reservation, by the clock. */
const isFree = (was: Register): boolean => endOfHold(was) !== undefined;
/** Whether the voucher may still have its reservation, by the clock. */
const isLive = (was: Register): boolean => endOfHold(was) !== "over";
const endOfValidity = ({ end, clock }: Register) => clock[validityUntil(end)];

export const only = (state: Register, isRight: boolean): Register[] => (isRight ? [state] : []);

/** Which ends the clock may have passed between a call's decision and the moment when its change became visible. */
interface Late {
  validity: boolean;
  hold: boolean;
}

/** Returns the voucher's possible states. A reservation of unknown ticket has one of `tickets`, or another ticket. */
function statesOf(was: Register, tickets: readonly string[], late: Late | null = null): Voucher[] {
  const { status, suspended, redemption, hold, over } = was;
  if (redemption?.isLost) return [];
  const mayBeValid = endOfValidity(was) !== "over" || late?.validity === true;
  const ends = [...(mayBeValid ? [false] : []), ...(endOfValidity(was) === undefined ? [] : [true])];
  const holds: Voucher["hold"][] = isFree(was) ? [null] : [];
  if (hold !== null && (isLive(was) || late?.hold)) {
    const guessed = hold.ticket === null ? tickets.filter((one) => !over.includes(one)) : [];
    for (const ticket of [nameOfHold(hold), ...guessed]) holds.push({ keyId: hold.keyId, ticket });
  }
  const redeemedUnder = redemption?.externalRef ?? null;
  return ends.flatMap((isOver) =>
    holds.map((held): Voucher => ({ status, isOver, isSuspended: suspended, hold: held, redeemedUnder })),
  );
}

interface Change {
  call: number;
  redemption: Redemption | null;
  end: number | null;
}

/** Returns the register that follows if the voucher was in the state `seen`, and the call left it in `after`. */
function follow(was: Register, seen: Voucher, after: Voucher, { call, redemption, end }: Change): Register {
  const isNamed = was.hold?.ticket === null && seen.hold !== null && seen.hold.ticket !== nameOfHold(was.hold);
  const named = isNamed
    ? { ...was, hold: { ...(seen.hold as NonNullable<Voucher["hold"]>), call: 0 }, clock: clockWithout(was) }
    : was;
  if (after === seen) return named;
  const isKept = after.status === "Active" && after.hold === seen.hold;
  const { hold: kept, ...ended } = isKept ? named : endHold(named);
  const isUnnamed = after.hold?.ticket === nameOfCall(call);
  const hold =
    isKept || after.hold === null ? kept : { ...after.hold, ...(isUnnamed ? { ticket: null, call } : { call: 0 }) };
  const isRedeemed = after.status === "Redeemed";
  return {
    ...ended,
    hold,
    status: after.status,
    suspended: after.isSuspended,
    redemption: isRedeemed ? redemption : was.redemption,
    end: end ?? was.end,
  };
}

/** Returns the registers after these states. If the answer is right without guessing a ticket, none is guessed. */
function followAll(was: Register, found: readonly { seen: Voucher; after: Voucher }[], change: Change): Register[] {
  const isUnnamed = ({ hold }: Voucher) => was.hold?.ticket === null && hold?.ticket === nameOfHold(was.hold);
  const needsNoGuess = found.some(({ seen }) => isUnnamed(seen));
  const kept = found.filter(({ seen }) => !needsNoGuess || seen.hold === null || isUnnamed(seen));
  const all = kept.map(({ seen, after }) => follow(was, seen, after, change));
  return all.length < 2 ? all : [...new Map(all.map((one) => [JSON.stringify(one), one])).values()];
}

/** The effect of an answer that shows the voucher's state, and perhaps the reservation's ticket. */
export function shows(isRight: (seen: Voucher) => boolean, ticket: string | null = null): Apply {
  return (was) => {
    const found = statesOf(was, ticket === null ? [] : [ticket]).filter(isRight);
    return followAll(
      was,
      found.map((seen) => ({ seen, after: seen })),
      { call: 0, redemption: null, end: null },
    );
  };
}

/** A call whose answer the model judges. */
export interface Decision extends Change {
  /** The tickets in the call and in its answer. */
  tickets: readonly string[];
  /** What the call may mean to the model in a register. */
  callsOf(was: Register): readonly VoucherCall[];
  /** Whether the call's answer agrees with this outcome. */
  isRight(outcome: Outcome): boolean;
  late(was: Register): Late;
}

/** The effect of a call to which the model gives an outcome in one of the voucher's possible states. */
export function decides({ tickets, callsOf, isRight, late, ...change }: Decision): Apply {
  const isChange = (outcome: Outcome) => outcome.refusal === null && !outcome.isRepeat;
  return (was) => {
    const calls = callsOf(was);
    const outcomesIn = (states: readonly Voucher[]) =>
      states
        .flatMap((seen) => calls.map((call) => ({ seen, outcome: decide(seen, call) })))
        .filter(({ outcome }) => isRight(outcome));
    const told = outcomesIn(statesOf(was, tickets)).filter(({ outcome }) => !isChange(outcome));
    const changes = outcomesIn(statesOf(was, tickets, late(was))).filter(({ outcome }) => isChange(outcome));
    const found = [...told, ...changes].map(({ seen, outcome }) => {
      return { seen, after: outcome.refusal === null ? outcome.after : seen };
    });
    return followAll(was, found, change);
  };
}

/** Returns how a new end of validity may compare with the present one, which is unknown if it is after the run. */
export function relationsOf(was: Register, end: number, firstEnd: number | undefined, isLate: boolean) {
  const present = was.end ?? firstEnd;
  const relation = end === present ? "same" : end < (present ?? end) ? "earlier" : "later";
  const past = was.clock[validityUntil(end)];
  return [
    ...(past !== "over" || isLate
      ? ([relation, ...(present === undefined ? (["earlier"] as const) : [])] as const)
      : []),
    ...(past === undefined ? [] : (["past"] as const)),
  ];
}

/** Counts a change that certainly takes effect, even if its result was already there. */
export function counted(apply: Apply): Apply {
  return (was) => apply(was).map((after) => ({ ...after, turns: was.turns + 1 }));
}

/** The effect of an answer that shows a redemption. `externalRef` is null if the answer does not show the reference. */
export function showsRedeemed({ externalRef, at }: { externalRef: string | null; at: string | null }): Apply {
  return (was) => {
    const { redemption } = was;
    if (redemption === null || redemption.isLost) return [];
    if (externalRef !== null && redemption.externalRef !== externalRef) return [];
    if (at === null || redemption.at === at) return [was];
    return redemption.at === null ? [{ ...was, redemption: { ...redemption, at } }] : [];
  };
}

/** The effect of an answer which says that a reference has redeemed nothing. */
export function showsUnredeemed(externalRef: string): Apply {
  return (was) => only(was, was.redemption?.externalRef !== externalRef || was.redemption.isLost);
}

/** The effect of an answer with the types of the voucher's events. */
export function showsChain(types: readonly string[]): Apply {
  const lastOf = (pattern: RegExp) => types.findLast((type) => pattern.test(type))?.replace("voucher.instance.", "");
  const status = { redeemed: "Redeemed", voided: "Voided" }[lastOf(/redeemed|voided/) ?? ""] ?? "Active";
  const isSuspended = lastOf(/suspended|resumed/) === "suspended";
  // The sweeper records that a validity has ended only some time later.
  const isOver = lastOf(/expired|extended/) === "expired";
  return shows(
    (seen) =>
      seen.status === status && (status !== "Active" || (seen.isSuspended === isSuspended && (seen.isOver || !isOver))),
  );
}

function endHold(was: Register): Register {
  const ticket = was.hold?.ticket ?? null;
  const over = ticket === null ? was.over : [...was.over, ticket].toSorted();
  return { ...was, hold: null, over, clock: clockWithout(was) };
}

/** Returns the passed ends, without the name that the reservation had before its ticket was known. */
function clockWithout({ hold, clock }: Register): Register["clock"] {
  const { [nameOfCall(hold?.call ?? 0)]: _, ...others } = clock;
  return others;
}

/** The effect when the clock passes an end, or when it becomes unclear whether it did. */
export function passes(name: string, how: "unclear" | "over"): Apply {
  return (was) => {
    if (was.clock[name] === "over") return [was];
    // Sorted, so that equal states have equal texts.
    const ends = Object.entries({ ...was.clock, [name]: how }).toSorted(([one], [other]) => (one < other ? -1 : 1));
    return [{ ...was, clock: Object.fromEntries(ends) }];
  };
}

/**
 * The effect of an answer that waited for the standbys. They then have all earlier changes too, so none of these can be
 * lost. If `earlier` is empty, such an answer changes nothing, so `linearize` places it at once. It would empty a later
 * `earlier`, which breaks the rule of `Operation`, but is correct: a fuller `earlier` never allows fewer outcomes.
 */
export function confirmed(apply: Apply): Apply {
  return (was) => apply(was).map((after) => (after.earlier.length === 0 ? after : { ...after, earlier: [] }));
}

/** The effect of a change that standbys may lack. */
export function unconfirmed(apply: Apply): Apply {
  return (was) => {
    const { status, redemption, suspended, end, hold, over } = was;
    const earlier = withKept(was.earlier, { status, redemption, suspended, end, hold, over });
    return apply(was).map((after) => (after === was ? was : { ...after, earlier }));
  };
}

/** Keeps each state once and sorted, so that the order of changes makes no difference between registers. */
function withKept(earlier: readonly Kept[], kept: Kept): Kept[] {
  return [...new Set([...earlier, kept].map((one) => JSON.stringify(one)))].toSorted().map((text) => JSON.parse(text));
}

/**
 * A primary is lost, perhaps with the last changes, which no standby had. Every state changes, so that `linearize`
 * tries each position for the loss.
 */
export const losePrimary: Apply = (was) => {
  const survives = { ...was, earlier: [], losses: was.losses + 1 };
  const tickets = [...was.over, ...(was.hold?.ticket == null ? [] : [was.hold.ticket])];
  return [
    survives,
    ...was.earlier.map((kept) => {
      const over = tickets.filter((ticket) => ticket !== kept.hold?.ticket);
      return { ...survives, ...kept, over };
    }),
  ];
};
