import {
  happened,
  including,
  joined,
  jsonText,
  moving,
  sentence,
  type Template,
  type Variable,
  variable,
} from "./template.ts";

// The rules of contract.md and of the decisions about what it leaves open, once more and as small as they get: one call after
// another, no queue, no lease, no lock, no transaction. Nothing here comes from the service.

/** How long a hold lasts. */
const HOLD_SECONDS = 900;
const BASE_URL = "https://vouchers.test";

export type OrganizationName = "OURS" | "THEIRS";
export type KeyName = "SHOP" | "TILL" | "AUDIT" | "OTHER";
export type VoucherName = "A" | "B" | "C" | "D";
/** The hold that was opened first on voucher A is A1. */
export type HoldName = `${VoucherName}${number}`;

/** Two keys of one organization that may do everything, one of it that may only read, and one of another organization. */
export const KEYS: Record<KeyName, { organization: OrganizationName; mayMove: boolean }> = {
  SHOP: { organization: "OURS", mayMove: true },
  TILL: { organization: "OURS", mayMove: true },
  AUDIT: { organization: "OURS", mayMove: false },
  OTHER: { organization: "THEIRS", mayMove: true },
};

/** B and D are vouchers of two organizations that happen to have printed the same code. */
export const VOUCHERS: Record<VoucherName, { organization: OrganizationName; code: string }> = {
  A: { organization: "OURS", code: "CODE_A" },
  B: { organization: "OURS", code: "CODE_B" },
  C: { organization: "OURS", code: "CODE_C" },
  D: { organization: "THEIRS", code: "CODE_B" },
};
export const VOUCHER_NAMES = Object.keys(VOUCHERS) as VoucherName[];

export interface Hold {
  name: HoldName;
  key: KeyName;
  openedAt: number;
  ended: "Consumed" | "Released" | "Expired" | null;
}

interface Burn {
  voucher: VoucherName;
  key: KeyName;
  externalRef: string;
  consumed: Hold | null;
  note: string | null;
}

interface Voucher {
  name: VoucherName;
  organization: OrganizationName;
  code: string;
  validForSeconds: number;
  /** First to last. */
  holds: Hold[];
  burn: Burn | null;
  voided: { reason: string | null; sealed: boolean } | null;
  /** Whether its history says that it expired; it is Expired either way. */
  expiryRecorded: boolean;
}

export interface Model {
  /** Seconds that have passed since the vouchers were issued. */
  now: number;
  vouchers: Record<VoucherName, Voucher>;
  /** By organization and reference. */
  burns: Map<string, Burn>;
}

/** How a call names a voucher. */
export type Named =
  | { by: "code"; voucher: VoucherName }
  | { by: "ticket"; hold: HoldName }
  /** A code or a ticket that nobody ever got. */
  | { by: "nothing" };

/** An answer as the model expects it, and in a word what it comes to. */
export interface Expected {
  outcome: string;
  status: number;
  body: Template;
}

export function newModel(validForSeconds: Record<VoucherName, number>): Model {
  const issue = (name: VoucherName): Voucher => ({
    name,
    ...VOUCHERS[name],
    validForSeconds: validForSeconds[name],
    holds: [],
    burn: null,
    voided: null,
    expiryRecorded: false,
  });
  return { now: 0, vouchers: { A: issue("A"), B: issue("B"), C: issue("C"), D: issue("D") }, burns: new Map() };
}

export function passTime(model: Model, seconds: number): void {
  model.now += seconds;
}

/** A voucher is worth what it is worth to every key of its organization, and does not exist for any other. */
export function lookUp(model: Model, key: KeyName, named: Named): Expected {
  const voucher = find(model, key, named);
  if (voucher === null) return notFound();
  const { name } = voucher;
  const live = liveHold(model, voucher);
  const heldByCaller = live?.key === key;
  return {
    outcome: `found ${statusOf(model, voucher)}${live === null ? "" : heldByCaller ? ", held" : ", held by another"}`,
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
        validUntil: moving(`VALID_UNTIL_${name}`),
        status: statusOf(model, voucher),
        redeemedAt: voucher.burn === null ? null : happened(`REDEEMED_AT_${name}`),
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
      verifyUrl: verifyUrl(name),
    },
  };
}

