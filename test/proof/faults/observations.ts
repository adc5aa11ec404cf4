import { acquisitionOf, type Exchange, type History, refOf, type Told } from "./history.ts";

// What each answer shows, as states that have an order.

/** What an answer shows of one thing. */
export interface Observation {
  /** The thing: a voucher, a reservation, a reference, a chain, a list, or an offer. */
  subject: string;
  /** States with a higher rank come later. */
  rank: number;
  /** Two states of one rank must have the same content; undefined if the answer does not show it. */
  content?: string | undefined;
  /**
   * Whether the answer may only show what a standby has. Others (a pending event, a reservation's end by a release that
   * another call saw) are never answered as final, and are lost with a primary.
   */
  isConfirmed: boolean;
  /** When the request was sent and its answer arrived. Milliseconds of the monotonic clock. */
  invokedMs: number;
  returnedMs: number;
  /** Null for a webhook. */
  exchange: Exchange | null;
}

type Shown = Pick<Observation, "subject" | "rank" | "content"> & { isConfirmed?: boolean };

/** A redemption as an answer or a webhook shows it. */
interface ShownRedemption {
  voucherInstanceId: string;
  redeemCode: string;
  redeemedAt: string;
}

// The ranks of each kind of subject.
const [ACTIVE, FINAL] = [0, 1];
const [LIVE, ENDED] = [0, 1];
const [UNCONFIRMED, CONFIRMED] = [0, 1];
const [LEFT, SOLD_OUT] = [0, 1];

/** Everything that the answers and webhooks of a run show. */
export function observe(history: History, isClockSteady: boolean): Observation[] {
  const found: Observation[] = [];
  for (const exchange of history.exchanges) {
    if (exchange.status === null) continue;
    const { invokedMs, returnedMs } = exchange;
    for (const { isConfirmed = true, ...shown } of showsOf(exchange, isClockSteady))
      found.push({ ...shown, isConfirmed, invokedMs, returnedMs, exchange });
  }
  for (const told of history.webhooks) {
    const { returnedMs } = told;
    for (const shown of showsOfWebhook(told))
      found.push({ ...shown, isConfirmed: true, invokedMs: returnedMs, returnedMs, exchange: null });
  }
  found.push(...observeReplacedTickets(history), ...observeMissing(history, found));
  return found;
}

const voucherIs = (id: string, rank: number, content?: string): Shown => ({ subject: `voucher ${id}`, rank, content });
const reservationIs = (ticket: string, rank: number, isConfirmed = true): Shown => ({
  subject: `reservation ${ticket}`,
  rank,
  isConfirmed,
});
const referenceIs = (ref: string, rank: number, content?: string): Shown => ({
  subject: `reference ${ref}`,
  rank,
  content,
});

function redemptionIs(ref: string, { voucherInstanceId, redeemCode, redeemedAt }: ShownRedemption): Shown[] {
  return [
    referenceIs(ref, CONFIRMED, `${voucherInstanceId} ${redeemCode} ${redeemedAt}`),
    voucherIs(voucherInstanceId, FINAL, `Redeemed ${redeemedAt}`),
  ];
}

