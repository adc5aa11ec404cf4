import { readFileSync } from "node:fs";
import { expect, it, onTestFinished, vi } from "vitest";
import { redeemRequest } from "../../src/core/redeem/api/redeem.ts";
import { normaliseCode, normaliseTicket } from "../../src/core/voucher/codes.ts";
import { formsOf, normaliseReference } from "../../src/core/voucher/references.ts";
import { inEnglish } from "../../src/platform/api/problems.ts";
import { hasAtMost, isLongerThan, NORMALISED_MAX, normaliseText } from "../../src/platform/text.ts";
import { findSources } from "../support/source-files.ts";

const MARKS = "\u0344\u0316".repeat(4_000);

it("only src/platform/text.ts normalises texts", () => {
  const files = findSources(/\.(ts|js)$/).filter((file) => /\.normalize\(/.test(readFileSync(file, "utf8")));
  expect(files).toEqual(["src/platform/text.ts"]);
});

it("normaliseText normalises texts up to a maximum length in bytes, and returns null for longer texts", () => {
  const longest = `${"a".repeat(NORMALISED_MAX - 3)}e\u0301`;
  expect(normaliseText(longest, "NFC")).toBe(`${"a".repeat(NORMALISED_MAX - 3)}é`);
  expect(normaliseText(`a${longest}`, "NFC")).toBeNull();
  expect([isLongerThan("é", 2), isLongerThan("é", 1), isLongerThan("😀", 3)]).toEqual([false, true, true]);
});

it("a text's length is counted in code points, and a text with too many UTF-16 units is refused uncounted", () => {
  expect(hasAtMost("😀".repeat(128), 128)).toBe(true);
  expect(hasAtMost("😀".repeat(129), 128)).toBe(false);
  const counted = vi.spyOn(Buffer, "byteLength");
  onTestFinished(() => counted.mockRestore());
  expect(hasAtMost(MARKS, 128)).toBe(false);
  expect(counted).not.toHaveBeenCalled();
});

it("a reference of 128 characters is accepted even in decomposed form", () => {
  const decomposed = "각".repeat(128).normalize("NFD");
  expect(redeemRequest.safeParse({ code: "c", externalRef: decomposed }).success).toBe(true);
  expect(formsOf(decomposed).at(-1)).toBe("각".repeat(128));
});

it("a text that is too long is no code, ticket or reference, and a request reports it as too long", () => {
  expect([normaliseCode(MARKS), formsOf(MARKS)]).toEqual([null, []]);
  expect([normaliseTicket(MARKS), normaliseReference(MARKS)]).toEqual([MARKS, MARKS]);
  const { error } = redeemRequest.safeParse({ code: MARKS, externalRef: MARKS, note: MARKS, token: MARKS });
  expect(new Map(error?.issues.map(({ path, message }) => [path.join(), inEnglish(message)]))).toEqual(
    new Map([
      ["code", "must be at most 256 characters long"],
      ["externalRef", "must be at most 128 characters long"],
      ["token", "must be at most 128 characters long"],
      ["note", "must be at most 500 characters long"],
    ]),
  );
  expect(error?.issues).toHaveLength(4);
});
