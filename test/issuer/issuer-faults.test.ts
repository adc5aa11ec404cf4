import type pg from "pg";
import { expect, it, onTestFinished, vi } from "vitest";
import { revokeApiKey } from "../../src/acts/key/revoke.ts";
import { withAuditEntry } from "../../src/acts/with-audit-entry.ts";
import { LOCK_WAIT_MS } from "../../src/issuer/issuer.ts";
import { isDatabaseUnavailable } from "../../src/platform/db/transaction.ts";
import { send } from "../support/client.ts";
import { makeOffer, newUser, signedIn } from "../support/marketplace.ts";
import {
  besideTransaction,
  lockRows,
  untilWaiting,
  untilWaitingOr,
  whileLocked,
} from "../support/outside-transaction.ts";
import { issueTestBatch, issueVoucher, makeKey, provisioning, type TestPartner } from "../support/supply.ts";
import { inTime, until, untilOr } from "../support/until.ts";
import { useService } from "../support/use-service.ts";

const service = useService({ apis: [{ ISSUER_API: "true" }], users: true });
const { api, db, partner, till } = service;

const issuerOf = async ({ organizationId }: Pick<TestPartner, "organizationId">) => {
  const { key, id } = await makeKey(db, organizationId, { scopes: ["voucher.issue"] });
  const post = (path: string, body: object = {}) => send("POST", `${api.url}/issuer/${path}`, { key, body });
  return { id, post, revoke: () => revokeApiKey.run(provisioning(db), id, {}) };
};

/**
 * Records the API's queries that check whether a key was revoked or has expired. The returned function tells whether
 * one of them has found this key revoked or expired.
 */
function watchChecks(): (keyId: string) => Promise<boolean> {
  const query = vi.spyOn(service.apis[0]?.ctx.issuer?.pool ?? expect.fail("no issuer API"), "query");
  onTestFinished(() => query.mockRestore());
  return async (keyId) => {
    const isCheck = ([asked]: readonly unknown[]) => {
      const { text = "", values = [] } = asked as Partial<pg.QueryConfig>;
      return text.includes("k.revoked_at IS NOT NULL OR") && values[0] === keyId;
    };
    const checks = query.mock.results.filter((_, at) => isCheck(query.mock.calls[at] ?? []));
    const found = await Promise.all(checks.map(({ value }) => value as unknown as Promise<pg.QueryResult>));
    return found.some(({ rowCount }) => rowCount === 1);
  };
}

it("voiding a batch stops when the key is revoked, and returns the number of voided vouchers", async () => {
  const hasSeen = watchChecks();
  const revokeDuring = async () => {
    const { id, post, revoke } = await issuerOf(partner);
    const { batchId, vouchers } = await issueTestBatch(db, partner, 102);
    return besideTransaction(db, async (outside) => {
      // The void skips the locked voucher in its first round, and waits for it in the second.
      await lockRows(outside, [vouchers[0]?.id ?? ""]);
      const pending = post(`batches/${batchId}/void`);
      if (!(await untilWaitingOr(pending, db, 1))) return null;
      await revoke();
      if (!(await untilOr(pending, () => hasSeen(id)))) return null;
      await outside.query("ROLLBACK");
      return { post, batchId, answer: await pending };
    });
  };
  // A void waits two seconds for the lock. On a busy machine, that may be too short to revoke the key.
  const { post, batchId, answer } = await until(revokeDuring);
  expect(answer).toMatchObject({ status: 401, body: { code: "unknown_key" } });
  expect(answer.body.error).toMatch(/ 102 vouchers were cancelled/);
  // An API process uses a key for half a second before it checks the key again.
  await until(async () => (await post(`batches/${batchId}/void`)).status === 401);
});

it("an administrative act leaves no voucher locked if its process's connection is lost", async () => {
  const { pool } = service.apis[0]?.ctx.issuer ?? expect.fail("no issuer API");
  const { rows } = await pool.query("SHOW idle_in_transaction_session_timeout");
  expect(rows).toEqual([{ idle_in_transaction_session_timeout: "1min" }]);
  const { id, code } = await issueVoucher(db, partner);
  const act = withAuditEntry({ ...provisioning(db), pool }, { type: "VoucherInstance", id }, async (tx) => {
    await tx.query("SET LOCAL idle_in_transaction_session_timeout = 300");
    await tx.query("SELECT FROM vouchers WHERE id = $1 FOR NO KEY UPDATE", [id]);
    expect((await till.reserve(code)).status).toBe(200);
    await tx.query("SELECT");
  });
  await expect(act).rejects.toSatisfy(isDatabaseUnavailable);
});

