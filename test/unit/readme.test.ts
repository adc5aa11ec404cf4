import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { ERRORS } from "../../src/http/error-map.ts";

const README = readFileSync("README.md", "utf8");

describe("the README's table of errors", () => {
  const rows = README.matchAll(/^\| ([\d, ]+) \| (.+?) \| .+ \|$/gm);
  const told = new Map<string, string[]>();
  for (const [, statuses = "", codes = ""] of rows) {
    for (const [, code = ""] of codes.matchAll(/`(\w+)`/g)) {
      told.set(code, [...(told.get(code) ?? []), ...statuses.split(", ")]);
    }
  }

  it.each(Object.entries(ERRORS))("has %s with its status", (code, { status }) => {
    expect(told.get(code)).toContain(String(status));
  });

  it("has no code that does not exist", () => {
    expect([...told.keys()].filter((code) => !(code in ERRORS))).toEqual([]);
  });
});
