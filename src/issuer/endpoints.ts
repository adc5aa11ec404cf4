import type { Act } from "../acts/act.ts";
import { ACTS, type AnyAct } from "../acts/acts.ts";
import type { Fields } from "../acts/fields.ts";
import { endpointOf } from "./act-endpoint.ts";
import { batch } from "./routes/batch.ts";
import { batchVouchers } from "./routes/batch-vouchers.ts";
import { batches } from "./routes/batches.ts";
import { brands } from "./routes/brands.ts";
import { extendBatch } from "./routes/extend-batch.ts";
import { extendVoucher } from "./routes/extend-voucher.ts";
import { products } from "./routes/products.ts";
import { resumeBatch, suspendBatch } from "./routes/suspend-batch.ts";
import { resumeVoucher, suspendVoucher } from "./routes/suspend-voucher.ts";
import { voidBatch } from "./routes/void-batch.ts";
import { voidVoucher } from "./routes/void-voucher.ts";
import { vouchers } from "./routes/vouchers.ts";

/**
 * Acts with routes of their own, because the body names a voucher, or because one call changes only a part of a batch.
 */
const OWN_ROUTE = ["voucher", "batch"].flatMap((noun) =>
  ["extend", "suspend", "resume", "void"].map((verb) => `${noun} ${verb}`),
);

/** The endpoints for organizations' own programs, including those of optional features. Most follow from acts. */
export const issuerEndpoints = (ofWings: readonly AnyAct[]) => [
  brands,
  products,
  batches,
  batch,
  batchVouchers,
  vouchers,
  extendVoucher,
  extendBatch,
  suspendVoucher,
  resumeVoucher,
  suspendBatch,
  resumeBatch,
  voidVoucher,
  voidBatch,
  ...[...ACTS, ...ofWings]
    .filter(({ name, scope }) => scope === "issuer" && !OWN_ROUTE.includes(name))
    .map((act) => endpointOf(act as unknown as Act<Fields, object>)),
];
