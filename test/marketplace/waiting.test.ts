import type pg from "pg";
import { expect, it } from "vitest";
import { inSeconds, makeOffer, type Offered, OPEN, offerBatch, reservationVouchers } from "../support/marketplace.ts";
import {
  besideTransaction,
  LOCK_WAIT_MS,
  lockRows,
  untilWaiting,
  untilWaitingOr,
  whileLocked,
} from "../support/outside-transaction.ts";
import type { TestPartner } from "../support/supply.ts";
import { inTime, until } from "../support/until.ts";
import { useService } from "../support/use-service.ts";

const { servers, as } = useService({ users: true });

const idsOf = ({ vouchers }: Offered) => vouchers.map(({ id }) => id);

it("a buy that waits for a locked voucher gets another voucher if that voucher is unlocked first", async () => {
  const offer = await makeOffer(servers.db, 2);
  const [stuck, soonFree] = idsOf(offer) as [string, string];
  const buyer = await as();
  await whileLocked(servers.db, [stuck], async () => {
    const { buy } = await whileLocked(servers.db, [soonFree], async () => {
      const buy = buyer.buyListing(offer.listingId);
      await untilWaiting(servers.db, 1, "api");
      return { buy };
    });
    expect((await buy).body).toMatchObject({ voucher: { id: soonFree }, alreadyConfirmed: false });
  });
});

it("a buy that waits for a locked voucher gets another batch's voucher if that voucher is unlocked first", async () => {
  const first = await makeOffer(servers.db, 1, { validUntil: inSeconds(3_600) });
  const second = await offerBatch(servers.db, first, 1, { validUntil: inSeconds(7_200) });
  const buyer = await as();
  await whileLocked(servers.db, idsOf(first), async () => {
    const { buy } = await whileLocked(servers.db, idsOf(second), async () => {
      const buy = buyer.buyProduct(first.productId);
      await untilWaiting(servers.db, 1, "api");
      return { buy };
    });
    expect((await buy).body.voucher?.id).toBe(second.vouchers[0]?.id);
  });
});

/** Prepares a batch with no voucher to acquire. Returns a function that adds one and returns the voucher's id. */
type Prepare = (partner: TestPartner) => Promise<() => Promise<string | undefined>>;

/** Ways for a batch to get its first vouchers after the API has read a request. */
const LATE_SUPPLY: [string, Prepare][] = [
  [
    "a batch whose window opens",
    async (partner) => {
      const windows = { ...OPEN, buy: { opensAt: inSeconds(3_600), closesAt: null } };
      const { batchId, vouchers } = await offerBatch(servers.db, partner, 1, { windows });
      return async () => {
        await servers.db.query("UPDATE batch_windows SET opens_at = NULL WHERE batch_id = $1", [batchId]);
        return vouchers[0]?.id;
      };
    },
  ],
  [
    "a batch whose only voucher was reserved",
    async (partner) => {
      const offered = await offerBatch(servers.db, partner, 1);
      const [id] = idsOf(offered);
      await reservationVouchers(servers.db, idsOf(offered), inSeconds(600));
      return async () => {
        await servers.db.query("UPDATE reservations SET state = 'Released', ended_at = now() WHERE voucher_id = $1", [
          id,
        ]);
        return id;
      };
    },
  ],
  [
    "a batch that is issued",
    async (partner) => async () => {
      const { vouchers } = await offerBatch(servers.db, partner, 1);
      return vouchers[0]?.id;
    },
  ],
];

it.each(
  LATE_SUPPLY.flatMap(([what, prepare]) =>
    (["is used up", "stays locked"] as const).map((end) => [what, end, prepare] as const),
  ),
)("a waiting buy gets a voucher of %s if the voucher that it waits for %s", async (_, end, prepare) => {
  const buyer = await as();
  const { id, body } = await until(async () => {
    const offer = await makeOffer(servers.db, 1, { validUntil: inSeconds(3_600) });
    const supply = await prepare(offer);
    const buyInTime = async (outside: pg.PoolClient) => {
      await lockRows(outside, idsOf(offer));
      const buy = buyer.buyProduct(offer.productId);
      if (!(await untilWaitingOr(buy, servers.db, 1, "api"))) return null;
      const id = await supply();
      if (end === "is used up") {
        await outside.query("UPDATE vouchers SET status = 'Voided', pickable = false WHERE id = ANY ($1)", [
          idsOf(offer),
        ]);
        await outside.query("COMMIT");
      }
      return { id, body: (await buy).body };
    };
    return inTime(LOCK_WAIT_MS, () => besideTransaction(servers.db, buyInTime));
  });
  expect(body).toMatchObject({ voucher: { id }, alreadyConfirmed: false });
});
