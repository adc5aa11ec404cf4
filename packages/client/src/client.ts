import type { components } from "./api.ts";
import { makeCall, OutcomeUnknown, PATIENCE_MS, type Settings, TEXT, VoucherRefused } from "./call.ts";
import { issuerCalls } from "./issuer.ts";

type Schemas = components["schemas"];

/** What to redeem, and under which reference. */
export type RedeemOrder = Schemas["RedeemRequest"] & {
  /** The voucher's id, from a look-up or a reservation. Without it, `redeemOnce` looks the voucher up first. */
  voucherId?: string;
};

/** A time: a Date, or a text in ISO 8601 with an offset. */
export type Time = Date | string;

/** The reference belongs to another voucher. This order's voucher was not redeemed: give nothing away for it. */
export class ReferenceReused extends Error {
  override name = "ReferenceReused";
  /** The earlier redemption under this reference. */
  readonly earlier: Schemas["Redemption"];

  constructor(externalRef: string, earlier: Schemas["Redemption"]) {
    super(`The reference ${externalRef} was used for another voucher. This voucher was not redeemed.`);
    this.earlier = earlier;
  }
}

/** Refusals that no pending attempt can change, because the status of the voucher is final. */
const FINAL_REFUSALS: readonly unknown[] = ["voucher_used", "voucher_voided", "voucher_expired"];
/**
 * Before the service sends one of these refusals of a redeem, it ends every attempt of the reference, including those
 * of earlier calls. Any other refusal says nothing about an earlier call. For example, the key may have been revoked
 * since, or a proxy may have answered.
 */
const NOT_REDEEMED: readonly unknown[] = [
  ...FINAL_REFUSALS,
  "voucher_not_found",
  "voucher_reserved",
  "reservation_ended",
  "token_mismatch",
  "redeem_timeout",
];

const timeOf = (time: Time) => (typeof time === "string" ? time : time.toISOString());

type Call = ReturnType<typeof makeCall>;

const pathOf = (codeOrTicket: string) => `/partner/vouchers/${encodeURIComponent(codeOrTicket)}`;
// Puts the reference into the query, because some proxies change a path with an encoded slash.
const byReference = (path: string, externalRef: string) => `${path}?${new URLSearchParams({ externalRef })}`;

async function readRedemption(call: Call, externalRef: string): Promise<Schemas["ListedRedemption"] | null> {
  const page = await call<Schemas["RedemptionsPage"]>("GET", byReference("/partner/redemptions", externalRef));
  return page.redemptions[0] ?? null;
}

/** The calls of one API key. Each throws VoucherRefused or OutcomeUnknown. */
export function voucherClient(settings: Settings) {
  const call = makeCall(settings);
  return {
    lookUp: (codeOrTicket: string) => lookUp(call, codeOrTicket),

    reserve: (code: string) => call<Schemas["Reservation"]>("POST", "/partner/vouchers/reserve", { code }),

    release: (ticket: string, reason: string | null = null) =>
      call<Schemas["Release"]>("POST", "/partner/vouchers/release", { ticket, reason }),

    /**
     * Redeems the order's voucher under its reference. Repeated calls with the same order redeem only once. Returns
     * only when the service has confirmed this redemption.
     * @throws ReferenceReused when the reference belongs to another voucher; VoucherRefused when it is proved that no
     * call so far has redeemed or will redeem the voucher under this reference; OutcomeUnknown, with the reason, when
     * nothing is proved, for example because the key was refused. Call again later with the same order.
     */
    redeemOnce: (order: RedeemOrder) => redeemOnce(call, order),

    /**
     * The redemption under a reference. Null is no proof that an attempt failed: it may still be in progress. Repeat
     * the redeem to find out.
     */
    redemption: (externalRef: string) => readRedemption(call, externalRef),

    /**
     * Yields every redemption of the organization from `from` (inclusive) to `to` (exclusive), each exactly once.
     * @throws OutcomeUnknown when the list up to `to` is not final yet. Call again a few seconds later.
     */
    redemptions: (from: Time, to: Time) => readRedemptions(call, from, to),

    /** The redemptions as a CSV file. @throws OutcomeUnknown when the list up to `to` is not final yet. */
    redemptionsCsv: (from: Time, to: Time) => readRedemptionsCsv(call, from, to),

    ...statementCalls(call),

    ...receiptCalls(call),

    /**
     * Yields the events of all vouchers of the organization in their final order, and waits for further events without
     * end. To stop, leave the loop. Keep the last event's `cursor`, from which a later call can continue.
     * @param from.after a cursor, or `now`. Default: the first event.
     * @param from.types only events of these types.
     */
    events: (from: { after?: string; types?: readonly string[] } = {}) => readEvents(call, from),

    /** Reads all sealed events of a voucher. `verifyHistory` checks them. */
    history: (codeOrTicket: string) => readHistory(call, codeOrTicket),

    /** The webhook endpoints of the organization. Needs the scope `voucher.webhook`. */
    webhooks: webhookCalls(call),

    /** The calls of a back office. They need the scope `voucher.issue`. */
    issuer: issuerCalls(call, settings.patienceMs ?? PATIENCE_MS),

    /** Moves the times of a sandbox into the past, as if `seconds` had passed. A second call moves them again. */
    advanceSandbox: (seconds: number) =>
      call<Schemas["SandboxAdvance"]>("POST", "/sandbox/advance", { seconds }, { repeats: false }),
  };
}

