import type { Faults, FaultyProxy, ProxiedCall } from "./faulty-proxy.ts";
import { ClientFault, type ClientResult, type ClientStep, runClient } from "./run-client.ts";
import type { SandboxService, SeenVoucher } from "./service.ts";

/** Maximum number of runs of one step. If its outcome is still unknown then, the check fails. */
const RUNS_MAX = 4;
/** Maximum time by which one call moves the times of a sandbox: 400 days, as in the API reference. */
export const ADVANCE_SECONDS_MAX = 34_560_000;
/** A call may arrive this much too early, because timers are inexact. Milliseconds. */
const EARLY_MS = 100;

export interface CheckSetup {
  command: string;
  key: string;
  proxy: FaultyProxy;
  service: SandboxService;
  signal: AbortSignal;
  /** The prefix of this run's order numbers. No other run has it. */
  run: string;
  /** Codes, all unused at the start. */
  codes: readonly string[];
  /** Whether the last check may expire the sandbox's vouchers. */
  expireVouchers: boolean;
}

/** The final result of a step, and the calls of all its runs. */
interface Settled {
  result: ClientResult;
  calls: readonly ProxiedCall[];
}

/** Thrown by a check that cannot be run. */
export class NotTried extends Error {}

export const NO_FAULTS: Faults = () => null;

/** The references that the client has sent in all checks so far. */
export class References {
  /** The order of each reference. */
  readonly orders = new Map<string, string>();
  /** The references that an order has used for one code. */
  readonly #used = new Map<string, Set<string>>();

  usedFor(order: string, code: string): Set<string> {
    const key = `${order} ${code}`;
    const used = this.#used.get(key) ?? new Set();
    this.#used.set(key, used);
    return used;
  }
}

/** One check in progress. */
export class CheckRun {
  readonly setup: CheckSetup;
  readonly sentences: string[] = [];
  readonly #references: References;

  constructor(setup: CheckSetup, references: References) {
    this.setup = setup;
    this.#references = references;
  }

  /** Adds a sentence about a problem, unless it was already added. */
  say(sentence: string): void {
    if (!this.sentences.includes(sentence)) this.sentences.push(sentence);
  }

  order(number: number): string {
    return `${this.setup.run}-${number}`;
  }

  code(index: number): string {
    const code = this.setup.codes[index];
    if (code === undefined) throw new Error(`there is no code ${index}`);
    return code;
  }

  async lookUp(code: string): Promise<SeenVoucher> {
    const seen = await this.setup.service.lookUp(code);
    if (seen === null) throw new Error("a voucher has disappeared");
    return seen;
  }

  /** Runs a step. As long as its outcome is unknown, runs it again without faults. */
  async settle(
    step: Pick<ClientStep, "step" | "order" | "codes"> & { state?: unknown },
    faults = NO_FAULTS,
  ): Promise<Settled> {
    const { command, key, proxy, signal } = this.setup;
    const all: ProxiedCall[] = [];
    let state = step.state ?? null;
    for (let run = 1; ; run++) {
      proxy.begin(run === 1 ? faults : NO_FAULTS);
      const code = step.step === "basket" ? null : (step.codes[0] ?? null);
      const result = await runClient(command, { ...step, code, state, api: proxy.url, key }, signal);
      const calls = proxy.calls();
      all.push(...calls);
      this.#checkWaits(calls);
      if (result.outcome === "unsupported") {
        if (step.step === "checkout")
          throw new ClientFault('The client has no step "checkout", which every client needs.');
        throw new NotTried(`The client has no step "${step.step}".`);
      }
      state = result.state ?? state;
      if (result.outcome === "unknown" && run < RUNS_MAX) continue;
      this.#checkReferences(step.order, step.codes, all);
      if (result.outcome === "unknown") {
        throw new ClientFault(
          `The client reported an unknown outcome ${RUNS_MAX} times, although the service answered in the end.`,
        );
      }
      return { result, calls: all };
    }
  }

