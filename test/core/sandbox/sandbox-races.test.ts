import { expect, it } from "vitest";
import { sweep } from "../../../src/open/open-sweep.ts";
import { type PartnerClient, partnerClient, type Reply } from "../../support/client.ts";
import {
  countOutcomes,
  inSeconds,
  makeMember,
  newUser,
  OPEN,
  offerBatch,
  signedIn,
} from "../../support/marketplace.ts";
import { untilWaiting, whileLocked } from "../../support/outside-transaction.ts";
import { issueVouchers, makeKey, makePartner, type TestPartner } from "../../support/supply.ts";
import { useService } from "../../support/use-service.ts";

const env = { REDEEM_WAIT_MS: "60000" };
const { servers, apis, workers, issuer } = useService({ apis: [{}, {}], workers: [{}, {}], env, users: true });

const DAY = 86_400;

it("no invariant breaks while 150 calls use a sandbox's vouchers and other calls advance its clock", async () => {
  const sandbox = await makeSandbox();
  const { tills } = sandbox;
  const advances: Reply[] = [];
  const replies: Reply[] = [];
  for (let round = 0; round < 3; round++) {
    // Each round advances the sandbox's time past some vouchers' end while calls reserve and redeem the vouchers.
    const [short, long] = [
      await issueVouchers(servers.db, sandbox, 6, { validUntil: inSeconds(DAY) }),
      await issueVouchers(servers.db, sandbox, 6, { validUntil: inSeconds(300 * DAY) }),
    ];
    const vouchers = [...short, ...long];
    const [operator = tills[0] as PartnerClient] = tills;
    await Promise.all([
      ...Array.from({ length: 6 }, async (_, n) => {
        for (let i = 0; i < 2; i++) advances.push(await operator.advance(n === 5 ? 2 * DAY : 600));
      }),
      ...Array.from({ length: 50 }, async (_, n) => {
        const till = tills[n % tills.length] as PartnerClient;
        const { id, code } = vouchers[(n * 7) % vouchers.length] as (typeof vouchers)[number];
        const reserved = await till.reserve(code);
        replies.push(reserved);
        if (n % 5 === 0 && reserved.status === 200) replies.push(await till.release(reserved.body.ticket));
        else replies.push(await till.redeem({ code, externalRef: `order-${id}-${n}` }));
      }),
      ...workers.map(({ ctx }) => sweep(ctx)),
    ]);
  }
  const possible = ["200", "409 voucher_used", "409 voucher_expired", "409 voucher_reserved", "503 voucher_busy"];
  expect(Object.keys(countOutcomes(replies)).filter((outcome) => !possible.includes(outcome))).toEqual([]);
  expect(countOutcomes(advances)).toEqual({ "200": 36 });

  const redeemed = replies.flatMap(({ body }) => (body.redeemed === true ? [body.voucherInstanceId] : []));
  expect(redeemed.length).toBeGreaterThan(0);
  const of = "WHERE v.organization_id = $1";
  const { rows: used } = await servers.db.query(`SELECT v.voucher_id AS id FROM redemptions v ${of}`, [
    sandbox.organizationId,
  ]);
  expect(used.map(({ id }) => id).sort()).toEqual([...redeemed].sort());
  // Every advance of the sandbox's time reports the reservations that it ended, so the sum is the number of all ended
  // ones.
  const { rows: ended } = await servers.db.query(
    `SELECT count(*)::int AS ended FROM reservations v ${of} AND v.state = 'Expired'`,
    [sandbox.organizationId],
  );
  expect(advances.reduce((sum, { body }) => sum + body.reservationsEnded, 0)).toBe(ended[0]?.ended);
  expect(ended[0]?.ended).toBeGreaterThan(0);

  // Every Active voucher past its end has one expired event once the sweeper has returned to locked vouchers.
  for (const { ctx } of workers) await sweep(ctx);
  const { rows: unrecorded } = await servers.db.query(
    `SELECT v.id FROM vouchers AS v JOIN batches AS b ON b.id = v.batch_id ${of}
        AND v.status = 'Active' AND b.valid_until <= now()
        AND NOT EXISTS (SELECT 1 FROM voucher_events AS e
                         WHERE e.voucher_id = v.id AND e.event_type = 'voucher.instance.expired')`,
    [sandbox.organizationId],
  );
  expect(unrecorded).toEqual([]);
});

