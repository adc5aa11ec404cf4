import type pg from "pg";
import { AppError } from "../../contract/errors.ts";
import {
  type BatchOfOrganization,
  type Brand,
  selectBatchesOfOrganization,
  selectBrands,
  selectBrandsOfOrganization,
} from "../../db/catalog.ts";
import { type LastRedemption, selectLastRedemptions } from "../../db/redemptions.ts";
import { selectWebhookEndpoints, type WebhookRow } from "../../db/webhook-endpoints.ts";

/** For each list, the entry before which the page begins; null selects the newest entries. */
export interface OrganizationPage {
  redemptionsBefore: { redeemedAt: Date; voucherId: string } | null;
  batchesBefore: string | null;
}

/** An organization as operators see it, with one page of its redemptions and one of its batches. */
export interface OrganizationSummary {
  id: string;
  brands: Brand[];
  redemptions: LastRedemption[];
  moreRedemptions: boolean;
  batches: BatchOfOrganization[];
  moreBatches: boolean;
  webhooks: WebhookRow[];
}

const PAGE_SIZE = 25;

/**
 * Reads an organization's brands, a page of its redemptions, a page of its batches with their stock, and its webhook endpoints.
 * @throws AppError `not_found` for an organization that has no brand, and so no voucher.
 */
export async function readOrganization(
  { pool }: { pool: pg.Pool },
  id: string,
  page: OrganizationPage,
): Promise<OrganizationSummary> {
  const brands = await selectBrandsOfOrganization(pool, id);
  if (brands.length === 0) throw new AppError("not_found", "There is no organization with this id that has a brand.");
  const redemptions = await selectLastRedemptions(pool, id, page.redemptionsBefore, PAGE_SIZE + 1);
  const batches = await selectBatchesOfOrganization(pool, id, page.batchesBefore, PAGE_SIZE + 1);
  const webhooks = await selectWebhookEndpoints(pool, id);
  return {
    id,
    brands,
    redemptions: redemptions.slice(0, PAGE_SIZE),
    moreRedemptions: redemptions.length > PAGE_SIZE,
    batches: batches.slice(0, PAGE_SIZE),
    moreBatches: batches.length > PAGE_SIZE,
    webhooks,
  };
}

/** Most brands on one page. */
const BRANDS_MAX = 100;

/** Reads a page of brands after an id, oldest first, and whether more brands follow. */
export async function listBrands(
  { pool }: { pool: pg.Pool },
  after: string,
): Promise<{ brands: Brand[]; hasMore: boolean }> {
  const brands = await selectBrands(pool, after, BRANDS_MAX + 1);
  return { brands: brands.slice(0, BRANDS_MAX), hasMore: brands.length > BRANDS_MAX };
}
