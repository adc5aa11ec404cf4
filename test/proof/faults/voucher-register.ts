import { isCertain, linearize } from "../linearize.ts";
import { type Outcome, statusOf, type VoucherCall } from "../model/voucher.ts";
import { isEnded, isOpen, type Redeem, redeemedUnder, saysNotRedeemed } from "./attempts.ts";
import { clockEnds, readClocks, readExpiries } from "./clock-ends.ts";
import { type AskFor, type Exchange, type History, refOf, type SuppliedKey, type Violation } from "./history.ts";
import { AT_END_MS, type Records } from "./records.ts";
import {
  ACTIVE,
  type Apply,
  confirmed,
  counted,
  decides,
  losePrimary,
  nameOfCall,
  only,
  type Register,
  relationsOf,
  shows,
  showsChain,
  showsRedeemed,
  showsUnredeemed,
  unconfirmed,
  type VoucherOperation,
} from "./register.ts";
import { ROUNDING_MS, type SteppedClock } from "./stepped-clock.ts";

// Treats each voucher as a register. It is Active, perhaps suspended or reserved by a key, until its validity ends, a
// call redeems it under a reference, or a call voids it. Extensions move the end of validity.

/** Maximum number of violations in the report. One fault may cause thousands. */
const REPORTED_MAX = 6;
const RULE = "each voucher behaves as one register";

/**
 * Checks that the answers about each voucher have an order in which each call takes effect at one moment between its
 * request and its answer. Each end by the clock takes effect when the clock passes it.
 * - A call with an unknown outcome may take effect at any later time or never. A refusal ends an attempt to redeem.
 * - A change that was decided before an end by the clock may become visible after this end.
 * - A lost primary may undo the last changes, except those that an answer has confirmed.
 * - The voucher's row at the end is its last answer. If no primary was lost, each redemption and reservation has a row,
 * and is not visible before the row's time.
 */