/** Repeating changes nothing and extends nothing. An ended ticket leads to no new hold. */
export function reserve(model: Model, key: KeyName, named: Named): Expected {
  if (!KEYS[key].mayMove) return missingScope();
  const voucher = find(model, key, named);
  if (voucher === null) return notFound();
  const cannotMove = finalRefusal(model, voucher);
  if (cannotMove !== null) return refused(cannotMove);
  const live = liveHold(model, voucher);
  if (named.by === "ticket" && live?.name !== named.hold) return refused("reservation_ended");
  if (live !== null && live.key !== key) return refused("voucher_reserved");
  const hold = live ?? openHold(model, voucher, key);
  return {
    outcome: live === null ? "opened" : "repeated",
    status: 200,
    body: {
      ticket: variable(`TICKET_${hold.name}`),
      token: variable(`TOKEN_${hold.name}`),
      expiresAt: endOf(hold, { fresh: true }),
      voucher: variable(`ID_${voucher.name}`),
    },
  };
}

export interface RedeemCall {
  named: Named;
  externalRef: string;
  /** The token of a hold, one that is no hold's, or none. */
  token: HoldName | "wrong" | null;
  note: string | null;
}

/** A confirmed reference is answered before anything about the voucher is looked at; a refused one stays free. */
export function redeem(model: Model, key: KeyName, { named, token, note, ...call }: RedeemCall): Expected {
  if (!KEYS[key].mayMove) return missingScope();
  const externalRef = call.externalRef.trim();
  const reference = `${KEYS[key].organization} ${externalRef}`;
  const before = model.burns.get(reference);
  if (before !== undefined) return redeemed(before, true);
  const voucher = find(model, key, named);
  if (voucher === null) return notFound();
  const cannotMove = finalRefusal(model, voucher);
  if (cannotMove !== null) return refused(cannotMove);
  const live = liveHold(model, voucher);
  if (named.by === "ticket" && live?.name !== named.hold) return refused("reservation_ended");
  const tokenFits = token !== null && token === live?.name;
  if (token !== null && !tokenFits) return refused("token_mismatch");
  if (live !== null && live.key !== key && !tokenFits) return refused("voucher_reserved");
  const burn: Burn = { voucher: voucher.name, key, externalRef, consumed: live, note };
  if (live !== null) live.ended = "Consumed";
  voucher.burn = burn;
  model.burns.set(reference, burn);
  return redeemed(burn, false);
}

/** Whoever of the organization has the ticket may release it. Nothing to release is no error. */
export function release(model: Model, key: KeyName, named: Named): Expected {
  if (!KEYS[key].mayMove) return missingScope();
  const voucher = named.by === "ticket" ? find(model, key, named) : null;
  const live = voucher && liveHold(model, voucher);
  if (named.by !== "ticket" || !live || live.name !== named.hold) {
    return { outcome: "nothing released", status: 200, body: { released: false, reason: sentence } };
  }
  live.ended = "Released";
  return { outcome: "released", status: 200, body: { released: true } };
}

