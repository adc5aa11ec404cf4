import { expect } from "vitest";
import { happened, jsonText, moving, sentence, type Variable, variable } from "./bindings.ts";
import { decide, type Outcome, type Voucher as State, statusOf, type VoucherCall } from "./voucher.ts";

// The service's answers to sequential calls, without queues, leases, locks and transactions. `voucher.ts` decides what
// is right for one voucher. This file adds organizations, keys, references, time, and the bodies of answers.

const RESERVATION_SECONDS = 900;

export type OrganizationName = "OURS" | "THEIRS";
export type KeyName = "SHOP" | "TILL" | "CAPPED" | "AUDIT" | "OTHER";
export type VoucherName = "A" | "B" | "C" | "D";
/** The first reservation of voucher A is A1. */
export type ReservationName = `${VoucherName}${number}`;

/**
 * Four keys of one organization, and one of another. Of the four, three may read and redeem, one of these at most
 * `maxPerDay` vouchers. AUDIT may only read.
 */
export const KEYS: Record<KeyName, { organization: OrganizationName; mayRedeem: boolean; maxPerDay?: number }> = {
  SHOP: { organization: "OURS", mayRedeem: true },
  TILL: { organization: "OURS", mayRedeem: true },
  CAPPED: { organization: "OURS", mayRedeem: true, maxPerDay: 1 },
  AUDIT: { organization: "OURS", mayRedeem: false },
  OTHER: { organization: "THEIRS", mayRedeem: true },
};

/** B and D are vouchers of different organizations with the same code. */
export const VOUCHERS: Record<VoucherName, { organization: OrganizationName; code: string }> = {
  A: { organization: "OURS", code: "CODE_A" },
  B: { organization: "OURS", code: "CODE_B" },
  C: { organization: "OURS", code: "CODE_C" },
  D: { organization: "THEIRS", code: "CODE_B" },
};
export const VOUCHER_NAMES = Object.keys(VOUCHERS) as VoucherName[];

export interface Reservation {
  name: ReservationName;
  key: KeyName;
  openedAt: number;
  ended: "Consumed" | "Released" | "Expired" | null;
}

interface Redemption {
  voucher: VoucherName;
  key: KeyName;
  externalRef: string;
  consumed: Reservation | null;
  note: string | null;
}

interface Voucher {
  name: VoucherName;
  organization: OrganizationName;
  code: string;
  validForSeconds: number;
  extensions: number;
  /** The voucher's state without what depends on time. */
  state: Omit<State, "isOver" | "hold">;
  /** The voucher's reservations, in order of their start. */
  reservations: Reservation[];
  redemption: Redemption | null;
  /** The voucher's events, in order of sequence. Reservations are no events. */
  chain: ChainEvent[];
}

interface ChainEvent {
  type: keyof typeof CODES;
  /** Fields that the payload's `data` must have. */
  data: object;
}

/** Their codes. */
const CODES = {
  issued: "VCH001",
  redeemed: "VCH004",
  voided: "VCH005",
  expired: "VCH006",
  extended: "VCH008",
  suspended: "VCH009",
  resumed: "VCH010",
};

export interface Model {
  /** Seconds since the vouchers were issued. */
  now: number;
  vouchers: Record<VoucherName, Voucher>;
  /** The redemptions, by organization and reference. */
  redemptions: Map<string, Redemption>;
  /** The number of refused redeems, by organization and reference. */
  refusals: Map<string, number>;
  /** A call whose job hangs in a frozen worker. */
  hanging: { key: KeyName; call: RedeemCall; refusals: number } | null;
}

/** How a call names a voucher. */
export type Named =
  | { by: "code"; voucher: VoucherName }
  | { by: "ticket"; reservation: ReservationName }
  /** An unknown code or ticket. */
  | { by: "nothing" };

/** An expected answer, and the outcome by which the test counts it. */
export interface Expected {
  outcome: string;
  status: number;
  /** The expected body, with matchers for values that the service chooses. */
  body: object;
}