function showsOf({ ask, status, code, body }: Exchange, isClockSteady: boolean): Shown[] {
  const isOk = status === 200;
  switch (ask.operation) {
    case "redeem":
      return isOk ? showsOfRedeemed(refOf(ask), body) : showsOfUnredeemed(ask, code, isClockSteady);
    case "redemption":
      if (isOk) return redemptionIs(refOf(ask), body);
      return code === "redemption_not_found" ? [referenceIs(refOf(ask), UNCONFIRMED)] : [];
    case "lookUp":
      return isOk ? showsOfLookUp(body) : [];
    case "reserve":
      if (isOk) return [voucherIs(ask.voucher.id, ACTIVE), reservationIs(body.ticket, LIVE)];
      return showsOfRefusal(ask.voucher.id, code);
    case "release":
      if (!isOk) return [];
      if (body.released) return [voucherIs(ask.voucher.id, ACTIVE), reservationIs(ask.ticket, ENDED)];
      // The reservation may have ended by a clock that is set back later.
      return isClockSteady ? [reservationIs(ask.ticket, ENDED, false)] : [];
    case "events":
    case "publicEvents":
      return isOk ? showsOfChain(ask.voucher.id, body) : [];
    case "list": {
      if (!isOk) return [];
      const { organizationId, id } = ask.key;
      const listed = body.redemptions as (ShownRedemption & { externalRef: string })[];
      return [
        { subject: `list of ${id}`, rank: Date.parse(body.completeUntil) },
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

/** The first answer also shows that the voucher was Active and the reference unused after the request was sent. */
function showsOfRedeemed(ref: string, body: ShownRedemption & { alreadyConfirmed: boolean }): Shown[] {
  const before = [voucherIs(body.voucherInstanceId, ACTIVE), referenceIs(ref, UNCONFIRMED)];
  return [...redemptionIs(ref, body), ...(body.alreadyConfirmed ? [] : before)];
}

function showsOfUnredeemed(
  ask: Parameters<typeof refOf>[0] & { voucher: { id: string }; by: { code: string } | { ticket: string } },
  code: string | undefined,
  isClockSteady: boolean,
): Shown[] {
  const refused = showsOfRefusal(ask.voucher.id, code);
  const saysUnredeemed = refused.length > 0 || code === "redeem_timeout" || code === "voucher_busy";
  const hasEnded = code === "reservation_ended" && "ticket" in ask.by && isClockSteady;
  return [
    ...refused,
    ...(saysUnredeemed ? [referenceIs(refOf(ask), UNCONFIRMED)] : []),
    ...(hasEnded ? [reservationIs((ask.by as { ticket: string }).ticket, ENDED)] : []),
  ];
}

/** A used voucher is refused as used before anything else is checked. */
function showsOfRefusal(voucherId: string, code: string | undefined): Shown[] {
  if (code === "voucher_used") return [voucherIs(voucherId, FINAL)];
  if (code === "voucher_voided") return [voucherIs(voucherId, FINAL, "Voided")];
  const others = ["voucher_reserved", "reservation_ended", "token_mismatch", "voucher_expired"];
  return code !== undefined && others.includes(code) ? [voucherIs(voucherId, ACTIVE)] : [];
}

function showsOfLookUp({ id, status, redeemedAt, reservation }: Exchange["body"]): Shown[] {
  if (status === "Redeemed") return [voucherIs(id, FINAL, `Redeemed ${redeemedAt}`)];
  if (status === "Voided") return [voucherIs(id, FINAL, "Voided")];
  return [
    voucherIs(id, ACTIVE),
    ...(typeof reservation?.ticket === "string" ? [reservationIs(reservation.ticket, LIVE, false)] : []),
  ];
}

/** `hashes` has one for each event, null while it is pending. */
function showsOfChain(voucherId: string, body: { hashes: (string | null)[]; types: string[] }): Shown[] {
  const pendingFrom = body.hashes.indexOf(null);
  const sealed = pendingFrom < 0 ? body.hashes : body.hashes.slice(0, pendingFrom);
  const isRedeemed = body.types.includes("voucher.instance.redeemed");
  const isVoided = body.types.includes("voucher.instance.voided");
  return [
    voucherIs(voucherId, isRedeemed || isVoided ? FINAL : ACTIVE),
    { subject: `sealed events of ${voucherId}`, rank: sealed.length },
    { subject: `events of ${voucherId}`, rank: body.hashes.length, isConfirmed: false },
    ...sealed.map((hash, at) => ({ subject: `event ${at + 1} of ${voucherId}`, rank: 0, content: String(hash) })),
  ];
}

function showsOfWebhook({ voucherId, organizationId, externalRef, sequence, recordHash }: Told): Shown[] {
  return [
    voucherIs(voucherId, FINAL),
    referenceIs(`${organizationId} ${externalRef}`, CONFIRMED),
    { subject: `sealed events of ${voucherId}`, rank: sequence },
    { subject: `event ${sequence} of ${voucherId}`, rank: 0, content: recordHash },
  ];
}

/**
 * A voucher has one live reservation: a reserve call that returns a ticket shows that every ticket returned before it
 * was sent has ended.
 */
function observeReplacedTickets(history: History): Observation[] {
  const returned = history.of("reserve").filter(({ status }) => status === 200);
  return [...Map.groupBy(returned, ({ ask }) => ask.voucher.id).values()].flatMap((ofVoucher) =>
    ofVoucher.flatMap((exchange) => {
      const { invokedMs, returnedMs, body } = exchange;
      const earlier = ofVoucher.filter((other) => other.returnedMs < invokedMs && other.body.ticket !== body.ticket);
      return earlier.map((other) => ({
        ...reservationIs(other.body.ticket, ENDED),
        isConfirmed: true,
        invokedMs,
        returnedMs,
        exchange,
      }));
    }),
  );
}

/** A page that lacks a redemption of its range shows the reference as unconfirmed. */
function observeMissing(history: History, found: readonly Observation[]): Observation[] {
  const confirmed = found.filter(({ subject, rank, content }) => {
    return subject.startsWith("reference ") && rank === CONFIRMED && content !== undefined;
  });
  const known = [...Map.groupBy(confirmed, ({ subject }) => subject)].map(([subject, of]) => ({
    subject,
    knownMs: Math.min(...of.map(({ returnedMs }) => returnedMs)),
    redeemedAtMs: Date.parse(of[0]?.content?.split(" ")[2] ?? ""),
  }));
  return history.of("list").flatMap((exchange) => {
    const { ask, status, body, invokedMs, returnedMs } = exchange;
    if (status !== 200) return [];
    const prefix = `reference ${ask.key.organizationId} `;
    const listed = new Set(body.redemptions.map(({ externalRef }: { externalRef: string }) => prefix + externalRef));
    const isFull = body.redemptions.length >= ask.limit;
    const untilMs = Date.parse(isFull ? body.redemptions.at(-1).redeemedAt : body.completeUntil);
    const missing = known.filter(
      ({ subject, knownMs, redeemedAtMs }) =>
        knownMs < invokedMs &&
        redeemedAtMs >= Date.parse(ask.from) &&
        redeemedAtMs < untilMs &&
        subject.startsWith(prefix) &&
        !listed.has(subject),
    );
    return missing.map(({ subject }) => ({
      subject,
      rank: UNCONFIRMED,
      isConfirmed: true,
      invokedMs,
      returnedMs,
      exchange,
    }));
  });
}