it("no invariant breaks while users buy a sandbox's vouchers and other calls advance its clock", async () => {
  const sandbox = await makeSandbox();
  const buyer = newUser();
  await makeMember(servers.db, { organizationId: sandbox.organizationId, userId: buyer, role: "owner" });
  const [operator = sandbox.tills[0] as PartnerClient] = sandbox.tills;
  const window = { opensAt: inSeconds(1_000), closesAt: inSeconds(3_000) };
  const offer = await offerBatch(servers.db, sandbox, 20, { windows: { ...OPEN, buy: window } });
  const clients = await Promise.all(apis.map(({ url }) => signedIn(url, issuer, buyer)));
  const replies: Reply[] = [];
  await Promise.all([
    ...Array.from({ length: 4 }, async (_, n) => {
      for (const { code } of offer.vouchers.slice(n * 5, n * 5 + 5)) await sandbox.tills[n]?.reserve(code);
    }),
    ...Array.from({ length: 10 }, () => operator.advance(250)),
    ...Array.from({ length: 20 }, async (_, n) => {
      const client = clients[n % clients.length] as (typeof clients)[number];
      replies.push(await client.buyListing(offer.listingId, { paymentRef: `${offer.listingId}-${n}` }));
    }),
  ]);
  const possible = ["200", "409 window_closed", "409 sold_out", "503 voucher_busy"];
  expect(Object.keys(countOutcomes(replies)).filter((outcome) => !possible.includes(outcome))).toEqual([]);
});

it("ten simultaneous advances of a sandbox's clock move a reservation's end ten times", async () => {
  const sandbox = await makeSandbox();
  const [till = sandbox.tills[0] as PartnerClient] = sandbox.tills;
  const [voucher] = await issueVouchers(servers.db, sandbox, 1);
  const { expiresAt } = (await till.reserve(voucher?.code ?? "")).body;
  const replies = await Promise.all(sandbox.tills.concat(sandbox.tills.slice(0, 4)).map((one) => one.advance(50)));
  expect(countOutcomes(replies)).toEqual({ "200": 10 });
  const { reservation } = (await till.lookUp(voucher?.code ?? "")).body;
  expect(Date.parse(expiresAt) - Date.parse(reservation.expiresAt)).toBe(500_000);
});

it("an advance of a sandbox's clock waits for a locked voucher, and changes nothing if the lock remains", async () => {
  const sandbox = await makeSandbox();
  const [till = sandbox.tills[0] as PartnerClient] = sandbox.tills;
  const [voucher] = await issueVouchers(servers.db, sandbox, 1);
  const { id = "", code = "" } = voucher ?? {};
  await till.reserve(code);
  const before = (await till.lookUp(code)).body;
  const busy = await whileLocked(servers.db, [id], () => till.advance(2 * DAY));
  expect(countOutcomes([busy])).toEqual({ "503 voucher_busy": 1 });
  expect((await till.lookUp(code)).body).toEqual(before);

  const { pending } = await whileLocked(servers.db, [id], async () => {
    const pending = till.advance(2 * DAY);
    await untilWaiting(servers.db, 1, "api");
    return { pending };
  });
  expect((await pending).body).toMatchObject({ reservationsEnded: 1, vouchersExpired: 1 });
});

async function makeSandbox(): Promise<TestPartner & { tills: PartnerClient[] }> {
  const partner = await makePartner(servers.db, { sandbox: true });
  const keys = await Promise.all([0, 1, 2].map(() => makeKey(servers.db, partner.organizationId)));
  return { ...partner, tills: keys.flatMap(({ key }) => apis.map(({ url }) => partnerClient(url, key))) };
}