export function newModel(validForSeconds: Record<VoucherName, number>): Model {
  const issue = (name: VoucherName): Voucher => ({
    name,
    ...VOUCHERS[name],
    validForSeconds: validForSeconds[name],
    extensions: 0,
    state: { status: "Active", isSuspended: false, redeemedUnder: null },
    reservations: [],
    redemption: null,
    chain: [{ type: "issued", data: {} }],
  });
  return {
    now: 0,
    vouchers: { A: issue("A"), B: issue("B"), C: issue("C"), D: issue("D") },
    redemptions: new Map(),
    refusals: new Map(),
    hanging: null,
  };
}

export function passTime(model: Model, seconds: number): void {
  model.now += seconds;
}

/** Every key of the organization sees the voucher. For other keys, the voucher does not exist. */
export function lookUp(model: Model, key: KeyName, named: Named): Expected {
  const voucher = find(model, key, named);
  if (voucher === null) return notFound();
  const { name } = voucher;
  const live = liveReservation(model, voucher);
  const heldByCaller = live?.key === key;
  const holder = heldByCaller ? "the caller" : "another key";
  return {
    outcome: `found ${shownStatus(model, voucher)}${live === null ? "" : `, reserved by ${holder}`}`,
    status: 200,
    body: {
      voucher: {
        id: variable(`ID_${name}`),
        code: variable(voucher.code),
        serial: 1,
        brand: variable(`BRAND_${voucher.organization}`),
        ...PRODUCT,
        type: "Subscription",
        retailPriceUsd: 50,
        priceUsd: 40.25,
        benefitMonths: 6,
        usageUnitLabel: "visit",
        validUntil: moving(endName(voucher)),
        status: shownStatus(model, voucher),
        redeemedAt: voucher.redemption === null ? null : happened(`REDEEMED_AT_${name}`),
      },
      reservation:
        live === null
          ? null
          : {
              ticket: heldByCaller ? variable(`TICKET_${live.name}`) : null,
              startedAt: moving(`START_${live.name}`),
              expiresAt: endOf(live),
              heldByCaller,
            },
      verifyUrl: variable(`VERIFY_URL_${name}`),
    },
  };
}

export function reserve(model: Model, key: KeyName, named: Named): Expected {
  if (!KEYS[key].mayRedeem) return missingScope();
  const voucher = find(model, key, named);
  if (voucher === null) return notFound();
  const opens: ReservationName = `${voucher.name}${voucher.reservations.length + 1}`;
  const { refusal } = settle(model, voucher, { operation: "reserve", keyId: key, by: ticketIn(named), opens });
  if (refusal !== null) return refused(refusal);
  const reservation = liveReservation(model, voucher) as Reservation;
  return {
    outcome: reservation.name === opens ? "opened" : "repeated",
    status: 200,
    body: {
      ticket: variable(`TICKET_${reservation.name}`),
      token: variable(`TOKEN_${reservation.name}`),
      expiresAt: endOf(reservation, { fresh: true }),
      voucher: variable(`ID_${voucher.name}`),
    },
  };
}

export interface RedeemCall {
  named: Named;
  externalRef: string;
  /** A reservation whose token is sent, a wrong token, or none. */
  token: ReservationName | "wrong" | null;
  note: string | null;
}

/** The answer to a redeem. A refused reference can be used again. */
export function redeem(model: Model, key: KeyName, call: RedeemCall): Expected {
  const expected = KEYS[key].mayRedeem ? decideRedeem(model, key, call) : missingScope();
  if ([404, 409, 429].includes(expected.status))
    model.refusals.set(referenceOf(key, call), refusalsOf(model, key, call) + 1);
  return expected;
}

/** Makes a call hang in a worker, without an answer. Its key may redeem. */
export function hang(model: Model, key: KeyName, call: RedeemCall): void {
  model.hanging = { key, call, refusals: refusalsOf(model, key, call) };
}

/**
 * Lets the worker continue with the hanging call. It redeems nothing if a later call with the reference was refused.
 * Returns the outcome.
 */
