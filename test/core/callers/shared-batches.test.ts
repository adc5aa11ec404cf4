import type pg from "pg";
import { expect, it } from "vitest";
import { openReferenceEnds } from "../../../src/core/redeem/end-references.ts";
import { openRedemptionReads } from "../../../src/core/redeem/read-redemption.ts";
import { openVoucherReads } from "../../../src/core/voucher/resolve-voucher.ts";
import { BatcherFull } from "../../../src/platform/batching/batcher.ts";
import { TRACES_OFF } from "../../../src/platform/traces/traces.ts";

/** A database that never responds. */
const never = () => new Promise<never>(() => undefined);
const pool = { query: never, connect: never } as unknown as pg.Pool;
const deployment = { serverIdOf: () => undefined };

const [reads, redemptions, ends] = [
  openVoucherReads({ pool, metrics: null, traces: TRACES_OFF }),
  openRedemptionReads({ pool }),
  openReferenceEnds({ pool, deployment }),
];

/** Each batcher that organizations share, and how an organization calls it. */
const SHARED: Record<string, (organizationId: string, n: number) => Promise<unknown>> = {
  "look-ups": (organizationId, n) =>
    reads.submit({ organizationId, codeKey: `CODE${n}`, ticket: null, externalRef: null }),
  "redemptions by reference": (organizationId, n) => redemptions.submit({ organizationId, externalRef: `ref ${n}` }),
  "ends of references": (organizationId, n) =>
    ends.submit({ ref: { organizationId, externalRef: `ref ${n}` }, readFrom: null }),
};

it.each(
  Object.entries(SHARED),
)("many calls of one organization do not keep other organizations' %s out of the batches", async (_, ask) => {
  const refused = Promise.withResolvers<unknown>();
  for (let n = 0; n < 20_000; n++) ask("crowd", n).catch(refused.resolve);
  expect(await refused.promise).toBeInstanceOf(BatcherFull);
  const neighbour = ask("neighbour", 0).catch((error: unknown) => error);
  expect(await Promise.race([neighbour, new Promise((resolve) => setImmediate(resolve, "waits"))])).toBe("waits");
});
