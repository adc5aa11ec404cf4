import { ADVANCE_SECONDS_MAX, CheckRun, type CheckSetup, NO_FAULTS, NotTried, References } from "./check-run.ts";
import type { Faults, NetworkFault } from "./faulty-proxy.ts";
import { ClientFault } from "./run-client.ts";
import type { SeenVoucher } from "./service.ts";

/** The result of a check. */
export interface CheckResult {
  name: string;
  /** A sentence about what was tried. */
  about: string;
  result: "right" | "wrong" | "not tried";
  /** Sentences about what the client did wrong, or why the check was not run. */
  sentences: string[];
}

/** The number of unused vouchers that the checks need. */
export const VOUCHERS_NEEDED = 12;

/** How long the proxy delays a slow response. Milliseconds. */
const SLOW_MS = 3_000;
/** The `Retry-After` of the proxy's own 503 responses. */
const RETRY_AFTER_SECONDS = 2;
/** The `Retry-After` of a daily limit. */
const REST_OF_DAY_SECONDS = 3_600;
/** The errors with which the proxy itself responds. */
const ERRORS = {
  overloaded: [503, "The voucher service is busy. Please try again in a moment."],
  voucher_reserved: [
    409,
    "This voucher is in use in another checkout. Finish or cancel that one, or try again in a few minutes.",
  ],
  voucher_voided: [409, "The issuer has cancelled this voucher. Another form of payment is needed."],
  voucher_suspended: [409, "This voucher is on hold. Please contact the company that issued it."],
  cap_reached: [429, "This till has reached its daily limit. Please ask your support."],
} as const;

interface Check {
  name: string;
  about: string;
  run(check: CheckRun): Promise<void>;
}

/** Applies a fault to the first `count` redeem calls of a step. */
const onRedeem =
  (fault: NetworkFault, count = 1): Faults =>
  (kind, before) =>
    kind === "redeem" && before < count ? fault : null;