  /** Reports the client's first call of the same kind that comes earlier than `Retry-After` allows. */
  #checkWaits(calls: readonly ProxiedCall[]): void {
    for (const [index, call] of calls.entries()) {
      const next = calls.slice(index + 1).find(({ kind }) => kind === call.kind);
      if (next === undefined || call.retryAfterMs === 0 || next.at - call.at >= call.retryAfterMs - EARLY_MS) continue;
      const waited = ((next.at - call.at) / 1_000).toFixed(1);
      this.say(
        `It called again ${waited} seconds after a ${call.status} with Retry-After: ${call.retryAfterMs / 1_000}. ` +
          "Wait as long as Retry-After says.",
      );
      return;
    }
  }

  /** All attempts of an order must use the same reference for a voucher, and no other order may use that reference. */
  #checkReferences(order: string, codes: readonly string[], calls: readonly ProxiedCall[]): void {
    const used = this.#references.usedFor(order, codes.join(" "));
    for (const { kind, request } of calls) if (kind === "redeem") used.add(String(request.externalRef));
    if (used.size > codes.length) {
      this.say(
        `It used ${used.size} references for one order${codes.length > 1 ? ` of ${codes.length} vouchers` : ""}: ` +
          `${[...used].join(", ")}. Send every retry with the same externalRef; a new one is a new redemption.`,
      );
    }
    for (const reference of used) {
      const owner = this.#references.orders.get(reference) ?? order;
      this.#references.orders.set(reference, owner);
      if (owner === order) continue;
      this.say(
        `It used the reference ${reference} for the orders ${owner} and ${order}. A reference redeems one ` +
          "voucher, ever: each order needs its own.",
      );
    }
  }

  /** The client must report that it redeemed this voucher, and the service must show the voucher as redeemed. */
  async expectRedeemed({ result, calls }: Settled, code: string): Promise<void> {
    const { voucher } = await this.lookUp(code);
    const answer = calls.findLast(({ kind, status }) => kind === "redeem" && status === 200)?.response;
    if (result.outcome !== "redeemed") {
      if (voucher.status !== "Redeemed") {
        return this.say(
          `It reported "${result.outcome}", and the voucher is ${voucher.status}. It should have redeemed the voucher.`,
        );
      }
      if (answer?.alreadyConfirmed === true) {
        return this.say(
          `It reported "${result.outcome}" after a response with alreadyConfirmed: true. That is a success: an ` +
            "earlier call of the order redeemed the voucher.",
        );
      }
      return this.say(
        `It reported "${result.outcome}", but the voucher is redeemed for this order. Without a final response ` +
          "the outcome is unknown: send the same call again.",
      );
    }
    if (voucher.status !== "Redeemed") return this.sayNotRedeemed(code);
    if (typeof answer?.redeemCode === "string" && result.redeemCode !== answer.redeemCode) {
      this.say(
        `It returned the redeemCode ${result.redeemCode ?? "(none)"}, but the service's response has ` +
          `${answer.redeemCode}. The customer needs it.`,
      );
    }
  }

  /** The client must report that the voucher cannot be used, after at most one 409 to a redeem. */
  expectRefused({ result, calls }: Settled, what: string): void {
    if (result.outcome !== "refused")
      this.say(`It reported "${result.outcome}" for ${what}. It must report "refused".`);
    const refusals = calls.filter(({ kind, status }) => kind === "redeem" && status === 409).length;
    if (refusals > 1)
      this.say(
        `It sent the redeem ${refusals} times although each response was a 409. A 409 is an answer: do not retry it.`,
      );
  }

  /** The client's report must match the voucher's state. */
  async expectReportMatches(settled: Settled, code: string): Promise<void> {
    const { voucher } = await this.lookUp(code);
    if (settled.result.outcome === "redeemed" || voucher.status === "Redeemed")
      await this.expectRedeemed(settled, code);
    else if (settled.result.outcome !== "refused") this.expectRefused(settled, `a voucher that is ${voucher.status}`);
  }

  /**
   * The client must report as redeemed exactly the vouchers of a basket that are redeemed, and these must be `count`.
   */
  async expectBasket({ result, calls }: Settled, codes: readonly string[], count: number): Promise<void> {
    const outcome = count === codes.length ? "redeemed" : count > 0 ? "partly" : "refused";
    if (result.outcome !== outcome) {
      this.say(
        `It reported "${result.outcome}" for ${codes.length} vouchers, of which ${count} can be redeemed. It must ` +
          `report "${outcome}".`,
      );
    }
    const kinds = calls.map(({ kind }) => kind);
    if (kinds.includes("redeem") && kinds.indexOf("redeem") < kinds.lastIndexOf("reserve")) {
      this.say(
        "It redeemed a voucher before all vouchers of the order were reserved. Reserve all first, so that nothing " +
          "is redeemed when one is refused.",
      );
    }
    for (const [index, code] of codes.entries()) {
      const { voucher, reservation } = await this.lookUp(code);
      const shown = result.redeemCodes?.[index] ?? null;
      const answer = calls.findLast(({ response }) => response.voucherInstanceId === voucher.id)?.response;
      if (shown === null && answer?.redeemed === true) {
        this.say(
          `It redeemed voucher ${index + 1} of the order, but returned no redeemCode for it. What is redeemed ` +
            "stays redeemed: deliver it.",
        );
      } else if (shown !== null && shown !== answer?.redeemCode) this.sayNotRedeemed(code);
      if (count === 0 && reservation !== null) {
        this.say(
          `Voucher ${index + 1} of a refused order is still reserved. Release the reservations of the others when ` +
            "one voucher is refused.",
        );
      }
    }
  }

  sayNotRedeemed(code: string): void {
    this.say(`It reported that the voucher ${code} is redeemed, but it is not.`);
  }
}
