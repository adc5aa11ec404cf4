import { isCertain, linearize } from "../linearize.ts";
import { isEnded, isOpen, type Redeem, redeemedUnder, saysNotRedeemed } from "./attempts.ts";
import { clockEnds, readExpiries } from "./clock-ends.ts";
import { type AskFor, type Exchange, type History, refOf, type SuppliedKey, type Violation } from "./history.ts";
import {
  ACTIVE,
  type Apply,
  bind,
  confirmed,
  counted,
  endHold,
  extendsTo,
  isFree,
  isHeld,
  isLive,
  isValid,
  losePrimary,
  only,
  type Register,
  showsChain,
  showsExpired,
  showsFinal,
  showsRedeemed,
  showsSuspended,
  showsTooEarly,
  showsUnredeemed,
  showsVoided,
  suspends,
  unconfirmed,
  type VoucherOperation,
  whileActive,
} from "./register.ts";
import { ROUNDING_MS, type SteppedClock } from "./stepped-clock.ts";

// Each voucher as a register: Active until its validity ends, which extensions move, suspended or reserved by a key,
// redeemed under a reference, or voided.

/** Maximum number of reported violations, because one cause may break thousands. */
const REPORTED_MAX = 6;
const RULE = "each voucher behaves as one register";

/**
 * Checks that the answers about each voucher have an order in which each call takes effect at one moment between its
 * request and its answer. Each end by the clock takes effect when the clock passes it. A call without an answer, or
 * with an open outcome, may take effect at any later time or never. An attempt to redeem takes no effect after a
 * refusal has ended it. A change is decided before it is visible, so it may become visible after an end that had not
 * come when the change was decided. A lost primary may undo the last changes, except those that an answer has
 * confirmed.
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

type VoucherAskOf = Extract<Exchange["ask"], { voucher: unknown }>;
type Times = Pick<VoucherOperation, "fromMs" | "untilMs" | "exchange">;

/**
 * A text that is equal for attempts with an open outcome and the same effect. The search tries only the earliest of
 * them, because it can take effect whenever a later one can. Null for attempts to reserve, because each gives its
 * reservation another name.
 */
function likeOf(ask: VoucherAskOf, isLost: boolean): string | null {
  const { key: _key, voucher: _voucher, ...effect } = ask;
  if (ask.operation === "reserve") return null;
  return JSON.stringify(ask.operation === "redeem" ? { ...effect, isLost, keyId: ask.key.id } : effect);
}

/** The effects of a history's calls on registers, and the content of their answers. */
class RegisterOf {
  readonly #history: History;
  readonly #clock: SteppedClock;
  readonly #expiries: ReturnType<typeof readExpiries>;
  readonly #ticketOfToken = new Map<string, string>();
  readonly #redeemsOf: Map<string, Redeem[]>;
  readonly #voucherOf: Map<string, string>;

  constructor(history: History, clock: SteppedClock) {
    this.#history = history;
    this.#clock = clock;
    this.#expiries = readExpiries(history);
    this.#redeemsOf = Map.groupBy(history.of("redeem"), ({ ask }) => refOf(ask));
    this.#voucherOf = redeemedUnder(history);
    for (const { status, body } of history.of("reserve"))
      if (status === 200) this.#ticketOfToken.set(body.token, body.ticket);
  }

