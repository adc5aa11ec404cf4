import type pg from "pg";
import type { Scope } from "../../../src/core/keys/api-keys.ts";
import { issueVouchers, makeKey, makePartner, type TestPartner } from "../../support/supply.ts";
import type { Deployment } from "./cluster.ts";
import type { CallerOptions } from "./exchange.ts";
import type { SuppliedKey, SuppliedVoucher } from "./history.ts";
import { type PartnerOptions, workAsPartner } from "./partner.ts";

export const RESERVATION_SECONDS = 3;
export const LOOPS_PER_ORGANIZATION = 10;
const KEYS_PER_ORGANIZATION = 3;
/** How many vouchers of each loop are locked in advance, so that most loops meet a locked voucher. */
const UPCOMING_TURNS = 2;

export interface Organization {
  keys: [SuppliedKey, ...SuppliedKey[]];
  brandId: string;
  productId: string;
  vouchers: SuppliedVoucher[];
  /** The number of vouchers that the busiest loop has used. */
  turn: number;
}

/** The scopes of a partner's keys. With `voucher.issue`, a partner can void the organization's vouchers. */
const SCOPES: Scope[] = ["voucher.read", "voucher.redeem", "voucher.issue"];
/** Every thirteenth voucher expires during a run. The number is a prime, so that every loop gets some. */
const EXPIRING_EVERY = 13;
const EXPIRING_BATCHES = 8;

/**
 * Creates an organization with keys and vouchers.
 * @param expiring the time within which some vouchers of the first half expire, in milliseconds. By default none
 *   expires.
 */
export async function supplyOrganization(db: pg.Pool, count: number, expiring?: number): Promise<Organization> {
  const partner = await makePartner(db);
  const { organizationId } = partner;
  const keys: SuppliedKey[] = [];
  while (keys.length < KEYS_PER_ORGANIZATION) {
    const { id, key } = await makeKey(db, organizationId, { scopes: SCOPES });
    keys.push({ id, secret: key, organizationId });
  }
  const vouchers = await supplyVouchers(db, partner, count);
  if (expiring !== undefined) await mixInExpiring(db, partner, vouchers, expiring);
  const { brandId, productId } = partner;
  return { keys: keys as Organization["keys"], brandId, productId, vouchers, turn: 0 };
}

async function supplyVouchers(
  db: pg.Pool,
  partner: TestPartner,
  count: number,
  validUntil?: Date,
): Promise<SuppliedVoucher[]> {
  const issued = await issueVouchers(db, partner, count, validUntil === undefined ? {} : { validUntil });
  const { organizationId } = partner;
  return issued.map(({ id, code }) => {
    const voucher = { id, code, organizationId };
    return validUntil === undefined ? voucher : { ...voucher, validUntilMs: validUntil.getTime() };
  });
}

/** Replaces every thirteenth voucher by one that expires within the duration. */
async function mixInExpiring(db: pg.Pool, partner: TestPartner, vouchers: SuppliedVoucher[], durationMs: number) {
  const each = Math.floor(vouchers.length / 2 / EXPIRING_EVERY / EXPIRING_BATCHES);
  for (let batch = 0; batch < EXPIRING_BATCHES; batch++) {
    const validUntil = new Date(Date.now() + Math.round(((batch + 1) / EXPIRING_BATCHES) * durationMs));
    for (const [n, voucher] of (await supplyVouchers(db, partner, each, validUntil)).entries())
      vouchers[(n * EXPIRING_BATCHES + batch) * EXPIRING_EVERY] = voucher;
  }
}

/**
 * Starts the loops of an organization. They take turns in its list of vouchers, so that vouchers in use at the same
 * time are neighbours in the list.
 */
export function startPartners(
  { apis, db }: Pick<Deployment, "apis" | "db">,
  organization: Organization,
  foreign: Organization,
  loops: number,
  { name: prefix, random, ...options }: Omit<CallerOptions, "apis"> & Pick<PartnerOptions, "without">,
  goesOn: () => boolean,
): Promise<void>[] {
  const { keys, productId, vouchers } = organization;
  return Array.from({ length: loops }, (_, loop) => {
    const name = `${prefix}-loop-${loop + 1}`;
    const chooser = random.fork(`${name} contested`);
    let used = 0;
    const voucherAt = (turn: number, of: number) =>
      vouchers[(Math.max(0, turn) * loops + of) % vouchers.length] as SuppliedVoucher;
    const ownFirst = [...keys.slice(loop % keys.length), ...keys.slice(0, loop % keys.length)];
    const own = {
      ...options,
      name,
      random: random.fork(name),
      apis,
      db,
      productId,
      keys: ownFirst as Organization["keys"],
      nextVoucher: () => {
        organization.turn = Math.max(organization.turn, used + 1);
        return voucherAt(used++, loop);
      },
      contestedVoucher: () => voucherAt(used + chooser.between(-3, 1), (loop + chooser.between(1, loops - 1)) % loops),
      foreignVoucher: () => chooser.pick(foreign.vouchers),
      reservationSeconds: RESERVATION_SECONDS,
    };
    return workAsPartner(own, goesOn);
  });
}

export function upcomingOf({ vouchers, turn }: Organization): string[] {
  const from = (turn * LOOPS_PER_ORGANIZATION) % vouchers.length;
  return vouchers.slice(from, from + UPCOMING_TURNS * LOOPS_PER_ORGANIZATION).map(({ id }) => id);
}
