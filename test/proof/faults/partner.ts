import { setTimeout as sleep } from "node:timers/promises";
import type pg from "pg";
import { findErasedForm } from "../../../src/acts/db/erasures.ts";
import { until } from "../../support/until.ts";
import { type IssuerKey, secondsFromNow, signUser } from "../../support/user-tokens.ts";
import { askUntilAnswered, type CallerOptions, eraseUntilDone } from "./exchange.ts";
import type {
  AcquireAsk,
  Exchange,
  ListAsk,
  PartnerAsk,
  SuppliedKey,
  SuppliedOffer,
  SuppliedVoucher,
} from "./history.ts";
import { pageAfter } from "./lists.ts";

const THINKING_MS = { min: 0, max: 60 };

export interface PartnerOptions extends CallerOptions {
  /** The organization's keys. The partner uses the first one by default. */
  keys: readonly [SuppliedKey, ...SuppliedKey[]];
  nextVoucher: () => SuppliedVoucher;
  /** Yields a voucher that another partner of the organization uses now or has just used. */
  contestedVoucher: () => SuppliedVoucher;
  foreignVoucher: () => SuppliedVoucher;
  reservationSeconds: number;
  productId: string;
  /** The database in which an operator erases references. */
  db: pg.Pool;
  /** Checkouts that are left out, because a process of an earlier release lacks their routes. */
  without?: readonly CheckoutName[] | undefined;
}

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
  voidVoucher: 2,
  voidContested: 2,
  suspendVoucher: 4,
  extendVoucher: 8,
  issueAndVoid: 6,
  eraseOrder: 6,
  lookAround: 10,
  lookUpForeignVoucher: 2,
  watchRedeem: 12,
  settle: 4,
};
/** The size of a batch that is issued and voided. One voucher is redeemed, one reserved, one unused. */
const ISSUED = 3;
/**
 * How much longer an extended voucher is valid. With the short times, it may expire during the run. On a slow machine,
 * the service may decide an extension only after the new end, and refuse it. Milliseconds.
 */
const EXTENDED_MS = [500, 5_000, 86_400_000, 86_400_000];
/** Calls that other callers make about a voucher while it changes. */
const WATCHED = ["lookUp", "events", "publicEvents"] as const;
const WATCHING_MS = { min: 20, max: 150 };
/** How far back a settlement's list of redemptions begins. Milliseconds. */
const SETTLED_MS = 8_000;
/** The limits of a settlement's pages. At 20, most settlements need several pages, each from another API process. */
const SETTLED_MAX = [1_000, 100, 20];

export type CheckoutName = keyof typeof CHECKOUTS;
type Checkouts = Record<CheckoutName, () => Promise<unknown>>;

/** Makes a partner's calls. Each is repeated until it has an answer below 500. */
function openCalls(options: PartnerOptions) {
  const { name, random, keys } = options;
  const [ownKey, ...otherKeys] = keys;
  const ask = (what: PartnerAsk) => askUntilAnswered(options, what);
  const refs: string[] = [];
  return {
    ask,
    refs,
    newRef(): string {
      const ref = `${name}-${refs.length + 1}`;
      refs.push(ref);
      return ref;
    },
    anotherKey: () => random.pick(otherKeys),
    redeem(
      voucher: SuppliedVoucher,
      externalRef: string,
      { key = ownKey, ticket = "", token = null as string | null } = {},
    ) {
      const by = ticket === "" ? { code: voucher.code } : { ticket };
      return ask({ operation: "redeem", key, voucher, externalRef, by, token });
    },
    reserve: (voucher: SuppliedVoucher, key = ownKey) => ask({ operation: "reserve", key, voucher }),
    voidVoucher: (voucher: SuppliedVoucher, key = ownKey) => ask({ operation: "void", key, voucher }),
    release: (voucher: SuppliedVoucher, ticket: string) => ask({ operation: "release", key: ownKey, voucher, ticket }),
    read: (operation: (typeof WATCHED)[number], voucher: SuppliedVoucher, key = ownKey) =>
      ask({ operation, key, voucher }),
    findRedemption: (externalRef: string) => ask({ operation: "redemption", key: ownKey, externalRef }),
  };
}

type Calls = ReturnType<typeof openCalls>;

/** Makes checkouts that redeem a voucher, with or without a reservation. */
function redeemOnce({ random, nextVoucher }: PartnerOptions, { newRef, anotherKey, redeem, reserve }: Calls) {
  return {
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
  } satisfies Partial<Checkouts>;
}

