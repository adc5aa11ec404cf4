import type { Act } from "./act.ts";
import { issueBatch } from "./batch/issue.ts";
import { createBrand } from "./brand/create.ts";
import type { Fields } from "./fields.ts";
import { revokeKey } from "./key/revoke.ts";
import { createOperator } from "./operator/create.ts";
import { revokeOperator } from "./operator/revoke.ts";
import { rotateOperator } from "./operator/rotate.ts";
import { voidVoucher } from "./voucher/void.ts";

/** An act of a table, whatever it takes. */
export type AnyAct = Act<Fields, object, never>;

/** Every act but those of wings, in the order of the help. */
export const ACTS: readonly AnyAct[] = [
  createBrand,
  issueBatch,
  voidVoucher,
  revokeKey,
  createOperator,
  revokeOperator,
  rotateOperator,
];
