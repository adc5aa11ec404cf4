import { setTimeout as sleep } from "node:timers/promises";
import { verifyServedChain } from "../support/independent-verifier.ts";
import type { ApiProcess } from "./cluster.ts";
import type { Ask, AskFor, Exchange, History, SuppliedKey, SuppliedVoucher } from "./history.ts";
import { type Answer, type Call, sendCall } from "./http-call.ts";
import type { SeededRandom } from "./seeded-random.ts";

/** Longer than a redeem's wait, shorter than some freezes: partners do give up on a connection. Milliseconds. */
const CALL_TIMEOUT_MS = 5_000;
const RETRY_PAUSE_MS = { min: 20, max: 250 };
const THINKING_MS = { min: 0, max: 60 };

/** What one partner loop works with. */
export interface PartnerOptions {
  name: string;
  random: SeededRandom;
  apis: readonly ApiProcess[];
  history: History;
  /** Keys of the partner's organization; its own comes first. */
  keys: readonly [SuppliedKey, ...SuppliedKey[]];
  /** Yields the partner's own next voucher. */
  nextVoucher: () => SuppliedVoucher;
  /** Yields a voucher that another loop of the organization is busy with or has just left. */
  contestedVoucher: () => SuppliedVoucher;
  foreignVoucher: () => SuppliedVoucher;
  reservationSeconds: number;
  /** Nobody waits for answers any more once this is aborted; `work` rejects then. */
  signal: AbortSignal;
}

/** How often a partner does what. */
const CHECKOUTS = {
  redeemByCode: 26,
  redeemByTicket: 16,
  redeemWithTokenOfAnotherKey: 8,
  reserveAndRelease: 8,
  reserveAndAbandon: 6,
  reserveAndOutstay: 1,
  sameRedeemTwice: 10,
  sameRefOnAnotherVoucher: 8,
  severalRefsOnOneVoucher: 8,
  contestHold: 8,
  lookAround: 10,
  lookAtForeignVoucher: 2,
};

/**
 * A partner who knows one rule for every trouble: no answer or a 5xx, then the same request again, with the same reference, until
 * there is one. Its choices are seeded; what it meets is not.
 */
export class Partner {
  readonly #options: PartnerOptions;
  readonly #random: SeededRandom;
  #refs = 0;

  constructor(options: PartnerOptions) {
    this.#options = options;
    this.#random = options.random;
  }

  /** Serves one customer after the other until `goesOn` says no; then finishes the one it has, retries included. */
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
      const held = await this.#reserve(voucher);
      if (this.#random.chance(0.4)) await this.#reserve(voucher);
      if (held.status === 200) await this.#redeem(voucher, this.#newRef(), { ticket: held.body.ticket });
    },

    redeemWithTokenOfAnotherKey: async () => {
      const voucher = this.#options.nextVoucher();
      const held = await this.#reserve(voucher);
      const key = this.#anotherKey();
      if (held.status !== 200) return;
      if (this.#random.chance(0.3)) await this.#redeem(voucher, this.#newRef(), { key });
      await this.#redeem(voucher, this.#newRef(), { key, token: held.body.token });
    },

    reserveAndRelease: async () => {
      const voucher = this.#options.nextVoucher();
      const held = await this.#reserve(voucher);
      if (held.status !== 200) return;
      await Promise.all([
        this.#release(voucher, held.body.ticket),
        this.#random.chance(0.3) ? this.#release(voucher, held.body.ticket) : null,
      ]);
      await this.#redeem(voucher, this.#newRef(), { key: this.#anotherKey() });
    },

    reserveAndAbandon: () => this.#reserve(this.#options.nextVoucher()),

    reserveAndOutstay: async () => {
      const voucher = this.#options.nextVoucher();
      const held = await this.#reserve(voucher);
      if (held.status !== 200) return;
      await sleep(this.#options.reservationSeconds * 1_000 + this.#random.between(-200, 200));
      await this.#redeem(voucher, this.#newRef(), { ticket: held.body.ticket });
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

    contestHold: async () => {
      const voucher = this.#options.contestedVoucher();
      const held = await this.#reserve(voucher, this.#anotherKey());
      if (held.status === 200 && this.#random.chance(0.5)) await this.#release(voucher, held.body.ticket);
      else await this.#redeem(voucher, this.#newRef());
    },

    lookAround: async () => {
      const voucher = this.#options.contestedVoucher();
      await this.#ask({ operation: "lookUp", key: this.#ownKey, voucher, codeOrTicket: voucher.code });
      await this.#ask({ operation: "events", key: this.#ownKey, voucher, codeOrTicket: voucher.code });
    },

    lookAtForeignVoucher: () => {
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

  /** Asks until there is an answer that is one. Each try goes to any API process. */
  async #ask(ask: Ask): Promise<Exchange> {
    for (let attempt = 1; ; attempt++) {
      const api = this.#random.pick(this.#options.apis);
      const exchange = this.#options.history.add(await exchangeOnce(ask, api, attempt));
      if (exchange.status !== null && exchange.status < 500) return exchange;
      await sleep(this.#random.between(RETRY_PAUSE_MS.min, RETRY_PAUSE_MS.max));
      this.#options.signal.throwIfAborted();
    }
  }
}

/** Sends a request once and tells everything about it that the rules want to know. */
export async function exchangeOnce(
  ask: Ask,
  api: ApiProcess,
  attempt: number,
  connection: Pick<Call, "agent"> = {},
): Promise<Omit<Exchange, "number">> {
  const sentAtMs = Date.now();
  const call = { ...callFor(ask, api.url), ...connection, key: ask.key.secret, timeoutMs: CALL_TIMEOUT_MS };
  const outcome = await sendCall(call);
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

function callFor(ask: Ask, url: string): Pick<Call, "method" | "url" | "body"> {
  const base = `${url}/partner/vouchers`;
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

/** Of a look-up its state and hold, of a chain what an independent verifier says, of every other answer everything. */
function keepOf(ask: Ask, { status, body }: Answer): unknown {
  if (status !== 200) return body;
  switch (ask.operation) {
    case "lookUp": {
      const { id, status: voucherStatus, redeemedAt } = body.voucher;
      return { id, status: voucherStatus, redeemedAt, reservation: body.reservation };
    }
    case "events":
      return { broken: verifyServedChain(body.events), count: body.events.length };
    default:
      return body;
  }
}
