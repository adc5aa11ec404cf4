import { setTimeout as sleep } from "node:timers/promises";
import { verifyServedChain } from "../support/independent-verifier.ts";
import { type IssuerKey, secondsFromNow, signUser } from "../support/user-tokens.ts";
import type { ApiProcess } from "./cluster.ts";
import type {
  AcquireAsk,
  Ask,
  Exchange,
  History,
  PartnerAsk,
  SuppliedKey,
  SuppliedOffer,
  SuppliedVoucher,
} from "./history.ts";
import { type Answer, type Call, sendCall } from "./http-call.ts";
import type { SeededRandom } from "./seeded-random.ts";

/** Longer than a redeem's wait and shorter than some freezes, so that partners do give up. Milliseconds. */
const CALL_TIMEOUT_MS = 5_000;
/** When an impatient caller gives up a redeem that is still running, and the share of impatient calls. */
const IMPATIENT_AFTER_MS = 1_200;
const IMPATIENT_CHANCE = 0.3;
const RETRY_PAUSE_MS = { min: 20, max: 250 };
const THINKING_MS = { min: 0, max: 60 };

/** What partners and shoppers have in common. */
export interface CallerOptions {
  name: string;
  random: SeededRandom;
  apis: readonly ApiProcess[];
  history: History;
  /** Aborting it ends the retries; `work` then rejects. */
  signal: AbortSignal;
}

export interface PartnerOptions extends CallerOptions {
  /** Keys of the organization; the partner's own comes first. */
  keys: readonly [SuppliedKey, ...SuppliedKey[]];
  /** Yields the partner's own next voucher. */
  nextVoucher: () => SuppliedVoucher;
  /** Yields a voucher that another loop of the organization uses or has just used. */
  contestedVoucher: () => SuppliedVoucher;
  foreignVoucher: () => SuppliedVoucher;
  reservationSeconds: number;
}

/** Relative frequency of each checkout. */
const CHECKOUTS = {
  ...{ redeemByCode: 26, redeemByTicket: 16, redeemWithTokenOfAnotherKey: 8, reserveAndRelease: 8 },
  ...{ reserveAndAbandon: 6, reserveAndOverstay: 1, sameRedeemTwice: 10, sameRefOnAnotherVoucher: 8 },
  ...{ severalRefsOnOneVoucher: 8, contestReservation: 8, lookAround: 10, lookUpForeignVoucher: 2 },
};

/**
 * A partner that serves one customer after another until `goesOn` returns false, then finishes the current one. It repeats every request, with
 * the same reference, until it gets an answer other than a 5xx. Its choices are seeded; the answers are not.
 */
export async function workAsPartner(options: PartnerOptions, goesOn: () => boolean): Promise<void> {
  const { name, random, keys, nextVoucher, contestedVoucher, foreignVoucher, reservationSeconds } = options;
  const [ownKey, ...otherKeys] = keys;
  let refs = 0;
  const newRef = () => `${name}-${++refs}`;
  const anotherKey = () => random.pick(otherKeys);
  const ask = (what: PartnerAsk) => askUntilAnswered(options, what);
  const redeem = (
    voucher: SuppliedVoucher,
    externalRef: string,
    { key = ownKey, ticket = "", token = null as string | null } = {},
  ) => {
    const by = ticket === "" ? { code: voucher.code } : { ticket };
    return ask({ operation: "redeem", key, voucher, externalRef, by, token });
  };
  const reserve = (voucher: SuppliedVoucher, key = ownKey) => ask({ operation: "reserve", key, voucher });
  const release = (voucher: SuppliedVoucher, ticket: string) =>
    ask({ operation: "release", key: ownKey, voucher, ticket });
  const read = (operation: "lookUp" | "events", voucher: SuppliedVoucher) => ask({ operation, key: ownKey, voucher });

  const checkouts: Record<keyof typeof CHECKOUTS, () => Promise<unknown>> = {
    redeemByCode: () => redeem(nextVoucher(), newRef()),

    async redeemByTicket() {
      const voucher = nextVoucher();
      const { status, body } = await reserve(voucher);
      if (random.chance(0.4)) await reserve(voucher);
      if (status === 200) await redeem(voucher, newRef(), { ticket: body.ticket });
    },

    async redeemWithTokenOfAnotherKey() {
      const voucher = nextVoucher();
      const { status, body } = await reserve(voucher);
      const key = anotherKey();
      if (status !== 200) return;
      if (random.chance(0.3)) await redeem(voucher, newRef(), { key });
      await redeem(voucher, newRef(), { key, token: body.token });
    },

    async reserveAndRelease() {
      const voucher = nextVoucher();
      const { status, body } = await reserve(voucher);
      if (status !== 200) return;
      await Promise.all([release(voucher, body.ticket), random.chance(0.3) ? release(voucher, body.ticket) : null]);
      await redeem(voucher, newRef(), { key: anotherKey() });
    },

    reserveAndAbandon: () => reserve(nextVoucher()),

    async reserveAndOverstay() {
      const voucher = nextVoucher();
      const { status, body } = await reserve(voucher);
      if (status !== 200) return;
      await sleep(reservationSeconds * 1_000 + random.between(-200, 200));
      await redeem(voucher, newRef(), { ticket: body.ticket });
      await reserve(voucher, anotherKey());
    },

    sameRedeemTwice() {
      const [voucher, ref] = [nextVoucher(), newRef()];
      return Promise.all([redeem(voucher, ref), redeem(voucher, ref, { key: anotherKey() })]);
    },

    async sameRefOnAnotherVoucher() {
      const [one, other, ref] = [nextVoucher(), nextVoucher(), newRef()];
      const first = redeem(one, ref);
      if (random.chance(0.5)) await first;
      await Promise.all([first, redeem(other, ref)]);
    },

    severalRefsOnOneVoucher() {
      const voucher = nextVoucher();
      return Promise.all([1, 2, 3].map(() => redeem(voucher, newRef())));
    },

    async contestReservation() {
      const voucher = contestedVoucher();
      const { status, body } = await reserve(voucher, anotherKey());
      if (status === 200 && random.chance(0.5)) await release(voucher, body.ticket);
      else await redeem(voucher, newRef());
    },

    async lookAround() {
      const voucher = contestedVoucher();
      await read("lookUp", voucher);
      await read("events", voucher);
    },

    lookUpForeignVoucher: () => read("lookUp", foreignVoucher()),
  };
  while (goesOn()) {
    await checkouts[random.weigh(CHECKOUTS)]();
    await sleep(random.between(THINKING_MS.min, THINKING_MS.max));
  }
}