  operations(): VoucherOperation[] {
    const { exchanges, webhooks, losses } = this.#history;
    const shown = exchanges.flatMap((exchange) => [...this.#of(exchange), ...this.#denials(exchange)]);
    const told = webhooks.map(({ returnedMs, voucherId, externalRef }): VoucherOperation => {
      const times = { fromMs: returnedMs, untilMs: returnedMs, exchange: null };
      return { ...times, voucherId, apply: confirmed(showsRedeemed({ externalRef, at: null })) };
    });
    const ids = new Set([...shown, ...told].map(({ voucherId }) => voucherId));
    const lost = losses.flatMap(({ fromMs, untilMs }) =>
      [...ids].map((voucherId) => ({ fromMs, untilMs, voucherId, exchange: null, apply: losePrimary })),
    );
    return [...shown, ...told, ...lost, ...clockEnds(this.#history, this.#clock)];
  }

  #of(exchange: Exchange): VoucherOperation[] {
    const { ask, status, failure, body, invokedMs, returnedMs } = exchange;
    const times: Times = { fromMs: invokedMs, untilMs: returnedMs, exchange };
    if (ask.operation === "voidBatch") return this.#ofVoidedBatch(exchange as Exchange<AskFor<"voidBatch">>);
    if (!("voucher" in ask || ask.operation === "redemption" || ask.operation === "list")) return [];
    if (ask.operation === "redemption" || ask.operation === "list") {
      if (status !== 200) return [];
      const redemptions = ask.operation === "list" ? body.redemptions : [{ ...body, externalRef: ask.externalRef }];
      return redemptions.map(({ voucherInstanceId, externalRef, redeemedAt }: Record<string, string>) => {
        const shown = showsRedeemed({ externalRef: String(externalRef), at: String(redeemedAt) });
        return { ...times, voucherId: String(voucherInstanceId), apply: confirmed(shown) };
      });
    }
    if (ask.voucher.organizationId !== ask.key.organizationId || failure === "refused") return [];
    const { id } = ask.voucher;
    if (ask.operation === "redeem" && status === 200 && body.voucherInstanceId !== id) {
      const shown = showsRedeemed({ externalRef: ask.externalRef, at: body.redeemedAt });
      return [{ ...times, voucherId: body.voucherInstanceId, apply: confirmed(shown) }];
    }
    const apply = status === 200 ? this.#applyOf(exchange, ask) : this.#applyRefusal(exchange, ask);
    const later = status === 200 ? null : this.#applyLater(exchange, ask);
    const isLost = ask.operation === "redeem" && this.#isLost(exchange as Redeem);
    return [
      ...(apply === null ? [] : [{ ...times, voucherId: id, apply }]),
      ...(later === null
        ? []
        : [{ ...times, untilMs: Number.POSITIVE_INFINITY, voucherId: id, apply: later, like: likeOf(ask, isLost) }]),
    ];
  }

  /** A void of a batch may have voided any of its vouchers. If the answer says that none remains, each is final. */
  #ofVoidedBatch(exchange: Exchange<AskFor<"voidBatch">>): VoucherOperation[] {
    const { ask, status, failure, body, invokedMs: fromMs, returnedMs } = exchange;
    if (failure === "refused") return [];
    const isDone = status === 200 && body.remaining === 0;
    const voids = this.#unconfirmed((was) => this.#void(was, exchange));
    return ask.batch.vouchers.flatMap(({ id: voucherId }): VoucherOperation[] => [
      { fromMs, untilMs: Number.POSITIVE_INFINITY, voucherId, exchange, apply: voids },
      ...(isDone ? [{ fromMs, untilMs: returnedMs, voucherId, exchange, apply: confirmed(showsFinal) }] : []),
    ]);
  }

  /** An answer which says that a reference has redeemed nothing applies to all vouchers of the reference. */
  #denials(exchange: Exchange): VoucherOperation[] {
    const { ask, code, invokedMs, returnedMs } = exchange;
    if (ask.operation !== "redeem" && ask.operation !== "redemption") return [];
    if (ask.operation === "redeem" ? !saysNotRedeemed({ code }) : code !== "redemption_not_found") return [];
    const named = (this.#redeemsOf.get(refOf(ask)) ?? []).map((redeem) => redeem.ask.voucher);
    const own = named.filter(({ organizationId }) => organizationId === ask.key.organizationId);
    return [...new Set(own.map(({ id }) => id))].map((voucherId) => {
      const times: Times = { fromMs: invokedMs, untilMs: returnedMs, exchange };
      return { ...times, voucherId, apply: showsUnredeemed(ask.externalRef) };
    });
  }

  /** The content of a 200. */
  #applyOf(exchange: Exchange, ask: VoucherAskOf): Apply {
    const { body } = exchange;
    switch (ask.operation) {
      case "lookUp":
        return this.#applyLookUp(exchange, ask.key);
      case "events":
      case "publicEvents":
        return confirmed(showsChain(body.types));
      case "reserve":
        return confirmed((was) => this.#reserve(was, exchange, ask.key.id, body.ticket));
      case "release":
        if (body.released) return confirmed((was) => this.#release(was, exchange, ask.ticket));
        return confirmed((was) => only(was, !isHeld(was, ask.ticket) || isFree(was)));
      case "void":
        return confirmed(body.alreadyVoided ? showsVoided : (was) => this.#void(was, exchange));
      case "suspend":
      case "resume":
        return confirmed(counted(suspends(ask.operation === "suspend")));
      case "extend":
        return confirmed(counted(extendsTo(Date.parse(ask.validUntil), ask.voucher.validUntilMs)));
      case "redeem": {
        const redemption = { externalRef: ask.externalRef, at: String(body.redeemedAt), isLost: false };
        if (body.alreadyConfirmed) return confirmed(showsRedeemed(redemption));
        return confirmed((was) => this.#redeem(was, exchange, ask, redemption));
      }
    }
  }

  /** The possible effect of a call without a 200, or null if it has none. */
  #applyLater(exchange: Exchange, ask: VoucherAskOf): Apply | null {
    if (ask.operation === "redeem") return this.#applyAttempt(exchange as Redeem);
    // An earlier attempt of the same call may have changed busy vouchers.
    if (!isOpen(exchange) && exchange.code !== "voucher_busy") return null;
    switch (ask.operation) {
      case "reserve":
        return this.#unconfirmed((was) => this.#reserve(was, exchange, ask.key.id, null));
      case "release":
        return this.#unconfirmed((was) => this.#release(was, exchange, ask.ticket));
      case "void":
        return this.#unconfirmed((was) => this.#void(was, exchange));
      case "suspend":
      case "resume":
        return this.#unconfirmed(suspends(ask.operation === "suspend"));
      case "extend":
        return this.#unconfirmed(extendsTo(Date.parse(ask.validUntil), ask.voucher.validUntilMs));
      default:
        return null;
    }
  }

  /**
   * An attempt with an open outcome may still redeem, unless a refusal ended it or its reference has redeemed another
   * voucher. Any other attempt may have redeemed visibly until a primary was lost with the redemption.
   */
  #applyAttempt(redeem: Redeem): Apply | null {
    const { ask, invokedMs } = redeem;
    const isLost = this.#isLost(redeem);
    if (isLost && !this.#history.losses.some(({ untilMs }) => untilMs >= invokedMs)) return null;
    const redemption = { externalRef: ask.externalRef, at: null, isLost };
    return this.#unconfirmed((was) => this.#redeem(was, redeem, ask, redemption));
  }

  /** Whether an attempt without a 200 can have redeemed only on a primary that was lost. */
  #isLost(redeem: Redeem): boolean {
    const ref = refOf(redeem.ask);
    const isOver = !isOpen(redeem) || isEnded(redeem, this.#redeemsOf.get(ref) ?? []);
    return isOver || (this.#voucherOf.get(ref) ?? redeem.ask.voucher.id) !== redeem.ask.voucher.id;
  }

  #unconfirmed(apply: Apply): Apply {
    return this.#history.losses.length === 0 ? apply : unconfirmed(apply);
  }

  #applyRefusal(exchange: Exchange, ask: VoucherAskOf): Apply | null {
    if (!["redeem", "reserve", "void", "suspend", "resume", "extend"].includes(ask.operation)) return null;
    const ticket = ask.operation === "redeem" && "ticket" in ask.by ? ask.by.ticket : null;
    const told = (apply: Apply) => (ask.operation === "redeem" ? confirmed(apply) : apply);
    const { code } = exchange;
    switch (code) {
      case "voucher_used":
        return confirmed((was) => {
          const isOwn = ask.operation === "redeem" && was.redemption?.externalRef === ask.externalRef;
          return only(was, was.redemption?.isLost === false && !isOwn);
        });
      case "voucher_voided":
        return confirmed(showsVoided);
      case "voucher_expired":
        return told(showsExpired);
      case "voucher_suspended":
        return told(showsSuspended);
      case "invalid_request":
        // After a step ahead, an act uses the new time at once, so its refusal may be right although processes still
        // use the old time.
        if (ask.operation !== "extend" || this.#clock.hasStepped) return null;
        return showsTooEarly(Date.parse(ask.validUntil), ask.voucher.validUntilMs);
      case "voucher_reserved":
        return told(whileActive((was) => was.hold !== null && was.hold.keyId !== ask.key.id && isLive(was)));
      case "reservation_ended":
        return confirmed(whileActive((was) => ticket === null || !isHeld(was, ticket) || isFree(was)));
      case "token_mismatch": {
        const ofToken = this.#ticketOfToken.get(String(ask.operation === "redeem" && ask.token)) ?? "";
        if (ticket === null) return told(whileActive((was) => !isHeld(was, ofToken) || isFree(was)));
        return told(whileActive((was) => ticket !== ofToken && isLive(was) && (was.hold?.ticket ?? ticket) === ticket));
      }
      default:
        return null;
    }
  }

  #applyLookUp({ body }: Exchange, key: SuppliedKey): Apply {
    const { status, redeemedAt, reservation } = body;
    if (status === "Redeemed") return confirmed(showsRedeemed({ externalRef: null, at: redeemedAt }));
    if (status === "Voided") return confirmed(showsVoided);
    if (status === "Expired") return showsExpired;
    if (status === "Suspended") return showsSuspended;
    if (reservation === null) return whileActive(isFree);
    const { heldByCaller, ticket, expiresAt } = reservation;
    const isShown = whileActive((was) => {
      const expiry = this.#expiries.get(was.hold?.ticket ?? "");
      const isSame = expiry === undefined || expiry.expiresAtMs === Date.parse(expiresAt);
      return was.hold !== null && isLive(was) && isSame && (was.hold.keyId === key.id) === heldByCaller;
    });
    if (!heldByCaller) return isShown;
    return (was) => isShown(was).flatMap((held) => bind(held, key.id, ticket));
  }

  #reserve(was: Register, exchange: Exchange, keyId: string, ticket: string | null): Register[] {
    if (was.status !== "Active" || was.suspended || !this.#wasValid(was, exchange)) return [];
    const hold = { keyId, ticket, call: ticket === null ? exchange.number : 0 };
    const made = (): Register => ({ ...endHold(was), hold });
    if (ticket === null) return isFree(was) ? [made()] : [];
    if (was.clock[ticket] === "over") return [];
    const repeated = isLive(was) ? bind(was, keyId, ticket) : [];
    return isFree(was) && !was.over.includes(ticket) && !isHeld(was, ticket) ? [...repeated, made()] : repeated;
  }

  #release(was: Register, exchange: Exchange, ticket: string): Register[] {
    if (was.status !== "Active" || was.hold === null || !this.#wasLive(was, exchange)) return [];
    return bind(was, was.hold.keyId, ticket).map(endHold);
  }

  #void(was: Register, exchange: Exchange): Register[] {
    if (was.status !== "Active" || !this.#wasValid(was, exchange)) return [];
    return [{ ...endHold(was), status: "Voided" }];
  }

  #redeem(
    was: Register,
    exchange: Exchange,
    { key, by, token }: AskFor<"redeem">,
    redemption: NonNullable<Register["redemption"]>,
  ): Register[] {
    if (was.status !== "Active" || was.suspended || !this.#wasValid(was, exchange)) return [];
    const redeemed: Register = { ...endHold(was), status: "Redeemed", redemption };
    const { hold } = was;
    // A token that is in no answer belongs to no reservation.
    const ofToken = token === null ? [] : [this.#ticketOfToken.get(token) ?? null];
    const named = new Set(["ticket" in by ? [by.ticket] : [], ofToken].flat());
    if (named.size === 0) return hold?.keyId === key.id || isFree(was) ? [redeemed] : [];
    const [ticket = null] = named;
    if (named.size > 1 || ticket === null || hold === null || !this.#wasLive(was, exchange)) return [];
    if (token === null && hold.keyId !== key.id) return [];
    return bind(was, hold.keyId, ticket).length > 0 ? [redeemed] : [];
  }

  /** Whether the reservation may have been live when a change was decided. */
  #wasLive(was: Register, exchange: Exchange): boolean {
    const expiry = this.#expiries.get(was.hold?.ticket ?? "");
    return isLive(was) || (expiry !== undefined && this.#mayPrecede(exchange, expiry.expiresAtMs));
  }

  /** Whether the voucher may have been valid when a change was decided. */
  #wasValid(was: Register, exchange: Exchange): boolean {
    const { ask } = exchange;
    if (isValid(was)) return true;
    return (
      "voucher" in ask && this.#mayPrecede(exchange, was.end ?? ask.voucher.validUntilMs ?? Number.POSITIVE_INFINITY)
    );
  }

  /** Whether a call was sent before a time of the database. */
  #mayPrecede({ sentAtMs }: Exchange, atMs: number): boolean {
    return this.#clock.last(atMs) >= sentAtMs - ROUNDING_MS;
  }
}
