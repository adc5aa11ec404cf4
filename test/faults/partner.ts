import { setTimeout as sleep } from "node:timers/promises";
import { verifyServedChain } from "../support/independent-verifier.ts";
import type { ApiProcess } from "./cluster.ts";
import type { Ask, AskFor, Exchange, History, PartnerAsk, SuppliedKey, SuppliedVoucher } from "./history.ts";
import { type Answer, type Call, sendCall } from "./http-call.ts";
import type { SeededRandom } from "./seeded-random.ts";

/** Longer than a redeem's wait and shorter than some freezes, so that partners do give up. Milliseconds. */
const CALL_TIMEOUT_MS = 5_000;
/** When an impatient caller gives up a redeem that is still running, and the share of impatient calls. */
const IMPATIENT_AFTER_MS = 1_200;
const IMPATIENT_CHANCE = 0.3;
const RETRY_PAUSE_MS = { min: 20, max: 250 };
const THINKING_MS = { min: 0, max: 60 };

export interface PartnerOptions {
  name: string;
  random: SeededRandom;
  apis: readonly ApiProcess[];
  history: History;
  /** Keys of the organization; the partner's own comes first. */
  keys: readonly [SuppliedKey, ...SuppliedKey[]];
  /** Yields the partner's own next voucher. */
  nextVoucher: () => SuppliedVoucher;
  /** Yields a voucher that another loop of the organization uses or has just used. */
  contestedVoucher: () => SuppliedVoucher;
  foreignVoucher: () => SuppliedVoucher;
  reservationSeconds: number;
  /** Aborting it ends the retries; `work` then rejects. */
  signal: AbortSignal;
}

/** Relative frequency of each checkout. */
const CHECKOUTS = {
  redeemByCode: 26,
  redeemByTicket: 16,
  redeemWithTokenOfAnotherKey: 8,
  reserveAndRelease: 8,
  reserveAndAbandon: 6,
  reserveAndOverstay: 1,
  sameRedeemTwice: 10,
  sameRefOnAnotherVoucher: 8,
  severalRefsOnOneVoucher: 8,
  contestReservation: 8,
  lookAround: 10,
  lookUpForeignVoucher: 2,
};

/**
 * A partner that repeats every request, with the same reference, until it gets an answer other than a 5xx. Its choices are seeded; the
 * answers are not.
 */
export class Partner {
  readonly #options: PartnerOptions;
  readonly #random: SeededRandom;
  #refs = 0;

  constructor(options: PartnerOptions) {
    this.#options = options;
    this.#random = options.random;
  }

