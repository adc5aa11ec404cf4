import { isCertain, linearize, type Operation } from "../linearize.ts";
import type { AskFor, Exchange, History, SuppliedKey, Violation } from "./history.ts";
import type { SteppedClock } from "./stepped-clock.ts";

// Each voucher as a register: Active (or Expired), reserved by a key, redeemed under a reference, or voided.

interface Register {
  status: "Active" | "Redeemed" | "Voided";
  /** Under which reference, and when as an answer has shown it. */
  redemption: { externalRef: string; at: string | null } | null;
  /** The last reservation until a call ends it. Its time may be over. The ticket is null until an answer has it. */
  hold: { keyId: string; ticket: string | null } | null;
  /** Tickets of reservations that have ended. */
  over: string[];
}

/** An operation on a voucher, with the call that shows it. */
type VoucherOperation = Operation<Register> & { voucherId: string; exchange: Exchange | null };
type Apply = VoucherOperation["apply"];

const ACTIVE: Register = { status: "Active", redemption: null, hold: null, over: [] };
/** Both clocks round to milliseconds. */
const ROUNDING_MS = 2;
/** Violations that are reported: one cause may break thousands. */
const REPORTED_MAX = 6;
const RULE = "each voucher behaves as one register";

/**
 * Checks that the answers about each voucher have an order in which each call takes effect at one moment between its
 * request and its answer. A call without an answer, or whose answer leaves the outcome open, may take effect at any
 * later time or never.
 */
export function checkVoucherRegisters(history: History, clock: SteppedClock): Violation[] {
  // A list also shows vouchers that were redeemed before the history began.
  const called = new Set(history.exchanges.flatMap(({ ask }) => ("voucher" in ask ? [ask.voucher.id] : [])));
  const isOlder = ({ voucherId, exchange }: VoucherOperation) =>
    exchange?.ask.operation === "list" && !called.has(voucherId);
  const operations = new RegisterOf(history, clock).operations().filter((operation) => !isOlder(operation));
  const broken = [...Map.groupBy(operations, ({ voucherId }) => voucherId)].flatMap(([voucherId, of]): Violation[] => {
    const verdict = linearize(ACTIVE, of);
    if (verdict.kind === "linearizable") return [];
    if (verdict.kind === "undecided")
      return [{ rule: RULE, detail: `${voucherId}: too many orders to search`, exchanges: exchangesOf(of) }];
    const { placed, next } = verdict;
    const detail = `${voucherId}: after ${placed.length} of ${of.length} operations, no next one explains its answer`;
    const last = placed.slice(-4);
    return [{ rule: RULE, detail, exchanges: exchangesOf([...last, ...next.filter(isCertain)]) }];
  });
  return broken.slice(0, REPORTED_MAX);
}

const exchangesOf = (operations: readonly VoucherOperation[]) => operations.flatMap(({ exchange }) => exchange ?? []);

/** What the calls of a history do to registers, and what their answers show of them. */
class RegisterOf {
  readonly #history: History;
  readonly #clock: SteppedClock;
  /** What a lost primary showed and no standby had may be undone: what is told of reservations only by reading them. */
  readonly #mayBeUndone: boolean;
  readonly #expiresAtMs = new Map<string, number>();
  readonly #ticketOfToken = new Map<string, string>();

  constructor(history: History, clock: SteppedClock) {
    this.#history = history;
    this.#clock = clock;
    this.#mayBeUndone = history.lostPrimariesMs.length > 0;
    for (const { status, body } of history.of("reserve")) {
      if (status !== 200) continue;
      this.#expiresAtMs.set(body.ticket, Date.parse(body.expiresAt));
      this.#ticketOfToken.set(body.token, body.ticket);
    }
  }

