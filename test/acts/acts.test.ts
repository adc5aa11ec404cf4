import { expect, it } from "vitest";
import { ACTS } from "../../src/acts/acts.ts";
import { issueBatch } from "../../src/acts/batch/issue.ts";
import { bodyOf } from "../../src/acts/fields.ts";

it("each act has a name of its own: a noun and a verb", () => {
  const names = ACTS.map(({ name }) => name);
  expect(names.filter((name) => !/^[a-z]+ [a-z-]+$/.test(name))).toEqual([]);
  expect(new Set(names).size).toBe(names.length);
});

it("a JSON body of an act is read with its defaults, and a wrong one is refused with every wrong field at once", () => {
  const body = bodyOf(issueBatch.fields);
  expect(body.parse({ count: 2, validUntil: "2099-12-31", windows: ["buy"] })).toEqual({
    count: 2,
    validUntil: new Date("2099-12-31T23:59:59.999Z"),
    audience: "OpenToAll",
    windows: ["buy"],
    opensAt: null,
    closesAt: null,
  });
  const refused = body.safeParse({ count: 1.5, audience: "Everyone", windows: "buy", opensAt: "soon" });
  expect(refused.error?.issues.map(({ path, message }) => [path[0], message])).toEqual([
    ["count", "must be a whole number from 1 to 10000000"],
    ["validUntil", "is required"],
    ["audience", "must be one of OpenToAll, ReferrerOnly"],
    ["windows", "needs at least one choice"],
    ["opensAt", expect.stringMatching(/^must be a date such as 2027-12-31, or a time/)],
  ]);
});
