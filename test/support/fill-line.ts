import { expect } from "vitest";
import type { Bulkhead } from "../../src/core/callers/bulkhead.ts";
import type { CallerKind } from "../../src/core/callers/caller-kinds.ts";
import { makeGate } from "./gate.ts";

/**
 * Makes calls of an organization until one is refused: the others occupy all connections and waiting places that the
 * organization may use. When a waiting call gets a connection, a new call takes the free waiting place. Returns a
 * function that ends the calls.
 */
export async function fillLine(
  calls: Bulkhead<"organization">,
  { connections, waitingMaxEach }: CallerKind<"organization">,
  { organizationId }: { organizationId: string },
): Promise<() => Promise<void>> {
  const { pass, open } = makeGate();
  let isOver = false;
  const filling: Promise<unknown>[] = [];
  const fill = () => {
    const begin = () => {
      if (!isOver) fill();
      return pass();
    };
    filling.push(calls({ organizationId }, begin).catch(({ code }) => code));
  };
  for (let made = 0; made < connections + waitingMaxEach; made += 1) fill();
  expect(await Promise.race(filling)).toBe("overloaded");
  return async () => {
    isOver = true;
    open();
    await Promise.all(filling);
  };
}