const lookUp = (call: Call, codeOrTicket: string) => call<Schemas["LookUp"]>("GET", pathOf(codeOrTicket));

async function redeemOnce(call: Call, { voucherId, ...request }: RedeemOrder): Promise<Schemas["Redemption"]> {
  const expected = voucherId ?? (await findVoucherId(call, request.code ?? request.ticket ?? ""));
  const answer = await call<Schemas["Redemption"]>("POST", "/partner/vouchers/redeem", request).catch((error) => {
    const proofs = error.afterLostAttempt ? FINAL_REFUSALS : NOT_REDEEMED;
    throw error instanceof VoucherRefused && proofs.includes(error.code) ? error : unknownAfter(error);
  });
  if (answer?.redeemed !== true) throw new OutcomeUnknown("The response does not say that the voucher is redeemed");
  const isOther = "otherVoucher" in answer && answer.otherVoucher === true;
  if (isOther || answer.voucherInstanceId !== (expected ?? answer.voucherInstanceId))
    throw new ReferenceReused(request.externalRef, answer);
  return answer;
}

/** The voucher's id, or null if there is none. The redeem may still find an earlier redemption. */
async function findVoucherId(call: Call, codeOrTicket: string): Promise<string | null> {
  const seen = await lookUp(call, codeOrTicket).catch((error) => {
    if (error instanceof VoucherRefused && error.code === "voucher_not_found") return null;
    throw unknownAfter(error);
  });
  return seen?.voucher.id ?? null;
}

/** Makes a refusal, which proves nothing about earlier attempts, an OutcomeUnknown. Other errors stay unchanged. */
function unknownAfter(error: unknown): unknown {
  if (!(error instanceof VoucherRefused)) return error;
  return new OutcomeUnknown(`It is not proved whether the voucher was redeemed. ${error.message}`, { cause: error });
}

async function* readRedemptions(call: Call, from: Time, to: Time): AsyncGenerator<Schemas["ListedRedemption"]> {
  let query: Record<string, string> = { from: timeOf(from), to: timeOf(to) };
  for (;;) {
    const address = `/partner/redemptions?${new URLSearchParams({ ...query, limit: "1000" })}`;
    const { redemptions, nextCursor, completeUntil } = await call<Schemas["RedemptionsPage"]>("GET", address);
    yield* redemptions;
    if (nextCursor === null) return;
    if (redemptions.length === 0) throw notFinal(completeUntil);
    query = { cursor: nextCursor };
  }
}

async function readRedemptionsCsv(call: Call, from: Time, to: Time): Promise<string> {
  const range = new URLSearchParams({ from: timeOf(from), to: timeOf(to) });
  const csv = await call("GET", `/partner/redemptions?${range}`, undefined, {
    as: { accept: "text/csv", read: (response) => readCsv(response, timeOf(to)) },
  });
  if (typeof csv === "string") return csv;
  throw csv;
}

async function readHistory(call: Call, codeOrTicket: string): Promise<Schemas["Chain"]> {
  const readAfter = (sequence: number) =>
    call<Schemas["Chain"]>("GET", `${pathOf(codeOrTicket)}/events?after=${sequence}`);
  const chain = await readAfter(0);
  for (let page = chain; page.hasMore && page.events.length > 0; chain.events.push(...page.events)) {
    page = await readAfter(page.events.at(-1)?.sequence ?? 0);
  }
  return { ...chain, hasMore: false };
}

/** How long a call waits for an event. Shorter than the default of `timeoutMs`. Seconds. */
const EVENTS_WAIT_S = 10;