/** Makes checkouts that redeem by several calls, of which at most one succeeds. */
function redeemOften({ random, nextVoucher }: PartnerOptions, { newRef, anotherKey, redeem }: Calls) {
  return {
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
  } satisfies Partial<Checkouts>;
}

/** Makes checkouts in which a reservation ends, or another caller wants the voucher. */
function reserveAndLeave(options: PartnerOptions, { newRef, anotherKey, redeem, reserve, release }: Calls) {
  const { random, nextVoucher, contestedVoucher, reservationSeconds } = options;
  return {
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

    async contestReservation() {
      const voucher = contestedVoucher();
      const { status, body } = await reserve(voucher, anotherKey());
      if (status === 200 && random.chance(0.5)) await release(voucher, body.ticket);
      else await redeem(voucher, newRef());
    },
  } satisfies Partial<Checkouts>;
}

/** Makes checkouts of vouchers that the issuer voids at the same time. */
function voidBeside(options: PartnerOptions, { newRef, anotherKey, redeem, reserve, read, voidVoucher }: Calls) {
  const { random, nextVoucher, contestedVoucher } = options;
  return {
    async voidVoucher() {
      const voucher = nextVoucher();
      if (random.chance(0.5)) await reserve(voucher);
      const voided = voidVoucher(voucher);
      if (random.chance(0.5)) await voided;
      await Promise.all([voided, redeem(voucher, newRef()), read(random.pick(WATCHED), voucher, anotherKey())]);
      if (random.chance(0.3)) await voidVoucher(voucher, anotherKey());
    },

    voidContested: () => voidVoucher(contestedVoucher()),
  } satisfies Partial<Checkouts>;
}

/** Makes checkouts of vouchers that the issuer suspends and resumes, or extends, at the same time. */
function changeBeside(options: PartnerOptions, { ask, newRef, anotherKey, redeem, reserve, read }: Calls) {
  const { random, keys, nextVoucher, contestedVoucher } = options;
  const [key] = keys;
  return {
    async suspendVoucher() {
      const voucher = random.chance(0.7) ? nextVoucher() : contestedVoucher();
      if (random.chance(0.5)) await reserve(voucher, anotherKey());
      const suspended = ask({ operation: "suspend", key, voucher });
      if (random.chance(0.5)) await suspended;
      await Promise.all([suspended, redeem(voucher, newRef()), read(random.pick(WATCHED), voucher, anotherKey())]);
      await Promise.all([ask({ operation: "resume", key, voucher }), redeem(voucher, newRef())]);
    },

    async extendVoucher() {
      const voucher = random.chance(0.7) ? nextVoucher() : contestedVoucher();
      const end = Math.max(voucher.validUntilMs ?? Date.now(), Date.now()) + random.pick(EXTENDED_MS);
      const extended = ask({ operation: "extend", key, voucher, validUntil: new Date(end).toISOString() });
      if (random.chance(0.5)) await extended;
      await Promise.all([extended, redeem(voucher, newRef()), read(random.pick(WATCHED), voucher, anotherKey())]);
    },
  } satisfies Partial<Checkouts>;
}

/** Checkouts during which the issuer issues and voids a batch, and an operator erases references of orders. */
function issueAndErase(options: PartnerOptions, { ask, newRef, anotherKey, redeem, reserve, findRedemption }: Calls) {
  const { name, random, keys, nextVoucher, productId, db } = options;
  const [key] = keys;
  let batches = 0;
  return {
    async issueAndVoid() {
      const issueRef = `${name}-batch-${++batches}`;
      const issue = { operation: "issue", key, productId, issueRef, count: ISSUED } as const;
      const [{ status, body }] = await Promise.all([
        ask(issue),
        random.chance(0.3) && ask({ ...issue, key: anotherKey() }),
      ]);
      if (status !== 200) return;
      const codes = await ask({ operation: "codes", key, batchId: body.id, count: ISSUED });
      const { organizationId } = key;
      const vouchers: SuppliedVoucher[] = codes.body.items.map(({ id, code }: SuppliedVoucher) => ({
        id,
        code,
        organizationId,
      }));
      const [first, second, last] = vouchers as [SuppliedVoucher, SuppliedVoucher, SuppliedVoucher];
      const batch = { id: String(body.id), vouchers };
      const voidAll = async () => {
        for (let left = 1; left > 0; ) left = (await ask({ operation: "voidBatch", key, batch })).body.remaining;
      };
      await Promise.all([voidAll(), redeem(first, newRef()), reserve(second, anotherKey())]);
      await Promise.all([redeem(last, newRef()), random.chance(0.3) && ask(issue)]);
    },

    async eraseOrder() {
      const [voucher, externalRef] = [nextVoucher(), newRef()];
      if ((await redeem(voucher, externalRef)).status !== 200) return;
      const form = await untilErasedForm(db, key.organizationId, externalRef);
      const erased = eraseUntilDone(options, { operation: "erase", key, externalRef, form });
      await Promise.all([erased, redeem(voucher, externalRef), findRedemption(externalRef)]);
      await Promise.all([redeem(voucher, externalRef, { key: anotherKey() }), findRedemption(externalRef)]);
    },
  } satisfies Partial<Checkouts>;
}

