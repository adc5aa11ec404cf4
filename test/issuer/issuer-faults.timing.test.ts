import { setTimeout as sleep } from "node:timers/promises";
import type pg from "pg";
import { expect, it } from "vitest";
import { send } from "../support/client.ts";
import { besideTransaction, lockIssueReference, lockRows, untilWaiting } from "../support/outside-transaction.ts";
import { issueTestBatch, makeKey } from "../support/supply.ts";
import { useService } from "../support/use-service.ts";

const { api, db, partner } = useService({ apis: [{ ISSUER_API: "true" }], workers: [] });

const makeIssuer = async () => {
  const { key } = await makeKey(db, partner.organizationId, { scopes: ["voucher.issue"] });
  return { post: (path: string, body: object = {}) => send("POST", `${api.url}/issuer/${path}`, { key, body }) };
};

/** Slightly less than a void's wait for one lock. Milliseconds. */
const NEARLY_A_LOCK_WAIT_MS = 1_700;

it("voiding a batch answers within five seconds while vouchers are locked, and a later call continues", async () => {
  const { post } = await makeIssuer();
  const { batchId, vouchers } = await issueTestBatch(db, partner, 120);
  const ids = vouchers.map(({ id }) => id);
  const during = await besideTransaction(db, async (outside) => {
    await lockRows(outside, ids.slice(0, -1));
    return [await timed(() => post(`batches/${batchId}/void`)), await timed(() => post(`batches/${batchId}/void`))];
  });
  expect(during.map(({ body }) => body)).toEqual([
    { voided: 1, alreadyFinal: 0, remaining: 119 },
    { voided: 0, alreadyFinal: 1, remaining: 119 },
  ]);
  expect(Math.max(...during.map(({ ms }) => ms))).toBeLessThan(5_000);
  expect((await post(`batches/${batchId}/void`)).body).toEqual({ voided: 119, alreadyFinal: 1, remaining: 0 });
});

it("voiding a batch answers within five seconds even if each row lock is obtained just in time", async () => {
  const { post } = await makeIssuer();
  const { batchId, vouchers } = await issueTestBatch(db, partner, 5);
  const holders = await Promise.all(vouchers.map(() => db.connect()));
  const holding = holders.map(async (holder, at) => {
    await holder.query("BEGIN");
    await lockRows(holder, [vouchers[at]?.id ?? ""]);
  });
  await Promise.all(holding);
  const pending = timed(() => post(`batches/${batchId}/void`));
  for (const holder of holders) {
    await Promise.race([untilWaiting(db, 1), pending]);
    await Promise.race([sleep(NEARLY_A_LOCK_WAIT_MS), pending]);
    await holder.query("ROLLBACK");
    holder.release();
  }
  const { ms, body } = await pending;
  expect(ms).toBeLessThan(5_000);
  expect(body).toEqual({ voided: expect.any(Number), alreadyFinal: 0, remaining: 5 - body.voided });
  expect(body.remaining).toBeGreaterThan(0);
  const rest = { voided: body.remaining, alreadyFinal: body.voided, remaining: 0 };
  expect((await post(`batches/${batchId}/void`)).body).toEqual(rest);
});

it("voiding a batch without a free connection answers overloaded in five seconds, and voids nothing", async () => {
  const { post } = await makeIssuer();
  const { batchId } = await issueTestBatch(db, partner, 1);
  const { answer, issued } = await besideTransaction(db, async (outside) => {
    const issued = await fillPlaces(outside, post, batchId);
    return { issued, answer: await timed(() => post(`batches/${batchId}/void`)) };
  });
  expect(answer).toMatchObject({ status: 503, body: { code: "overloaded" } });
  expect(answer.ms).toBeLessThan(5_000);
  expect((await Promise.all(issued)).map(({ status }) => status)).toEqual([200, 200]);
  expect((await post(`batches/${batchId}/void`)).body).toEqual({ voided: 1, alreadyFinal: 0, remaining: 0 });
});

/** A response and its duration. */
async function timed<T extends object>(call: () => Promise<T>): Promise<T & { ms: number }> {
  const startedAt = performance.now();
  const answer = await call();
  return Object.assign(answer, { ms: performance.now() - startedAt });
}

/** Starts as many issues as an organization may run at once. They wait until the transaction ends. */
async function fillPlaces(
  outside: pg.PoolClient,
  post: Awaited<ReturnType<typeof makeIssuer>>["post"],
  batchId: string,
) {
  const { organizationId, productId } = partner;
  const refs = [`${batchId} 1`, `${batchId} 2`];
  for (const ref of refs) await lockIssueReference(outside, organizationId, ref);
  const asked = { count: 1, validUntil: "2099-01-01" };
  const issued = refs.map((issueRef) => post(`products/${productId}/batches`, { ...asked, issueRef }));
  await untilWaiting(db, refs.length);
  return issued;
}
