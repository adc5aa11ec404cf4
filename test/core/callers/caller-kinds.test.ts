import { beforeAll, expect, it, vi } from "vitest";
import { CALLER_KINDS } from "../../../src/core/callers/caller-kinds.ts";
import { basic, browse, OPS_TOKEN } from "../../support/browse.ts";
import { partnerClient, send } from "../../support/client.ts";
import { makeGate } from "../../support/gate.ts";
import { makeOffer } from "../../support/marketplace.ts";
import { makeKey } from "../../support/supply.ts";
import { until } from "../../support/until.ts";
import { useService } from "../../support/use-service.ts";

type Kind = keyof typeof CALLER_KINDS;

const { db, api, till, foreign, partner, stranger, issue } = useService({
  env: { OPS_TOKEN, WEBHOOK_SECRET: "the root secret of the tests of kinds of callers", TRUST_PROXY: "127.0.0.1" },
});

/** Calls by name, with the kind of connection that each needs, or null for batched calls and probes. */
let calls: Record<string, { kind: Kind | null; send: () => Promise<{ status: number }> }>;
let hooks: string;

beforeAll(async () => {
  const { id } = await issue();
  const offer = await makeOffer(db, 1);
  const reader = (await makeKey(db, stranger.organizationId, { scopes: ["voucher.read"] })).key;
  const withHooks = (await makeKey(db, stranger.organizationId, { scopes: ["voucher.webhook"] })).key;
  hooks = (await makeKey(db, partner.organizationId, { scopes: ["voucher.webhook"] })).key;
  const redeem = async (client: typeof till, code: string, externalRef: string) =>
    expect((await client.redeem({ code, externalRef })).status).toBe(200);
  await redeem(till, (await issue()).code, "order-of-the-flooder");
  const others = await makeOffer(db, 1);
  const { key } = await makeKey(db, others.organizationId);
  const other = partnerClient(api.url, key);
  await redeem(other, String(others.vouchers[0]?.code), "order-of-another");
  const fromElsewhere = (path: string) => browse(api.url + path, { headers: { "X-Forwarded-For": "192.0.2.77" } });
  const asOperator = (path: string) => browse(`${api.url}/ops${path}`, { headers: basic(OPS_TOKEN) });
  calls = {
    "a look-up": { kind: null, send: () => other.lookUp(String(others.vouchers[0]?.code)) },
    "a redemption by reference": { kind: null, send: () => other.redemption("order-of-another") },
    "a redemption by reference of the flooder": { kind: null, send: () => till.redemption("order-of-the-flooder") },
    "a repeated redeem": {
      kind: null,
      send: () => other.redeem({ code: String(others.vouchers[0]?.code), externalRef: "order-of-another" }),
    },
    "a list of redemptions": { kind: "partnerCalls", send: () => foreign.redemptions() },
    "a history": { kind: "partnerCalls", send: () => other.events(String(others.vouchers[0]?.code)) },
    "webhook endpoints": {
      kind: "partnerCalls",
      send: () => send("GET", `${api.url}/partner/webhooks`, { key: withHooks }),
    },
    "the portal": { kind: "portalReads", send: () => browse(`${api.url}/portal`, { headers: basic(reader) }) },
    "the portal's day": {
      kind: "portalReads",
      send: () => browse(`${api.url}/portal/redemptions`, { headers: basic(reader) }),
    },
    "the portal's events": {
      kind: "portalReads",
      send: () => browse(`${api.url}/portal/activity`, { headers: basic(reader) }),
    },
    "the page for operators": { kind: "operatorReads", send: () => asOperator("") },
    "an operator's list": { kind: "operatorReads", send: () => asOperator("/organizations") },
    listings: { kind: "publicReads", send: () => fromElsewhere("/marketplace/listings") },
    "a listing": { kind: "publicReads", send: () => fromElsewhere(`/marketplace/listings/${offer.listingId}`) },
    "a public history": {
      kind: "publicReads",
      send: () => fromElsewhere(`/integrity/events/VoucherInstance/${id}`),
    },
    "a hundred readiness probes": {
      kind: null,
      send: async () => {
        const probes = await Promise.all(Array.from({ length: 100 }, () => send("GET", `${api.url}/readyz`)));
        const refused = probes.find(({ status }) => status !== 200);
        if (refused !== undefined) throw new Error(`GET /readyz answers ${JSON.stringify(refused.body)}`);
        return { status: 200 };
      },
    },
  };
});

it.each(
  Object.keys(CALLER_KINDS) as Kind[],
)("one caller's flood of %s delays no other caller and no call of another kind", async (kind) => {
  const { end } = await flood(kind);
  try {
    for (const [name, call] of Object.entries(calls)) {
      // All operators share this kind of connection, so the flood delays their other calls too.
      if (kind === "operatorReads" && call.kind === kind) continue;
      expect([name, (await call.send()).status]).toEqual([name, 200]);
    }
  } finally {
    await end();
  }
});

it("floods by all kinds of callers leave a connection for every other caller", async () => {
  const kinds = (Object.keys(CALLER_KINDS) as Kind[]).filter((kind) => kind !== "operatorReads");
  const floods = await Promise.all(kinds.map(flood));
  try {
    const answers = Object.entries(calls).map(async ([name, call]) => [name, (await call.send()).status]);
    for (const [name, status] of await Promise.all(answers)) expect([name, status]).toEqual([name, 200]);
  } finally {
    await Promise.all(floods.map(({ end }) => end()));
  }
});

it.each([
  ["partnerCalls", "/partner/webhooks"],
  ["publicReads", "/marketplace/listings"],
] as const)("a caller that disconnects while it waits for a connection of %s runs no query", async (kind, path) => {
  const gate = makeGate();
  const requester = { organizationId: partner.organizationId, visitor: "192.0.2.1" };
  // The last call waits.
  const busy = Array.from({ length: CALLER_KINDS[kind].connections }, () =>
    api.ctx[kind](requester, () => gate.pass()),
  );
  const asked = vi.spyOn(api.ctx, kind);
  try {
    const leaving = new AbortController();
    const headers = { "X-Api-Key": hooks, "X-Forwarded-For": "192.0.2.1", Accept: "application/json" };
    const response = fetch(api.url + path, { headers, signal: leaving.signal });
    await until(() => asked.mock.calls.length === 1);
    leaving.abort();
    await expect(response).rejects.toThrow();
    await expect(asked.mock.results[0]?.value).rejects.toThrow("the caller has left");
  } finally {
    asked.mockRestore();
    gate.open();
    await Promise.all(busy);
  }
});

/** Makes one caller occupy all connections and waiting places that it may use of a kind, until `end`. */
async function flood(kind: Kind): Promise<{ end(): Promise<void> }> {
  const { ctx } = api;
  const { connections, waitingMaxEach } = CALLER_KINDS[kind];
  const gate = makeGate();
  const call = async () => {
    const client = await ctx.pool.connect();
    await gate.pass().finally(() => client.release());
  };
  const requester = { organizationId: partner.organizationId, visitor: "192.0.2.1" };
  const each = Array.from({ length: connections + waitingMaxEach }, () =>
    kind === "operatorReads" ? ctx.operatorReads({}, call) : ctx[kind](requester, call),
  );
  const settled = Promise.allSettled(each);
  await expect(kind === "operatorReads" ? ctx.operatorReads({}, call) : ctx[kind](requester, call)).rejects.toThrow();
  await gate.reached;
  return {
    async end() {
      gate.open();
      await settled;
    },
  };
}
