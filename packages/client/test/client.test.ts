import { readFileSync } from "node:fs";
import type { IncomingHttpHeaders } from "node:http";
import { afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import type { Scope } from "../../../src/core/keys/api-keys.ts";
import { startPartnerServer } from "../../../test/support/partner-server.ts";
import { appendPending } from "../../../test/support/pending-events.ts";
import { readRecorded } from "../../../test/support/recorded.ts";
import { makeKey, provisioning } from "../../../test/support/supply.ts";
import { until } from "../../../test/support/until.ts";
import { useService } from "../../../test/support/use-service.ts";
import { voidVoucher } from "../../../test/support/void-voucher.ts";
import { WEBHOOK_ENV } from "../../../test/support/webhook-receiver.ts";
import {
  InvalidWebhook,
  OutcomeUnknown,
  ReferenceReused,
  type Settings,
  type VoucherClient,
  VoucherRefused,
  verifyHistory,
  verifyWebhook,
  voucherClient,
} from "../src/index.ts";

const service = useService({ env: { ...WEBHOOK_ENV, WORKER_QUEUES: "redeem" } });
let apiKey: string;

beforeAll(async () => {
  const scopes: Scope[] = ["voucher.read", "voucher.redeem", "voucher.webhook"];
  apiKey = (await makeKey(service.db, service.partner.organizationId, { scopes })).key;
});

const { issue } = service;
let orders = 0;

afterEach(() => {
  vi.restoreAllMocks();
});

it("client.release returns true if it ended a reservation, and otherwise false", async () => {
  const { code } = await issue();
  const { ticket } = await client().reserve(code);
  const released = await client().release(ticket);
  // Compiles only if the type of `released` is a boolean.
  expect(released.released === true ? "ended" : released.reason).toBe("ended");
  const again = await client().release(ticket);
  expect(again.released === false ? again.reason : "").toMatch(/not reserved/);
});

it("the client package has no dependencies, and has the service's version and license", () => {
  const [{ version, license }, manifest] = ["package.json", "packages/client/package.json"].map((file) =>
    JSON.parse(readFileSync(file, "utf8")),
  );
  expect(manifest).toMatchObject({ version, license });
  expect(manifest.dependencies).toBeUndefined();
});

describe("redeemOnce", () => {
  it("redeemOnce redeems once when responses get lost, and returns the redemption", async () => {
    withoutWaiting();
    const { id, code } = await issue();
    const failures = [refusal(503, "overloaded"), refusal(502, "x"), refusal(408, "request_timeout")];
    const line = unreliable("lost", ...failures, "lost");
    const externalRef = newOrder();
    const redemption = await client({ fetch: line.fetch }).redeemOnce({ code, externalRef, note: "Till 4" });
    expect(redemption).toMatchObject({ redeemed: true, alreadyConfirmed: true, voucherInstanceId: id });
    expect(await redemptionOf(id)).toMatchObject({ externalRef, redeemCode: redemption.redeemCode });
    expect(line.asked).toBe(6);
    expect(await client().redeemOnce({ code, externalRef })).toEqual(redemption);
  });

  it("client.events yields a voucher's events in order, from a given event on and of given types", async () => {
    const { id, code } = await issue();
    const read = async (after?: string) => {
      for await (const event of client().events(after === undefined ? {} : { after }))
        if (event.entityId === id) return event;
      throw new Error("the loop has no end");
    };
    const first = await read();
    await client().redeemOnce({ code, externalRef: newOrder() });
    const second = await read(first.cursor);
    expect([first, second].map(({ sequence, eventType }) => [sequence, eventType])).toEqual([
      [1, "voucher.instance.issued"],
      [2, "voucher.instance.redeemed"],
    ]);
    for await (const event of client().events({ types: ["voucher.instance.redeemed"] })) {
      expect(event.eventType).toBe("voucher.instance.redeemed");
      if (event.entityId === id) break;
    }
  });

  it("redeemOnce redeems by a ticket, and looks nothing up if the caller passes the voucher's id", async () => {
    const { code } = await issue();
    const key = (await makeKey(service.db, service.partner.organizationId, { scopes: ["voucher.redeem"] })).key;
    const till = client({ apiKey: key });
    const { ticket, voucher } = await till.reserve(code);
    const order = { ticket, externalRef: newOrder() };
    const cause = expect.objectContaining({ code: "missing_scope" });
    await expect(till.redeemOnce(order)).rejects.toMatchObject({ name: "OutcomeUnknown", cause });
    expect(await till.redeemOnce({ ...order, voucherId: voucher })).toMatchObject({ voucherInstanceId: voucher });
  });

  it("redeemOnce leaves its voucher unchanged if the reference belongs to another voucher", async () => {
    const [first, second] = [await issue(), await issue()];
    const externalRef = newOrder();
    const earlier = await client().redeemOnce({ code: first.code, externalRef });
    const reused = client().redeemOnce({ code: second.code, externalRef });
    await expect(reused).rejects.toBeInstanceOf(ReferenceReused);
    await expect(reused).rejects.toMatchObject({ earlier: { ...earlier, alreadyConfirmed: true } });
    expect(await statusOf(second.code)).toBe("Active");
  });

  it("redeemOnce throws if the response has otherVoucher, even with the requested voucher's id", async () => {
    const { id, code } = await issue();
    const redemption = await client().redeemOnce({ code, externalRef: newOrder() });
    const line = unreliable(Response.json({ ...redemption, otherVoucher: true }));
    await expect(
      client({ fetch: line.fetch }).redeemOnce({ code, externalRef: newOrder(), voucherId: id }),
    ).rejects.toBeInstanceOf(ReferenceReused);
  });

  it("redeemOnce rejects a response that contains no redemption", async () => {
    const { id, code } = await issue();
    for (const answer of [{}, null, { redeemed: false }]) {
      const { fetch } = unreliable(Response.json(answer));
      const redeem = client({ fetch }).redeemOnce({ code, externalRef: newOrder() });
      await expect(redeem).rejects.toBeInstanceOf(OutcomeUnknown);
    }
    expect(await redemptionOf(id)).toBeNull();
  });

  it("redeemOnce retries when a proxy sends a page instead of a response", async () => {
    withoutWaiting();
    const { code } = await issue();
    const line = unreliable(new Response("<h1>Sign in</h1>"), "delivered");
    expect(await client({ fetch: line.fetch }).redeemOnce({ code, externalRef: newOrder() })).toMatchObject({
      alreadyConfirmed: false,
    });
  });

  it("redeemOnce reports an unknown outcome after patienceMs, and a later call learns the outcome", async () => {
    const { id, code } = await issue();
    const externalRef = newOrder();
    const line = unreliable("lost");
    const hasty = client({ fetch: line.fetch, patienceMs: 0 });
    await expect(hasty.redeemOnce({ code, externalRef })).rejects.toBeInstanceOf(OutcomeUnknown);
    const { redeemCode } = await client().redeemOnce({ code, externalRef });
    expect(await redemptionOf(id)).toMatchObject({ redeemCode });
  });

  it("redeemOnce says that nothing was redeemed if the service said so for every attempt", async () => {
    const { code } = await issue();
    const line = unreliable(refusal(503, "redeem_timeout", { "retry-after": "2" }));
    await expect(
      client({ fetch: line.fetch, patienceMs: 100 }).redeemOnce({ code, externalRef: newOrder() }),
    ).rejects.toMatchObject({ name: "VoucherRefused", code: "redeem_timeout", requestId: "r-1" });
  });

  it("redeemOnce throws a refusal at once, with the service's code and sentence", async () => {
    const { code } = await issue();
    await voidVoucher(provisioning(service.db), service.partner.organizationId, code, null);
    const line = unreliable();
    const redeem = client({ fetch: line.fetch }).redeemOnce({ code, externalRef: newOrder() });
    await expect(redeem).rejects.toBeInstanceOf(VoucherRefused);
    await expect(redeem).rejects.toMatchObject({
      status: 409,
      code: "voucher_voided",
      message: "The issuer has cancelled this voucher. Another form of payment is needed.",
    });
    expect(line.asked).toBe(1);
  });

  // Only a final state of the voucher proves that the lost attempt failed.
  it.each([
    ["voucher_reserved", 409, "OutcomeUnknown"],
    ["unknown_key", 401, "OutcomeUnknown"],
    ["a_code_of_tomorrow", 409, "OutcomeUnknown"],
    ["voucher_used", 409, "VoucherRefused"],
    ["voucher_expired", 409, "VoucherRefused"],
  ])("after a lost attempt, %s (%i) makes redeemOnce throw %s", async (code, status, name) => {
    withoutWaiting();
    const voucher = await issue();
    const line = unreliable(refusal(504, "x"), refusal(status, code));
    await expect(
      client({ fetch: line.fetch }).redeemOnce({ code: voucher.code, externalRef: newOrder() }),
    ).rejects.toMatchObject({ name });
  });

  it("client.lookUp follows no redirect, so that no other address gets the key", async () => {
    const { code } = await issue();
    const seen: (string | undefined)[] = [];
    const redirecting: typeof fetch = async (_url, options) => {
      seen.push(options?.redirect);
      return new Response(null, { status: 307, headers: { location: "https://evil.example/" } });
    };
    const call = client({ fetch: redirecting, patienceMs: 0 }).lookUp(code);
    await expect(call).rejects.toMatchObject({ name: "OutcomeUnknown", cause: { status: 307, code: null } });
    expect(seen).toEqual(["manual"]);
  });
});

it("client.redemptions yields a time range's redemptions once each, after the range is final", async () => {
  const vouchers = await Promise.all(Array.from({ length: 5 }, () => issue()));
  const times: string[] = [];
  for (const { code } of vouchers) {
    times.push((await client().redeemOnce({ code, externalRef: newOrder() })).redeemedAt);
  }
  const [from = "", to = ""] = [times[0], new Date(Date.parse(times[4] ?? "") + 1).toISOString()];
  let pages = 0;
  const inPages: typeof fetch = (url, options) => {
    pages += 1;
    return fetch(String(url).replace("limit=1000", "limit=2"), options);
  };
  const settle = async () => {
    const ids: string[] = [];
    pages = 0;
    for await (const one of client({ fetch: inPages }).redemptions(new Date(from), to)) ids.push(one.voucherInstanceId);
    return ids;
  };
  const settled = await until(() =>
    settle().catch((error) => {
      expect(error).toBeInstanceOf(OutcomeUnknown);
      return null;
    }),
  );
  expect(settled).toEqual(vouchers.map(({ id }) => id));
  expect(pages).toBeGreaterThanOrEqual(3);
  const csv = await client().redemptionsCsv(from, new Date(to));
  expect(csv.trimEnd().split("\r\n")).toHaveLength(6);
  await expect(client().redemptionsCsv(from, new Date(Date.now() + 3_600_000))).rejects.toThrow(OutcomeUnknown);
  const [last] = vouchers.slice(-1);
  expect(await client().redemption(`client-${orders}`)).toMatchObject({ voucherInstanceId: last?.id });
  await expect(client().receipt(`client-${orders}`)).rejects.toMatchObject({ code: "not_logged_yet" });
  await expect(client().eventReceipt(last?.code ?? "", 1)).rejects.toMatchObject({ code: "not_logged_yet" });
});

it("the client manages, tests and verifies webhooks, in each form of the headers", async () => {
  const { webhooks } = client();
  const requests: { headers: IncomingHttpHeaders; body: string }[] = [];
  const { port, close } = await startPartnerServer({
    answer(response, request) {
      requests.push(request);
      response.writeHead(204).end();
    },
  });
  const { id, secret } = await webhooks.create({ url: `http://127.0.0.1:${port}/` });
  expect(await webhooks.test(id)).toMatchObject({ delivered: true });
  const { body = "", headers = {} } = requests[0] ?? {};
  expect(await verifyWebhook(body, headers, secret)).toMatchObject({ event: { type: "webhook.test" } });
  expect(await verifyWebhook(body, new Headers(headers as Record<string, string>), secret)).toHaveProperty("id");
  const { secret: next } = await webhooks.rotate(id);
  await expect(verifyWebhook(body, headers, next)).rejects.toThrow(InvalidWebhook);
  expect(await webhooks.replay(id, { from: new Date(Date.now() - 1_000), to: "2100-01-01T00:00:00Z" })).toEqual({
    replayed: 0,
  });
  expect(await webhooks.change(id, { enabled: false })).toMatchObject({ id, disabledReason: "partner" });
  expect(await webhooks.read(id)).toMatchObject({ enabled: false });
  expect((await webhooks.list()).webhooks).toHaveLength(1);
  for await (const delivery of webhooks.deliveries(id)) expect.fail(delivery.eventId);
  expect(await webhooks.delete(id)).toEqual({ id, deleted: true });
  await close();
});

describe("verifyHistory", () => {
  async function redeemed() {
    const voucher = await issue();
    await client().redeemOnce({ code: voucher.code, externalRef: newOrder(), note: 'für "Jürgen" 😀' });
    return voucher;
  }

  it("verifyHistory accepts the history of a real voucher and counts its Pending events", async () => {
    const { id, code } = await redeemed();
    await appendPending(service.db, id, 1);
    const history = await client().history(code);
    const headHash = history.events[1]?.recordHash;
    expect(await verifyHistory(history)).toEqual({ intact: true, sealed: 2, pending: 1, headHash });
  });

  it("verifyHistory accepts a history that was read in pages", async () => {
    const { code } = await redeemed();
    const pages: string[] = [];
    const oneByOne: typeof fetch = (url, options) => {
      pages.push(String(url).replace(/.*\?/, ""));
      return fetch(`${url}&limit=1`, options);
    };
    const history = await client({ fetch: oneByOne }).history(code);
    expect(pages).toEqual(["after=0", "after=1"]);
    expect(history).toEqual(await client().history(code));
    expect(await verifyHistory(history)).toMatchObject({ intact: true, sealed: 2 });
  });
});

function client(settings: Partial<Settings> = {}): VoucherClient {
  return voucherClient({ baseUrl: `${service.api.url}/`, apiKey, ...settings });
}

function refusal(status: number, code: string, headers: Record<string, string> = {}): Response {
  return Response.json({ error: `${code}.`, code, requestId: "r-1" }, { status, headers });
}

/** A step for one call: delivers or loses the real response, or responds in place of the service. */
type Step = "delivered" | "lost" | Response;

/** A `fetch` that applies one step to each redeem, and delivers all further redeems. `asked` counts the redeems. */
function unreliable(...steps: Step[]) {
  const line = { asked: 0, fetch: fetch as typeof fetch };
  line.fetch = async (url, options) => {
    if (!String(url).endsWith("/redeem")) return fetch(url, options);
    const step = steps[line.asked++] ?? "delivered";
    if (step instanceof Response) return step;
    const response = await fetch(url, options);
    if (step === "delivered") return response;
    await response.text();
    throw new TypeError("fetch failed");
  };
  return line;
}

/** Makes retries wait for zero milliseconds. */
function withoutWaiting() {
  vi.spyOn(Math, "random").mockReturnValue(0);
}

const redemptionOf = async (id: string) => (await readRecorded(service.db, id)).redemption;
const statusOf = async (code: string) => (await client().lookUp(code)).voucher.status;
const newOrder = () => `client-${++orders}`;
