import { z } from "zod";
import type { Act } from "../acts/act.ts";
import { bodyOf, type Fields, type Values, valuesIn } from "../acts/fields.ts";
import type { AuditContext } from "../acts/with-audit-entry.ts";
import type { Caller } from "../core/keys/caller.ts";
import { normaliseCode, normaliseTicket } from "../core/voucher/codes.ts";
import { findVoucherInOrganization } from "../core/voucher/db/voucher-ranges.ts";
import { guardMisses, type MissGuard } from "../core/voucher/resolve-voucher.ts";
import { type ERRORS_OF, voucherBusy } from "../platform/api/errors.ts";
import { EXAMPLE } from "../platform/api/example.ts";
import { filledTextUpTo, ID_INPUT_MAX } from "../platform/api/fields.ts";
import { always, wholeProblem } from "../platform/api/problems.ts";
import { isLockTimeout } from "../platform/db/transaction.ts";
import { endpoint } from "../platform/http/endpoint.ts";
import { givenIn, ISSUER_KEY } from "./act-endpoint.ts";
import { type IssuerCall, type IssuerDeps, inIssuer, LOCK_WAIT_MS, notOwn } from "./issuer.ts";

const CODE_INPUT_MAX = 256;

/** A voucher's code in a request. */
export const typedCode = filledTextUpTo(CODE_INPUT_MAX, "The voucher's code, in any accepted spelling.", EXAMPLE.code);

type Deps = IssuerDeps & MissGuard;

interface OneVoucher<F extends Fields, Response extends z.ZodObject> {
  operationId: keyof typeof ERRORS_OF;
  summary: string;
  description: string;
  response: Response;
  responseDescription: string;
  /** Performs the act on a voucher of the caller's organization. */
  run(ctx: AuditContext, id: string, values: Values<F>): Promise<z.output<Response>>;
}

/** The endpoint of an act on one voucher. The body names the voucher by its code or its id. */
export function oneVoucherEndpoint<F extends Fields, Response extends z.ZodObject>(
  { name, fields }: Pick<Act<F>, "name" | "fields">,
  { run, ...described }: OneVoucher<F, Response>,
) {
  const operation: string = described.operationId;
  const body = z
    .object({
      code: typedCode.nullish(),
      id: filledTextUpTo(ID_INPUT_MAX, "The voucher's id.", EXAMPLE.voucherId).nullish(),
      ...bodyOf(fields).shape,
    })
    .refine(({ code, id }) => code != null || id != null, { error: wholeProblem("codeOrId"), when: always })
    .refine(({ code, id }) => code == null || id == null, { error: wholeProblem("codeAndId"), when: always })
    .meta({
      id: `${operation.charAt(0).toUpperCase()}${operation.slice(1)}Request`,
      description: "Exactly one of `code` and `id`. A null field is treated as absent.",
    });
  return endpoint({
    method: "post",
    path: `/issuer/vouchers/${name.split(" ")[1]}`,
    ...described,
    access: ISSUER_KEY,
    body,
    handler: async (deps: Deps, { caller, body: { code, id: given, ...rest } }) => {
      const id = await inIssuer(deps, caller, (ctx) => findTarget(deps, ctx, caller, code ?? null, given ?? ""));
      return inIssuer(deps, caller, (ctx) => run({ ...ctx, lockWaitMs: LOCK_WAIT_MS }, id, valuesIn(fields, rest)), [
        name,
        { id, ...givenIn(rest) },
      ]).catch((error: unknown) => {
        throw isLockTimeout(error) ? voucherBusy() : error;
      });
    },
  });
}

/**
 * Finds the id of a voucher of the caller's organization. A code that no voucher has counts as a miss, like a partner's
 * look-up of an unknown code.
 */
async function findTarget(
  deps: Deps,
  ctx: IssuerCall,
  caller: Caller,
  code: string | null,
  id: string,
): Promise<string> {
  if (code === null) {
    await ctx.requireOwn("voucher", id);
    return id;
  }
  const { organizationId } = caller;
  const codeKey = normaliseCode(normaliseTicket(code));
  const find = () => findVoucherInOrganization(ctx.pool, { organizationId, codeKey });
  const found = await (codeKey === null ? find() : guardMisses(deps, caller, find, (one) => one === null));
  if (found === null) throw notOwn();
  return found;
}
