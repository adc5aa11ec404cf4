import type pg from "pg";
import { type BatchSummary, findBatch } from "../core/catalog/db/catalog.ts";
import { AppError } from "../platform/api/errors.ts";

/** Reads a batch and the states of its vouchers. Takes seconds for a million vouchers. @throws AppError `not_found`. */
export async function readBatch({ pool }: { pool: pg.Pool }, id: string): Promise<BatchSummary> {
  const batch = await findBatch(pool, id);
  if (batch === null) throw new AppError("not_found", `There is no batch ${id}.`);
  return batch;
}
