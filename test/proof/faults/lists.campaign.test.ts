import { expect, it } from "vitest";
import { answer } from "./crafted-history.ts";
import { type Ask, History, type SuppliedKey } from "./history.ts";
import { pageAfter } from "./lists.ts";
import { checkOrder } from "./order.ts";
import { type RecordedRedemption, toRecords } from "./records.ts";
import { SteppedClock } from "./stepped-clock.ts";

// Checks the rules for lists with hand-made histories. "1000a" is the redemption of the voucher a at 1000 ms.

const CHANGED = "a list never changes before its completeUntil";
const RANGE = "a list has only redemptions of its range";
const ORDER = "a list is in order and has each redemption once";
const OTHERS = "a list has only its organization's redemptions";
const LIMIT = "a page has at most as many redemptions as its limit";
const NO_END = "a list without an end has a next page";
const DIFFERENT = "no two answers show different contents of a final state";
const OLDER = "no answer shows an older state than one shown before it was asked";
/** This rule is not tested here, because the histories show redemptions that no call has made. */
const REGISTER = "each voucher behaves as one register";

it.each<[history: string, broken: string[]]>([
  ["list 0-5000: 1000a 2000b", []],
  ["list 1000-5000: 1000a", []],
  // A list lacks a redemption that an earlier or later answer, a webhook or the database shows.
  ["redeem 2000b, list 0-5000: 1000a", [CHANGED]],
  ["list 0-5000: 1000a, redeem 2000b", [CHANGED]],
  ["redemption 2000b, list 0-5000: 1000a", [CHANGED]],
  ["lookUp 2000b, list 0-5000: 1000a", [CHANGED]],
  ["webhook 2000b, list 0-5000: 1000a", [CHANGED]],
  ["list 0-5000: 1000a, webhook 2000b", [CHANGED]],
  ["recorded 1000a, recorded 2000b, list 0-5000: 1000a", [CHANGED]],
  ["list 0-5000: 1000a 2000b, list 0-5000: 1000a", [CHANGED]],
  ["redeem 5000b, recorded 5000b, recorded 1000a, recorded 7000d, list 0-5000: 1000a", []],
  ["webhook 6000c, list 0-5000: 1000a", []],
  ["redeem 4999b, list 0-5000: 1000a", [CHANGED]],
  ["redeem 999b, list 1000-5000: 1000a", []],
  ["redeem 1000b, list 1000-5000: 1000a", [CHANGED]],
  ["other redeem 2000b, list 0-5000: 1000a", []],
  ["other webhook 2000b, list 0-5000: 1000a", []],
  // A full page ends at its last redemption.
  ["redeem 2000b, list 0-5000 of 1: 1000a", []],
  ["redeem 1000b, list 0-5000 of 1: 1000a", []],
  ["redeem 1000a, list 0-5000 of 1: 1000b", [CHANGED]],
  ["redeem 2000b, list 0-5000 of 2: 1000a 3000c", [CHANGED]],
  ["redeem 2000b, list 0-5000 of 2: 1000a", [CHANGED]],
  // Pages with redemptions outside of their range, inside it, or in the wrong order.
  ["list 0-5000: 5000a", [RANGE]],
  ["list 0-5000: 4999a", []],
  ["list 0-5000: 1000a 6000b", [RANGE]],
  ["list 0-5000 of 1: 6000b", [RANGE]],
  ["list 1000-5000: 999a", [RANGE]],
  ["list 0-5000: 2000b 1000a", [ORDER]],
  ["list 0-5000: 1000b 1000a", [ORDER]],
  ["list 0-5000: 1000a 1000b", []],
  ["list 0-5000: 1000a 1000a", [ORDER]],
  ["list 0-5000: 1000a 2000b 1000a", [ORDER]],
  ["recorded 1000a, list 0-5000: 1000a 2000b", [OLDER, OTHERS]],
  ["recorded 1000a, other recorded 2000b, list 0-5000: 1000a 2000b", [OLDER, OTHERS]],
  ["recorded 1001a, list 0-5000: 1000a", [DIFFERENT, OTHERS]],
  ["list 0-5000 of 1: 1000a 2000b", [LIMIT]],
  ["last list 0-5000: 1000a", [NO_END]],
  // Redemptions that follow a cursor.
  ["list 0-5000 of 1: 1000a, next: 2000b", []],
  ["list 0-5000 of 1: 1000a, next:", []],
  ["list 0-5000 of 1: 1000a, redeem 2000b, next:", [CHANGED]],
  ["list 0-5000 of 1: 1000a, redeem 1000b, next: 2000c", [CHANGED]],
  ["list 0-5000 of 1: 1000a, next: 1000a", [RANGE]],
  ["list 0-5000 of 1: 1000b, next: 1000a", [CHANGED, RANGE]],
  ["list 0-5000 of 1: 1000a, next: 1000b", []],
  ["list 0-5000 of 1: 1000a, next: 2000b, next: 1000a", [RANGE]],
  ["list 2000-5000:, next: 1000a", [RANGE]],
  ["list 2000-5000:, next: 2000a", [CHANGED]],
  ["list 2000-5000 of 1:, next to 9000: 6000a", []],
  ["list 2000-5000 of 1:, redeem 6000a, next to 9000:", [CHANGED]],
  // All keys and organizations share one completeUntil.
  ["list 0-100:, list 0-90:", [OLDER]],
  ["list 0-100:, web list 0-90:", [OLDER]],
  ["list 0-100:, other list 0-90:", [OLDER]],
  ["list 0-90:, other list 0-100:, web list 0-100:", []],
])("checkOrder finds that the history %s breaks the rules %j", (text, broken) => {
  const { history, records } = craft(text.split(", "));
  const rules = checkOrder(history, new SteppedClock(), records).map(({ rule }) => rule);
  expect([...new Set(rules)].filter((rule) => rule !== REGISTER).sort()).toEqual([...broken].sort());
});

