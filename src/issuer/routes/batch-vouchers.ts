import { z } from "zod";
import { sendCodes } from "../../acts/export-batch.ts";
import { EXAMPLE } from "../../platform/api/example.ts";
import { serial, text, voucherId } from "../../platform/api/fields.ts";
import { endpoint } from "../../platform/http/endpoint.ts";
import { ISSUER_KEY, idOf } from "../act-endpoint.ts";
import { type IssuerDeps, inIssuer } from "../issuer.ts";
import { pageOf, pageQuery } from "../lists.ts";
import { sizeOf, streamCodes } from "../stream-codes.ts";

const voucher = z.object({ id: voucherId, code: text("The voucher's code.", EXAMPLE.code), serial });

export const batchVouchers = endpoint({
  path: "/issuer/batches/:id/vouchers",
  operationId: "listBatchVouchers",
  summary: "Read the codes of a batch",
  description:
    "All vouchers of the batch, used and voided ones too. Each reading leaves an audit entry. With " +
    "`Accept: text/csv` the answer is one file with the columns `id,code,serial`, and `limit` and `cursor` do not " +
    "apply. A file that breaks off is not complete: a batch with a `count` of 500 has 500 lines after the heading.",
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
          for await (const chunk of await sendCodes(ctx, id, { from, to })) items.push(...chunk.map(viewVoucher));
        }
        return { items, nextCursor: to < size ? String(to) : null };
      },
      ["batch export", { id, cursor, limit }],
    ),
  async csv(deps: IssuerDeps, { caller, parameters: { id } }) {
    const parts = await streamCodes(deps, caller, id);
    return { headers: { "Content-Disposition": `attachment; filename="${id}.csv"` }, parts };
  },
});

const viewVoucher = ({ id, code, serial: number }: { id: string; code: string; serial: number }) => ({
  id,
  code,
  serial: number,
});
