import { InvalidArgumentError } from "commander";
import { LISTS, type ListFilter, type ListItem, type ListName } from "../acts/db/lists.ts";
import { listCatalog } from "../acts/list-catalog.ts";
import { CONTRACT_STATUSES } from "../core/catalog/audience.ts";
import { type Verb, verb } from "./command.ts";
import { formatTable, type TableRow } from "./format.ts";
import { integer, type OptionOf, option } from "./options.ts";

const LIMIT_MAX = 1_000;
const LIMIT_DEFAULT = 100;

/** The command option of each filter. */
const FILTERS: Record<ListFilter<ListName>, OptionOf<string | undefined>> = {
  name: option("<text>", "only those whose name contains this, in any case"),
  org: option("<id>", "only of this organization, by id or name"),
  brand: option("<id>", "only of this brand, by id or name"),
  product: option("<id>", "only of this product, by id or name"),
  batch: option("<id>", "only of this batch"),
  id: option("<id>", "only the one with this id"),
  user: option("<sub>", "only of this user"),
  status: option("<status>", "only those with this status", CONTRACT_STATUSES),
  contract: option("<id>", "only of this contract"),
};

/** How a noun lists its entities. `cursor` matches valid cursors, which are ids of the entities, or codes. */
interface ListOf<Name extends ListName> {
  cursor: RegExp;
  headings: readonly string[];
  toRow(item: ListItem<Name>): TableRow;
  examples: readonly string[];
}

/** The verb `list` of a noun: filters, `--limit` and `--after`. */
export function listVerb<Name extends ListName>(list: Name, spec: ListOf<Name>): Verb {
  const { cursor, headings, toRow, examples } = spec;
  const filters: readonly ListFilter<Name>[] = LISTS[list].filters;
  const readCursor = (text: string) => {
    if (!cursor.test(text)) throw new InvalidArgumentError("This is not a cursor of this list.");
    return text;
  };
  return verb({
    description: `list ${list} in a fixed order, page by page`,
    options: {
      ...Object.fromEntries(filters.map((name) => [name, FILTERS[name]])),
      limit: option("<n>", "number of entries on the page", integer(1, LIMIT_MAX), LIMIT_DEFAULT),
      after: option("<cursor>", "the nextCursor of the page before", readCursor),
    },
    examples,
    async run(ctx, { limit, after = "", ...given }) {
      const page = await listCatalog(ctx, list, given as Partial<Record<ListFilter<Name>, string>>, { after, limit });
      const none = `There are no ${after === "" ? "" : "more "}${list}.`;
      ctx.print(page, () => formatTable(headings, page.items.map(toRow), none));
      if (page.nextCursor !== null) ctx.next(`the same command with --after ${page.nextCursor}`);
    },
  });
}
