import type { Operation } from "../linearize.ts";
import type { Exchange } from "./history.ts";

// A voucher as one register: its states, their changes by calls and the clock, and the content of answers.

export interface Register {
  status: "Active" | "Redeemed" | "Voided";
  redemption: Redemption | null;
  /** Whether it is suspended. */
  suspended: boolean;
  /** The end that the last extension gave it, in milliseconds of the database's clock. Null without an extension. */
  end: number | null;
  /** The number of {@link counted} changes. A repeat changes only this number, and must change the state. */
  turns: number;
  /** The last reservation until a call ends it. Its end may have passed. */
  hold: Hold | null;
  /** Tickets of reservations that calls have ended, or that were lost. */
  over: string[];
  /**
   * Reservations, by name, and the validity that the clock has ended. While the clock steps back and forth over an end,
   * the state is unclear, and answers may show either.
   */
  clock: Record<string, "unclear" | "over">;
  /** The states before each change that a lost primary may undo. */
  earlier: Kept[];
  /** Number of lost primaries. */
  losses: number;
}

/** The state that a lost primary may restore. */
type Kept = Pick<Register, "status" | "redemption" | "suspended" | "end" | "hold" | "over">;

interface Redemption {
  externalRef: string;
  /** The redemption in an answer. */
  at: string | null;
  /** Whether no standby had it when the primary was lost. Then no answer may show it. */
  isLost: boolean;
}

export interface Hold {
  keyId: string;
  /** Null until an answer contains it. */
  ticket: string | null;
  /** The number of the call that reserved, or 0 once the ticket is known. */
  call: number;
}

/** An operation on a voucher, with its call. */
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

/** The name of a voucher's validity among the things that the clock ends. Each extension gives it another one. */
export const validityUntil = (end: number | null): string => (end === null ? "validity" : `validity until ${end}`);
/** The name of a reservation whose ticket no answer contains yet. */
export const nameOfCall = (call: number): string => `reserved by #${call}`;

const endOfHold = ({ hold, clock }: Register) => (hold === null ? "over" : clock[hold.ticket ?? nameOfCall(hold.call)]);

/** Whether the voucher may have no reservation, by the clock. */
export const isFree = (was: Register): boolean => endOfHold(was) !== undefined;
/** Whether the voucher may have a reservation, by the clock. */
export const isLive = (was: Register): boolean => endOfHold(was) !== "over";
export const isHeld = ({ hold }: Register, ticket: string): boolean => hold?.ticket === ticket;
const endOfValidity = ({ end, clock }: Register) => clock[validityUntil(end)];
export const isValid = (was: Register): boolean => endOfValidity(was) !== "over";

export const only = (state: Register, isRight: boolean): Register[] => (isRight ? [state] : []);

/** The voucher is suspended or resumed. Its reservation and its validity continue. */
export const suspends =
  (suspended: boolean): Apply =>
  (was) => {
    if (was.status !== "Active") return [];
    return [was.suspended === suspended ? was : { ...was, suspended }];
  };

/** The voucher gets a later end, or the same again. Its reservation and its suspension go on. */
export const extendsTo =
  (end: number, firstEnd: number | undefined): Apply =>
  (was) => {
    if (was.status !== "Active" || (was.end ?? firstEnd ?? end) > end) return [];
    return [was.end === end ? was : { ...was, end }];
  };

/** A change that certainly takes effect, and that may find its result there already. */
export function counted(apply: Apply): Apply {
  return (was) => apply(was).map((after) => ({ ...after, turns: was.turns + 1 }));
}

/** An answer which says that an end has passed, or is not after the voucher's. */
export const showsTooEarly =
  (end: number, firstEnd: number | undefined): Apply =>
  (was) =>
    only(was, was.clock[validityUntil(end)] !== undefined || (was.end ?? firstEnd ?? end + 1) > end);

/** An answer while the voucher can be used. */
export const whileActive =
  (isRight: (was: Register) => boolean): Apply =>
  (was) =>
    only(was, was.status === "Active" && isValid(was) && !was.suspended && isRight(was));

export const showsSuspended: Apply = (was) => only(was, was.status === "Active" && isValid(was) && was.suspended);
export const showsVoided: Apply = (was) => only(was, was.status === "Voided");
/** An answer which says that the voucher can never be used again. */
export const showsFinal: Apply = (was) => only(was, was.status !== "Active" || endOfValidity(was) !== undefined);
export const showsExpired: Apply = (was) => only(was, was.status === "Active" && endOfValidity(was) !== undefined);

