import { z } from "zod";
import type { CatalogList } from "../acts/db/lists.ts";
import { ENTITIES, type EntityKind } from "../acts/entities.ts";
import { subject } from "../acts/fields.ts";
import { listCatalog } from "../acts/list-catalog.ts";
import { type Confirming, readConfirmed } from "../core/commit/confirm-reads.ts";
import type { Caller } from "../core/keys/caller.ts";
import { EXAMPLE, examples } from "../platform/api/example.ts";
import { input, named, pickFields, queryInteger, sampleOf, text, timestamp } from "../platform/api/fields.ts";
import { problem } from "../platform/api/problems.ts";
import { type IssuerCall, type IssuerDeps, inIssuer } from "./issuer.ts";

/** Maximum number of items on a page. */
const LIMIT_MAX = 1_000;

/** The query parameters of every list. `cursor` is the pattern of the list's cursors. */
export const pageQuery = (cursor: RegExp) => ({
  cursor: z
    .string({ error: problem("notOneValue") })
    .regex(cursor, problem("noCursor"))
    .optional()
    .meta({ description: "The previous page's `nextCursor`; omit it for the first page." }),
  limit: queryInteger(1, LIMIT_MAX, 100, "Maximum number of items on the page."),
});

/** The cursor of a list in id order. */
export const ID_CURSOR = /^[a-z]{3}_[0-9a-z]{26}$/;

/** The response of a list. */
export function pageOf(id: string, item: z.ZodObject, order: string, sample: Record<string, unknown> = sampleOf(item)) {
  const page = named(id, {
    items: z.array(item).meta({ description: `In the order of ${order}.` }),
    nextCursor: text("Send it as `cursor` to get the next page. Null on the last page.").nullable(),
  });
  examples.add(page, { last: { summary: "The last page", value: { items: [sample], nextCursor: null } } });
  return page;
}

/** The parameter that limits a list to one entity. */
export const onlyOf = (kind: string) =>
  input.optional().meta({ description: `The id of a ${kind}, to list only what belongs to it.` });

/** The parameter that limits a list to one user. */
export const onlyOfUser = subject("User").json.optional().meta({ description: "The subject of a user's tokens." });

export const createdAt = timestamp("When it was created.", EXAMPLE.issuedAt);

/** Replaces times by texts in the form of responses. */
export const withTexts = (row: object): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(row).map(([name, value]) => [name, value instanceof Date ? value.toISOString() : value]),
  );

/**
 * A page of one of the catalog's lists, limited to the caller's organization, or to one entity of that organization.
 * @param complete adds to each item the fields that the catalog's list lacks.
 * @param findId the id of the only item to list. Null if there is none.
 */
export function listOwn(
  deps: IssuerDeps & Confirming,
  caller: Caller,
  [list, item, complete]: readonly [
    list: CatalogList,
    item: z.ZodObject,
    // biome-ignore lint/suspicious/noExplicitAny: each list has items of its own type.
    complete?: (ctx: IssuerCall, items: any[]) => Promise<object[]> | object[],
  ],
  {
    cursor,
    limit,
    ...given
  }: { cursor?: string | undefined; limit: number } & { [filter: string]: string | number | undefined },
  findId?: (ctx: IssuerCall) => Promise<string | null>,
) {
  const read = async (ctx: IssuerCall) => {
    const filters = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
    for (const [kind, id] of Object.entries(filters)) {
      if (kind in ENTITIES) await ctx.requireOwn(kind as EntityKind, String(id));
    }
    const only = await findId?.(ctx);
    if (only === null) return { items: [], nextCursor: null };
    const all = { org: caller.organizationId, ...filters, ...(only !== undefined && { id: only }) };
    const { items, nextCursor } = await listCatalog(ctx, list, all, { after: cursor ?? "", limit });
    const whole = (await complete?.(ctx, items)) ?? items;
    return { items: whole.map((row) => pickFields(item, withTexts(row))), nextCursor };
  };
  return readConfirmed(deps, () => inIssuer(deps, caller, read));
}
