import { CODES_HEAD, codesLine, sendCodes } from "../acts/export-batch.ts";
import type { Caller } from "../core/keys/caller.ts";
import { hasKeyEnded } from "../core/keys/db/api-keys.ts";
import { AppError } from "../platform/api/errors.ts";
import { type IssuerCall, type IssuerDeps, inIssuer } from "./issuer.ts";

/** Returns the number of vouchers in a batch of the caller's organization. @throws AppError `not_found`. */
export const sizeOf = async (ctx: IssuerCall, id: string) => Number((await ctx.requireOwn("batch", id)).voucherCount);

/**
 * The parts of a CSV file with the codes of a batch of the caller's organization. Each chunk takes and returns its own
 * connection, so a slow reader occupies none. A chunk may wait even when the queue for connections is full, so other
 * calls cannot interrupt a file. Before each chunk the key is checked.
 * @throws AppError `not_found`, `overloaded`. While the parts are read: AppError `unknown_key` once the key has ended,
 * CallerLeft.
 */
export async function streamCodes(deps: IssuerDeps, caller: Caller, id: string): Promise<AsyncIterable<string>> {
  const chunks = await inIssuer(
    deps,
    caller,
    async (ctx) => sendCodes(ctx, id, { from: 1, to: await sizeOf(ctx, id) }),
    ["batch export", { id }],
  );
  const readChunk = async ({ pool }: IssuerCall) => {
    if (await hasKeyEnded(pool, caller.keyId)) throw new AppError("unknown_key");
    return chunks.next();
  };
  const next = () => inIssuer(deps, caller, readChunk, undefined, { continues: true });
  return (async function* () {
    yield CODES_HEAD;
    for (let read = await next(); !read.done; read = await next()) yield read.value.map(codesLine).join("");
  })();
}