async function* readEvents(
  call: Call,
  { after, types }: { after?: string; types?: readonly string[] },
): AsyncGenerator<Schemas["FeedEvent"]> {
  const query = new URLSearchParams({ wait: String(EVENTS_WAIT_S), ...(types && { types: types.join(",") }) });
  let cursor = after;
  for (;;) {
    if (cursor !== undefined) query.set("after", cursor);
    const { events, nextCursor } = await call<Schemas["EventsPage"]>("GET", `/partner/events?${query}`);
    yield* events;
    cursor = nextCursor;
  }
}

function statementCalls(call: Call) {
  const pathOf = (month: string) => `/partner/statements/${encodeURIComponent(month)}`;
  return {
    /** The statement of a month, `YYYY-MM` in UTC. Once `final` is true, the statement never changes. */
    statement: (month: string) => call<Schemas["Statement"]>("GET", pathOf(month)),
    /** The redemptions of a final statement as a CSV file. `verifyStatement` compares the file with its statement. */
    statementCsv: (month: string) =>
      call("GET", pathOf(month), undefined, { as: { accept: "text/csv", read: (response) => response.text() } }),
  };
}

function receiptCalls(call: Call) {
  return {
    /**
     * The receipt of a redemption. Keep it with the order. `verifyReceipt` checks it. For some seconds after the
     * redemption, the service refuses this call with `not_logged_yet`.
     */
    receipt: (externalRef: string) =>
      call("GET", byReference("/partner/redemptions/receipt", externalRef), undefined, { as: TEXT }),
    /** The receipt of an event of a voucher. */
    eventReceipt: (codeOrTicket: string, sequence: number) =>
      call("GET", `${pathOf(codeOrTicket)}/events/${sequence}/receipt`, undefined, { as: TEXT }),
  };
}

const WEBHOOKS = "/partner/webhooks";
const webhookPath = (id: string) => `${WEBHOOKS}/${encodeURIComponent(id)}`;

function webhookCalls(call: Call) {
  return {
    list: () => call<Schemas["WebhookList"]>("GET", WEBHOOKS),
    read: (id: string) => call<Schemas["Webhook"]>("GET", webhookPath(id)),
    /**
     * Only this response shows the secret. After OutcomeUnknown, look at the list before you create another endpoint.
     */
    create: (webhook: Schemas["CreateWebhookRequest"]) =>
      call<Schemas["NewWebhook"]>("POST", WEBHOOKS, webhook, { repeats: false }),
    change: (id: string, change: Schemas["ChangeWebhookRequest"]) =>
      call<Schemas["Webhook"]>("PATCH", webhookPath(id), change),
    delete: (id: string) => call<Schemas["DeletedWebhook"]>("DELETE", webhookPath(id)),
    test: (id: string) => call<Schemas["WebhookTestResult"]>("POST", `${webhookPath(id)}/test`),
    /** Only this response shows the new secret. */
    rotate: (id: string) =>
      call<Schemas["RotatedWebhook"]>("POST", `${webhookPath(id)}/rotate`, undefined, { repeats: false }),
    replay: (id: string, events: { eventIds: string[] } | { from: Time; to: Time }) => {
      const range = "eventIds" in events ? events : { from: timeOf(events.from), to: timeOf(events.to) };
      return call<Schemas["WebhookReplay"]>("POST", `${webhookPath(id)}/replay`, range);
    },
    /** All deliveries, newest first. */
    async *deliveries(id: string, state?: Schemas["WebhookDelivery"]["state"]) {
      let query: Record<string, string> = { limit: "1000", ...(state && { state }) };
      for (;;) {
        const address = `${webhookPath(id)}/deliveries?${new URLSearchParams(query)}`;
        const { deliveries, nextCursor } = await call<Schemas["WebhookDeliveries"]>("GET", address);
        yield* deliveries;
        if (nextCursor === null) return;
        query = { ...query, cursor: nextCursor };
      }
    },
  };
}

const notFinal = (until: string | null) => new OutcomeUnknown(`The list is final only until ${until}`);

/** The whole CSV file. Throws an error if the file ends before `to`. */
async function readCsv(response: Response, to: string): Promise<string | OutcomeUnknown> {
  const until = response.headers.get("Complete-Until");
  const csv = await response.text();
  return Date.parse(until ?? "") >= Date.parse(to) ? csv : notFinal(until);
}

export type VoucherClient = ReturnType<typeof voucherClient>;
