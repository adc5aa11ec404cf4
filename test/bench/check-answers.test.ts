import { describe, expect, it } from "vitest";
import { findContradiction } from "./check-answers.ts";

const first = { subject: "voucher 1", receipt: "code 1" };
const second = { subject: "voucher 2", receipt: "code 2" };

describe("answers of a benchmark and its database", () => {
  it("answers of a benchmark and its database agree when each answer is stored once", () => {
    expect(findContradiction([first, second], [second, first])).toBeNull();
  });

  it("answers of a benchmark and its database agree when the client stopped before it read the last answer", () => {
    expect(findContradiction([first], [first, second])).toBeNull();
  });

  it.each([
    [
      "an answer without a stored result",
      [first, second],
      [first],
      "voucher 2 was answered code 2, the database contains nothing",
    ],
    [
      "an answer that differs from the stored result",
      [{ ...first, receipt: "code 3" }],
      [first],
      "the database contains code 1",
    ],
    [
      "a voucher redeemed twice",
      [first],
      [first, { ...first, receipt: "code 3" }],
      "voucher 1 is in the database twice",
    ],
    ["a voucher with two users", [], [first, { ...second, receipt: "code 1" }], "code 1 was issued twice"],
    ["a voucher whose redemption was confirmed twice", [first, first], [first], "voucher 1 was answered twice"],
  ])("contradict each other on %s", (_, answered, stored, contradiction) => {
    expect(findContradiction(answered, stored)).toContain(contradiction);
  });
});