  operations(): VoucherOperation[] {
    const shown = this.#history.exchanges.flatMap((exchange) => this.#of(exchange));
    const told = this.#history.webhooks.map(({ returnedMs, voucherId, externalRef }): VoucherOperation => {
      const window = { fromMs: returnedMs, untilMs: returnedMs, exchange: null };
      return { ...window, voucherId, apply: showsRedeemed({ externalRef, at: null }) };
    });
    return [...shown, ...told];
  }

  #of(exchange: Exchange): VoucherOperation[] {
    const { ask, status, failure, body, invokedMs, returnedMs } = exchange;
    const certain = (voucherId: string, apply: Apply): VoucherOperation => {
      return { fromMs: invokedMs, untilMs: returnedMs, voucherId, exchange, apply };
    };
    if (ask.operation === "acquire") return [];
    if (ask.operation === "redemption" || ask.operation === "list") {
      if (status !== 200) return [];
      const redemptions = ask.operation === "list" ? body.redemptions : [{ ...body, externalRef: ask.externalRef }];
      return redemptions.map(({ voucherInstanceId, externalRef, redeemedAt }: Record<string, string>) =>
        certain(String(voucherInstanceId), showsRedeemed({ externalRef: String(externalRef), at: String(redeemedAt) })),
      );
    }
    if (ask.voucher.organizationId !== ask.key.organizationId || failure === "refused") return [];
    if (ask.operation === "redeem" && status === 200 && body.voucherInstanceId !== ask.voucher.id) {
      const { voucherInstanceId, redeemedAt } = body;
      return [certain(voucherInstanceId, showsRedeemed({ externalRef: ask.externalRef, at: redeemedAt }))];
    }
    const apply = this.#applyOf(exchange, ask);
    if (apply !== null) return [certain(ask.voucher.id, apply)];
    const later = this.#applyLater(exchange, ask);
    return later === null ? [] : [{ ...certain(ask.voucher.id, later), untilMs: Number.POSITIVE_INFINITY }];
  }

  /** What an answer shows. Null when it shows nothing. */
  #applyOf(
    exchange: Exchange,
    ask: AskFor<"redeem" | "reserve" | "release" | "lookUp" | "events" | "publicEvents">,
  ): Apply | null {
    const { status, code, body } = exchange;
    if (status === null) return null;
    if (status !== 200) return this.#applyRefusal(exchange, ask, code);
    switch (ask.operation) {
      case "lookUp":
        return this.#applyLookUp(exchange, ask.key);
      case "events":
      case "publicEvents":
        return showsStatus(statusOfChain(body.types));
      case "reserve":
        return (was) => this.#reserve(was, exchange, ask.key.id, body.ticket);
      case "release":
        if (body.released) return (was) => this.#release(was, exchange, ask.ticket);
        return (was) => only(was, this.#mayBeUndone || !isHeld(was, ask.ticket) || this.#mayBeOver(was, exchange));
      case "redeem": {
        const redemption = { externalRef: ask.externalRef, at: String(body.redeemedAt) };
        return body.alreadyConfirmed
          ? showsRedeemed(redemption)
          : (was) => this.#redeem(was, exchange, ask, redemption);
      }
    }
  }

  /** What a call may do later if its answer leaves the outcome open. Null when it does nothing. */
  #applyLater(exchange: Exchange, ask: Exchange["ask"]): Apply | null {
    const { status, code } = exchange;
    const isOpen = status === null || code === "redeem_unknown" || code === "unavailable";
    const late = { ...exchange, endedAtMs: Number.POSITIVE_INFINITY };
    if (ask.operation === "redeem" && isOpen) {
      return (was) => this.#redeem(was, late, ask, { externalRef: ask.externalRef, at: null });
    }
    if (ask.operation === "reserve" && (isOpen || code === "voucher_busy")) {
      return (was) => this.#reserve(was, late, ask.key.id, null);
    }
    if (ask.operation === "release" && (isOpen || code === "voucher_busy")) {
      return (was) => this.#release(was, late, ask.ticket);
    }
    return null;
  }

  #applyRefusal(exchange: Exchange, ask: Exchange["ask"], code: string | undefined): Apply | null {
    if (ask.operation !== "redeem" && ask.operation !== "reserve") return null;
    const ticket = ask.operation === "redeem" && "ticket" in ask.by ? ask.by.ticket : null;
    const token = ask.operation === "redeem" ? ask.token : null;
    const isOver = (was: Register, of: string | undefined | null) =>
      of == null || !isHeld(was, of) || this.#mayBeOver(was, exchange);
    const whileActive = (holds: (was: Register) => boolean): Apply => {
      return (was) => only(was, was.status === "Active" && (this.#mayBeUndone || holds(was)));
    };
    switch (code) {
      case "voucher_used":
        return (was) => {
          const isOwn = ask.operation === "redeem" && was.redemption?.externalRef === ask.externalRef;
          return only(was, was.status === "Redeemed" && !isOwn);
        };
      case "voucher_voided":
        return showsStatus("Voided");
      case "voucher_expired":
        return showsStatus("Active");
      case "voucher_reserved":
        return whileActive(({ hold }) => hold !== null && hold.keyId !== ask.key.id && this.#mayBeLive(hold, exchange));
      case "reservation_ended":
        return whileActive((was) => isOver(was, ticket));
      case "token_mismatch":
        return whileActive((was) => isOver(was, this.#ticketOfToken.get(String(token))));
      default:
        return null;
    }
  }

  #applyLookUp(exchange: Exchange, key: SuppliedKey): Apply {
    const { status, redeemedAt, reservation } = exchange.body;
    if (status === "Redeemed") return showsRedeemed({ externalRef: null, at: redeemedAt });
    if (status === "Voided") return showsStatus("Voided");
    return (was) => {
      if (was.status !== "Active") return [];
      if (this.#mayBeUndone) return [was];
      if (reservation === null) return only(was, this.#isFree(was, exchange));
      const { hold } = was;
      if (hold === null || !this.#mayBeLive(hold, exchange)) return [];
      if (!reservation.heldByCaller) return only(was, hold.keyId !== key.id);
      return bind(was, key.id, reservation.ticket);
    };
  }

  #reserve(was: Register, exchange: Exchange, keyId: string, ticket: string | null): Register[] {
    if (was.status !== "Active") return [];
    const repeated = ticket === null ? [] : bind(was, keyId, ticket);
    if (!this.#isFree(was, exchange) || (ticket !== null && was.over.includes(ticket)) || isHeld(was, ticket)) {
      return repeated;
    }
    return [...repeated, { ...endHold(was), hold: { keyId, ticket } }];
  }

  #release(was: Register, exchange: Exchange, ticket: string): Register[] {
    const { hold } = was;
    if (was.status !== "Active" || hold === null || !this.#mayBeLive(hold, exchange)) return [];
    return bind(was, hold.keyId, ticket).map(endHold);
  }

  #redeem(
    was: Register,
    exchange: Exchange,
    { key, by, token }: AskFor<"redeem">,
    redemption: Register["redemption"],
  ): Register[] {
    const named = "ticket" in by ? by.ticket : token === null ? null : this.#ticketOfToken.get(token);
    const { hold } = was;
    if (was.status !== "Active") return [];
    const redeemed: Register = { ...endHold(was), status: "Redeemed", redemption };
    const isOwn = hold?.keyId === key.id || token !== null;
    if (named == null) return isOwn || this.#isFree(was, exchange) ? [redeemed] : [];
    if (hold === null || !isOwn || !this.#mayBeLive(hold, exchange)) return [];
    return bind(was, hold.keyId, named).length > 0 ? [redeemed] : [];
  }

  /** Whether nothing is reserved at some moment of a call, as far as time goes. */
  #isFree(was: Register, exchange: Exchange): boolean {
    return was.hold === null || this.#mayBeOver(was, exchange);
  }

  /** Whether the time of the reservation may be over when a call takes effect. Without its ticket, it always may. */
  #mayBeOver({ hold }: Register, { endedAtMs }: Exchange): boolean {
    const expiresAtMs = this.#expiresAtMs.get(hold?.ticket ?? "");
    return expiresAtMs === undefined || this.#clock.first(expiresAtMs) <= endedAtMs + ROUNDING_MS;
  }

  #mayBeLive({ ticket }: NonNullable<Register["hold"]>, { sentAtMs }: Exchange): boolean {
    const expiresAtMs = this.#expiresAtMs.get(ticket ?? "");
    return expiresAtMs === undefined || this.#clock.last(expiresAtMs) >= sentAtMs - ROUNDING_MS;
  }
}

const only = (state: Register, isRight: boolean): Register[] => (isRight ? [state] : []);
const isHeld = ({ hold }: Register, ticket: string | null) => ticket !== null && hold?.ticket === ticket;
const showsStatus =
  (status: Register["status"]): Apply =>
  (was) =>
    only(was, was.status === status);

/** An answer that shows a redemption. Its reference is null if the answer does not have it. */
function showsRedeemed({ externalRef, at }: { externalRef: string | null; at: string | null }): Apply {
  return (was) => {
    const { redemption } = was;
    if (redemption === null || (externalRef !== null && redemption.externalRef !== externalRef)) return [];
    if (at === null || redemption.at === at) return [was];
    return redemption.at === null ? [{ ...was, redemption: { ...redemption, at } }] : [];
  };
}

function statusOfChain(types: readonly string[]): Register["status"] {
  if (types.includes("voucher.instance.redeemed")) return "Redeemed";
  return types.includes("voucher.instance.voided") ? "Voided" : "Active";
}

/** The state in which the key's reservation has this ticket, if it can have it. */
function bind(was: Register, keyId: string, ticket: string): Register[] {
  const { hold, over } = was;
  if (hold?.keyId !== keyId) return [];
  if (hold.ticket === ticket) return [was];
  return hold.ticket === null && !over.includes(ticket) ? [{ ...was, hold: { keyId, ticket } }] : [];
}

function endHold(was: Register): Register {
  const ticket = was.hold?.ticket ?? null;
  return { ...was, hold: null, over: ticket === null ? was.over : [...was.over, ticket] };
}
