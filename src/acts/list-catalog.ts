import type pg from "pg";
import { AppError } from "../platform/api/errors.ts";
import {
  findIdsByName,
  findUnknownFilter,
  LISTS,
  type ListFilter,
  type ListItem,
  type ListName,
  selectList,
} from "./db/lists.ts";

/** One page of a list. */
interface Page<Item> {
  items: Item[];
  /** Pass this as `after` to get the next page. Null on the last page. */
  nextCursor: string | null;
}

/**
 * Reads a page of one of the catalog's lists, in the order of ids, so that new entries come last. Links are in the
 * order of their codes. `page.after` is the id or code of the previous page's last item.
 * @throws AppError `not_found` when the page is empty and an id in a filter does not exist.
 */
export async function listCatalog<Name extends ListName>(
  ctx: { pool: pg.Pool },
  name: Name,
  filters: Readonly<Partial<Record<ListFilter<Name>, string>>>,
  page: { after: string; limit: number },
): Promise<Page<ListItem<Name>>> {
  const found = await selectList(ctx.pool, name, filters, page.after, page.limit + 1);
  const unknown = found.length === 0 ? await findUnknownFilter(ctx.pool, filters) : null;
  if (unknown !== null) throw new AppError("not_found", `There is no ${unknown.kind} ${unknown.id}.`);
  const items = found.slice(0, page.limit);
  const last = items.at(-1) as Record<string, unknown> | undefined;
  return { items, nextCursor: found.length > page.limit ? String(last?.[LISTS[name].key]) : null };
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