export function resume(model: Model): string {
  if (model.hanging === null) throw new Error("no call hangs");
  const { key, call, refusals } = model.hanging;
  model.hanging = null;
  const isRefused = refusalsOf(model, key, call) !== refusals;
  if (isRefused && !model.redemptions.has(referenceOf(key, call))) return "late";
  return decideRedeem(model, key, call).outcome;
}

function referenceOf(key: KeyName, { externalRef }: RedeemCall): string {
  return `${KEYS[key].organization} ${externalRef.trim()}`;
}

function refusalsOf(model: Model, key: KeyName, call: RedeemCall): number {
  return model.refusals.get(referenceOf(key, call)) ?? 0;
}

function decideRedeem(model: Model, key: KeyName, call: RedeemCall): Expected {
  const { named, token, note } = call;
  const reference = referenceOf(key, call);
  const externalRef = call.externalRef.trim();
  const before = model.redemptions.get(reference);
  const voucher = find(model, key, named);
  if (before !== undefined) return redeemed(before, true, voucher?.name !== before.voucher);
  if (voucher === null) return notFound();
  const consumed = liveReservation(model, voucher);
  const redeems: VoucherCall = { operation: "redeem", keyId: key, externalRef, by: ticketIn(named), token };
  const ofKey = [...model.redemptions.values()].filter((one) => one.key === key);
  const isCapped = ofKey.length === KEYS[key].maxPerDay;
  const outcome = isCapped ? decideNow(model, voucher, redeems) : settle(model, voucher, redeems);
  if (outcome.refusal !== null) return refused(outcome.refusal);
  if (isCapped) return refusal(429, "cap_reached", sentence);
  const redemption: Redemption = { voucher: voucher.name, key, externalRef, consumed, note };
  voucher.redemption = redemption;
  model.redemptions.set(reference, redemption);
  return redeemed(redemption, false);
}

/** Any key of the organization may release a ticket. It is no error if no reservation is live. */
export function release(model: Model, key: KeyName, named: Named): Expected {
  if (!KEYS[key].mayRedeem) return missingScope();
  const voucher = named.by === "ticket" ? find(model, key, named) : null;
  if (
    voucher !== null &&
    settle(model, voucher, { operation: "release", ticket: ticketIn(named) ?? "" }).refusal === null
  )
    return { outcome: "released", status: 200, body: { released: true } };
  return { outcome: "nothing released", status: 200, body: { released: false, reason: sentence } };
}

export function events(model: Model, key: KeyName, named: Named): Expected {
  const voucher = find(model, key, named);
  if (voucher === null) return notFound();
  const chain = chainOf(voucher);
  return {
    outcome: `chain of ${chain.length}`,
    status: 200,
    body: {
      entityType: "VoucherInstance",
      entityId: variable(`ID_${voucher.name}`),
      anchorNamespace: "VoucherInstance:events",
      events: chain,
      canonPreservedSinceUtc: happened("CANON_PRESERVED_SINCE"),
      hasMore: false,
    },
  };
}

/** Voids a voucher for its issuer. Returns the reason for a refusal, or null. */
export function voidVoucher(
  model: Model,
  organization: OrganizationName,
  name: VoucherName,
  reason: string | null,
): string | null {
  const voucher = inOrganization(model, organization, { by: "code", voucher: name });
  if (voucher === null) return "voucher_not_found";
  return settle(model, voucher, { operation: "void" }, reason === null ? {} : { reason }).refusal;
}

/** Suspends or resumes a voucher. Returns the reason for a refusal, or null. */
export function suspendVoucher(model: Model, name: VoucherName, suspended: boolean, reason: string): string | null {
  return settle(model, model.vouchers[name], { operation: suspended ? "suspend" : "resume" }, { reason }).refusal;
}

/** Moves a voucher's end to this many seconds after the voucher's issue. Returns the reason for a refusal, or null. */
export function extendVoucher(model: Model, name: VoucherName, end: number, reason: string): string | null {
  const voucher = model.vouchers[name];
  const to = end === voucher.validForSeconds ? "same" : end < voucher.validForSeconds ? "earlier" : "later";
  const outcome = settle(model, voucher, { operation: "extend", to }, { reason });
  if (outcome.refusal !== null || outcome.isRepeat) return outcome.refusal;
  voucher.validForSeconds = end;
  voucher.extensions += 1;
  return null;
}

