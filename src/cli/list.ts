import type { Command } from "commander";
import { InvalidArgumentError, Option } from "commander";
import { LISTS, type ListFilter, type ListItem, type ListName } from "../db/lists.ts";
import { CONTRACT_STATUSES } from "../domain/audience.ts";
import { listCatalog } from "../services/admin/list-catalog.ts";
import { action } from "./command.ts";
import { formatTable, type TableRow } from "./layout.ts";
import { integer } from "./option-parsers.ts";

const LIMIT_MAX = 1_000;
const LIMIT_DEFAULT = 100;

/** The option of each filter, with its description. */
const FILTERS = {
  name: ["--name <text>", "only those whose name contains this, in any case"],
  org: ["--org <id>", "only of this organization, by id or name"],
  brand: ["--brand <id>", "only of this brand, by id or name"],
  product: ["--product <id>", "only of this product, by id or name"],
  batch: ["--batch <id>", "only of this batch"],
  user: ["--user <sub>", "only of this user"],
  status: ["--status <status>", "only those with this status"],
  contract: ["--contract <id>", "only of this contract"],
} as const satisfies Record<ListFilter<ListName>, readonly [string, string]>;

/** How a noun lists its entries. */
interface ListOptions<Name extends ListName> {
  list: Name;
  /** Matches cursors: ids of the noun, or codes. */
  cursor: RegExp;
  headings: readonly string[];
  toRow(item: ListItem<Name>): TableRow;
  examples: readonly string[];
}

/** Adds `list` to a noun: filters, `--limit` and `--after`. */
export function addList<Name extends ListName>(noun: Command, options: ListOptions<Name>): void {
  const { list, cursor, headings, toRow, examples } = options;
  const command = noun.command("list").description(`list ${list} in a fixed order, page by page`);
  for (const filter of LISTS[list].filters) {
    const [flags, description] = FILTERS[filter];
    const option = new Option(flags, description);
    command.addOption(filter === "status" ? option.choices(CONTRACT_STATUSES) : option);
  }
  command
    .option("--limit <n>", "number of entries on the page", integer(1, LIMIT_MAX), LIMIT_DEFAULT)
    .option("--after <cursor>", "the nextCursor of the page before", (text: string) => {
      if (!cursor.test(text)) throw new InvalidArgumentError("This is not a cursor of this list.");
      return text;
    });
  action<Partial<Record<ListFilter<Name>, string>> & { limit: number; after?: string }>(
    command,
    examples,
    async (ctx, { limit, after = "", ...given }) => {
      const page = await listCatalog(ctx, list, given as Partial<Record<ListFilter<Name>, string>>, { after, limit });
      ctx.print(page, () =>
        page.items.length === 0
          ? `There are no ${after === "" ? "" : "more "}${list}.`
          : formatTable(headings, page.items.map(toRow)),
      );
      if (page.nextCursor !== null) ctx.next(`the same command with --after ${page.nextCursor}`);
    },
  );
}
