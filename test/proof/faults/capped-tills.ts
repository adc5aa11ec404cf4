import { setTimeout as sleep } from "node:timers/promises";
import type pg from "pg";
import { NO_CAPS } from "../../../src/core/keys/db/api-keys.ts";
import { issueVouchers, makeKey, makePartner } from "../../support/supply.ts";
import { askUntilAnswered, type CallerOptions } from "./exchange.ts";
import type { SuppliedKey, SuppliedVoucher } from "./history.ts";

/** The key's limit of redemptions per day, so low that the callers reach it during the faults. */
const MAX_PER_DAY = 8;
const TILLS = 4;
const VOUCHERS = 2_000;
const PAUSE_MS = { min: 100, max: 600 };

/** A key with a daily limit, and the vouchers that its callers redeem. */
interface CappedTills {
  key: SuppliedKey;
  vouchers: SuppliedVoucher[];
}

export async function supplyCappedTills(db: pg.Pool): Promise<CappedTills> {
  const partner = await makePartner(db);
  const { organizationId } = partner;
  const { id, key } = await makeKey(db, organizationId, { caps: { ...NO_CAPS, maxPerDay: MAX_PER_DAY } });
  const vouchers = (await issueVouchers(db, partner, VOUCHERS)).map((one) => ({ ...one, organizationId }));
  return { key: { id, secret: key, organizationId }, vouchers };
}

/** Starts concurrent callers with one key. Each repeats a call until it gets an answer. */
export function startCappedTills(
  { key, vouchers }: CappedTills,
  options: CallerOptions,
  goesOn: () => boolean,
): Promise<void>[] {
  let next = 0;
  return Array.from({ length: TILLS }, async (_, index) => {
    const own = { ...options, random: options.random.fork(`${options.name}-${index}`) };
    while (goesOn()) {
      const externalRef = `${options.name}-${++next}`;
      const voucher = vouchers[next % VOUCHERS] as SuppliedVoucher;
      const by = { code: voucher.code };
      await askUntilAnswered(own, { operation: "redeem", key, voucher, externalRef, by, token: null });
      await sleep(own.random.between(PAUSE_MS.min, PAUSE_MS.max));
    }
  });
}
