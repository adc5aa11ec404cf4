import { expect, it } from "vitest";
import { until } from "../../support/until.ts";
import { SHARDS, since, slotOfShard, startLoad, useCluster } from "./load.ts";

// The longest wait, for a slow machine.
const own = useCluster({ apis: 2, workers: 2, env: { REDEEM_WAIT_MS: "60000" } });

it("moving slots under load loses nothing, and each shard redeems after it", async () => {
  const { cluster, servers } = own;
  const load = await startLoad(servers, own.partner, own.tills);
  /** Waits until each shard has redeemed a voucher, in calls that began after a moment. */
  const untilRedeemed = (from: number) =>
    until(() => {
      const confirmed = since(load.answers, from).filter(({ status }) => status === 200);
      return new Set(confirmed.map(({ shard }) => shard)).size === SHARDS;
    });
  await untilRedeemed(0);
  const slot = slotOfShard(servers, 1);
  const [from, to] = [await cluster.masterOf(slot), await cluster.masterOf(slotOfShard(servers, 4))];
  expect(from).not.toBe(to);
  const slots = Array.from({ length: 40 }, (_, n) => slot - 20 + n);
  await cluster.moveSlots(slots, to);
  expect(await cluster.masterOf(slot)).toBe(to);
  await untilRedeemed(Date.now());
  await cluster.moveSlots(slots, from);
  await untilRedeemed(Date.now());
  await load.end();
});
