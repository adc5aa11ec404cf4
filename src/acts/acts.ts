import type { Act } from "./act.ts";
import { extendBatch } from "./batch/extend.ts";
import { issueBatch } from "./batch/issue.ts";
import { resumeBatch, suspendBatch } from "./batch/suspend.ts";
import { voidBatch } from "./batch/void.ts";
import { changeBrand } from "./brand/change.ts";
import { createBrand } from "./brand/create.ts";
import { renameBrand } from "./brand/rename.ts";
import { adopt, applyAllGrants, trustDatabaseClock } from "./change-database.ts";
import type { Fields } from "./fields.ts";
import { changeKey } from "./key/change.ts";
import { createKey } from "./key/create.ts";
import { revokeApiKey } from "./key/revoke.ts";
import { rotateKey } from "./key/rotate.ts";
import { addMember } from "./member/add.ts";
import { createOperator } from "./operator/create.ts";
import { revokeOperator } from "./operator/revoke.ts";
import { rotateOperator } from "./operator/rotate.ts";
import { changeOrganization } from "./org/change.ts";
import { createOrganization } from "./org/create.ts";
import { erase } from "./person/erase.ts";
import { showPerson } from "./person/show.ts";
import { createProduct } from "./product/create.ts";
import { extendVoucher } from "./voucher/extend.ts";
import { resumeVoucher, suspendVoucher } from "./voucher/suspend.ts";
import { voidVoucher } from "./voucher/void.ts";

/** Any act. The type hides the act's fields and dependencies. */
export type AnyAct = Act<Fields, object, never>;

/** All acts except those of wings (optional parts of the service), in the order of the help. */
export const ACTS: readonly AnyAct[] = [
  createOrganization,
  changeOrganization,
  createBrand,
  renameBrand,
  changeBrand,
  createProduct,
  issueBatch,
  extendBatch,
  extendVoucher,
  suspendBatch,
  resumeBatch,
  suspendVoucher,
  resumeVoucher,
  voidBatch,
  voidVoucher,
  showPerson,
  erase,
  createKey,
  changeKey,
  revokeApiKey,
  rotateKey,
  addMember,
  createOperator,
  revokeOperator,
  rotateOperator,
  adopt,
  trustDatabaseClock,
  applyAllGrants,
];
