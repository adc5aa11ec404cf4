import { z } from "zod";
import { listCatalog } from "../acts/list-catalog.ts";
import type { Caller } from "../core/keys/caller.ts";
import { EXAMPLE, examples } from "../platform/api/example.ts";
import { input, named, pickFields, queryInteger, sampleOf, text, timestamp } from "../platform/api/fields.ts";
import { problem } from "../platform/api/problems.ts";
import { type IssuerCall, type IssuerDeps, inIssuer } from "./issuer.ts";

/** Most items on a page. */
const LIMIT_MAX = 1_000;

/** The query of every list. `cursor` has the form of its cursors. */
export const pageQuery = (cursor: RegExp) => ({
  cursor: z
    .string({ error: problem("notOneValue") })
    .regex(cursor, problem("noCursor"))
    .optional()
    .meta({ description: "The previous page's `nextCursor`; omit it for the first page." }),
  limit: queryInteger(1, LIMIT_MAX, 100, "Maximum number of items on the page."),
});

/** The cursor of a list in the order of ids. */
export const ID_CURSOR = /^[a-z]{3}_[0-9a-z]{26}$/;

/** A list's response. */
export function pageOf(id: string, item: z.ZodObject, order: string) {
  const page = named(id, {
    items: z.array(item).meta({ description: `In the order of ${order}.` }),
    nextCursor: text("Send it as `cursor` to get the next page. Null on the last page.").nullable(),
  });
  examples.add(page, { last: { summary: "The last page", value: { items: [sampleOf(item)], nextCursor: null } } });
  return page;
}

/** The id of an entity that a list is limited to. */
export const onlyOf = (kind: string) =>
  input.optional().meta({ description: `The id of a ${kind}, to list only what belongs to it.` });

export const createdAt = timestamp("When it was created.", EXAMPLE.issuedAt);

/** Times as responses have them. */
export const withTexts = (row: object): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(row).map(([name, value]) => [name, value instanceof Date ? value.toISOString() : value]),
  );

/**
 * A page of one of the catalog's lists, of the caller's organization and, if given, of one of its entities.
 * @param complete adds to the items what the catalog's list does not have.
 */
export function listOwn(
  deps: IssuerDeps,
  caller: Caller,
  [name, item, complete]: readonly [
    name: "brands" | "products" | "batches",
    item: z.ZodObject,
    complete?: (ctx: IssuerCall, items: { id: string }[]) => Promise<{ id: string }[]>,
  ],
  { cursor, limit, ...given }: { cursor?: string | undefined; limit: number; brand?: unknown; product?: unknown },
) {
  return inIssuer(deps, caller, async (ctx) => {
    const filters = Object.entries(given).filter(([, id]) => id !== undefined) as ["brand" | "product", string][];
    for (const [kind, id] of filters) await ctx.requireOwn(kind, id);
    const only = { org: caller.organizationId, ...Object.fromEntries(filters) };
    const { items, nextCursor } = await listCatalog(ctx, name, only, { after: cursor ?? "", limit });
    const whole = (await complete?.(ctx, items)) ?? items;
    return { items: whole.map((row) => pickFields(item, withTexts(row))), nextCursor };
  });
}