/** Runs the checks in order and reports each result. If the first ends with a ClientFault, tries no other. */
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
      const settled = await check.settle({ step: "checkout", order: check.order(5), codes: [check.code(0)] });
      check.expectRefused(settled, "a voucher that another order has used");
    },
  },
  {
    name: "unknown code",
    about: "A customer enters a code that does not exist.",
    async run(check) {
      const code = "0000-0000-0000-0000";
      check.expectRefused(
        await check.settle({ step: "checkout", order: check.order(6), codes: [code] }),
        "an unknown code",
      );
    },
  },
  {
    name: "reserve and pay",
    about: "A voucher is reserved, the customer pays, and the voucher is redeemed.",
    async run(check) {
      const [order, code] = [check.order(7), check.code(4)];
      const { state } = await reserve(check, order, code);
      await check.expectRedeemed(await check.settle({ step: "pay", order, codes: [code], state }), code);
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
      await check.expectReportMatches(await check.settle({ step: "pay", order, codes: [code], state }), code);
    },
  },
  {
    name: "cancelled order",
    about: "A voucher is reserved, and the customer leaves.",
    async run(check) {
      const [order, code] = [check.order(9), check.code(6)];
      const { state } = await reserve(check, order, code);
      const { result } = await check.settle({ step: "cancel", order, codes: [code], state });
      if ((await check.lookUp(code)).reservation !== null) {
        check.say(
          `It reported "${result.outcome}" for a cancelled order, but the voucher is still reserved. Release the ` +
            "reservation with its ticket.",
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
      const settled = await check.settle({ step: "checkout", order, codes: [code] }, (kind) =>
        kind === "redeem" || kind === "reserve" ? refusal : null,
      );
      check.expectRefused(settled, "a voucher that another checkout has reserved");
    },
  },
  {
    name: "suspended voucher",
    about: "The issuer has suspended the voucher, because its code was stolen.",
    async run(check) {
      const [order, code] = [check.order(15), check.code(6)];
      const refusal = errorAnswer("voucher_suspended");
      const settled = await check.settle({ step: "checkout", order, codes: [code] }, (kind) =>
        kind === "redeem" || kind === "reserve" ? refusal : null,
      );
      check.expectRefused(settled, "a suspended voucher");
    },
  },
  {
    name: "daily limit",
    about: "The key has reached its daily limit: 429 until midnight.",
    async run(check) {
      const [order, code] = [check.order(16), check.code(6)];
      const refusal = errorAnswer("cap_reached", REST_OF_DAY_SECONDS);
      const settled = await check.settle({ step: "checkout", order, codes: [code] }, (kind) =>
        kind === "redeem" ? refusal : null,
      );
      check.expectRefused(settled, "a till that has reached its daily limit");
    },
  },
  {
    name: "reused reference",
    about: "The till starts its order numbers again: an old number comes with another voucher.",
    async run(check) {
      const [order, code] = [check.order(1), check.code(7)];
      const settled = await check.settle({ step: "checkout", order, codes: [code] });
      const { voucher } = await check.lookUp(code);
      if (settled.result.outcome === "redeemed" && voucher.status !== "Redeemed") {
        return check.say(
          `It reported the voucher ${voucher.id} as redeemed, but that voucher is still ${voucher.status}: the ` +
            "reference had been used before, so the service repeated the result of another voucher. Compare " +
            "voucherInstanceId with the id that the look-up returned, and stop when they differ.",
        );
      }
      await check.expectReportMatches(settled, code);
    },
  },
  {
    name: "several vouchers",
    about: "An order has two vouchers, and the shop crashed after the redeems and continues the order.",
    async run(check) {
      const [order, codes] = [check.order(12), [check.code(8), check.code(9)]];
      const first = await check.settle({ step: "basket", order, codes }, onRedeem({ kind: "lose response" }));
      await check.expectBasket(first, codes, 2);
      const { state } = first.result;
      await check.expectBasket(await check.settle({ step: "basket", order, codes, state }), codes, 2);
    },
  },
  {
    name: "one of several",
    about: "An order has two vouchers. One is refused: first before the payment, then after it.",
    async run(check) {
      const before = [check.code(10), check.code(0)];
      await check.expectBasket(
        await check.settle({ step: "basket", order: check.order(13), codes: before }),
        before,
        0,
      );
      const after = [check.code(10), check.code(11)];
      const faults: Faults = (kind, earlier) =>
        kind === "redeem" && earlier === 1 ? errorAnswer("voucher_voided") : null;
      await check.expectBasket(
        await check.settle({ step: "basket", order: check.order(14), codes: after }, faults),
        after,
        1,
      );
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
      check.expectRefused(await check.settle({ step: "checkout", order, codes: [code] }), "an expired voucher");
    },
  },
];

/** A checkout that must redeem the voucher, even when the proxy disturbs its calls. */
function mustRedeem(orderNumber: number, codeIndex: number, faults = NO_FAULTS): Check["run"] {
  return async (check) => {
    const [order, code] = [check.order(orderNumber), check.code(codeIndex)];
    await check.expectRedeemed(await check.settle({ step: "checkout", order, codes: [code] }, faults), code);
  };
}

/** The fault in which the proxy itself responds with this error. */
function errorAnswer(code: keyof typeof ERRORS, retryAfterSeconds?: number): NetworkFault {
  const [status, error] = ERRORS[code];
  const body = { error, code, requestId: "sandbox-check" };
  return { kind: "answer", status, body, ...(retryAfterSeconds !== undefined && { retryAfterSeconds }) };
}

async function reserve(
  check: CheckRun,
  order: string,
  code: string,
): Promise<{ state: unknown; reservation: SeenVoucher["reservation"] }> {
  const { result } = await check.settle({ step: "reserve", order, codes: [code] });
  const { reservation } = await check.lookUp(code);
  if (result.outcome !== "reserved")
    check.say(`It reported "${result.outcome}" for a voucher that it could have reserved.`);
  else if (reservation === null) check.say("It reported that the voucher is reserved, but it is not.");
  return { state: result.state ?? null, reservation };
}