/** Returns the name of a voucher's present end of validity. */
export const endName = ({ name, extensions }: Pick<Voucher, "name" | "extensions">) =>
  `VALID_UNTIL_${name}_${extensions}`;

/** Adds an expired event to the chain of each voucher whose validity has ended. Other answers stay the same. */
export function sweep(model: Model): void {
  for (const voucher of Object.values(model.vouchers)) {
    const isRecorded = voucher.chain.findLast(({ type }) => type === "expired" || type === "extended");
    if (shownStatus(model, voucher) === "Expired" && isRecorded?.type !== "expired")
      voucher.chain.push({ type: "expired", data: {} });
    for (const reservation of voucher.reservations)
      if (reservation.ended === null && isOver(model, reservation)) reservation.ended = "Expired";
  }
}

/** Returns the possible states of a reservation's row. If its end has passed, the row may still be Live. */
export function statesOfReservation(model: Model, reservation: Reservation): string[] {
  if (reservation.ended !== null) return [reservation.ended];
  return isOver(model, reservation) ? ["Live", "Expired"] : ["Live"];
}

/** Returns the voucher's newest reservation, or the one that is `before` positions older. Null if there is none. */
export function reservationOf(model: Model, voucher: VoucherName, before: number): ReservationName | null {
  return model.vouchers[voucher].reservations.at(-1 - before)?.name ?? null;
}

/** Whether a voucher can be reserved or redeemed now, or after a resume. */
export function isActive(model: Model, voucher: VoucherName): boolean {
  return ["Active", "Suspended"].includes(shownStatus(model, model.vouchers[voucher]));
}

export function isReserved(model: Model, voucher: VoucherName): boolean {
  return liveReservation(model, model.vouchers[voucher]) !== null;
}

function find(model: Model, key: KeyName, named: Named): Voucher | null {
  return inOrganization(model, KEYS[key].organization, named);
}

function inOrganization(model: Model, organization: OrganizationName, named: Named): Voucher | null {
  const ours = Object.values(model.vouchers).filter((voucher) => voucher.organization === organization);
  switch (named.by) {
    case "code":
      return ours.find((voucher) => voucher.code === VOUCHERS[named.voucher].code) ?? null;
    case "ticket":
      return (
        ours.find((voucher) => voucher.reservations.some((reservation) => reservation.name === named.reservation)) ??
        null
      );
    case "nothing":
      return null;
  }
}

function seenNow(model: Model, voucher: Voucher): State {
  const live = liveReservation(model, voucher);
  const hold = live && { keyId: live.key, ticket: live.name };
  return { ...voucher.state, isOver: model.now >= voucher.validForSeconds, hold };
}

const shownStatus = (model: Model, voucher: Voucher) => statusOf(seenNow(model, voucher));
const decideNow = (model: Model, voucher: Voucher, call: VoucherCall) => decide(seenNow(model, voucher), call);
const ticketIn = (named: Named) => (named.by === "ticket" ? named.reservation : null);

/** The event of each change. Reservations have no events. */
const EVENTS = {
  redeem: "redeemed",
  void: "voided",
  suspend: "suspended",
  resume: "resumed",
  extend: "extended",
  reserve: null,
  release: null,
} as const;

/** Decides a call, and makes its change. `data` belongs to the change's event. */
function settle(model: Model, voucher: Voucher, call: VoucherCall, data: object = {}): Outcome {
  const live = liveReservation(model, voucher);
  const outcome = decideNow(model, voucher, call);
  if (outcome.refusal !== null || outcome.isRepeat) return outcome;
  const { isOver: _, hold, ...state } = outcome.after;
  voucher.state = state;
  if (live !== null && hold === null) live.ended = call.operation === "redeem" ? "Consumed" : "Released";
  const opened = live === null && hold && { name: hold.ticket as ReservationName, key: hold.keyId as KeyName };
  if (opened) voucher.reservations.push({ ...opened, openedAt: model.now, ended: null });
  const type = EVENTS[call.operation];
  if (type !== null) voucher.chain.push({ type, data });
  return outcome;
}

