import type pg from "pg";
import { AppError } from "../../contract/errors.ts";
import { findKeyPlace, type ListedKey, selectKeys } from "../../db/api-keys.ts";
import {
  type BatchOfOrganization,
  type Brand,
  findOrganization,
  selectBatchesOfOrganization,
  selectBrandsOfOrganization,
} from "../../db/catalog.ts";
import { type LastRedemption, selectLastRedemptions } from "../../db/redemptions.ts";
import { selectWebhookEndpoints, type WebhookRow } from "../../db/webhook-endpoints.ts";

/** For each list, the entry before which the page begins; null selects the newest entries. */
export interface OrganizationPage {
  redemptionsBefore: { redeemedAt: Date; voucherId: string } | null;
  batchesBefore: string | null;
  keysBefore: string | null;
}

/** An organization as operators see it, with one page of its redemptions, one of its batches and one of its keys. */
export interface OrganizationSummary {
  id: string;
  name: string;
  sandbox: boolean;
  brands: Brand[];
  redemptions: LastRedemption[];
  moreRedemptions: boolean;
  batches: BatchOfOrganization[];
  moreBatches: boolean;
  keys: ListedKey[];
  moreKeys: boolean;
  webhooks: WebhookRow[];
}

const PAGE_SIZE = 25;

/**
 * Reads an organization's brands, a page of its redemptions, a page of its batches with their stock, a page of its keys
 * without their secrets, and its webhook endpoints.
 * @throws AppError `not_found`.
 */
export async function readOrganization(
  { pool }: { pool: pg.Pool },
  id: string,
  page: OrganizationPage,
): Promise<OrganizationSummary> {
  const organization = await findOrganization(pool, id);
  if (organization === null) throw new AppError("not_found", "There is no organization with this id.");
  const brands = await selectBrandsOfOrganization(pool, id);
  const redemptions = await selectLastRedemptions(pool, id, page.redemptionsBefore, PAGE_SIZE + 1);
  const batches = await selectBatchesOfOrganization(pool, id, page.batchesBefore, PAGE_SIZE + 1);
  const keys = await selectKeys(pool, id, page.keysBefore, PAGE_SIZE + 1);
  const webhooks = await selectWebhookEndpoints(pool, id);
  return {
    id,
    ...organization,
    brands,
    redemptions: redemptions.slice(0, PAGE_SIZE),
    moreRedemptions: redemptions.length > PAGE_SIZE,
    batches: batches.slice(0, PAGE_SIZE),
    moreBatches: batches.length > PAGE_SIZE,
    keys: keys.slice(0, PAGE_SIZE),
    moreKeys: keys.length > PAGE_SIZE,
    webhooks,
  };
}

/**
 * Finds the organization of a key, and the `keysBefore` of the organization's page that shows the key.
 * @throws AppError `not_found` for a key that does not exist or has no organization.
 */
export async function locateKey(
  { pool }: { pool: pg.Pool },
  id: string,
): Promise<{ organizationId: string; keysBefore: string | null }> {
  const place = await findKeyPlace(pool, id, PAGE_SIZE);
  if (place === null) throw new AppError("not_found", `There is no key ${id}.`);
  const { organizationId, before } = place;
  if (organizationId === null) {
    throw new AppError("not_found", `Key ${id} has no organization, so every request with it is refused.`);
  }
  return { organizationId, keysBefore: before };
}
