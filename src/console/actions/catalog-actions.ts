import { issueBatch } from "../../acts/batch/issue.ts";
import { voidBatch } from "../../acts/batch/void.ts";
import { createBrand } from "../../acts/brand/create.ts";
import { createListing } from "../../acts/listing/create.ts";
import { createOrganization } from "../../acts/org/create.ts";
import { erase } from "../../acts/person/erase.ts";
import { createProduct } from "../../acts/product/create.ts";
import { voidVoucher } from "../../acts/voucher/void.ts";
import { releaseLease } from "../../core/reserve/lease.ts";
import { formOf } from "./act-form.ts";

/** Creates what partners sell, each step leading to the next, and voids it. */
export const CATALOG_ACTIONS = [
  formOf(createOrganization),
  formOf(createBrand),
  formOf(createProduct),
  formOf(issueBatch),
  formOf(createListing),
  formOf(erase),
  formOf(voidVoucher, ({ api }) => ({
    async releaseLeaseOf({ voucherId, endedTicket }) {
      if (endedTicket !== null) await releaseLease(api, voucherId, endedTicket);
    },
  })),
  formOf(voidBatch),
];
