import { expect } from "vitest";
import type { Bulkhead } from "../../src/core/callers/bulkhead.ts";
import type { CallerKind } from "../../src/core/callers/caller-kinds.ts";
import { makeGate } from "./gate.ts";

/**
 * Makes calls of an organization until one is refused: they have all of its places and fill its line. Returns a
 * function that ends them.
 */
export async function fillLine(
  calls: Bulkhead<"organization">,
  { connections, waitingMaxEach }: CallerKind<"organization">,
  { organizationId }: { organizationId: string },
): Promise<() => Promise<void>> {
  const { pass, open } = makeGate();
  const filling = Array.from({ length: connections + waitingMaxEach }, () =>
    calls({ organizationId }, pass).catch(({ code }) => code),
  );
  expect(await Promise.race(filling)).toBe("overloaded");
  return async () => {
    open();
    await Promise.all(filling);
  };
}