const isoOf = (ms: number) => new Date(ms).toISOString();

/** Reads a redemption from a text such as "1000a". */
function redemptionOf(text: string) {
  const [, ms, id = ""] = /^(\d+)(\w)$/.exec(text) ?? [];
  return { voucherInstanceId: id, redeemedAt: isoOf(Number(ms)), redeemCode: `R-${id}`, externalRef: `order-${id}` };
}

/** Makes a history of calls one after another. The records are null unless a text records a row. */
function craft(calls: readonly string[]) {
  const history = new History();
  const recorded: RecordedRedemption[] = [];
  for (const [at, call] of calls.entries()) {
    const [, who, what = "", rest = ""] = /^((?:other|web|last) )?(\w+) ?(.*)$/.exec(call) ?? [];
    const organizationId = who === "other " ? "org_2" : "org_1";
    const key = { id: `key of ${who}`, secret: "", organizationId };
    const returnedMs = at * 100 + 50;
    if (what === "list" || what === "next") {
      history.add(answer(returnedMs - 50, returnedMs, ...pageOf(history, key, rest, who === "last ")));
      continue;
    }
    const shown = redemptionOf(rest);
    const { voucherInstanceId: voucherId, redeemCode, redeemedAt, externalRef } = shown;
    if (what === "webhook")
      history.webhooks.push({ ...shown, voucherId, organizationId, sequence: 2, recordHash: voucherId, returnedMs });
    else if (what === "recorded") {
      const row = { voucherId, organizationId, keyId: key.id, ticket: null, redeemCode, externalRef };
      recorded.push({ ...row, redeemedAtMs: Date.parse(redeemedAt) });
    } else history.add(answer(returnedMs - 50, returnedMs, ...callOf(what, key, shown)));
  }
  return { history, records: recorded.length === 0 ? null : toRecords(new SteppedClock(), { redemptions: recorded }) };
}

/** Makes a page such as "0-5000 of 2: 1000a 2000b", or one after the last page, such as "to 9000: 6000a". */
function pageOf(history: History, key: SuppliedKey, text: string, isLast: boolean): [Ask, object] {
  const [, from, until, to, limit, shown = ""] = /^(?:(\d+)-(\d+)|to (\d+))?(?: of (\d+))?:(.*)$/.exec(text) ?? [];
  const before = history.of("list").at(-1);
  const first = {
    operation: "list",
    key,
    from: isoOf(Number(from ?? 0)),
    after: null,
    limit: Number(limit ?? 10),
  } as const;
  const ask = from === undefined && before !== undefined ? pageAfter(before) : first;
  if (ask === null) throw new Error(`nothing follows the page before ${text}`);
  const body = {
    redemptions: shown.split(" ").filter(Boolean).map(redemptionOf),
    completeUntil: until === undefined && to === undefined ? before?.body.completeUntil : isoOf(Number(until ?? to)),
    nextCursor: isLast ? null : "cursor",
  };
  return [ask, body];
}

function callOf(what: string, key: SuppliedKey, shown: ReturnType<typeof redemptionOf>): [Ask, object] {
  const { voucherInstanceId: id, externalRef, redeemedAt } = shown;
  const voucher = { id, code: "CODE", organizationId: key.organizationId };
  const order = { externalRef, by: { code: voucher.code }, token: null };
  switch (what) {
    case "redeem":
      return [
        { operation: what, key, voucher, ...order },
        { ...shown, alreadyConfirmed: true },
      ];
    case "redemption":
      return [{ operation: what, key, externalRef }, shown];
    case "lookUp":
      return [
        { operation: what, key, voucher },
        { status: "Redeemed", redeemedAt, reservation: null },
      ];
    default:
      throw new Error(`there is no call ${what}`);
  }
}
