import { afterEach, expect, it, vi } from "vitest";
import { Batcher } from "../../../src/platform/batching/batcher.ts";
import type { Reply } from "../../support/client.ts";
import { makeOffer, newPayment, outcome } from "../../support/marketplace.ts";
import { useService } from "../../support/use-service.ts";

const service = useService({ users: true });
const { api, servers, till, issue, as } = service;

afterEach(() => {
  vi.restoreAllMocks();
});

/** Prepares a call that reports a committed change, and returns it. */
type Prepare = () => Promise<() => Promise<Reply>>;

const claim: Prepare = async () => {
  const [{ productId }, user] = [await makeOffer(servers.db, 1), await as()];
  return () => user.claimProduct(productId);
};
const buy: Prepare = async () => {
  const [{ listingId }, user, body] = [await makeOffer(servers.db, 1), await as(), { paymentRef: newPayment() }];
  return () => user.buyListing(listingId, body);
};
const repeatOf =
  (prepare: Prepare): Prepare =>
  async () => {
    const call = await prepare();
    expect(outcome(await call())).toBe("200");
    return call;
  };

it.each<[string, Prepare]>([
  ["a claim", claim],
  ["a purchase", buy],
  ["a repeated claim", repeatOf(claim)],
])("the answer to %s never denies its commit, even if no voucher can be read afterwards", async (_what, prepare) => {
  const call = await prepare();
  takeAllPlaces();
  expect(outcome(await call())).toBe("503 unavailable");
  vi.restoreAllMocks();
  const { status, body } = await call();
  expect([status, body.alreadyConfirmed]).toEqual([200, true]);
});

it("an overloaded response says that nothing changed only if the call has committed nothing", async () => {
  const { productId } = await makeOffer(servers.db, 1);
  const [first, second] = [await as(), await as()];
  await first.claimProduct(productId);
  takeAllPlaces();
  expect(outcome(await till.lookUp((await issue()).code))).toBe("503 overloaded");
  expect(outcome(await second.claimProduct(productId))).toBe("409 sold_out");
});

it("every read gets a standby's confirmation, however many reads wait", async () => {
  const { confirmations, deployment } = api.ctx;
  const waiting = Array.from({ length: 20_000 }, () => confirmations.submit(deployment.serverId));
  expect(new Set(await Promise.all(waiting))).toEqual(new Set([true]));
});

/** Makes reads of vouchers fail because too many wait, until the mocks are restored. */
function takeAllPlaces(): void {
  const full = new Batcher<unknown, never>(() => Promise.reject(new Error("not run")), { batchMax: 1, waitingMax: 0 });
  vi.spyOn(api.ctx.voucherReads, "submit").mockImplementation((item) => full.submit(item));
}
