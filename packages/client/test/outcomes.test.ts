import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { proofOf } from "../../../src/core/commit/proofs.ts";
import { redemption as endpoint } from "../../../src/core/redeem/routes/redemption.ts";
import { ERRORS, type ErrorCode } from "../../../src/platform/api/error-codes.ts";
import { AppError } from "../../../src/platform/api/errors.ts";
import { untilWaiting, whileLocked } from "../../../test/support/outside-transaction.ts";
import { useService } from "../../../test/support/use-service.ts";
import { OutcomeUnknown, type Settings, VoucherRefused, voucherClient } from "../src/index.ts";

// How a client learns for certain that a voucher was redeemed, or that it was not.

const { api, db, issue, keys } = useService({ env: { WORKER_QUEUES: "redeem" } });

it("client.redemption returns null while a redeemOnce that can still redeem waits", async () => {
  const { id, code } = await issue();
  const externalRef = "still in progress";
  const redeeming = await whileLocked(db, [id], async () => {
    const attempt = client({ patienceMs: 60_000 }).redeemOnce({ code, externalRef });
    await untilWaiting(db, 1);
    expect(await client().redemption(externalRef)).toBeNull();
    return { attempt };
  });
  expect(await redeeming.attempt).toMatchObject({ redeemed: true, voucherInstanceId: id });
  const [, said = "nothing"] = /A 404 (is no proof.*)/.exec(String(endpoint.description)) ?? [];
  const [, text = ""] =
    /\/\*\*((?:(?!\*\/).)*)\*\/\s*redemption:/s.exec(readFileSync("packages/client/src/client.ts", "utf8")) ?? [];
  expect(text.replaceAll(/\s*\n\s*\* ?/g, " ")).toContain(said);
});

/** Responses to a later call for the order that prove nothing about an earlier call. */
const UNPROVING: [name: string, answer: () => Response][] = [
  ["a revoked key", () => refusal(401, "unknown_key")],
  ["another network", () => refusal(403, "address_not_allowed")],
  ["another address of the service", () => refusal(404, "not_found")],
  ["a proxy's page", () => new Response("<h1>Not Found</h1>", { status: 404 })],
  ["a gateway's refusal", () => Response.json({ message: "Forbidden" }, { status: 403 })],
  ["a gateway's conflict", () => Response.json({ error: { code: "x" }, code: 5 }, { status: 409 })],
  ["a list", () => Response.json([], { status: 404 })],
  ["a redirect", () => new Response(null, { status: 302, headers: { location: "https://login.example/" } })],
  ["a code of tomorrow", () => refusal(409, "a_code_of_tomorrow")],
  ["a key that guessed", () => refusal(429, "too_many_misses")],
  ["a busy service", () => refusal(503, "overloaded")],
];

it("after a redeem without a response, redeemOnce takes no refusal of another call for the outcome", async () => {
  const { id, code } = await issue();
  const externalRef = "no answer arrived";
  const lost = client({
    fetch: (url, options) => redeemThen(url, options, () => Promise.reject(new TypeError("lost"))),
  });
  await expect(lost.redeemOnce({ code, externalRef, voucherId: id })).rejects.toBeInstanceOf(OutcomeUnknown);
  for (const [name, answer] of UNPROVING) {
    const atLookUp = client({ fetch: async () => answer() }).redeemOnce({ code, externalRef });
    await expect(atLookUp, name).rejects.toMatchObject({ name: "OutcomeUnknown", cause: expect.any(VoucherRefused) });
    const atRedeem = client({ fetch: (url, options) => redeemThen(url, options, async () => answer()) });
    await expect(atRedeem.redeemOnce({ code, externalRef }), name).rejects.toBeInstanceOf(OutcomeUnknown);
  }
  // Looking up an old ticket may no longer find the voucher, but the redeem still finds the redemption.
  const forgotten: typeof fetch = async (url, options) =>
    String(url).endsWith("/redeem") ? fetch(url, options) : refusal(404, "voucher_not_found");
  for (const settings of [{}, { fetch: forgotten }]) {
    const redemption = await client(settings).redeemOnce({ code, externalRef });
    expect(redemption).toMatchObject({ alreadyConfirmed: true, voucherInstanceId: id });
  }
});

it("redeemOnce reports a refusal only if the refusal ends all attempts under the reference", async () => {
  const order = { code: "x", voucherId: "vch_x", externalRef: "y" };
  const refusing: string[] = [];
  for (const code of Object.keys(ERRORS) as ErrorCode[]) {
    const answered = client({ fetch: async () => refusal(ERRORS[code].status, code) }).redeemOnce(order);
    const error: unknown = await answered.catch((error) => error);
    if (error instanceof VoucherRefused) refusing.push(code);
    else expect(error, code).toBeInstanceOf(OutcomeUnknown);
  }
  expect(refusing.map((code) => [code, proofOf("redeemVoucher", new AppError(code as "voucher_used"))])).toEqual(
    refusing.map((code) => [code, "ended"]),
  );
  expect(refusing.toSorted()).toEqual([
    "redeem_timeout",
    "reservation_ended",
    "token_mismatch",
    "voucher_expired",
    "voucher_not_found",
    "voucher_reserved",
    "voucher_used",
    "voucher_voided",
  ]);
});

it("redeemOnce refuses a code that belongs to no voucher", async () => {
  const mistyped = client().redeemOnce({ code: "0000-0000-0000-0000", externalRef: "mistyped" });
  await expect(mistyped).rejects.toMatchObject({ name: "VoucherRefused", code: "voucher_not_found" });
});

/** Sends a call, and replaces the answer to a redeem. */
async function redeemThen(...[url, options, answer]: [...Parameters<typeof fetch>, () => Promise<Response>]) {
  const response = await fetch(url, options);
  return String(url).endsWith("/redeem") ? answer() : response;
}

function refusal(status: number, code: string): Response {
  return Response.json({ error: `${code}.`, code, requestId: "r-1" }, { status });
}

function client(settings: Partial<Settings> = {}) {
  return voucherClient({ baseUrl: api.url, apiKey: keys.till.key, patienceMs: 0, ...settings });
}
