import { NO_CAPS } from "../../../src/core/keys/db/api-keys.ts";
import type { RedeemJob } from "../../../src/core/redeem/job.ts";
import { databaseTime } from "../../support/outside-transaction.ts";
import { issueVouchers, makeKey, makePartner, type TestPartner } from "../../support/supply.ts";
import { Bindings } from "./bindings.ts";
import {
  endName,
  KEYS,
  type KeyName,
  type OrganizationName,
  VOUCHER_NAMES,
  VOUCHERS,
  type VoucherName,
} from "./model.ts";
import type { System } from "./system.ts";

/** Number of steps by kind and outcome. */
export type Tally = Map<string, number>;

/** What one run uses: the shared service, and two new organizations with keys and vouchers. */
export interface World {
  system: System;
  organizations: Record<OrganizationName, TestPartner>;
  voucherIds: readonly string[];
  bindings: Bindings;
  /** What happened in the run, for a failure's report. */
  log: string[];
  /** The job that hangs in a frozen worker. */
  hanging: RedeemJob | null;
  tally: Tally;
}

/** Creates the organizations, keys and vouchers of one run, and binds their values to variables. */
export async function openWorld(
  system: System,
  tally: Tally,
  validForSeconds: Record<VoucherName, number>,
): Promise<World> {
  const { db } = system.servers;
  const bindings = new Bindings();
  Bindings.present = bindings;
  const organizations = { OURS: await makePartner(db), THEIRS: await makePartner(db) };
  const brands = Object.entries(organizations).map(async ([name, { brandId }]) => {
    const { rows } = await db.query<{ name: string }>("SELECT name FROM brands WHERE id = $1", [brandId]);
    bindings.bindText(`BRAND_${name}`, rows[0]?.name as string);
  });
  const keys = Object.entries(KEYS).map(async ([name, { organization, mayRedeem, maxPerDay = null }]) => {
    const { id, key } = await makeKey(db, organizations[organization].organizationId, {
      scopes: mayRedeem ? ["voucher.read", "voucher.redeem"] : ["voucher.read"],
      caps: { ...NO_CAPS, maxPerDay },
    });
    bindings.bindText(`KEY_${name as KeyName}`, key);
    bindings.bindText(`KEY_ID_${name as KeyName}`, id);
  });
  await Promise.all([...brands, ...keys]);

  const now = await databaseTime(db);
  bindings.window.to = now;
  const codes = new Map<string, string>();
  const voucherIds: string[] = [];
  for (const name of VOUCHER_NAMES) {
    const { organization, code } = VOUCHERS[name];
    const printed = codes.get(code);
    const validUntil = new Date(now.getTime() + validForSeconds[name] * 1_000);
    const [voucher] = await issueVouchers(db, organizations[organization], 1, {
      validUntil,
      ...(printed === undefined ? {} : { codes: [printed] }),
    });
    if (voucher === undefined) throw new Error("no voucher was issued");
    codes.set(code, voucher.code);
    voucherIds.push(voucher.id);
    bindings.bindText(`ID_${name}`, voucher.id);
    bindings.bindText(`VERIFY_URL_${name}`, `https://vouchers.test/integrity/events/VoucherInstance/${voucher.id}`);
    bindings.bindText(code, voucher.code);
    bindings.bindText(`TYPED_${code}`, voucher.code.replaceAll("-", "").toLowerCase());
    bindings.bindMoment(endName({ name, extensions: 0 }), validUntil);
  }
  return { system, organizations, voucherIds, bindings, log: [], hanging: null, tally };
}