it("issuing a batch stops when the key is revoked, and issues nothing", async () => {
  const { id, post, revoke } = await issuerOf(partner);
  const hasSeen = watchChecks();
  const { organizationId, productId } = partner;
  const other = await issueTestBatch(db, partner, 1);
  const answer = await besideTransaction(db, async (outside) => {
    const row = [organizationId, "held", other.batchId];
    await outside.query("INSERT INTO issue_references VALUES ($1, $2, $3, '{}')", row);
    const pending = post(`products/${productId}/batches`, { issueRef: "held", count: 1, validUntil: "2099-01-01" });
    await untilWaiting(db, 1);
    await revoke();
    await until(() => hasSeen(id));
    await outside.query("ROLLBACK");
    return pending;
  });
  expect(answer).toMatchObject({
    status: 401,
    body: { code: "unknown_key", error: expect.stringMatching(/Nothing was done/) },
  });
  const { rows } = await db.query("SELECT batch_id FROM issue_references WHERE issue_ref = 'held'");
  expect(rows).toEqual([]);
});

/** Returns the answers to two calls that waited for a voucher's row together, or null if one waited too long. */
async function whileBothWait<One, Other>(
  id: string,
  start: () => readonly [Promise<One>, Promise<Other>],
): Promise<[One, Other] | null> {
  const inBoth = await inTime(LOCK_WAIT_MS, () =>
    whileLocked(db, [id], async () => {
      const pending = start();
      return (await untilWaitingOr(Promise.race(pending), db, 2)) && { pending };
    }),
  );
  return inBoth && Promise.all(inBoth.pending);
}

it("a void and a redeem that wait for one voucher never both succeed, and a void ends a reservation", async () => {
  const { post } = await issuerOf(partner);
  const together = async (
    name: string,
    call: (code: string) => Promise<{ status: number; body: { code?: string } }>,
  ) => {
    const { code, answers } = await until(async () => {
      const { id, code } = await issueVoucher(db, partner);
      const answers = await whileBothWait(id, () => [post("vouchers/void", { id }), call(code)] as const);
      return answers && { code, answers };
    });
    const [voided, other] = answers;
    return { name, code, outcome: [voided.body.code ?? voided.status, other.body.code ?? other.status] };
  };
  const redeemed = await together("redeem", (code) => till.redeem({ code, externalRef: `beside ${code}` }));
  expect([
    [200, "voucher_voided"],
    ["voucher_used", 200],
  ]).toContainEqual(redeemed.outcome);
  const reserved = await together("reserve", (code) => till.reserve(code));
  expect([
    [200, "voucher_voided"],
    [200, 200],
  ]).toContainEqual(reserved.outcome);
  expect((await till.lookUp(reserved.code)).body).toMatchObject({ voucher: { status: "Voided" }, reservation: null });
});

it("a claim gets no voucher that a simultaneous void has voided", async () => {
  const user = await signedIn(api.url, service.issuer, newUser());
  const { id, answers } = await until(async () => {
    const offer = await makeOffer(db, 1);
    const { post } = await issuerOf(offer);
    const id = offer.vouchers[0]?.id ?? "";
    const calls = () => [post("vouchers/void", { id }), user.claimProduct(offer.productId)] as const;
    const answers = await whileBothWait(id, calls);
    return answers && { id, answers };
  });
  const [voided, claimed] = answers;
  expect(voided.status).toBe(200);
  const { rows } = await db.query("SELECT event_type FROM voucher_events WHERE voucher_id = $1 ORDER BY sequence", [
    id,
  ]);
  const types = rows.map(({ event_type: type }) => type.replace("voucher.instance.", ""));
  expect(types).toEqual(claimed.status === 200 ? ["issued", "claimed", "voided"] : ["issued", "voided"]);
});