/** A voucher's chain: it was issued, and then burnt, voided, found expired, or none of it. Holds are no events. */
export function events(model: Model, key: KeyName, named: Named): Expected {
  const voucher = find(model, key, named);
  if (voucher === null) return notFound();
  const chain: Template[] = [issuedEvent(voucher)];
  if (voucher.burn !== null) chain.push(redeemedEvent(voucher, voucher.burn));
  if (voucher.voided !== null) chain.push(voidedEvent(voucher, voucher.voided));
  if (voucher.expiryRecorded) chain.push(expiredEvent(voucher));
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

/** Voids a voucher for its issuer. Returns why it cannot be voided, or null. */
export function voidVoucher(
  model: Model,
  organization: OrganizationName,
  name: VoucherName,
  reason: string | null,
  sealed: boolean,
): string | null {
  const voucher = inOrganization(model, organization, { by: "code", voucher: name });
  if (voucher === null) return "voucher_not_found";
  const cannotMove = finalRefusal(model, voucher);
  if (cannotMove !== null) return cannotMove;
  const live = liveHold(model, voucher);
  if (live !== null) live.ended = "Released";
  voucher.voided = { reason, sealed };
  return null;
}

/** Records what time has ended. It changes no answer but a chain's. */
export function sweep(model: Model): void {
  for (const voucher of Object.values(model.vouchers)) {
    if (statusOf(model, voucher) === "Expired") voucher.expiryRecorded = true;
    for (const hold of voucher.holds) if (hold.ended === null && isOver(model, hold)) hold.ended = "Expired";
  }
}

/** Whether a voucher's event waits for its seal. */
export function isSealDue(model: Model): boolean {
  return Object.values(model.vouchers).some(({ voided }) => voided?.sealed === false);
}

/** The state that a hold's row may be in. A hold whose time is over is over, whether or not its row says so. */
export function statesOfHold(model: Model, hold: Hold): string[] {
  if (hold.ended !== null) return [hold.ended];
  return isOver(model, hold) ? ["Live", "Expired"] : ["Live"];
}

/** The hold of this voucher that was opened last, or before the last, and so on; null when there were not so many. */
export function holdOf(model: Model, voucher: VoucherName, before: number): HoldName | null {
  return model.vouchers[voucher].holds.at(-1 - before)?.name ?? null;
}

/** Whether there is anything left to do with a voucher. */
export function canMove(model: Model, voucher: VoucherName): boolean {
  return finalRefusal(model, model.vouchers[voucher]) === null;
}

export function isHeld(model: Model, voucher: VoucherName): boolean {
  return liveHold(model, model.vouchers[voucher]) !== null;
}

/** The voucher that an organization's key reaches by a name. */
function find(model: Model, key: KeyName, named: Named): Voucher | null {
  return inOrganization(model, KEYS[key].organization, named);
}

function inOrganization(model: Model, organization: OrganizationName, named: Named): Voucher | null {
  const ours = Object.values(model.vouchers).filter((voucher) => voucher.organization === organization);
  switch (named.by) {
    case "code":
      return ours.find((voucher) => voucher.code === VOUCHERS[named.voucher].code) ?? null;
    case "ticket":
      return ours.find((voucher) => voucher.holds.some((hold) => hold.name === named.hold)) ?? null;
    case "nothing":
      return null;
  }
}

function statusOf(model: Model, voucher: Voucher): string {
  if (voucher.burn !== null) return "Redeemed";
  if (voucher.voided !== null) return "Voided";
  return model.now < voucher.validForSeconds ? "Active" : "Expired";
}

/** Used comes before voided, and voided before expired. */
function finalRefusal(model: Model, voucher: Voucher): string | null {
  const refusals: Record<string, string> = {
    Redeemed: "voucher_used",
    Voided: "voucher_voided",
    Expired: "voucher_expired",
  };
  return refusals[statusOf(model, voucher)] ?? null;
}

function isOver(model: Model, hold: Hold): boolean {
  return model.now >= hold.openedAt + HOLD_SECONDS;
}

function liveHold(model: Model, voucher: Voucher): Hold | null {
  return voucher.holds.find((hold) => hold.ended === null && !isOver(model, hold)) ?? null;
}

function openHold(model: Model, voucher: Voucher, key: KeyName): Hold {
  const hold: Hold = { name: `${voucher.name}${voucher.holds.length + 1}`, key, openedAt: model.now, ended: null };
  voucher.holds.push(hold);
  return hold;
}

function endOf(hold: Hold, { fresh = false } = {}) {
  return moving(`START_${hold.name}`, { plusMs: HOLD_SECONDS * 1_000, fresh });
}

const PRODUCT = { productName: "Pass", productKey: "pass" };

function verifyUrl(name: VoucherName) {
  return joined(`${BASE_URL}/integrity/events/VoucherInstance/`, variable(`ID_${name}`));
}

function redeemed({ voucher }: Burn, alreadyConfirmed: boolean): Expected {
  return {
    outcome: alreadyConfirmed ? "confirmed before" : "burnt",
    status: 200,
    body: {
      redeemed: true,
      alreadyConfirmed,
      voucherInstanceId: variable(`ID_${voucher}`),
      redeemCode: variable(`REDEEM_CODE_${voucher}`),
      serial: 1,
      ...PRODUCT,
      discountPriceUsd: 40.25,
      benefitMonths: 6,
      redeemedAt: happened(`REDEEMED_AT_${voucher}`, { fresh: true }),
      verifyUrl: verifyUrl(voucher),
    },
  };
}

function refusal(status: number, code: string, error: Template): Expected {
  return { outcome: code, status, body: { error, code, requestId: sentence } };
}

const refused = (code: string) => refusal(409, code, sentence);
const missingScope = () => refusal(401, "missing_scope", sentence);
/** The same bytes for whatever is not there and whatever is not the caller's. */
const notFound = () => refusal(404, "voucher_not_found", variable("SENTENCE_OF_404"));

interface EventOf {
  sequence: number;
  eventType: string;
  code: string;
  occurredAt: string;
  actor: Variable | null;
  data: Template;
}

function issuedEvent({ name }: Voucher): Template {
  return sealedEvent(name, {
    sequence: 1,
    eventType: "voucher.instance.issued",
    code: "VCH001",
    occurredAt: `ISSUED_AT_${name}`,
    actor: null,
    data: including({ nonce: variable(`NONCE_${name}_1`) }),
  });
}

function redeemedEvent({ name, code }: Voucher, burn: Burn): Template {
  const { key, externalRef, consumed, note } = burn;
  return sealedEvent(name, {
    sequence: 2,
    eventType: "voucher.instance.redeemed",
    code: "VCH004",
    occurredAt: `REDEEMED_AT_${name}`,
    actor: variable(`KEY_ID_${key}`),
    data: {
      nonce: variable(`NONCE_${name}_2`),
      voucherCode: variable(code),
      serial: 1,
      externalRef,
      redeemCode: variable(`REDEEM_CODE_${name}`),
      ticket: consumed === null ? null : variable(`TICKET_${consumed.name}`),
      ...(note === null ? {} : { note }),
      retailPriceUsd: 50,
      priceUsd: 40.25,
    },
  });
}

function voidedEvent({ name }: Voucher, { reason, sealed }: { reason: string | null; sealed: boolean }): Template {
  const event: EventOf = {
    sequence: 2,
    eventType: "voucher.instance.voided",
    code: "VCH005",
    occurredAt: `VOIDED_AT_${name}`,
    actor: null,
    data: including({ nonce: variable(`NONCE_${name}_2`), ...(reason === null ? {} : { reason }) }),
  };
  return sealed ? sealedEvent(name, event) : pendingEvent(event);
}

function expiredEvent({ name }: Voucher): Template {
  return sealedEvent(name, {
    sequence: 2,
    eventType: "voucher.instance.expired",
    code: "VCH006",
    occurredAt: `EXPIRY_RECORDED_AT_${name}`,
    actor: null,
    data: including({ nonce: variable(`NONCE_${name}_2`) }),
  });
}

function sealedEvent(voucher: VoucherName, { actor, data, ...event }: EventOf): Template {
  const previousHash = event.sequence === 1 ? "0".repeat(64) : variable(`HASH_${voucher}_${event.sequence - 1}`);
  const said = {
    ...event,
    occurredAt: happened(event.occurredAt),
    previousHash,
    actorConnectedId: actor,
    actorIsEmployee: null,
  };
  return {
    ...said,
    sealStatus: "Sealed",
    recordHash: variable(`HASH_${voucher}_${event.sequence}`),
    payload: jsonText({
      ...said,
      v: 1,
      entityType: "VoucherInstance",
      entityId: variable(`ID_${voucher}`),
      data,
    }),
  };
}

function pendingEvent({ actor, data: _unseen, ...event }: EventOf): Template {
  return {
    ...event,
    occurredAt: happened(event.occurredAt),
    sealStatus: "Pending",
    recordHash: null,
    previousHash: null,
    payload: null,
    actorConnectedId: actor,
    actorIsEmployee: null,
  };
}
