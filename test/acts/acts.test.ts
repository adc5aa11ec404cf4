import { expect, it } from "vitest";
import { ACTS } from "../../src/acts/acts.ts";
import { issueBatch } from "../../src/acts/batch/issue.ts";
import { bodyOf } from "../../src/acts/fields.ts";
import { inEnglish } from "../../src/platform/api/problems.ts";

it("each administrative act has a unique name: a noun and a verb", () => {
  const names = ACTS.map(({ name }) => name);
  expect(names.filter((name) => !/^[a-z]+ [a-z-]+$/.test(name))).toEqual([]);
  expect(new Set(names).size).toBe(names.length);
});

it("the parser of an administrative act's JSON body sets defaults, and names every wrong field at once", () => {
  const body = bodyOf(issueBatch.fields);
  expect(
    body.parse({ count: 2, validUntil: "2099-12-31", windows: { buy: { opensAt: "2099-12-01" } }, issueRef: "a" }),
  ).toEqual({
    count: 2,
    validUntil: new Date("2099-12-31T23:59:59.999Z"),
    audience: "OpenToAll",
    windows: { buy: { opensAt: new Date("2099-12-01T00:00:00.000Z"), closesAt: null } },
    issueRef: "a",
  });
  const refused = body.safeParse({
    count: 1.5,
    audience: "Everyone",
    windows: { buy: { opensAt: "soon" }, claim: [] },
  });
  expect(refused.error?.issues.map(({ path, message }) => [path.join("."), inEnglish(message)])).toEqual([
    ["count", "must be a whole number from 1 to 100000"],
    ["validUntil", "is required"],
    ["audience", "must be one of OpenToAll, ReferrerOnly"],
    ["windows.claim", "must be an object"],
    ["windows.buy.opensAt", expect.stringMatching(/^must be a date such as 2027-12-31, or a time/)],
    ["issueRef", "is required"],
  ]);
});