function isOver(model: Model, reservation: Reservation): boolean {
  return model.now >= reservation.openedAt + RESERVATION_SECONDS;
}

function liveReservation(model: Model, voucher: Voucher): Reservation | null {
  return voucher.reservations.find((reservation) => reservation.ended === null && !isOver(model, reservation)) ?? null;
}

function endOf(reservation: Reservation, { fresh = false } = {}) {
  return moving(`START_${reservation.name}`, { plusMs: RESERVATION_SECONDS * 1_000, fresh });
}

const PRODUCT = { productName: "Pass", productKey: "pass" };

function redeemed({ voucher }: Redemption, alreadyConfirmed: boolean, isOther = false): Expected {
  return {
    outcome: alreadyConfirmed ? "confirmed before" : "redeemed",
    status: 200,
    body: {
      redeemed: true,
      alreadyConfirmed,
      ...(isOther && { otherVoucher: true }),
      voucherInstanceId: variable(`ID_${voucher}`),
      redeemCode: variable(`REDEEM_CODE_${voucher}`),
      serial: 1,
      ...PRODUCT,
      discountPriceUsd: 40.25,
      benefitMonths: 6,
      redeemedAt: happened(`REDEEMED_AT_${voucher}`, { fresh: true }),
      verifyUrl: variable(`VERIFY_URL_${voucher}`),
    },
  };
}

function refusal(status: number, code: string, error: unknown): Expected {
  return { outcome: code, status, body: { error, code, requestId: sentence } };
}

const refused = (code: string) => refusal(409, code, sentence);
const missingScope = () => refusal(401, "missing_scope", sentence);
/** Unknown vouchers and other organizations' vouchers get the same answer. */
const notFound = () => refusal(404, "voucher_not_found", variable("SENTENCE_OF_404"));

/** A voucher's chain, as its organization reads it. */
function chainOf({ name, code, redemption, chain }: Voucher): object[] {
  return chain.map(({ type, data }, at) => {
    const sequence = at + 1;
    const nonce = { nonce: variable(`NONCE_${name}_${sequence}`) };
    if (type !== "redeemed" || redemption === null)
      return event(name, sequence, type, `AT_${name}_${sequence}`, expect.objectContaining({ ...nonce, ...data }));
    const { key, externalRef, consumed, note } = redemption;
    const redeemed = {
      ...nonce,
      voucherCode: variable(code),
      serial: 1,
      externalRef,
      redeemCode: variable(`REDEEM_CODE_${name}`),
      ticket: consumed === null ? null : variable(`TICKET_${consumed.name}`),
      ...(note === null ? {} : { note }),
      retailPriceUsd: 50,
      priceUsd: 40.25,
    };
    return event(name, sequence, type, `REDEEMED_AT_${name}`, redeemed, variable(`KEY_ID_${key}`));
  });
}

function event(
  voucher: VoucherName,
  sequence: number,
  type: keyof typeof CODES,
  occurredAt: string,
  data: unknown,
  actor: Variable | null = null,
): object {
  const shown = {
    sequence,
    eventType: `voucher.instance.${type}`,
    code: CODES[type],
    occurredAt: happened(occurredAt),
    actorConnectedId: actor,
    actorIsEmployee: null,
    // The tested service has no log.
    logIndex: null,
  };
  const { logIndex: _, ...content } = shown;
  const previousHash = sequence === 1 ? "0".repeat(64) : variable(`HASH_${voucher}_${sequence - 1}`);
  const sealed = { v: 1, entityType: "VoucherInstance", entityId: variable(`ID_${voucher}`), data };
  return {
    ...shown,
    sealStatus: "Sealed",
    previousHash,
    recordHash: variable(`HASH_${voucher}_${sequence}`),
    payload: jsonText({ ...content, previousHash, ...sealed }),
  };
}
