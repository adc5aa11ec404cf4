import { expect, it } from "vitest";
import { formatTraceparent, parseTraceparent } from "../../src/traces/traceparent.ts";

// The example of W3C Trace Context, section 3.2.
const EXAMPLE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

it("a span's place comes back from its traceparent as it was", () => {
  const place = parseTraceparent(EXAMPLE);
  expect(place).toEqual({
    traceId: "4bf92f3577b34da6a3ce929d0e0e4736",
    spanId: "00f067aa0ba902b7",
    traceFlags: 1,
    isRemote: true,
  });
  expect(place && formatTraceparent(place)).toBe(EXAMPLE);
  expect(place && formatTraceparent({ ...place, traceFlags: 0 })).toBe(`${EXAMPLE.slice(0, -2)}00`);
});

it.each([
  undefined,
  "",
  "nonsense",
  EXAMPLE.toUpperCase(),
  EXAMPLE.slice(0, -1),
  `${EXAMPLE}-more`,
  EXAMPLE.replace("00-", "ff-"),
  EXAMPLE.replace("4bf92f3577b34da6a3ce929d0e0e4736", "0".repeat(32)),
  EXAMPLE.replace("00f067aa0ba902b7", "0".repeat(16)),
])("%j names no place", (text) => {
  expect(parseTraceparent(text)).toBeNull();
});