/** An answer with a redemption. Its reference is null if the answer does not contain it. */
export function showsRedeemed({ externalRef, at }: { externalRef: string | null; at: string | null }): Apply {
  return (was) => {
    const { redemption } = was;
    if (redemption === null || redemption.isLost) return [];
    if (externalRef !== null && redemption.externalRef !== externalRef) return [];
    if (at === null || redemption.at === at) return [was];
    return redemption.at === null ? [{ ...was, redemption: { ...redemption, at } }] : [];
  };
}

/** An answer which says that a reference has redeemed nothing. */
export function showsUnredeemed(externalRef: string): Apply {
  return (was) => only(was, was.redemption?.externalRef !== externalRef || was.redemption.isLost);
}

export function showsChain(types: readonly string[]): Apply {
  if (types.includes("voucher.instance.redeemed")) return showsRedeemed({ externalRef: null, at: null });
  if (types.includes("voucher.instance.voided")) return showsVoided;
  const last = types.findLast((type) => /suspended|resumed/.test(type));
  const isSuspended = last === "voucher.instance.suspended";
  // The sweeper records the end of the validity some time later.
  const lastEnd = types.findLast((type) => /expired|extended/.test(type));
  const shows = lastEnd === "voucher.instance.expired" ? showsExpired : (was: Register) => [was];
  return (was) => shows(was).filter(({ status, suspended }) => status === "Active" && suspended === isSuspended);
}

/** The state in which the key's reservation has this ticket, if that is possible. */
export function bind(was: Register, keyId: string, ticket: string): Register[] {
  const { hold, over } = was;
  if (hold?.keyId !== keyId) return [];
  if (hold.ticket === ticket) return [was];
  if (hold.ticket !== null || over.includes(ticket)) return [];
  return [{ ...was, hold: { keyId, ticket, call: 0 }, clock: clockWithout(was) }];
}

export function endHold(was: Register): Register {
  const ticket = was.hold?.ticket ?? null;
  const over = ticket === null ? was.over : [...was.over, ticket].toSorted();
  return { ...was, hold: null, over, clock: clockWithout(was) };
}

/**
 * The ends by the clock, without the name that the reservation had before its ticket, which is needed only until then.
 */
function clockWithout({ hold, clock }: Register): Register["clock"] {
  const { [nameOfCall(hold?.call ?? 0)]: _, ...others } = clock;
  return others;
}

/** The clock passes an end, or it becomes unclear whether it has passed it. */
export function passes(name: string, how: "unclear" | "over"): Apply {
  return (was) => {
    if (was.clock[name] === "over") return [was];
    // Sorted, so that equal states are recognized.
    const ends = Object.entries({ ...was.clock, [name]: how }).toSorted(([one], [other]) => (one < other ? -1 : 1));
    return [{ ...was, clock: Object.fromEntries(ends) }];
  };
}

/**
 * The effect of an answer that waits for the standbys: they then have all earlier changes as well. If a state has no
 * `earlier`, the answer may not change it now but change a later state that has one. Placing the answer at once is
 * still correct, because keeping more of `earlier` never allows fewer outcomes.
 */
export function confirmed(apply: Apply): Apply {
  return (was) => apply(was).map((after) => (after.earlier.length === 0 ? after : { ...after, earlier: [] }));
}

/** A change that perhaps no standby has. */
export function unconfirmed(apply: Apply): Apply {
  return (was) => {
    const { status, redemption, suspended, end, hold, over } = was;
    const earlier = withKept(was.earlier, { status, redemption, suspended, end, hold, over });
    return apply(was).map((after) => (after === was ? was : { ...after, earlier }));
  };
}

/** Each state once and sorted, so that equal registers are recognized: the order of the changes does not matter. */
function withKept(earlier: readonly Kept[], kept: Kept): Kept[] {
  return [...new Set([...earlier, kept].map((one) => JSON.stringify(one)))].toSorted().map((text) => JSON.parse(text));
}

/**
 * The loss of a primary, perhaps with the last changes that no standby has. It always changes the state, because its
 * position in the order matters.
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
