import type pg from "pg";
import { LISTS, type ListFilter, type ListItem, type ListName, selectList } from "../../db/lists.ts";

/** One page of a list. */
export interface Page<Item> {
  items: Item[];
  /** Give it as `after` to get the next page; null on the last page. */
  nextCursor: string | null;
}

/**
 * Reads a page of a list of the catalog in its fixed order, so that new entries come last. A cursor is the id of the page's last item;
 * for links it is the code.
 */
export async function listCatalog<Name extends ListName>(
  ctx: { pool: pg.Pool },
  name: Name,
  filters: Readonly<Partial<Record<ListFilter<Name>, string>>>,
  page: { after: string; limit: number },
): Promise<Page<ListItem<Name>>> {
  const found = await selectList(ctx.pool, name, filters, page.after, page.limit + 1);
  const items = found.slice(0, page.limit);
  const last = items.at(-1) as Record<string, unknown> | undefined;
  return { items, nextCursor: found.length > page.limit ? String(last?.[LISTS[name].key]) : null };
}
