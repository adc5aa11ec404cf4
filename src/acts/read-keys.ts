import type pg from "pg";
import { findOrganization } from "../core/catalog/db/catalog.ts";
import { type ListedKey, selectKeys } from "../core/keys/db/api-keys.ts";
import { AppError } from "../platform/api/errors.ts";
import { markSandbox } from "../platform/api/fields.ts";

/** An organization's API keys, newest first, without secrets. @throws AppError `not_found`. */
export async function readKeys(
  { pool }: { pool: pg.Pool },
  organizationId: string,
): Promise<{ keys: ListedKey[]; sandbox?: true }> {
  const organization = await findOrganization(pool, organizationId);
  if (organization === null) throw new AppError("not_found", `There is no organization ${organizationId}.`);
  return { keys: await selectKeys(pool, organizationId), ...markSandbox(organization.sandbox) };
}
