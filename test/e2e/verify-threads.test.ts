import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { withVerifyThreads } from "../../src/cli/verify-in-threads.ts";
import { verifyAllChains } from "../../src/services/verify-chains.ts";
import { openTestServers, type TestServers } from "../support/servers.ts";
import { issueVouchers, makePartner } from "../support/supply.ts";

/** Some ranges of 2 000 and a part of one. */
const VOUCHERS = 4_500;

describe("chains verified in threads", () => {
  let servers: TestServers;
  /** Of two vouchers in different ranges whose event was changed. */
  let tampered: string[];

  beforeAll(async () => {
    servers = await openTestServers();
    const vouchers = await issueVouchers(servers.db, await makePartner(servers.db), VOUCHERS);
    const ids = vouchers.map(({ id }) => id).sort();
    tampered = [ids[100] as string, ids.at(-1) as string];
    await servers.db.query("ALTER TABLE voucher_events DISABLE TRIGGER USER");
    await servers.db.query(
      "UPDATE voucher_events SET occurred_at = occurred_at - interval '1 hour' WHERE voucher_id = ANY ($1)",
      [tampered],
    );
  });

  afterAll(() => servers.close());

  it("are the same as in one", async () => {
    const alone = await verifyAllChains({ pool: servers.db });
    expect(alone).toStrictEqual({
      vouchers: VOUCHERS,
      events: VOUCHERS,
      broken: tampered.map((voucherId) => ({
        voucherId,
        sequence: 1,
        problem: "the payload's occurredAt is not the stored one",
      })),
    });
    const seen: number[] = [];
    const inThreads = await withVerifyThreads(servers.adminUrl, (verifier) =>
      verifyAllChains({ pool: servers.db }, (sofar) => seen.push(sofar.vouchers), verifier),
    );
    expect(inThreads).toStrictEqual(alone);
    expect(seen).toHaveLength(3);
    expect(seen.at(-1)).toBe(VOUCHERS);
  });

  it("are verified no further once somebody has had enough, and leave no connection behind", async () => {
    let ranges = 0;
    const interrupted = withVerifyThreads(servers.adminUrl, (verifier) =>
      verifyAllChains(
        { pool: servers.db },
        () => {
          ranges += 1;
          throw new Error("enough");
        },
        { ...verifier, atOnce: 1 },
      ),
    );
    await expect(interrupted).rejects.toThrow("enough");
    expect(ranges).toBe(1);
    const { rows } = await servers.db.query(
      "SELECT count(*)::int AS n FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'voucherctl'",
    );
    expect(rows[0].n).toBe(0);
  });
});
