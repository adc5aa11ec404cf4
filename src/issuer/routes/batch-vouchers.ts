import { z } from "zod";
import { codesCsv, readCodes } from "../../acts/export-batch.ts";
import { EXAMPLE } from "../../platform/api/example.ts";
import { serial, text, voucherId } from "../../platform/api/fields.ts";
import { endpoint } from "../../platform/http/endpoint.ts";
import { ISSUER_KEY, idOf } from "../act-endpoint.ts";
import { type IssuerCall, type IssuerDeps, inIssuer } from "../issuer.ts";
import { pageOf, pageQuery } from "../lists.ts";

const voucher = z.object({ id: voucherId, code: text("The voucher's code.", EXAMPLE.code), serial });

export const batchVouchers = endpoint({
  path: "/issuer/batches/:id/vouchers",
  operationId: "listBatchVouchers",
  summary: "Read the codes of a batch",
  description:
    "All vouchers of the batch, used and voided ones too. An audit entry counts what a key reads in an hour. With " +
    "`Accept: text/csv` the answer is one file with the columns `id,code,serial`, and `limit` and `cursor` do not " +
    "apply. A file with fewer bytes than its `Content-Length` was cut. A key has two files at a time.",
  access: ISSUER_KEY,
  parameters: { id: idOf("batch") },
  query: z.object(pageQuery(/^\d{1,8}$/)),
  response: pageOf("BatchVouchersPage", voucher, "serials"),
  responseDescription: "A page of vouchers.",
  handler: (deps: IssuerDeps, { caller, parameters: { id }, query: { cursor = "0", limit } }) =>
    inIssuer(
      deps,
      caller,
      async (ctx) => {
        const size = await sizeOf(ctx, id);
        const from = Number(cursor) + 1;
        const to = Math.min(size, Number(cursor) + limit);
        const items = [];
        if (from <= to) {
          for await (const chunk of readCodes((step) => step(ctx), id, { from, to }))
            items.push(...chunk.map(viewVoucher));
        }
        return { items, nextCursor: to < size ? String(to) : null };
      },
      ["batch export", { id }],
    ),
  async csv(deps: IssuerDeps, { caller, parameters: { id } }) {
    const to = await inIssuer(deps, caller, (ctx) => sizeOf(ctx, id));
    // Each step takes a connection and returns it. Steps wait even if too many calls wait, because a refused step would
    // waste the part of the file that was already made.
    const run = <T>(step: (ctx: IssuerCall) => Promise<T>) =>
      inIssuer(deps, caller, step, ["batch export", { id }], { continues: true });
    return {
      headers: { "Content-Disposition": `attachment; filename="${id}.csv"` },
      parts: codesCsv(readCodes(run, id, { from: 1, to })),
    };
  },
});

const sizeOf = async (ctx: IssuerCall, id: string) => Number((await ctx.requireOwn("batch", id)).voucherCount);

const viewVoucher = ({ id, code, serial: number }: { id: string; code: string; serial: number }) => ({
  id,
  code,
  serial: number,
});