/** Reads the text that replaces an erased reference. Repeats this until Postgres answers. */
export async function untilErasedForm(db: pg.Pool, owner: string, text: string): Promise<string> {
  return until(() => findErasedForm(db, { owner, text }).catch(() => null));
}

/** Makes checkouts that read vouchers and redemptions. */
function readAlong({ random, keys, nextVoucher, contestedVoucher, foreignVoucher }: PartnerOptions, calls: Calls) {
  const { ask, newRef, anotherKey, redeem, reserve, read, findRedemption } = calls;
  return {
    async lookAround() {
      const voucher = contestedVoucher();
      await read("lookUp", voucher);
      await read("events", voucher);
    },

    lookUpForeignVoucher: () => read("lookUp", foreignVoucher()),

    /** Redeems a voucher that other callers read until after the answer. */
    async watchRedeem() {
      const [voucher, ref] = [nextVoucher(), newRef()];
      let isOver = false;
      const redeemed = redeem(voucher, ref).finally(() => {
        isOver = true;
      });
      const watch = async () => {
        for (let last = false; !last; ) {
          last = isOver;
          await read(random.pick(WATCHED), voucher, anotherKey());
          if (random.chance(0.3)) await findRedemption(ref);
          if (random.chance(0.1)) await reserve(voucher, anotherKey());
          if (!last) await sleep(random.between(WATCHING_MS.min, WATCHING_MS.max));
        }
      };
      await Promise.all([redeemed, watch()]);
    },

    async settle() {
      const from = new Date(Date.now() - SETTLED_MS).toISOString();
      const limit = random.pick(SETTLED_MAX);
      let next: ListAsk | null = { operation: "list", key: random.pick(keys), from, after: null, limit };
      while (next !== null) {
        const page: Exchange = await ask(next);
        const isLast = page.status !== 200 || page.body.redemptions.length < limit;
        next = isLast ? null : pageAfter(page as Exchange<ListAsk>);
      }
      const { refs } = calls;
      if (refs.length > 0) await findRedemption(random.pick(refs));
    },
  } satisfies Partial<Checkouts>;
}

/**
 * Serves customers, one after another, until `goesOn` returns false. Repeats every request, with the same reference,
 * until it gets an answer below 500. The seed determines the partner's choices, but not the answers.
 */
export async function workAsPartner(options: PartnerOptions, goesOn: () => boolean): Promise<void> {
  const { random, without = [] } = options;
  const calls = openCalls(options);
  const weights = { ...CHECKOUTS };
  for (const name of without) weights[name] = 0;
  const checkouts: Checkouts = {
    ...redeemOnce(options, calls),
    ...redeemOften(options, calls),
    ...reserveAndLeave(options, calls),
    ...voidBeside(options, calls),
    ...changeBeside(options, calls),
    ...issueAndErase(options, calls),
    ...readAlong(options, calls),
  };
  while (goesOn()) {
    await checkouts[random.weigh(weights)]();
    await sleep(random.between(THINKING_MS.min, THINKING_MS.max));
  }
}

const BROWSING_MS = { min: 50, max: 250 };
/** Longer than any run. Seconds. */
const TOKEN_S = 2 * 86_400;
/** How many of the latest acquisitions a shopper may repeat. */
const REMEMBERED_MAX = 10;
const VISITS = { claim: 3, claimTwice: 3, buy: 3, buyTwice: 3, repeatEarlier: 4 };

/**
 * Works as users who claim and buy, one after another, until `goesOn` returns false. Repeats each request until it has
 * an answer below 500. Sends some requests twice at the same time, and some again later. `currentOffer` yields the
 * offer that all shoppers use.
 */
export async function workAsShopper(
  options: CallerOptions & { issuer: IssuerKey; currentOffer: () => SuppliedOffer },
  goesOn: () => boolean,
): Promise<void> {
  const { name, random, issuer, currentOffer } = options;
  const made: AcquireAsk[] = [];
  let users = 0;
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
