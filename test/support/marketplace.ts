import type pg from "pg";
import type { IssuedVoucher, IssueInput } from "../../src/acts/issue-batch.ts";
import { insertMember } from "../../src/core/catalog/db/catalog.ts";
import { newId } from "../../src/core/voucher/ids.ts";
import type { Audience } from "../../src/core/voucher/voucher.ts";
import type { ContractStatus } from "../../src/marketplace/audience.ts";
import { type Reply, send } from "./client.ts";
import { issueTestBatch, makePartner, provisioning, type TestPartner } from "./supply.ts";
import { type IssuerKey, signUser } from "./user-tokens.ts";

// This file loads the marketplace at its first use, so that tests of the core run even without the marketplace.

const ALWAYS = { opensAt: null, closesAt: null };
/** Both windows, always open. */
export const OPEN: IssueInput["windows"] = { claim: ALWAYS, buy: ALWAYS };

export function inSeconds(seconds: number): Date {
  return new Date(Date.now() + seconds * 1_000);
}

/** A listed batch. */
export interface Offered {
  batchId: string;
  listingId: string;
  vouchers: IssuedVoucher[];
}

/** Issues and lists a batch, by default for everyone, valid for a day, with both windows open. */
export async function offerBatch(
  db: pg.Pool,
  partner: Pick<TestPartner, "productId">,
  count: number,
  options: { audience?: Audience; validUntil?: Date; windows?: IssueInput["windows"] } = {},
): Promise<Offered> {
  const issued = await issueTestBatch(db, partner, count, { windows: OPEN, ...options });
  const { insertListing } = await import("../../src/marketplace/db/listings.ts");
  const listingId = newId("lst");
  await insertListing(db, { id: listingId, batchId: issued.batchId });
  return { ...issued, listingId };
}

/** Creates a partner with one listed batch. */
export async function makeOffer(
  db: pg.Pool,
  count: number,
  options: Parameters<typeof offerBatch>[3] = {},
): Promise<TestPartner & Offered> {
  const partner = await makePartner(db);
  return { ...partner, ...(await offerBatch(db, partner, count, options)) };
}

/** Creates a contract in the given status. */
export async function makeContract(
  db: pg.Pool,
  brandId: string,
  userId: string,
  status: ContractStatus = "Active",
  endsAt: Date | null = null,
): Promise<string> {
  const { CONTRACT_MOVES } = await import("../../src/marketplace/audience.ts");
  const { insertContract, moveContract } = await import("../../src/marketplace/db/contracts.ts");
  const id = newId("ctr");
  await insertContract(db, { id, brandId, userId, endsAt });
  const moves: (keyof typeof CONTRACT_MOVES)[] =
    status === "Offered" ? [] : status === "Ended" ? ["Active", "Ended"] : [status];
  for (const move of moves) await moveContract(db, { id, status: move, allowed: CONTRACT_MOVES[move] });
  return id;
}

export { insertMember as makeMember };

/** Creates a referral link of a new referrer, by default with an Active contract. */
export async function makeReferral(
  db: pg.Pool,
  partner: Pick<TestPartner, "brandId" | "productId">,
  status: ContractStatus = "Active",
  endsAt: Date | null = null,
): Promise<{ code: string; contractId: string; referrerId: string }> {
  const referrerId = newUser("referrer");
  const contractId = await makeContract(db, partner.brandId, referrerId, status, endsAt);
  const { createLink } = await import("../../src/marketplace/acts.ts");
  const { code } = await createLink.run(provisioning(db), contractId, { product: partner.productId });
  return { code, contractId, referrerId };
}

/** Adds a live reservation to each voucher, which ends at `expiresAt`. */
export async function reservationVouchers(db: pg.Pool, voucherIds: readonly string[], expiresAt: Date): Promise<void> {
  await db.query(
    `WITH v AS MATERIALIZED (SELECT id, organization_id FROM vouchers WHERE id = ANY ($1))
     INSERT INTO reservations (started_at, expires_at, ticket, voucher_id, organization_id, key_id, state,
                               token_secret_id)
     SELECT $2::timestamptz - interval '900 seconds', $2, 'rsv_of_' || v.id, v.id, v.organization_id, 'key_other',
            'Live', 'none'
       FROM v`,
    [voucherIds, expiresAt],
  );
}

let users = 0;

/** Returns a new user id. */
export function newUser(name = "user"): string {
  users += 1;
  return `${name}-${users}`;
}

let payments = 0;

/** Returns an unused payment reference. */
export function newPayment(): string {
  payments += 1;
  return `payment-${payments}`;
}

/** Returns the calls of a user with this token, or without one. */
export function marketClient(url: string, token: string | null) {
  const headers: Record<string, string> = token === null ? {} : { authorization: `Bearer ${token}` };
  const post = (path: string, body?: unknown) => send("POST", `${url}${path}`, { headers, body });
  const named = (id: string) => encodeURIComponent(id);
  return {
    listings: (query = "") => send("GET", `${url}/marketplace/listings${query}`, { headers }),
    listing: (id: string) => send("GET", `${url}/marketplace/listings/${named(id)}`, { headers }),
    buyListing: (id: string, body: unknown = { paymentRef: newPayment() }) =>
      post(`/marketplace/listings/${named(id)}/buy`, body),
    buyProduct: (id: string, body: unknown = { paymentRef: newPayment() }) => post(`/products/${named(id)}/buy`, body),
    claimProduct: (id: string, body?: unknown) => post(`/products/${named(id)}/claim`, body),
    claimByLink: (code: string, body?: unknown) => post(`/r/${named(code)}/claim`, body),
  };
}

export type MarketClient = ReturnType<typeof marketClient>;

/** Returns the calls of a signed-in user. */
export async function signedIn(url: string, key: IssuerKey, userId: string = newUser()): Promise<MarketClient> {
  return marketClient(url, await signUser(key, userId));
}

/** Returns the status of an answer and its error code. */
export function outcome({ status, body }: Reply): string {
  return status === 200 ? "200" : `${status} ${body.code}`;
}

/** Counts the answers by outcome. */
export function countOutcomes(replies: readonly Reply[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const reply of replies) counts[outcome(reply)] = (counts[outcome(reply)] ?? 0) + 1;
  return counts;
}

/** Reads the claims and purchases of these vouchers. */
export async function readAcquisitions(
  db: pg.Pool,
  voucherIds: readonly string[],
): Promise<{ kind: "claim" | "buy"; userId: string; voucherId: string }[]> {
  const { rows } = await db.query(
    `SELECT 'claim' AS kind, user_id AS "userId", voucher_id AS "voucherId" FROM claims WHERE voucher_id = ANY ($1)
      UNION ALL SELECT 'buy', user_id, voucher_id FROM purchases WHERE voucher_id = ANY ($1)`,
    [voucherIds],
  );
  return rows;
}