  /** Serves one customer after another until `goesOn` returns false, then finishes the current one, including retries. */
  async work(goesOn: () => boolean): Promise<void> {
    while (goesOn()) {
      await this.#checkouts[this.#random.weigh(CHECKOUTS)]();
      await sleep(this.#random.between(THINKING_MS.min, THINKING_MS.max));
    }
  }

  readonly #checkouts: Record<keyof typeof CHECKOUTS, () => Promise<unknown>> = {
    redeemByCode: () => this.#redeem(this.#options.nextVoucher(), this.#newRef()),

    redeemByTicket: async () => {
      const voucher = this.#options.nextVoucher();
      const reserved = await this.#reserve(voucher);
      if (this.#random.chance(0.4)) await this.#reserve(voucher);
      if (reserved.status === 200) await this.#redeem(voucher, this.#newRef(), { ticket: reserved.body.ticket });
    },

    redeemWithTokenOfAnotherKey: async () => {
      const voucher = this.#options.nextVoucher();
      const reserved = await this.#reserve(voucher);
      const key = this.#anotherKey();
      if (reserved.status !== 200) return;
      if (this.#random.chance(0.3)) await this.#redeem(voucher, this.#newRef(), { key });
      await this.#redeem(voucher, this.#newRef(), { key, token: reserved.body.token });
    },

    reserveAndRelease: async () => {
      const voucher = this.#options.nextVoucher();
      const reserved = await this.#reserve(voucher);
      if (reserved.status !== 200) return;
      await Promise.all([
        this.#release(voucher, reserved.body.ticket),
        this.#random.chance(0.3) ? this.#release(voucher, reserved.body.ticket) : null,
      ]);
      await this.#redeem(voucher, this.#newRef(), { key: this.#anotherKey() });
    },

    reserveAndAbandon: () => this.#reserve(this.#options.nextVoucher()),

    reserveAndOverstay: async () => {
      const voucher = this.#options.nextVoucher();
      const reserved = await this.#reserve(voucher);
      if (reserved.status !== 200) return;
      await sleep(this.#options.reservationSeconds * 1_000 + this.#random.between(-200, 200));
      await this.#redeem(voucher, this.#newRef(), { ticket: reserved.body.ticket });
      await this.#reserve(voucher, this.#anotherKey());
    },

    sameRedeemTwice: () => {
      const [voucher, ref] = [this.#options.nextVoucher(), this.#newRef()];
      return Promise.all([this.#redeem(voucher, ref), this.#redeem(voucher, ref, { key: this.#anotherKey() })]);
    },

    sameRefOnAnotherVoucher: async () => {
      const [one, other, ref] = [this.#options.nextVoucher(), this.#options.nextVoucher(), this.#newRef()];
      const first = this.#redeem(one, ref);
      if (this.#random.chance(0.5)) await first;
      await Promise.all([first, this.#redeem(other, ref)]);
    },

    severalRefsOnOneVoucher: () => {
      const voucher = this.#options.nextVoucher();
      return Promise.all([1, 2, 3].map(() => this.#redeem(voucher, this.#newRef())));
    },

    contestReservation: async () => {
      const voucher = this.#options.contestedVoucher();
      const reserved = await this.#reserve(voucher, this.#anotherKey());
      if (reserved.status === 200 && this.#random.chance(0.5)) await this.#release(voucher, reserved.body.ticket);
      else await this.#redeem(voucher, this.#newRef());
    },

    lookAround: async () => {
      const voucher = this.#options.contestedVoucher();
      await this.#ask({ operation: "lookUp", key: this.#ownKey, voucher, codeOrTicket: voucher.code });
      await this.#ask({ operation: "events", key: this.#ownKey, voucher, codeOrTicket: voucher.code });
    },

    lookUpForeignVoucher: () => {
      const voucher = this.#options.foreignVoucher();
      return this.#ask({ operation: "lookUp", key: this.#ownKey, voucher, codeOrTicket: voucher.code });
    },
  };

  get #ownKey(): SuppliedKey {
    return this.#options.keys[0];
  }

  #anotherKey(): SuppliedKey {
    return this.#random.pick(this.#options.keys.slice(1));
  }

  #newRef(): string {
    this.#refs += 1;
    return `${this.#options.name}-${this.#refs}`;
  }

  #redeem(
    voucher: SuppliedVoucher,
    externalRef: string,
    how: { key?: SuppliedKey; ticket?: string; token?: string } = {},
  ): Promise<Exchange> {
    return this.#ask({
      operation: "redeem",
      key: how.key ?? this.#ownKey,
      voucher,
      externalRef,
      by: how.ticket === undefined ? { code: voucher.code } : { ticket: how.ticket },
      token: how.token ?? null,
    });
  }

  #reserve(voucher: SuppliedVoucher, key: SuppliedKey = this.#ownKey): Promise<Exchange> {
    return this.#ask({ operation: "reserve", key, voucher });
  }

  #release(voucher: SuppliedVoucher, ticket: string): Promise<Exchange> {
    return this.#ask({ operation: "release", key: this.#ownKey, voucher, ticket });
  }

  #ask(ask: PartnerAsk): Promise<Exchange> {
    return askUntilAnswered(this.#options, ask);
  }
}

/** Repeats a request until the answer is not a 5xx. Each attempt goes to a random API process. */
export async function askUntilAnswered(
  { random, apis, history, signal }: Pick<PartnerOptions, "random" | "apis" | "history" | "signal">,
  ask: Ask,
): Promise<Exchange> {
  for (let attempt = 1; ; attempt++) {
    const impatient = ask.operation === "redeem" && random.chance(IMPATIENT_CHANCE);
    const timeoutMs = impatient ? IMPATIENT_AFTER_MS : CALL_TIMEOUT_MS;
    const exchange = history.add(await exchangeOnce(ask, random.pick(apis), attempt, { timeoutMs }));
    if (exchange.status !== null && exchange.status < 500) return exchange;
    await sleep(random.between(RETRY_PAUSE_MS.min, RETRY_PAUSE_MS.max));
    signal.throwIfAborted();
  }
}

/** Sends a request once and returns what the rules need to know about it. */
export async function exchangeOnce(
  ask: Ask,
  api: ApiProcess,
  attempt: number,
  how: Partial<Pick<Call, "agent" | "timeoutMs">> = {},
): Promise<Omit<Exchange, "number">> {
  const sentAtMs = Date.now();
  const outcome = await sendCall({ timeoutMs: CALL_TIMEOUT_MS, ...callFor(ask, api.url), ...how });
  const about = { ask, api: api.process.name, attempt, sentAtMs, endedAtMs: Date.now() };
  if (outcome.kind === "failure") {
    return {
      ...about,
      status: null,
      failure: outcome.failure,
      retryAfter: undefined,
      code: undefined,
      body: undefined,
    };
  }
  const { answer } = outcome;
  return {
    ...about,
    status: answer.status,
    failure: null,
    retryAfter: answer.headers["retry-after"],
    code: answer.status === 200 ? undefined : answer.body?.code,
    body: keepOf(ask, answer),
  };
}

function callFor(ask: Ask, url: string): Pick<Call, "method" | "url" | "body" | "key" | "token"> {
  if (ask.operation === "acquire") return { method: "POST", token: ask.user.token, ...acquireCall(ask, url) };
  return { key: ask.key.secret, ...partnerCall(ask, `${url}/partner/vouchers`) };
}

function acquireCall({ offer, by }: AskFor<"acquire">, url: string): Pick<Call, "url" | "body"> {
  if ("claim" in by) return { url: `${url}/products/${offer.productId}/claim` };
  const path = by.route === "product" ? `products/${offer.productId}` : `marketplace/listings/${offer.listingId}`;
  return { url: `${url}/${path}/buy`, body: { paymentRef: by.paymentRef } };
}

function partnerCall(ask: PartnerAsk, base: string): Pick<Call, "method" | "url" | "body"> {
  switch (ask.operation) {
    case "redeem":
      return { method: "POST", url: `${base}/redeem`, body: redeemBody(ask) };
    case "reserve":
      return { method: "POST", url: `${base}/reserve`, body: { code: ask.voucher.code } };
    case "release":
      return { method: "POST", url: `${base}/release`, body: { ticket: ask.ticket } };
    case "lookUp":
      return { method: "GET", url: `${base}/${ask.codeOrTicket}` };
    case "events":
      return { method: "GET", url: `${base}/${ask.codeOrTicket}/events` };
  }
}

function redeemBody(ask: AskFor<"redeem">): Record<string, string> {
  return { ...ask.by, externalRef: ask.externalRef, ...(ask.token !== null && { token: ask.token }) };
}

/** Selects the part of an answer that the rules need. */
function keepOf(ask: Ask, { status, body }: Answer): unknown {
  if (status !== 200) return body;
  switch (ask.operation) {
    case "lookUp": {
      const { id, status: voucherStatus, redeemedAt } = body.voucher;
      return { id, status: voucherStatus, redeemedAt, reservation: body.reservation };
    }
    case "acquire":
      return { voucherId: body.voucher.id, alreadyConfirmed: body.alreadyConfirmed };
    case "events":
      return { broken: verifyServedChain(body.events), count: body.events.length };
    default:
      return body;
  }
}
