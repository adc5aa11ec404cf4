import type { Call, Fault, Faults, FaultyProxy } from "./faulty-proxy.ts";
import { ClientFault, type ClientResult, type ClientStep, runClient } from "./run-client.ts";
import type { SandboxService, SeenVoucher } from "./service.ts";

/** The result of a check. */
export interface CheckResult {
  name: string;
  /** What was tried, as a sentence. */
  about: string;
  result: "right" | "wrong" | "not tried";
  /** What the client did wrong, or why this was not tried. */
  sentences: string[];
}

/** Unused vouchers that the checks need. */
export const VOUCHERS_NEEDED = 8;

/** Maximum number of runs of a step. If its outcome is then still unknown, the check ends with a ClientFault. */
const RUNS_MAX = 4;
/** How long a slow response takes. Milliseconds. */
const SLOW_MS = 3_000;
/** `Retry-After` of the made-up 503s. */
const RETRY_AFTER_SECONDS = 2;
/** Furthest that one call moves the times of a sandbox: 400 days, as the reference says. */
const ADVANCE_SECONDS_MAX = 34_560_000;
/** How early a call may arrive, because timers are not exact. Milliseconds. */
const EARLY_MS = 100;

interface CheckSetup {
  command: string;
  key: string;
  proxy: FaultyProxy;
  service: SandboxService;
  signal: AbortSignal;
  /** Prefix of order numbers, unique to this run. */
  run: string;
  /** Codes, all unused at the start. */
  codes: readonly string[];
  /** Whether the last check may expire the sandbox's vouchers. */
  expireVouchers: boolean;
}

/** The last result of a step, and the calls of all its runs. */
interface Settled {
  result: ClientResult;
  calls: readonly Call[];
}

interface Check {
  name: string;
  about: string;
  run(check: CheckRun): Promise<void>;
}

/** Thrown by a check that cannot be tried. */
class NotTried extends Error {}

const NO_FAULTS: Faults = () => null;

/** Applies a fault to the first `count` redeem calls of a step. */
const onRedeem =
  (fault: Fault, count = 1): Faults =>
  (kind, before) =>
    kind === "redeem" && before < count ? fault : null;

/**
 * Runs the checks one after another, and reports each as soon as it is done. If the first one, a plain redeem, ends with a ClientFault, the
 * others are not tried.
 */
export async function runChecks(setup: CheckSetup, onResult: (result: CheckResult) => void): Promise<CheckResult[]> {
  const results: CheckResult[] = [];
  const references = new References();
  let works = true;
  for (const { name, about, run } of CHECKS) {
    const check = new CheckRun(setup, references);
    const result: CheckResult = { name, about, result: "right", sentences: check.sentences };
    try {
      if (!works) throw new NotTried("The client must be able to redeem a voucher first.");
      await run(check);
    } catch (error) {
      if (error instanceof ClientFault && results.length === 0) works = false;
      if (error instanceof NotTried && check.sentences.length === 0) result.result = "not tried";
      if (error instanceof NotTried || error instanceof ClientFault) check.say(error.message);
      else throw error;
    }
    if (result.result === "right" && check.sentences.length > 0) result.result = "wrong";
    results.push(result);
    onResult(result);
  }
  return results;
}

/** The references that the client has sent in all checks so far. */
class References {
  /** The order that a reference belongs to. */
  readonly orders = new Map<string, string>();
  /** The references of an order for one code. */
  readonly #used = new Map<string, Set<string>>();

  usedFor(order: string, code: string): Set<string> {
    const key = `${order} ${code}`;
    const used = this.#used.get(key) ?? new Set();
    this.#used.set(key, used);
    return used;
  }
}

/** One check in progress. */
class CheckRun {
  readonly setup: CheckSetup;
  readonly sentences: string[] = [];
  readonly #references: References;

  constructor(setup: CheckSetup, references: References) {
    this.setup = setup;
    this.#references = references;
  }

  /** Adds a sentence about what is wrong, unless it is there already. */
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

  /** Runs a step, and repeats it without faults while its outcome is unknown. */
  async settle(
    step: Pick<ClientStep, "step" | "order" | "code"> & { state?: unknown },
    faults = NO_FAULTS,
  ): Promise<Settled> {
    const { command, key, proxy, signal } = this.setup;
    const all: Call[] = [];
    let state = step.state ?? null;
    for (let run = 1; ; run++) {
      proxy.begin(run === 1 ? faults : NO_FAULTS);
      const result = await runClient(command, { ...step, state, api: proxy.url, key }, signal);
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
      this.#checkReferences(step.order, step.code, all);
      if (result.outcome === "unknown") {
        throw new ClientFault(
          `The client reported an unknown outcome ${RUNS_MAX} times, although the service answered in the end.`,
        );
      }
      return { result, calls: all };
    }
  }

