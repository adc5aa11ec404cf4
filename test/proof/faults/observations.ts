import { saysNotRedeemed } from "./attempts.ts";
import { type AskFor, acquisitionOf, type Exchange, type History, refOf, type Told } from "./history.ts";
import { AT_END_MS, type Records } from "./records.ts";

// Translates each answer into the states that it shows. The states of a subject have an order. The database at the end
// counts as the last answer.

/** One state in an answer. */
export interface Observation {
  /** What the state is of: a reference, a chain, a list, or an offer. */
  subject: string;
  /** Of two states of a subject, the one with the higher rank comes later. */
  rank: number;
  /** Must be equal in all states of a subject and rank. Undefined if the answer does not contain it. */
  content?: string | undefined;
  /**
   * Whether the answer may show this state only if a standby has it. A pending event is not such a state, so it may be
   * lost with its primary.
   */
  isConfirmed: boolean;
  /** When the request was sent and its answer arrived. Milliseconds of the monotonic clock. */
  invokedMs: number;
  returnedMs: number;
  /** Null if a webhook or the database shows the state. */
  exchange: Exchange | null;
  by: "an answer" | "a webhook" | "the database";
}

type Shown = Pick<Observation, "subject" | "rank" | "content"> & { isConfirmed?: boolean };

/** A redemption as an answer shows it. */
interface ShownRedemption {
  voucherInstanceId: string;
  redeemCode: string;
  redeemedAt: string;
}

// Ranks: first of the states of a reference, acquisition or reservation, then of the states of an offer.
const [UNCONFIRMED, CONFIRMED] = [0, 1];
const [LEFT, SOLD_OUT] = [0, 1];

/** Collects the states that a run's answers and webhooks show. With `records`, also the database's at the end. */
export function observe(history: History, records: Records | null): Observation[] {
  const found: Observation[] = [];
  for (const exchange of history.exchanges) {
    if (exchange.status === null) continue;
    const { invokedMs, returnedMs } = exchange;
    for (const { isConfirmed = true, ...shown } of showsOf(exchange))
      found.push({ ...shown, isConfirmed, invokedMs, returnedMs, exchange, by: "an answer" });
  }
  for (const told of history.webhooks) {
    const { returnedMs } = told;
    for (const shown of showsOfWebhook(told))
      found.push({ ...shown, isConfirmed: true, invokedMs: returnedMs, returnedMs, exchange: null, by: "a webhook" });
  }
  return records === null ? found : [...found, ...observeEnd(found, records)];
}

/** Finds the states of the database at the end, for the subjects that answers have shown. */
function observeEnd(found: readonly Observation[], records: Records): Observation[] {
  const { redemptionsByRef, acquisitions, reservationsByTicket } = records;
  const shown = new Map<string, Shown>();
  for (const { subject } of found) {
    const [kind = "", id = ""] = /^(\w+) (.*)$/.exec(subject)?.slice(1) ?? [];
    if (["reference", "acquisition", "reservation"].includes(kind)) shown.set(subject, { subject, rank: UNCONFIRMED });
    const reservation = kind === "end" ? reservationsByTicket.get(id) : undefined;
    if (reservation !== undefined) shown.set(subject, { subject, rank: 0, content: reservation.state });
  }
  const contains = (one: Shown) => shown.has(one.subject) && shown.set(one.subject, one);
  for (const [ref, { voucherId: voucherInstanceId, redeemCode, redeemedAtMs }] of redemptionsByRef)
    contains(redemptionIs(ref, { voucherInstanceId, redeemCode, redeemedAt: new Date(redeemedAtMs).toISOString() }));
  for (const [acquisition, { voucherId, batchId }] of acquisitions)
    contains(acquisitionIs(acquisition, voucherId, batchId));
  for (const { ticket, voucherId, keyId, expiresAtMs } of reservationsByTicket.values())
    contains(reservationIs(ticket, voucherId, keyId, expiresAtMs));
  const atMs = { invokedMs: AT_END_MS, returnedMs: AT_END_MS };
  const at = { isConfirmed: true, ...atMs, exchange: null, by: "the database" } as const;
  return [...shown.values()].map((one) => ({ ...one, ...at }));
}

const referenceIs = (ref: string, rank: number, content?: string): Shown => ({
  subject: `reference ${ref}`,
  rank,
  content,
});

function redemptionIs(ref: string, { voucherInstanceId, redeemCode, redeemedAt }: ShownRedemption): Shown {
  return referenceIs(ref, CONFIRMED, `${voucherInstanceId} ${redeemCode} ${redeemedAt}`);
}

