import { fromString, toUUID } from "typeid-js";
import { expect, it } from "vitest";
import { newId } from "../../../src/core/voucher/ids.ts";

it("newId keeps the last ten bits of a voucher's or reservation's id at 0 and the others random", () => {
  for (const prefix of ["vch", "rsv"] as const) {
    const ids = Array.from({ length: 1_000 }, () => newId(prefix));
    for (const id of ids) expect(Number.parseInt(toUUID(fromString(id)).slice(-3), 16) & 0x3ff).toBe(0);
    expect(new Set(ids).size).toBe(ids.length);
    expect(ids.every((id) => id.startsWith(`${prefix}_`))).toBe(true);
  }
});

it("newId keeps all bits of other ids random", () => {
  const endings = new Set(Array.from({ length: 1_000 }, () => newId("bat").slice(-2)));
  expect(endings.size).toBeGreaterThan(100);
});