const BROWSING_MS = { min: 50, max: 250 };
/** Longer than any run. Seconds. */
const TOKEN_S = 2 * 86_400;
/** Number of recent acquisitions that a shopper may repeat. */
const REMEMBERED_MAX = 10;
/** Relative frequency of each visit. */
const VISITS = { claim: 3, claimTwice: 3, buy: 3, buyTwice: 3, repeatEarlier: 4 };

/**
 * Simulates users who claim and buy, one after another, until `goesOn` returns false. Each request is repeated until it is answered; some are
 * sent twice at the same time, and some again later. `currentOffer` yields the offer that all shoppers currently use.
 */
export async function workAsShopper(
  options: CallerOptions & { issuer: IssuerKey; currentOffer: () => SuppliedOffer },
  goesOn: () => boolean,
): Promise<void> {
  const { name, random, issuer, currentOffer } = options;
  const made: AcquireAsk[] = [];
  let users = 0;
  /** The requests of a visit. */
  const plan = async (visit: keyof typeof VISITS): Promise<AcquireAsk[]> => {
    if (visit === "repeatEarlier") return made.length > 0 ? [random.pick(made)] : [];
    const id = `${name}-user-${++users}`;
    const user = { id, token: await signUser(issuer, id, { exp: secondsFromNow(TOKEN_S) }) };
    const offer = currentOffer();
    const asks = Array.from({ length: visit.endsWith("Twice") ? 2 : 1 }, (): AcquireAsk => {
      if (visit.startsWith("claim")) return { operation: "acquire", user, offer, by: { claim: true } };
      const route = random.pick(["product", "listing"] as const);
      return { operation: "acquire", user, offer, by: { paymentRef: `payment-of-${id}`, route } };
    });
    made.push(...asks);
    made.splice(0, made.length - REMEMBERED_MAX);
    return asks;
  };
  while (goesOn()) {
    const asks = await plan(random.weigh(VISITS));
    await Promise.all(asks.map((ask) => askUntilAnswered(options, ask)));
    await sleep(random.between(BROWSING_MS.min, BROWSING_MS.max));
  }
}

/** Repeats a request until the answer is not a 5xx. Each attempt goes to a random API process. */
export async function askUntilAnswered(
  { random, apis, history, signal }: Omit<CallerOptions, "name">,
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
  const by = ask.operation === "acquire" ? { token: ask.user.token } : { key: ask.key.secret };
  const answer = await sendCall({ timeoutMs: CALL_TIMEOUT_MS, ...by, ...callFor(ask, api.url), ...how });
  const { status, failure, body } = answer;
  return {
    ...{ ask, api: api.process.name, attempt, sentAtMs, endedAtMs: Date.now(), status, failure },
    retryAfter: answer.headers["retry-after"],
    code: status === 200 ? undefined : body?.code,
    body: keepOf(ask, answer),
  };
}

function callFor(ask: Ask, url: string): Pick<Call, "method" | "url" | "body"> {
  const post = (path: string, body?: unknown) => ({ method: "POST" as const, url: `${url}/${path}`, body });
  const vouchers = "partner/vouchers";
  switch (ask.operation) {
    case "acquire": {
      const { offer, by } = ask;
      if ("claim" in by) return post(`products/${offer.productId}/claim`);
      const path = by.route === "product" ? `products/${offer.productId}` : `marketplace/listings/${offer.listingId}`;
      return post(`${path}/buy`, { paymentRef: by.paymentRef });
    }
    case "redeem": {
      const { by, externalRef, token } = ask;
      return post(`${vouchers}/redeem`, { ...by, externalRef, ...(token !== null && { token }) });
    }
    case "reserve":
      return post(`${vouchers}/reserve`, { code: ask.voucher.code });
    case "release":
      return post(`${vouchers}/release`, { ticket: ask.ticket });
    default: {
      const path = `${url}/${vouchers}/${ask.voucher.code}`;
      return { method: "GET", url: ask.operation === "events" ? `${path}/events` : path };
    }
  }
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
