import { fromString, toUUID } from "typeid-js";
import { expect, it } from "vitest";
import { firstIdAt, isTicket, newId } from "../../../src/core/voucher/ids.ts";

it("newId sets the last ten bits of a voucher's or reservation's id to 0, and the others at random", () => {
  for (const prefix of ["vch", "rsv"] as const) {
    const ids = Array.from({ length: 1_000 }, () => newId(prefix));
    for (const id of ids) expect(Number.parseInt(toUUID(fromString(id)).slice(-3), 16) & 0x3ff).toBe(0);
    expect(new Set(ids).size).toBe(ids.length);
    expect(ids.every((id) => id.startsWith(`${prefix}_`))).toBe(true);
  }
});

it("newId sets all bits of other kinds of ids at random", () => {
  const endings = new Set(Array.from({ length: 1_000 }, () => newId("bat").slice(-2)));
  expect(endings.size).toBeGreaterThan(100);
});

it("firstIdAt returns the smallest id of a time, as 26 symbols after the prefix", () => {
  const symbols = "0123456789abcdefghjkmnpqrstvwxyz";
  for (const ms of [0, 0x0123456789a, 0xfedcba987654]) {
    const [prefix, suffix = ""] = firstIdAt("rsv", new Date(ms)).split("_");
    const value = Array.from(suffix).reduce((sum, symbol) => sum * 32n + BigInt(symbols.indexOf(symbol)), 0n);
    expect([prefix, suffix.length, value]).toEqual(["rsv", 26, BigInt(ms) << 80n]);
  }
});

it("isTicket distinguishes a ticket from a code by its prefix", () => {
  expect([newId("rsv"), "rsv_", "RSV_1", "xrsv_1", "7Q4K-9MZX", ""].map(isTicket)).toEqual([
    true,
    true,
    false,
    false,
    false,
    false,
  ]);
});