export function checkVoucherRegisters(
  history: History,
  clock: SteppedClock,
  records: Records | null = null,
): Violation[] {
  // A list also shows vouchers that were redeemed before the history began.
  const called = new Set(history.exchanges.flatMap(({ ask }) => ("voucher" in ask ? [ask.voucher.id] : [])));
  const isOlder = (voucherId: string, of: readonly VoucherOperation[]) =>
    !called.has(voucherId) && exchangesOf(of).some(isList) && exchangesOf(of).every(isList);
  const operations = new RegisterOf(history, clock, records).operations();
  const broken = [...Map.groupBy(operations, ({ voucherId }) => voucherId)].flatMap(([voucherId, of]): Violation[] => {
    if (isOlder(voucherId, of)) return [];
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
const isList = ({ ask }: Exchange) => ask.operation === "list";

type VoucherAskOf = Extract<Exchange["ask"], { voucher: unknown }>;
type DecidedAsk = Exclude<VoucherAskOf, { operation: "lookUp" | "events" | "publicEvents" }>;
type Times = Pick<VoucherOperation, "fromMs" | "untilMs" | "exchange">;

/**
 * Equal for attempts with an unknown outcome and the same effect. `linearize` tries only the earliest of them, because
 * it can take effect whenever a later one can. Null for attempts to reserve, because each reservation has another name.
 */
function likeOf(ask: VoucherAskOf, isLost: boolean): string | null {
  const { key: _key, voucher: _voucher, ...effect } = ask;
  if (ask.operation === "reserve") return null;
  return JSON.stringify(ask.operation === "redeem" ? { ...effect, isLost, keyId: ask.key.id } : effect);
}

/** `REFUSALS` depend on the voucher's state. The API waits for the standbys before it answers with one of `FINAL`. */
const FINAL = ["voucher_used", "voucher_voided", "reservation_ended"];
const REFUSALS = [
  ...FINAL,
  "voucher_expired",
  "voucher_suspended",
  "voucher_reserved",
  "token_mismatch",
  "invalid_request",
  "cap_reached",
];

const isChange = (outcome: Outcome) => outcome.refusal === null && !outcome.isRepeat;

/** Whether this outcome of the model explains an answer. */
function isAnswer(outcome: Outcome, { ask, status, code, body }: Exchange): boolean {
  if (status !== 200) return code === "cap_reached" ? isChange(outcome) : outcome.refusal === code;
  switch (ask.operation) {
    case "release":
      return body.released === (outcome.refusal === null);
    case "void":
      return outcome.refusal === (body.alreadyVoided ? "voucher_voided" : null);
    case "reserve":
      return outcome.refusal === null && outcome.after.hold?.ticket === body.ticket;
    case "redeem":
      return outcome.refusal === null && outcome.isRepeat === (body.alreadyConfirmed ?? outcome.isRepeat);
    default:
      return outcome.refusal === null;
  }
}

/** Translates a history's calls and answers into operations on registers. */
class RegisterOf {
  readonly #history: History;
  readonly #clock: SteppedClock;
  readonly #expiries: ReturnType<typeof readExpiries>;
  readonly #ticketOfToken = new Map<string, string>();
  readonly #redeemsOf: Map<string, Redeem[]>;
  readonly #voucherOf: Map<string, string>;
  readonly #records: Records | null;
  readonly #toMonotonic: ReturnType<typeof readClocks>;

  constructor(history: History, clock: SteppedClock, records: Records | null) {
    this.#history = history;
    this.#clock = clock;
    this.#records = records;
    this.#toMonotonic = readClocks(history);
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
    const ends = [...ids].flatMap((id) => this.#end(id));
    return [...shown, ...told, ...lost, ...clockEnds(this.#history, this.#clock), ...ends];
  }

  /** Makes an operation of what the voucher's row says at the end. */
  #end(voucherId: string): VoucherOperation[] {
    const row = this.#records?.vouchers.get(voucherId);
    if (row === undefined) return [];
    const redemption = this.#records?.redemptionsByVoucher.get(voucherId);
    const shown = shows(
      ({ status, isSuspended }) => status === row.status && (status !== "Active" || isSuspended === row.isSuspended),
    );
    const at = redemption === undefined ? "" : new Date(redemption.redeemedAtMs).toISOString();
    const redeemed = redemption && showsRedeemed({ externalRef: redemption.externalRef, at });
    const apply = confirmed(redeemed === undefined ? shown : (was) => shown(was).flatMap(redeemed));
    return [{ fromMs: AT_END_MS, untilMs: AT_END_MS, voucherId, exchange: null, apply }];
  }

  /** Finds when a call's change may be visible at the earliest, by the rows that it may have written. Else Infinity. */
  #visibleFromMs({ invokedMs }: Exchange, rowsMs: readonly number[]): number {
    const firstMs = Math.min(...rowsMs.map((ms) => this.#clock.first(ms)));
    return Math.max(invokedMs, this.#toMonotonic(firstMs).fromMs);
  }

  /** Finds the times of the rows that a call may have written, or null if they are unknown. */
  #rowsMs({ ask, status, body, sentAtMs }: Exchange): number[] | null {
    if (this.#records === null) return null;
    const { redemptionsByRef, reservationsByTicket, reservationsByVoucher } = this.#records;
    if (ask.operation === "redeem") {
      const row = redemptionsByRef.get(refOf(ask));
      return row?.voucherId === ask.voucher.id ? [row.redeemedAtMs] : [];
    }
    if (ask.operation !== "reserve") return null;
    if (status === 200) return [reservationsByTicket.get(body.ticket)?.startedAtMs ?? Number.POSITIVE_INFINITY];
    // If a primary was lost, it may have had rows that no longer exist.
    if (this.#history.losses.length > 0) return null;
    const own = (reservationsByVoucher.get(ask.voucher.id) ?? []).filter(({ keyId }) => keyId === ask.key.id);
    return own.map(({ startedAtMs }) => startedAtMs).filter((ms) => this.#clock.last(ms) >= sentAtMs - ROUNDING_MS);
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
    const apply = this.#applyAnswer(exchange, ask);
    const rowsMs = status === 200 ? this.#rowsMs(exchange) : null;
    const fromMs = rowsMs === null ? invokedMs : this.#visibleFromMs(exchange, rowsMs);
    return [
      ...(apply === null ? [] : [{ ...times, fromMs, voucherId: id, apply }]),
      ...(status === 200 ? [] : this.#changesLater(exchange, ask)),
    ];
  }

  /** Makes a batch's void an operation on each of its vouchers. If the answer leaves none, none is Active. */
  #ofVoidedBatch(exchange: Exchange<AskFor<"voidBatch">>): VoucherOperation[] {
    const { ask, status, failure, body, invokedMs: fromMs, returnedMs } = exchange;
    if (failure === "refused") return [];
    const isDone = status === 200 && body.remaining === 0;
    return ask.batch.vouchers.flatMap((voucher): VoucherOperation[] => {
      const one = { operation: "void", key: ask.key, voucher } as const;
      const voids = this.#unconfirmed(this.#decides(exchange, one, isChange));
      const isFinal = confirmed(this.#decides(exchange, one, ({ refusal }) => refusal !== null));
      const at = { fromMs, voucherId: voucher.id, exchange };
      return [
        { ...at, untilMs: Number.POSITIVE_INFINITY, apply: voids },
        ...(isDone ? [{ ...at, untilMs: returnedMs, apply: isFinal }] : []),
      ];
    });
  }

  /** If an answer says that a reference redeemed nothing, this holds for every voucher that calls tried with it. */
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

  /** The effect of what an answer says about the voucher. Null if it says nothing. */
  #applyAnswer(exchange: Exchange, ask: VoucherAskOf): Apply | null {
    const { status, code = "", body } = exchange;
    switch (ask.operation) {
      case "lookUp":
        return status === 200 ? this.#applyLookUp(exchange, ask.key) : null;
      case "events":
      case "publicEvents":
        return status === 200 ? confirmed(showsChain(body.types)) : null;
    }
    if (status !== 200 && !REFUSALS.includes(code)) return null;
    // After the clock steps ahead, an act uses the new time at once, so it may rightly refuse what processes with the
    // old time still allow.
    if (code === "invalid_request" && (ask.operation !== "extend" || this.#clock.hasStepped)) return null;
    const decided = this.#decides(exchange, ask, (outcome) => isAnswer(outcome, exchange));
    if (ask.operation === "redeem") {
      // The voucher is unchanged: without the key's limit, the call would have redeemed it.
      if (code === "cap_reached") return confirmed((was) => only(was, decided(was).length > 0));
      if (status !== 200) return confirmed(decided);
      const shown = showsRedeemed({ externalRef: ask.externalRef, at: String(body.redeemedAt) });
      return confirmed((was) => decided(was).flatMap(shown));
    }
    if (status !== 200) return FINAL.includes(code) ? confirmed(decided) : decided;
    return confirmed(["suspend", "resume", "extend"].includes(ask.operation) ? counted(decided) : decided);
  }

  /** What a call whose status is not 200 may have changed. */
  #changesLater(exchange: Exchange, ask: VoucherAskOf): VoucherOperation[] {
    if (ask.operation === "lookUp" || ask.operation === "events" || ask.operation === "publicEvents") return [];
    const isRedeem = ask.operation === "redeem";
    const isOver = isRedeem && this.#isOver(exchange as Redeem);
    // If the voucher was busy, an earlier attempt of the same call may have changed it.
    if (!isRedeem && !isOpen(exchange) && exchange.code !== "voucher_busy") return [];
    const rowsMs = this.#rowsMs(exchange);
    const { invokedMs } = exchange;
    const fromMs = rowsMs === null ? invokedMs : this.#visibleFromMs(exchange, rowsMs);
    const change = (isLost: boolean, atMs: number): VoucherOperation => {
      const apply = this.#unconfirmed(this.#decides(exchange, ask, isChange, isLost));
      const times: Times = { fromMs: atMs, untilMs: Number.POSITIVE_INFINITY, exchange };
      return { ...times, voucherId: ask.voucher.id, apply, like: likeOf(ask, isLost) };
    };
    const mayBeLost = isRedeem && this.#history.losses.some(({ untilMs }) => untilMs >= invokedMs);
    return [
      ...(isOver || fromMs === Number.POSITIVE_INFINITY ? [] : [change(false, fromMs)]),
      // If the row is known, the lost primary may have had another redemption than the row's.
      ...(mayBeLost && (isOver || rowsMs !== null) ? [change(true, invokedMs)] : []),
    ];
  }

  /**
   * Whether an attempt without a 200 can have redeemed only on a lost primary, because it had ended or its reference
   * redeemed another voucher.
   */
  #isOver(redeem: Redeem): boolean {
    const ref = refOf(redeem.ask);
    if (!isOpen(redeem) || isEnded(redeem, this.#redeemsOf.get(ref) ?? [])) return true;
    return (this.#voucherOf.get(ref) ?? redeem.ask.voucher.id) !== redeem.ask.voucher.id;
  }

  #unconfirmed(apply: Apply): Apply {
    return this.#history.losses.length === 0 ? apply : unconfirmed(apply);
  }

  /** The effect of the model's decision on a call, if `isRight`. `isLost` marks a redemption of a lost primary. */
  #decides(exchange: Exchange, ask: DecidedAsk, isRight: (outcome: Outcome) => boolean, isLost = false): Apply {
    const { status, body, number: call } = exchange;
    const at = status === 200 && ask.operation === "redeem" ? String(body.redeemedAt) : null;
    return decides({
      call,
      redemption: ask.operation === "redeem" ? { externalRef: ask.externalRef, at, isLost } : null,
      end: ask.operation === "extend" ? Date.parse(ask.validUntil) : null,
      tickets: this.#ticketsIn(exchange, ask),
      isRight,
      callsOf: (was) => this.#callsOf(was, exchange, ask),
      late: (was) => {
        const expiry = this.#expiries.get(was.hold?.ticket ?? "");
        const end = was.end ?? ask.voucher.validUntilMs ?? Number.POSITIVE_INFINITY;
        return {
          validity: this.#mayPrecede(exchange, end),
          hold: expiry !== undefined && this.#mayPrecede(exchange, expiry.expiresAtMs),
        };
      },
    });
  }

  /** Lists the tickets that a call or its answer names. */
  #ticketsIn({ status, body }: Exchange, ask: DecidedAsk): string[] {
    if (ask.operation === "release") return [ask.ticket];
    if (ask.operation === "reserve") return status === 200 ? [String(body.ticket)] : [];
    if (ask.operation !== "redeem") return [];
    const ofToken = this.#ticketOfToken.get(ask.token ?? "");
    return [...("ticket" in ask.by ? [ask.by.ticket] : []), ...(ofToken === undefined ? [] : [ofToken])];
  }

  /** Lists what a call may mean to the model in this register. */
  #callsOf(was: Register, exchange: Exchange, ask: DecidedAsk): VoucherCall[] {
    const keyId = ask.key.id;
    switch (ask.operation) {
      case "reserve": {
        const unnamed = nameOfCall(exchange.number);
        const [ticket = unnamed] = this.#ticketsIn(exchange, ask);
        if (was.clock[ticket] === "over") return [];
        const isOld = was.over.includes(ticket) || was.hold?.ticket === ticket;
        return [{ operation: "reserve", keyId, by: null, opens: isOld ? unnamed : ticket }];
      }
      case "redeem": {
        const { externalRef, token } = ask;
        const by = "ticket" in ask.by ? ask.by.ticket : null;
        // A token that is in no answer belongs to no reservation.
        const ofToken = token === null ? null : (this.#ticketOfToken.get(token) ?? "unknown");
        return [{ operation: "redeem", keyId, externalRef, by, token: ofToken }];
      }
      case "extend": {
        const end = Date.parse(ask.validUntil);
        const isLate = this.#mayPrecede(exchange, end);
        return relationsOf(was, end, ask.voucher.validUntilMs, isLate).map((to) => ({ operation: "extend", to }));
      }
      case "release":
        return [{ operation: "release", ticket: ask.ticket }];
      default:
        return [{ operation: ask.operation }];
    }
  }

  #applyLookUp({ body }: Exchange, key: SuppliedKey): Apply {
    const { status, redeemedAt, reservation } = body;
    const shown = shows((seen) => {
      if (statusOf(seen) !== status || (reservation === null) !== (seen.hold === null)) return false;
      if (seen.hold === null) return true;
      const { heldByCaller, ticket, expiresAt } = reservation;
      const expiry = this.#expiries.get(seen.hold.ticket);
      if (expiry !== undefined && expiry.expiresAtMs !== Date.parse(expiresAt)) return false;
      return (seen.hold.keyId === key.id) === heldByCaller && (!heldByCaller || seen.hold.ticket === ticket);
    }, reservation?.ticket);
    if (status === "Voided") return confirmed(shown);
    if (status !== "Redeemed") return shown;
    const redeemed = showsRedeemed({ externalRef: null, at: redeemedAt });
    return confirmed((was) => shown(was).flatMap(redeemed));
  }

  /** Whether a call was sent before a time of the database's clock. */
  #mayPrecede({ sentAtMs }: Exchange, atMs: number): boolean {
    return this.#clock.last(atMs) >= sentAtMs - ROUNDING_MS;
  }
}
