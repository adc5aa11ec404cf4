import { beforeAll, expect, it } from "vitest";
import { verifyAllChains, verifyNextChains } from "../../../src/core/chain/verify-chains.ts";
import { issueVouchers } from "../../support/supply.ts";
import { useDatabase } from "../../support/use-service.ts";

/** The verifier reads ranges of 2,000 vouchers. These are two ranges and a part of a third. */
const VOUCHERS = 4_500;

const { servers, partner } = useDatabase();
/** Two vouchers in different ranges, each with a changed event. */
let tampered: string[];

beforeAll(async () => {
  const vouchers = await issueVouchers(servers.db, partner, VOUCHERS);
  const ids = vouchers.map(({ id }) => id).sort();
  tampered = [ids[100] as string, ids.at(-1) as string];
  await servers.db.query("ALTER TABLE voucher_events DISABLE TRIGGER USER");
  await servers.db.query("UPDATE voucher_events SET occurred_at = '2026-01-01T00:00:00Z' WHERE voucher_id = ANY ($1)", [
    tampered,
  ]);
});

it("verifyAllChains counts each voucher once over all ranges, and lists broken chains by voucher id", async () => {
  const seen: number[] = [];
  const result = await verifyAllChains({ pool: servers.db }, (soFar) => seen.push(soFar.vouchers));
  expect(result).toStrictEqual({
    vouchers: VOUCHERS,
    events: VOUCHERS,
    erased: 0,
    broken: tampered.map((voucherId) => ({
      voucherId,
      sequence: 1,
      problem: "the payload's occurredAt is not the stored one",
    })),
  });
  expect(seen).toHaveLength(3);
  expect(seen.at(-1)).toBe(VOUCHERS);
});

it("verifyAllChains stops when its caller stops reading", async () => {
  let ranges = 0;
  const interrupted = verifyAllChains({ pool: servers.db }, () => {
    ranges += 1;
    throw new Error("enough");
  });
  await expect(interrupted).rejects.toThrow("enough");
  // The verifier stops at the first error. By then it may have begun to read the second range, but not the third.
  expect(ranges).toBeLessThanOrEqual(2);
});

it("verifyNextChains does not block other work of the process", async () => {
  let turns = 0;
  const count = () => {
    turns += 1;
    next = setImmediate(count);
  };
  let next = setImmediate(count);
  let turnsWhenRead = 0;
  const read = () => (turnsWhenRead = turns);
  servers.db.on("release", read);
  await verifyNextChains({ pool: servers.db }, "", VOUCHERS);
  servers.db.off("release", read);
  clearImmediate(next);
  expect(turns - turnsWhenRead).toBeGreaterThan(VOUCHERS / 200);
});