  /** After a response with `Retry-After`, the next call of the same kind must wait that long. Reports only the first one that did not. */
  #checkWaits(calls: readonly Call[]): void {
    for (const [index, call] of calls.entries()) {
      const next = calls.slice(index + 1).find(({ kind }) => kind === call.kind);
      if (next === undefined || call.retryAfterMs === 0 || next.at - call.at >= call.retryAfterMs - EARLY_MS) continue;
      const waited = ((next.at - call.at) / 1_000).toFixed(1);
      this.say(
        `It called again ${waited} seconds after a ${call.status} with Retry-After: ${call.retryAfterMs / 1_000}. Wait as long as Retry-After says.`,
      );
      return;
    }
  }

  /** All attempts of an order for a voucher must use one reference, which no other order uses. */
  #checkReferences(order: string, code: string, calls: readonly Call[]): void {
    const used = this.#references.usedFor(order, code);
    for (const { kind, request } of calls) if (kind === "redeem") used.add(String(request.externalRef));
    if (used.size > 1) {
      this.say(
        `It used ${used.size} references for one order: ${[...used].join(", ")}. Send every retry with the same externalRef; a new one is a new redemption.`,
      );
    }
    for (const reference of used) {
      const owner = this.#references.orders.get(reference) ?? order;
      this.#references.orders.set(reference, owner);
      if (owner === order) continue;
      this.say(
        `It used the reference ${reference} for the orders ${owner} and ${order}. A reference redeems one voucher, ever: each order needs its own.`,
      );
    }
  }

  /** The client must report that it redeemed this voucher, and the voucher must be redeemed. */
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
          `It reported "${result.outcome}" after a response with alreadyConfirmed: true. That is a success: an earlier call of the order redeemed the voucher.`,
        );
      }
      return this.say(
        `It reported "${result.outcome}", but the voucher is redeemed for this order. Without a final response the outcome is unknown: send the same call again.`,
      );
    }
    if (voucher.status !== "Redeemed") return this.sayNotRedeemed(code);
    if (typeof answer?.redeemCode === "string" && result.redeemCode !== answer.redeemCode) {
      this.say(
        `It returned the redeemCode ${result.redeemCode ?? "(none)"}, but the service's response has ${answer.redeemCode}. The customer needs it.`,
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

  sayNotRedeemed(code: string): void {
    this.say(`It reported that the voucher ${code} is redeemed, but it is not.`);
  }
}

export const CHECKS: readonly Check[] = [
  {
    name: "redeem",
    about: "An order is paid with a voucher.",
    run: mustRedeem(1, 0),
  },
  {
    name: "repeat",
    about: "The shop crashed after the redeem and runs the same order again.",
    run: mustRedeem(1, 0),
  },
  {
    name: "lost answer",
    about: "The voucher is redeemed, but the response is lost.",
    run: mustRedeem(2, 1, onRedeem({ kind: "lose response" })),
  },
  {
    name: "slow answer",
    about: `The response takes ${SLOW_MS / 1_000} seconds.`,
    run: mustRedeem(3, 2, onRedeem({ kind: "delay", ms: SLOW_MS })),
  },
  {
    name: "busy service",
    about: `The service answers 503 with Retry-After: ${RETRY_AFTER_SECONDS}, twice.`,
    run: mustRedeem(4, 3, onRedeem(errorAnswer("overloaded", RETRY_AFTER_SECONDS), 2)),
  },
  {
    name: "used voucher",
    about: "A customer enters a code that another order has used.",
    async run(check) {
      const settled = await check.settle({ step: "checkout", order: check.order(5), code: check.code(0) });
      check.expectRefused(settled, "a voucher that another order has used");
    },
  },
  {
    name: "unknown code",
    about: "A customer enters a code that does not exist.",
    async run(check) {
      const code = "0000-0000-0000-0000";
      check.expectRefused(await check.settle({ step: "checkout", order: check.order(6), code }), "an unknown code");
    },
  },
  {
    name: "reserve and pay",
    about: "A voucher is reserved, the customer pays, and the voucher is redeemed.",
    async run(check) {
      const [order, code] = [check.order(7), check.code(4)];
      const { state } = await reserve(check, order, code);
      await check.expectRedeemed(await check.settle({ step: "pay", order, code, state }), code);
    },
  },
  {
    name: "reservation ends",
    about: "The customer pays after the reservation has ended.",
    async run(check) {
      const [order, code] = [check.order(8), check.code(5)];
      const { state, reservation } = await reserve(check, order, code);
      if (reservation !== null) {
        const lastsMs = Date.parse(reservation.expiresAt) - Date.parse(reservation.startedAt);
        await check.setup.service.advance(Math.ceil(lastsMs / 1_000));
      }
      await check.expectReportMatches(await check.settle({ step: "pay", order, code, state }), code);
    },
  },
  {
    name: "cancelled order",
    about: "A voucher is reserved, and the customer leaves.",
    async run(check) {
      const [order, code] = [check.order(9), check.code(6)];
      const { state } = await reserve(check, order, code);
      const { result } = await check.settle({ step: "cancel", order, code, state });
      if ((await check.lookUp(code)).reservation !== null) {
        check.say(
          `It reported "${result.outcome}" for a cancelled order, but the voucher is still reserved. Release the reservation with its ticket.`,
        );
      }
    },
  },
  {
    name: "other checkout",
    about: "Another checkout has reserved the voucher.",
    async run(check) {
      const [order, code] = [check.order(10), check.code(6)];
      const refusal = errorAnswer("voucher_reserved");
      const settled = await check.settle({ step: "checkout", order, code }, (kind) =>
        kind === "redeem" || kind === "reserve" ? refusal : null,
      );
      check.expectRefused(settled, "a voucher that another checkout has reserved");
    },
  },
  {
    name: "reused reference",
    about: "The till starts its order numbers again: an old number comes with another voucher.",
    async run(check) {
      const [order, code] = [check.order(1), check.code(7)];
      const settled = await check.settle({ step: "checkout", order, code });
      const { voucher } = await check.lookUp(code);
      if (settled.result.outcome === "redeemed" && voucher.status !== "Redeemed") {
        return check.say(
          `It reported the voucher ${voucher.id} as redeemed, but that voucher is still ${voucher.status}: the reference had been used before, so the service repeated the result of another voucher. Compare voucherInstanceId with the id that the look-up returned, and stop when they differ.`,
        );
      }
      await check.expectReportMatches(settled, code);
    },
  },
  {
    name: "expired voucher",
    about: "A customer enters the code of a voucher that has expired.",
    async run(check) {
      if (!check.setup.expireVouchers) throw new NotTried("--keep-vouchers: no voucher was expired.");
      const [order, code] = [check.order(11), check.code(6)];
      const { voucher, now } = await check.lookUp(code);
      const seconds = Math.ceil((Date.parse(voucher.validUntil) - now.getTime()) / 1_000) + 1;
      if (voucher.status !== "Active") throw new NotTried(`The voucher for this check is ${voucher.status} already.`);
      if (seconds > ADVANCE_SECONDS_MAX) throw new NotTried("The voucher is valid for more than 400 days.");
      await check.setup.service.advance(seconds);
      check.expectRefused(await check.settle({ step: "checkout", order, code }), "an expired voucher");
    },
  },
];

/** A checkout that must redeem the voucher, even if faults hit its calls. */
function mustRedeem(orderNumber: number, codeIndex: number, faults = NO_FAULTS): Check["run"] {
  return async (check) => {
    const [order, code] = [check.order(orderNumber), check.code(codeIndex)];
    await check.expectRedeemed(await check.settle({ step: "checkout", order, code }, faults), code);
  };
}

/** A fault: the proxy itself responds with this error. */
function errorAnswer(code: "overloaded" | "voucher_reserved", retryAfterSeconds?: number): Fault {
  const [status, error] =
    code === "overloaded"
      ? [503, "The service is busy. Please try again."]
      : [409, "This voucher is reserved by another checkout."];
  const body = { error, code, requestId: "sandbox-check" };
  return { kind: "answer", status, body, ...(retryAfterSeconds !== undefined && { retryAfterSeconds }) };
}

/** Lets the client reserve a voucher, and reports if it did not. */
async function reserve(
  check: CheckRun,
  order: string,
  code: string,
): Promise<{ state: unknown; reservation: SeenVoucher["reservation"] }> {
  const { result } = await check.settle({ step: "reserve", order, code });
  const { reservation } = await check.lookUp(code);
  if (result.outcome !== "reserved")
    check.say(`It reported "${result.outcome}" for a voucher that it could have reserved.`);
  else if (reservation === null) check.say("It reported that the voucher is reserved, but it is not.");
  return { state: result.state ?? null, reservation };
}