function acquisitionIs(acquisition: string, voucherId: string, batchId: string): Shown {
  return { subject: `acquisition ${acquisition}`, rank: CONFIRMED, content: `${voucherId} of ${batchId}` };
}

function reservationIs(ticket: string, voucherId: string, keyId: string, expiresAtMs: number): Shown {
  const content = `${voucherId} of ${keyId} until ${new Date(expiresAtMs).toISOString()}`;
  return { subject: `reservation ${ticket}`, rank: CONFIRMED, content };
}

function showsOf(exchange: Exchange): Shown[] {
  const { ask, status, code, body } = exchange;
  const isOk = status === 200;
  switch (ask.operation) {
    case "redeem":
      if (isOk) return showsOfRedeemed(refOf(ask), body);
      return saysNotRedeemed({ code }) ? [referenceIs(refOf(ask), UNCONFIRMED)] : [];
    case "redemption":
      if (isOk) return [redemptionIs(refOf(ask), body)];
      return code === "redemption_not_found" ? [referenceIs(refOf(ask), UNCONFIRMED)] : [];
    case "reserve":
      return isOk ? showsOfReserved(exchange as Exchange<AskFor<"reserve">>) : [];
    case "release":
      return isOk && body.released ? [{ subject: `end ${ask.ticket}`, rank: 0, content: "Released" }] : [];
    case "lookUp":
    case "void":
    case "suspend":
    case "resume":
    case "extend":
    case "issue":
    case "codes":
    case "voidBatch":
    case "endContract":
    case "erase":
      return [];
    case "events":
    case "publicEvents":
      return isOk ? showsOfChain(ask.voucher.id, body) : [];
    case "list": {
      if (!isOk) return [];
      const { organizationId } = ask.key;
      const listed = body.redemptions as (ShownRedemption & { externalRef: string })[];
      return [
        // Every process of a deployment reads `completeUntil` from the same row, for all keys and organizations.
        { subject: "lists", rank: Date.parse(body.completeUntil) },
        ...listed.map((one) => redemptionIs(`${organizationId} ${one.externalRef}`, one)),
      ];
    }
    case "acquire": {
      const [subject, offer] = [`acquisition ${acquisitionOf(ask)}`, `offer ${ask.offer.batchId}`];
      if (code === "sold_out")
        return [
          { subject, rank: UNCONFIRMED },
          { subject: offer, rank: SOLD_OUT },
        ];
      if (!isOk) return [];
      const own = acquisitionIs(acquisitionOf(ask), body.voucherId, ask.offer.batchId);
      return body.alreadyConfirmed ? [own] : [own, { subject: offer, rank: LEFT }];
    }
  }
}

/** The states in an answer about a redemption. If it is new, the reference was unused when the request was sent. */
function showsOfRedeemed(ref: string, body: ShownRedemption & { alreadyConfirmed: boolean }): Shown[] {
  return [redemptionIs(ref, body), ...(body.alreadyConfirmed === false ? [referenceIs(ref, UNCONFIRMED)] : [])];
}

function showsOfReserved({ ask, body }: Exchange<AskFor<"reserve">>): Shown[] {
  const { ticket, token, voucher, expiresAt } = body;
  return [
    reservationIs(ticket, voucher, ask.key.id, Date.parse(expiresAt)),
    { subject: `token of ${ticket}`, rank: 0, content: token },
  ];
}

/** The states in the hashes of a chain's events. The hash of a pending event is null. */
function showsOfChain(voucherId: string, body: { hashes: (string | null)[] }): Shown[] {
  const pendingFrom = body.hashes.indexOf(null);
  const sealed = pendingFrom < 0 ? body.hashes : body.hashes.slice(0, pendingFrom);
  return [
    { subject: `sealed events of ${voucherId}`, rank: sealed.length },
    { subject: `events of ${voucherId}`, rank: body.hashes.length, isConfirmed: false },
    ...sealed.map((hash, at) => ({ subject: `event ${at + 1} of ${voucherId}`, rank: 0, content: String(hash) })),
  ];
}

function showsOfWebhook({ voucherId, organizationId, externalRef, sequence, recordHash }: Told): Shown[] {
  return [
    referenceIs(`${organizationId} ${externalRef}`, CONFIRMED),
    { subject: `sealed events of ${voucherId}`, rank: sequence },
    { subject: `event ${sequence} of ${voucherId}`, rank: 0, content: recordHash },
  ];
}
