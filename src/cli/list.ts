import { InvalidArgumentError } from "commander";
import type { CatalogList, Filters, ListItem } from "../acts/db/lists.ts";
import { listCatalog } from "../acts/list-catalog.ts";
import { type Verb, verb } from "./command.ts";
import { formatTable, type TableRow } from "./format.ts";
import { integer, type OptionOf, option } from "./options.ts";

const LIMIT_MAX = 1_000;
const LIMIT_DEFAULT = 100;

type Options = Readonly<Record<string, OptionOf<string | undefined>>>;

/** The command options of filters. */
const FILTERS: Options = {
  name: option("<text>", "only those whose name contains this, in any case"),
  org: option("<id>", "only of this organization, by id or name"),
  brand: option("<id>", "only of this brand, by id or name"),
  product: option("<id>", "only of this product, by id or name"),
  batch: option("<id>", "only of this batch"),
  id: option("<id>", "only the one with this id"),
};

/** How a noun lists its entities. `cursor` matches valid cursors, which are ids of the entities, or codes. */
interface ListOf<List extends CatalogList> {
  cursor: RegExp;
  headings: readonly string[];
  toRow(item: ListItem<List>): TableRow;
  examples: readonly string[];
  /** The options of filters that only this list has. */
  filters?: Options;
}

/** The verb `list` of a noun: filters, `--limit` and `--after`. */
export function listVerb<List extends CatalogList>(list: List, spec: ListOf<List>): Verb {
  const { cursor, headings, toRow, examples } = spec;
  const offered: Options = { ...FILTERS, ...spec.filters };
  const readCursor = (text: string) => {
    if (!cursor.test(text)) throw new InvalidArgumentError("This is not a cursor of this list.");
    return text;
  };
  return verb({
    description: `list ${list.name} in a fixed order, page by page`,
    options: {
      ...Object.fromEntries(list.filters.map((name) => [name, offered[name]])),
      limit: option("<n>", "number of entries on the page", integer(1, LIMIT_MAX), LIMIT_DEFAULT),
      after: option("<cursor>", "the nextCursor of the page before", readCursor),
    },
    examples,
    async run(ctx, { limit, after = "", ...given }) {
      const page = await listCatalog(ctx, list, given as Filters<List>, { after, limit });
      const none = `There are no ${after === "" ? "" : "more "}${list.name}.`;
      ctx.print(page, () => formatTable(headings, page.items.map(toRow), none));
      if (page.nextCursor !== null) ctx.next(`the same command with --after ${page.nextCursor}`);
    },
  });
}
