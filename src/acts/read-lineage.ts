import type pg from "pg";
import { findLineage, type Lineage } from "../core/catalog/db/catalog.ts";
import { AppError } from "../platform/api/errors.ts";
import { ENTITIES, type EntityNames } from "./entities.ts";

/** The field of `Lineage` that contains the ids of this collection's entities. Undefined if there is none. */
function idFieldOf(collection: string): keyof Lineage | undefined {
  return Object.values<EntityNames>(ENTITIES).find((entity) => entity.collection === collection)?.idField;
}

/** Whether the entities of a collection belong to an organization, and so have a lineage. */
export function hasLineage(collection: string): boolean {
  return idFieldOf(collection) !== undefined;
}

/** Finds an entity of a collection, and the entities above it. @throws AppError `not_found`. */
export async function readLineage({ pool }: { pool: pg.Pool }, collection: string, id: string): Promise<Lineage> {
  const lineage = await findLineage(pool, id);
  const idField = idFieldOf(collection);
  if (lineage !== null && idField !== undefined && lineage[idField] === id) return lineage;
  throw new AppError("not_found", "There is nothing with this id.");
}
