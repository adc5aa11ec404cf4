import { expect, it } from "vitest";
import { answersOf } from "./crafted-history.ts";
import type { History } from "./history.ts";
import { checkOrder } from "./order.ts";
import { SteppedClock } from "./stepped-clock.ts";

// Checks the rules of order with hand-made histories.

const OLDER = "no answer shows an older state than one shown before it was asked";
const DIFFERENT = "no two answers show different contents of a final state";
const REGISTER = "each voucher behaves as one register";
const CHANGED = "a list never changes before its completeUntil";

it.each<[calls: string, broken: string[]]>([
  // A redemption.
  ["100-200 redeemed, 201-300 used, 301-400 found, 401-500 sealed, 501-600 listed, 601-700 refused as used", []],
  ["100-400 redeemed, 150-200 used, 201-300 repeated", []],
  ["100-400 redeemed, 150-200 used, 160-250 active", []],
  ["100-400 redeemed, 150-200 used, 201-300 active", [REGISTER]],
  ["100-200 redeemed, 200-300 active", []],
  ["100-200 redeemed, 201-300 active", [REGISTER]],
  ["100-200 redeemed, 201-300 redeemed", [OLDER, REGISTER]],
  ["100-200 redeemed, 201-300 redeemed otherwise", [REGISTER]],
  ["100-200 redeemed, 201-300 reserved", [REGISTER]],
  ["100-200 redeemed, 201-300 ended", [OLDER, REGISTER]],
  ["100-200 redeemed, 201-300 used later", [REGISTER]],
  ["100-200 redeemed, 201-300 voided", [REGISTER]],
  ["100-200 used", [REGISTER]],
  ["100-200 redeemed, 201-300 found under another", [REGISTER]],
  ["50-99 found", [REGISTER]],
  ["100-200 redeemed, 150 webhook, 201-300 active", [REGISTER]],
  ["100-300 redeemed, 150 webhook, 160-170 active", [REGISTER]],
  // An outcome that stays open: it may take effect at any later time, or never.
  ["100-200 unknown, 300-400 active", []],
  ["100-200 unknown, 300-400 active, 401-500 used, 501-600 found", []],
  ["100-200 unknown, 300-400 used, 401-500 active", [REGISTER]],
  ["100-200 gone, 300-400 reserved, 401-500 used", []],
  ["100-200 refused, 300-400 used", [REGISTER]],
  ["100-200 timed out, 300-400 used", [REGISTER]],
  ["300-400 unknown, 100-200 used", [REGISTER]],
  // A reservation.
  ["100-200 reserved, 201-300 held, 301-400 reserved, 401-500 released, 501-600 free", []],
  ["100-200 reserved, 201-300 free", [REGISTER]],
  ["100-200 reserved, 150-300 free", []],
  ["100-200 reserved, 201-300 released, 301-400 held", [REGISTER]],
  ["100-200 reserved, 201-300 released, 301-400 released", [REGISTER]],
  ["100-200 reserved, 201-300 released, 301-400 reserved", [REGISTER]],
  ["100-200 reserved, 201-300 released, 301-400 reserve unknown, 401-500 held", [REGISTER]],
  ["100-200 reserved, 201-300 nothing released", [REGISTER]],
  ["100-200 reserved, 201-300 reserved again", [REGISTER]],
  ["100-200 reserved, 201-300 released, 301-400 reserved again, 401-500 held", [REGISTER]],
  ["100-200 reserved, 150-300 reserved again, 160-250 released, 301-400 held again", []],
  ["100-200 reserved, 201-300 release unknown, 301-400 held, 401-500 free", []],
  ["100-200 reserved, 201-300 release unknown, 301-400 free, 401-500 held", [REGISTER]],
  ["100-200 reserve unknown, 201-300 free, 301-400 held, 401-500 reserved", []],
  ["201-300 held", [REGISTER]],
  ["100-200 reserved, 201-300 kept out, 301-400 taken", []],
  ["100-200 kept out", [REGISTER]],
  ["100-200 reserved, 201-300 redeemed by another", [REGISTER]],
  ["100-200 reserved, 201-300 redeemed by its ticket", []],
  ["100-200 reserved, 201-300 released, 301-400 redeemed by its ticket", [REGISTER]],
  ["100-200 reserved, 201-300 ended", [REGISTER]],
  ["100-200 reserved, 201-300 released, 301-400 ended", []],
  // Its time ends at 900 ms.
  ["100-200 reserved, 901-950 free, 951-990 redeemed by another", []],
  ["100-200 reserved, 850-950 free, 860-960 held", []],
  ["100-200 reserved, 910-950 held", [REGISTER]],
  ["100-200 reserved, 910-950 kept out", [REGISTER]],
  // References.
  ["100-200 redeemed, 201-300 timed out", [OLDER]],
  ["100-200 redeemed, 201-300 busy", [OLDER]],
  ["100-200 redeemed, 201-300 unknown", []],
  ["100-200 redeemed, 201-300 not found", [OLDER]],
  ["100-200 redeemed, 150-250 repeated with another code", [DIFFERENT]],
  // Chains.
  ["50-60 unknown, 100-200 sealed, 201-300 issued", [OLDER, REGISTER]],
  ["50-60 unknown, 100-200 sealed, 150-250 forked", [DIFFERENT]],
  ["50-60 unknown, 150 webhook, 201-300 forked", [DIFFERENT]],
  ["100-200 claimed, 201-300 issued", [OLDER]],
  // Lists.
  ["100-200 redeemed, 201-300 unlisted", [CHANGED]],
  ["100-200 unlisted, 201-300 redeemed", [CHANGED]],
  ["50-60 unknown, 100-200 listed, 150-300 unlisted", [CHANGED]],
  ["100-200 redeemed, 201-300 listed until before", []],
  ["100-200 redeemed, 201-300 listed from after", []],
  ["100-200 listed from after, 201-300 listed until before", [OLDER]],
  // Offers.
  ["100-200 ann claims, 201-300 ann finds nothing", [OLDER]],
  ["100-200 eve finds nothing, 201-300 ann claims", [OLDER]],
  ["100-200 ann claims, 201-300 eve finds nothing", []],
])("checkOrder judges the history %s to break the rules %j", (calls, broken) => {
  expect(brokenBy(answersOf(calls.split(", ")))).toEqual(broken);
});

// A reservation that no standby has may be lost with the primary, although it was read.
it.each<[calls: string, lostMs: number, broken: string[]]>([
  ["100-200 claimed, 201-300 issued", 50, [OLDER]],
  ["100-200 claimed, 201-300 issued", 250, []],
  ["100-200 claimed, 201-300 issued", 350, [OLDER]],
  ["100-200 redeemed, 201-300 active", 250, [REGISTER]],
  ["100-200 reserve unknown, 201-300 held, 301-400 free, 401-500 reserved", 350, []],
])("the rules of order judge the history %s with a primary lost at %i ms", (calls, lostMs, broken) => {
  const history = answersOf(calls.split(", "));
  history.lostPrimariesMs.push(lostMs);
  expect(brokenBy(history)).toEqual(broken);
});

const brokenBy = (history: History) => [...new Set(checkOrder(history, new SteppedClock()).map(({ rule }) => rule))];
