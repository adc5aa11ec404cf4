import { expect, it } from "vitest";
import { nameTokenSecrets } from "../../../src/core/reserve/reservation-token.ts";
import { signCursor, verifyCursor } from "../../../src/core/reserve/signed-cursor.ts";

const [FIRST, SECOND] = [["a-secret"], ["another-secret"]].map(nameTokenSecrets) as [Secrets, Secrets];
type Secrets = ReturnType<typeof nameTokenSecrets>;

const CURSOR = [1_800_000_000_123, "vch_1", null, 7];
const TEXT = signCursor(FIRST, "redemptions", "org_1", CURSOR);

it("a cursor is unchanged after it is signed and verified, and begins with 16 bytes of MAC", () => {
  expect(verifyCursor(FIRST, "redemptions", "org_1", TEXT)).toEqual(CURSOR);
  expect(Buffer.from(TEXT, "base64url").subarray(16).toString()).toBe('[1800000000123,"vch_1",null,7]');
});

it("every configured secret can verify a cursor, and the first one signs", () => {
  expect(verifyCursor([...SECOND, ...FIRST], "redemptions", "org_1", TEXT)).toEqual(CURSOR);
  expect(signCursor([...FIRST, ...SECOND], "redemptions", "org_1", CURSOR)).toBe(TEXT);
  expect(verifyCursor(SECOND, "redemptions", "org_1", TEXT)).toBeNull();
});

it("a cursor with a changed, missing or additional character or another spelling is refused", () => {
  for (let at = 0; at < TEXT.length; at++) {
    const other = TEXT[at] === "A" ? "B" : "A";
    expect(
      verifyCursor(FIRST, "redemptions", "org_1", TEXT.slice(0, at) + other + TEXT.slice(at + 1)),
      `at ${at}`,
    ).toBeNull();
    expect(verifyCursor(FIRST, "redemptions", "org_1", TEXT.slice(0, at)), `the first ${at}`).toBeNull();
  }
  for (const spelling of [`${TEXT}A`, `${TEXT}=`, ` ${TEXT}`])
    expect(verifyCursor(FIRST, "redemptions", "org_1", spelling)).toBeNull();
});

it("a cursor is refused for another organization, even if one organization's id begins with the other's", () => {
  expect(verifyCursor(FIRST, "redemptions", "org_2", TEXT)).toBeNull();
  expect(signCursor(FIRST, "redemptions", "org_", CURSOR)).not.toBe(TEXT);
  expect(verifyCursor(FIRST, "redemptions", "org_", TEXT)).toBeNull();
});

it("a list refuses the cursor of another list", () => {
  expect(verifyCursor(FIRST, "events", "org_1", TEXT)).toBeNull();
});
