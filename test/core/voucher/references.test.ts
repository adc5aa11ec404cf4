import { expect, it } from "vitest";
import { redeemRequest } from "../../../src/core/redeem/api/redeem.ts";
import { redeemJob } from "../../../src/core/redeem/job.ts";
import {
  earlierFormOf,
  formsOf,
  isPathSegment,
  normaliseReference,
  survivesInPath,
} from "../../../src/core/voucher/references.ts";
import { inEnglish } from "../../../src/platform/api/problems.ts";

it.each([
  ["order-1", "order-1"],
  [" order-1 ", "order-1"],
  ["\u2028order-1\u2029", "order-1"],
  ["\r\n\torder-1\u00a0\u3000\ufeff", "order-1"],
  ["cafe\u0301", "café"],
  ["e\u200b\u0301", "é"],
  ["a\u200bb\u00adc\u2060d\u{e0001}", "abcd"],
  ["\u200b \u200b", ""],
  ["\u0344", "\u0308\u0301"],
  ["a\u2028b c", "a\u2028b c"],
  ["№ 4711/ä", "№ 4711/ä"],
])("the reference %j is stored as %j, and normalising it again changes nothing", (text, stored) => {
  expect(normaliseReference(text)).toBe(stored);
  expect(normaliseReference(stored)).toBe(stored);
  expect(formsOf(text).at(-1)).toBe(stored);
});

it("earlierFormOf returns a reference as releases up to 0.1.0 stored it, or null if nothing differs", () => {
  expect(["order-1", " order-1 ", "\u2028order-1"].map(earlierFormOf)).toEqual([null, null, null]);
  expect(formsOf(" order-1 ")).toEqual(["order-1"]);
  expect(formsOf(" cafe\u0301 ")).toEqual(["cafe\u0301", "café"]);
  expect(["a\0", "\ud800"].map(formsOf)).toEqual([[], []]);
});

it.each([
  [".", "externalRef"],
  ["..", "externalRef"],
  [" \u200b..\n", "externalRef"],
  ["\u200b", "must not be empty"],
  ["a\u0085", "control characters"],
  ["x".repeat(129), "128"],
])("a redeem request refuses the reference %j", (externalRef, problem) => {
  const { error } = redeemRequest.safeParse({ code: "c", externalRef });
  const said = error?.issues.map(({ path, message }) => `${path.join()} ${inEnglish(message)}`);
  expect(said?.join()).toContain(problem);
});

it.each([
  "...",
  "./a",
  "a.",
  `${"x".repeat(128)}\u200b`,
])("a redeem request accepts the reference %j", (externalRef) => {
  expect(redeemRequest.safeParse({ code: "c", externalRef }).success).toBe(true);
});

it("the schema of redeem jobs leaves a reference unchanged", () => {
  expect(redeemJob.shape.externalRef.parse(" cafe\u0301 .")).toBe(" cafe\u0301 .");
});

it("the client puts a reference into a path only if no proxy changes its characters", () => {
  const survivors = ["A", "order-1", "a_b.c~d", "...", ".a"];
  const others = ["", ".", "..", "a/b", "a b", "ä", "a%2F", "/a", "a/", "a\n"];
  expect([...survivors, ...others].filter(survivesInPath)).toEqual(survivors);
  expect([...survivors, ...others].filter((text) => !isPathSegment(text))).toEqual([".", ".."]);
});
