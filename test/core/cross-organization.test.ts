import { beforeAll, expect, it } from "vitest";
import { runRedeemJob } from "../../src/core/redeem/redeem-committer.ts";
import { newId } from "../../src/core/voucher/ids.ts";
import { createApp } from "../../src/open/app.ts";
import type { Reply } from "../support/client.ts";
import { newAttempt, redeemJob } from "../support/redeem-jobs.ts";
import { dumpRows } from "../support/row-dump.ts";
import { issueVoucher, provisioning } from "../support/supply.ts";
import { useService } from "../support/use-service.ts";
import { voidVoucher } from "../support/void-voucher.ts";

const { api, servers, worker, partner, stranger, keys, issue, till, foreign } = useService();
/** One voucher per status, with all its identifiers. The tests send these with another organization's key. */
const names: { state: string; codes: string[]; tickets: string[]; refs: string[]; token: string | null }[] = [];

beforeAll(async () => {
  const make = async (state: string, options?: { validUntil: Date }) => {
    const { code, id } = await issue(options);
    const name = { state, codes: [code, id], tickets: [] as string[], refs: [] as string[], token: null };
    names.push(name);
    return { ...name, code };
  };
  const reserve = async ({ code, tickets }: { code: string; tickets: string[] }) => {
    const { body } = await till.reserve(code);
    tickets.push(body.ticket);
    return body;
  };
  await make("untouched");
  await make("expired", { validUntil: new Date(Date.now() - 1_000) });
  const held = await reserve(await make("held"));
  Object.assign(names.at(-1) ?? {}, { token: held.token });
  await till.release((await reserve(await make("released"))).ticket);
  const redeemed = await make("redeemed");
  const { ticket, token } = await reserve(redeemed);
  const { body } = await till.redeem({ ticket, externalRef: "owners-order" });
  expect(body).toMatchObject({ redeemed: true });
  redeemed.codes.push(body.redeemCode);
  redeemed.refs.push("owners-order");
  Object.assign(names.at(-1) ?? {}, { token });
  await voidVoucher(provisioning(servers.db), partner.organizationId, (await make("voided")).code, null);
});

/** Requests to each partner route about a voucher, by code, ticket or external reference. */
const PROBES: Record<string, (name: { code: string; token: string | null; ref: string }) => Promise<Reply>[]> = {
  "GET /partner/vouchers/:codeOrTicket": ({ code }) => [foreign.lookUp(code)],
  "GET /partner/vouchers/:codeOrTicket/events": ({ code }) => [foreign.events(code), foreign.events(code, "?after=1")],
  "GET /partner/vouchers/:codeOrTicket/events/:sequence/receipt": ({ code }) => [foreign.eventReceipt(code, 1)],
  "GET /partner/redemptions/:externalRef/receipt": ({ ref }) => [foreign.receipt(ref)],
  "GET /partner/redemptions/receipt": ({ ref }) => [foreign.receiptBy(ref)],
  "GET /partner/statements/:month": () => [foreign.statement("2026-11")],
  "GET /partner/events": () => [foreign.feed()],
  "GET /partner/redemptions": () => [foreign.redemptions()],
  // A reference in the query must get the same answer as a reference in the path.
  "GET /partner/redemptions?externalRef=": ({ ref }) => [foreign.redemptions({ externalRef: ref })],
  "GET /partner/redemptions/:externalRef": ({ ref }) => [foreign.redemption(ref)],
  "POST /partner/vouchers/reserve": ({ code }) => [foreign.reserve(code)],
  "POST /partner/vouchers/redeem": ({ code, token, ref }) =>
    [{ code }, { ticket: code }, { code, token }, { ticket: code, token }].map((named) =>
      foreign.redeem({ ...named, externalRef: ref }),
    ),
  "POST /partner/vouchers/release": ({ code }) => [foreign.release(code)],
};

const notFound = (code: string) => ({ status: 404, body: { error: expect.any(String), code } });

it("this file tests every partner route that names a voucher or a redemption, except webhook routes", () => {
  // webhook-routes.test.ts tests the routes of webhooks with foreign keys.
  const routes = partnerRoutes().filter((route) => !route.includes("/partner/webhooks"));
  const probed = Object.keys(PROBES).filter((route) => !route.includes("?"));
  expect(routes.sort()).toEqual(probed.sort());
});

/** Answers for unknown entities on routes without voucher_not_found. An unknown ticket or an empty list is no error. */
const NOTHING: Record<string, unknown> = {
  "POST /partner/vouchers/release": { status: 200, body: { released: false, reason: expect.any(String) } },
  "GET /partner/statements/:month": { status: 200, body: expect.objectContaining({ redemptions: 0, lines: [] }) },
  "GET /partner/events": { status: 200, body: { events: [] } },
  "GET /partner/redemptions": { status: 200, body: { redemptions: [] } },
  "GET /partner/redemptions?externalRef=": { status: 200, body: { redemptions: [] } },
  "GET /partner/redemptions/receipt": notFound("redemption_not_found"),
  "GET /partner/redemptions/:externalRef": notFound("redemption_not_found"),
  "GET /partner/redemptions/:externalRef/receipt": notFound("redemption_not_found"),
};

it.each(
  Object.entries(PROBES),
)("%s with another organization's key reveals nothing about a voucher, and changes nothing", async (route, probe) => {
  const leases = async () => (await servers.redis.keys("lease:*")).sort();
  const before = [await dumpRows(servers.db), await leases()];
  const seen = async (code: string, token: string | null, ref: string) =>
    (await Promise.all(probe({ code, token, ref }))).map(
      ({ status, body: { requestId, completeUntil, nextCursor, ...body } }) => ({ status, body }),
    );
  const none = await seen("7Q4K-9MZX-2HTB-W8RC", null, "never-used");
  for (const answer of none) expect(answer).toEqual(NOTHING[route] ?? notFound("voucher_not_found"));
  for (const { state, codes, tickets, refs, token } of names) {
    for (const code of [...codes, ...codes.map((text) => text.toLowerCase()), ...tickets]) {
      for (const ref of ["never-used", ...refs]) expect(await seen(code, token, ref), `${state} ${code}`).toEqual(none);
    }
  }
  expect(await seen(newId("rsv"), "a-token", "never-used")).toEqual(none);
  expect([await dumpRows(servers.db), await leases()]).toEqual(before);
});

it("a redeem job that names the wrong organization fails alone, and other jobs of its batch succeed", async () => {
  const [coveted, other] = [await issue(), await issueVoucher(servers.db, stranger)];
  const run = (voucherId: string, ref: string) =>
    runRedeemJob(worker.ctx, newAttempt(voucherId), redeemJob(stranger, keys.foreign.id, voucherId, ref));
  const [refused, redeemed] = await Promise.allSettled([run(coveted.id, "theirs"), run(other.id, "own")]);
  expect(refused).toMatchObject({ status: "rejected", reason: { message: expect.stringContaining("organization") } });
  expect(redeemed).toMatchObject({ status: "fulfilled", value: { kind: "redeemed" } });
  const { rows } = await servers.db.query("SELECT status FROM vouchers WHERE id = $1", [coveted.id]);
  expect(rows).toEqual([{ status: "Active" }]);
});

function partnerRoutes(): string[] {
  interface Layer {
    route?: { path: string; methods: Record<string, boolean> };
  }
  return (createApp(api.ctx).router.stack as unknown as Layer[]).flatMap(({ route }) =>
    route?.path.startsWith("/partner/")
      ? Object.keys(route.methods)
          .filter((method) => method !== "_all")
          .map((method) => `${method.toUpperCase()} ${route.path}`)
      : [],
  );
}
