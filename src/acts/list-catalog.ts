import type pg from "pg";
import { findLineage } from "../core/catalog/db/catalog.ts";
import { AppError } from "../platform/api/errors.ts";
import { type CatalogList, type Filters, findIdsByName, type ListItem } from "./db/lists.ts";
import { ENTITIES, type EntityNames } from "./entities.ts";

/** One page of a list. */
interface Page<Item> {
  items: Item[];
  /** Pass this as `after` to get the next page. Null on the last page. */
  nextCursor: string | null;
}

/**
 * Reads a page of a list, in the order of the list's key. If the key is an id, new entries come last. `page.after` is
 * the key of the previous page's last item.
 * @throws AppError `not_found` when the page is empty and an id in a filter does not exist.
 */
export async function listCatalog<List extends CatalogList>(
  { pool }: { pool: pg.Pool },
  list: List,
  filters: Filters<List>,
  page: { after: string; limit: number },
): Promise<Page<ListItem<List>>> {
  const absent = Object.fromEntries(list.filters.map((filter) => [filter, null]));
  const values = { ...absent, ...filters, after: page.after, limit: page.limit + 1 };
  const found: ListItem<List>[] = await list.select(pool, values as never);
  if (found.length === 0) await assertKnown(pool, filters);
  const items = found.slice(0, page.limit);
  const last = items.at(-1) as Record<string, unknown> | undefined;
  return { items, nextCursor: found.length > page.limit ? String(last?.[list.key]) : null };
}

/** @throws AppError `not_found` when an entity that a filter names does not exist. */
async function assertKnown(pool: pg.Pool, filters: Readonly<Record<string, unknown>>): Promise<void> {
  for (const [kind, { option, idField }] of Object.entries<EntityNames>(ENTITIES)) {
    const id = filters[option];
    if (idField === undefined || typeof id !== "string") continue;
    if ((await findLineage(pool, id))?.[idField] !== id) throw new AppError("not_found", `There is no ${kind} ${id}.`);
  }
}

/**
 * In options, replaces the names of organizations, brands and products by their ids. Keeps ids and unknown names.
 * @throws AppError `invalid_request` when several entities have the name.
 */
export async function replaceNames<Options extends object>(pool: pg.Pool, options: Options): Promise<Options> {
  const replaced = { ...options } as Record<string, unknown>;
  for (const kind of ["org", "brand", "product"] as const) {
    const given = replaced[kind];
    if (typeof given !== "string" || /^(org|brd|prd)_/.test(given)) continue;
    const [id = given, ...others] = await findIdsByName(pool, { kind, name: given });
    if (others.length > 0) {
      throw new AppError(
        "invalid_request",
        `Several have the name ${given}, so give an id: ${[id, ...others].join(", ")}.`,
      );
    }
    replaced[kind] = id;
  }
  return replaced as Options;
}
