import { saysNotRedeemed } from "./attempts.ts";
import { acquisitionOf, type Exchange, type History, refOf, type Told } from "./history.ts";

// Translates each answer into the states that it shows. States of one subject have an order.

/** One state in an answer. */
export interface Observation {
  /** The subject of the state: a reference, a chain, a list, or an offer. */
  subject: string;
  /** States with a higher rank come later. */
  rank: number;
  /** Two states of one rank must have the same content. Undefined if the answer does not contain it. */
  content?: string | undefined;
  /**
   * Whether the answer may show this state only if a standby has it. A pending event is no final state, so a lost
   * primary may take it along.
   */
  isConfirmed: boolean;
  /** When the request was sent and its answer arrived. Milliseconds of the monotonic clock. */
  invokedMs: number;
  returnedMs: number;
  /** Null for a webhook. */
  exchange: Exchange | null;
}

type Shown = Pick<Observation, "subject" | "rank" | "content"> & { isConfirmed?: boolean };

/** A redemption as in an answer or a webhook. */
interface ShownRedemption {
  voucherInstanceId: string;
  redeemCode: string;
  redeemedAt: string;
}

// The ranks for each kind of subject.
const [UNCONFIRMED, CONFIRMED] = [0, 1];
const [LEFT, SOLD_OUT] = [0, 1];

/** All states in the answers and webhooks of a run. */
export function observe(history: History): Observation[] {
  const found: Observation[] = [];
  for (const exchange of history.exchanges) {
    if (exchange.status === null) continue;
    const { invokedMs, returnedMs } = exchange;
    for (const { isConfirmed = true, ...shown } of showsOf(exchange))
      found.push({ ...shown, isConfirmed, invokedMs, returnedMs, exchange });
  }
  for (const told of history.webhooks) {
    const { returnedMs } = told;
    for (const shown of showsOfWebhook(told))
      found.push({ ...shown, isConfirmed: true, invokedMs: returnedMs, returnedMs, exchange: null });
  }
  return found;
}

const referenceIs = (ref: string, rank: number, content?: string): Shown => ({
  subject: `reference ${ref}`,
  rank,
  content,
});

function redemptionIs(ref: string, { voucherInstanceId, redeemCode, redeemedAt }: ShownRedemption): Shown[] {
  return [referenceIs(ref, CONFIRMED, `${voucherInstanceId} ${redeemCode} ${redeemedAt}`)];
}

function showsOf({ ask, status, code, body }: Exchange): Shown[] {
  const isOk = status === 200;
  switch (ask.operation) {
    case "redeem":
      if (isOk) return showsOfRedeemed(refOf(ask), body);
      return saysNotRedeemed({ code }) ? [referenceIs(refOf(ask), UNCONFIRMED)] : [];
    case "redemption":
      if (isOk) return redemptionIs(refOf(ask), body);
      return code === "redemption_not_found" ? [referenceIs(refOf(ask), UNCONFIRMED)] : [];
    case "lookUp":
    case "reserve":
    case "release":
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
        // All processes, keys and organizations of a deployment share one `completeUntil`, which is in one row.
        { subject: "lists", rank: Date.parse(body.completeUntil) },
        ...listed.flatMap((one) => redemptionIs(`${organizationId} ${one.externalRef}`, one)),
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
      const own = { subject, rank: CONFIRMED, content: body.voucherId };
      return body.alreadyConfirmed ? [own] : [own, { subject: offer, rank: LEFT }];
    }
  }
}

/** The first answer also shows that the reference was unused after the request was sent. */
function showsOfRedeemed(ref: string, body: ShownRedemption & { alreadyConfirmed: boolean }): Shown[] {
  return [...redemptionIs(ref, body), ...(body.alreadyConfirmed ? [] : [referenceIs(ref, UNCONFIRMED)])];
}

/** `hashes` has one element for each event, or null while the event is pending. */
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
