import { setTimeout as sleep } from "node:timers/promises";
import { type IssuerKey, secondsFromNow, signUser } from "../support/user-tokens.ts";
import type { AcquireAsk, ShoppingUser, SuppliedOffer } from "./history.ts";
import { askUntilAnswered, type PartnerOptions } from "./partner.ts";

export interface ShopperOptions extends Pick<PartnerOptions, "name" | "random" | "apis" | "history" | "signal"> {
  issuer: IssuerKey;
  /** Yields the offer that all shoppers currently use. */
  currentOffer: () => SuppliedOffer;
}

const THINKING_MS = { min: 50, max: 250 };
/** Longer than any run. Seconds. */
const TOKEN_S = 2 * 86_400;
/** Number of recent acquisitions that a shopper may repeat. */
const REMEMBERED_MAX = 10;
/** Relative frequency of each visit. */
const VISITS = { claim: 3, claimTwice: 3, buy: 3, buyTwice: 3, repeatEarlier: 4 };

/**
 * Simulates users who claim and buy, one after another. Each request is repeated until it is answered; some are sent twice at the same
 * time, and some again later.
 */
export class Shopper {
  readonly #options: ShopperOptions;
  readonly #made: AcquireAsk[] = [];
  #users = 0;

  constructor(options: ShopperOptions) {
    this.#options = options;
  }

  /** Visits offers until `goesOn` returns false, then finishes the current visit. */
  async work(goesOn: () => boolean): Promise<void> {
    const { random } = this.#options;
    while (goesOn()) {
      await this.#visit(random.weigh(VISITS));
      await sleep(random.between(THINKING_MS.min, THINKING_MS.max));
    }
  }

  async #visit(visit: keyof typeof VISITS): Promise<void> {
    const { random } = this.#options;
    if (visit === "repeatEarlier") {
      if (this.#made.length > 0) await this.#ask(random.pick(this.#made));
      return;
    }
    const user = await this.#newUser();
    const offer = this.#options.currentOffer();
    const calls = visit.endsWith("Twice") ? 2 : 1;
    const asks = Array.from({ length: calls }, (): AcquireAsk => {
      if (visit.startsWith("claim")) return { operation: "acquire", user, offer, by: { claim: true } };
      const route = random.pick(["product", "listing"] as const);
      return { operation: "acquire", user, offer, by: { paymentRef: `payment-of-${user.id}`, route } };
    });
    this.#made.push(...asks);
    this.#made.splice(0, this.#made.length - REMEMBERED_MAX);
    await Promise.all(asks.map((ask) => this.#ask(ask)));
  }

  #ask(ask: AcquireAsk) {
    return askUntilAnswered(this.#options, ask);
  }

  async #newUser(): Promise<ShoppingUser> {
    this.#users += 1;
    const id = `${this.#options.name}-user-${this.#users}`;
    return { id, token: await signUser(this.#options.issuer, id, { exp: secondsFromNow(TOKEN_S) }) };
  }
}
