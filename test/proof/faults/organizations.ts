import type pg from "pg";
import { issueVouchers, makeKey, makePartner } from "../../support/supply.ts";
import type { Deployment } from "./cluster.ts";
import type { CallerOptions } from "./exchange.ts";
import type { SuppliedKey, SuppliedVoucher } from "./history.ts";
import { workAsPartner } from "./partner.ts";

// The organizations of a campaign and their partners.

export const RESERVATION_SECONDS = 3;
export const LOOPS_PER_ORGANIZATION = 10;
/** Time for every partner to get its last answer after recovery. Milliseconds. */
export const LAST_ANSWERS_MS = 20_000;
const KEYS_PER_ORGANIZATION = 3;
/** Number of turns for which vouchers are locked ahead: enough that most loops meet a locked one. */
const UPCOMING_TURNS = 2;

export interface Organization {
  keys: [SuppliedKey, ...SuppliedKey[]];
  vouchers: SuppliedVoucher[];
  /** Number of vouchers that the busiest loop has used. */
  turn: number;
}

export async function supplyOrganization(db: pg.Pool, count: number): Promise<Organization> {
  const partner = await makePartner(db);
  const { organizationId } = partner;
  const keys: SuppliedKey[] = [];
  while (keys.length < KEYS_PER_ORGANIZATION) {
    const { id, key } = await makeKey(db, organizationId);
    keys.push({ id, secret: key, organizationId });
  }
  const vouchers = (await issueVouchers(db, partner, count)).map(({ id, code }) => ({ id, code, organizationId }));
  return { keys: keys as Organization["keys"], vouchers, turn: 0 };
}

/**
 * The loops of an organization interleave its vouchers, so that vouchers used at the same time are neighbours in the
 * list.
 */
export function startPartners(
  { apis }: Deployment,
  organization: Organization,
  foreign: Organization,
  loops: number,
  { name: prefix, random, ...options }: Omit<CallerOptions, "apis">,
  goesOn: () => boolean,
): Promise<void>[] {
  const { keys, vouchers } = organization;
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

/** Vouchers of the next turns of all loops. */
export function upcomingOf({ vouchers, turn }: Organization): string[] {
  const from = (turn * LOOPS_PER_ORGANIZATION) % vouchers.length;
  return vouchers.slice(from, from + UPCOMING_TURNS * LOOPS_PER_ORGANIZATION).map(({ id }) => id);
}
