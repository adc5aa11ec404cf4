import type { Operation } from "../linearize.ts";
import type { Exchange } from "./history.ts";

// A voucher as a register: the states that it can have, and how calls, answers and the clock change or restrict them.

export interface Register {
  status: "Active" | "Redeemed" | "Voided";
  redemption: Redemption | null;
  /** Whether it is suspended. */
  suspended: boolean;
  /** The end of validity by the last extension, in milliseconds of the database's clock. Null without an extension. */
  end: number | null;
  /**
   * The number of {@link counted} changes. The search needs every such change to change the state, and a repeat changes
   * only this number.
   */
  turns: number;
  /** The last reservation until a call ends it. Its end may have passed. */
  hold: Hold | null;
  /** Tickets of reservations that calls have ended, or that were lost. */
  over: string[];
  /**
   * The reservations and the validity that the clock has ended, by name. While the clock steps back and forth over an
   * end, this is unclear, and answers may show either state.
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
  /** Whether the reservation was lost with a primary, because no standby had it. Then no answer may show it. */
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

/** The name of a voucher's validity in `clock`. Each extension gives the validity another name. */
export const validityUntil = (end: number | null): string => (end === null ? "validity" : `validity until ${end}`);
/** The name of a reservation whose ticket no answer contains yet. */
export const nameOfCall = (call: number): string => `reserved by #${call}`;

const endOfHold = ({ hold, clock }: Register) => (hold === null ? "over" : clock[hold.ticket ?? nameOfCall(hold.call)]);

/** Whether the clock allows that the voucher has no reservation. */
export const isFree = (was: Register): boolean => endOfHold(was) !== undefined;
/** Whether the clock allows that the voucher still has its reservation. */
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

/** The voucher gets a later end, or keeps the same. Its reservation and its suspension continue. */
export const extendsTo =
  (end: number, firstEnd: number | undefined): Apply =>
  (was) => {
    if (was.status !== "Active" || (was.end ?? firstEnd ?? end) > end) return [];
    return [was.end === end ? was : { ...was, end }];
  };

/** A change that certainly takes effect, even if it finds its result there already. */
export function counted(apply: Apply): Apply {
  return (was) => apply(was).map((after) => ({ ...after, turns: was.turns + 1 }));
}

/** An answer which says that the end of an extension has passed, or is not later than the voucher's end. */
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

/** Returns the state in which the key's reservation has this ticket, or no state if that is impossible. */
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
 * The ends by the clock, without the reservation's name from before its ticket was known, which is not needed any more.
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
 * The effect of an answer that waits for the standbys. They then have all earlier changes too, so no loss can undo
 * these.
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

/** Keeps each state once and in sorted order, so that registers that differ only in the order of changes are equal. */
function withKept(earlier: readonly Kept[], kept: Kept): Kept[] {
  return [...new Set([...earlier, kept].map((one) => JSON.stringify(one)))].toSorted().map((text) => JSON.parse(text));
}

/**
 * The loss of a primary, perhaps with the last changes that no standby has. It changes every state, so that the search
 * tries each position for it.
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
