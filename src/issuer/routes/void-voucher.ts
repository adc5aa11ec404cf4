import { z } from "zod";
import { bodyOf, valuesIn } from "../../acts/fields.ts";
import { voidVoucher as act } from "../../acts/voucher/void.ts";
import type { Caller } from "../../core/keys/caller.ts";
import { releaseEndedLease } from "../../core/reserve/lease.ts";
import { normaliseCode, normaliseTicket } from "../../core/voucher/codes.ts";
import { findVoucherInOrganization } from "../../core/voucher/db/voucher-ranges.ts";
import { tooManyMisses } from "../../core/voucher/resolve-voucher.ts";
import { AppError, voucherBusy } from "../../platform/api/errors.ts";
import { EXAMPLE, examples } from "../../platform/api/example.ts";
import { filledTextUpTo, flag, ID_INPUT_MAX, named, sampleOf, voucherId } from "../../platform/api/fields.ts";
import { always, wholeProblem } from "../../platform/api/problems.ts";
import { isLockTimeout } from "../../platform/db/transaction.ts";
import { type DepsOf, endpoint } from "../../platform/http/endpoint.ts";
import type { Limits } from "../../platform/limits/open-limits.ts";
import { ISSUER_KEY } from "../act-endpoint.ts";
import { type IssuerCall, type IssuerDeps, inIssuer, notOwn, VOID_LOCK_WAIT_MS } from "../issuer.ts";

const CODE_INPUT_MAX = 256;

const body = z
  .object({
    code: filledTextUpTo(CODE_INPUT_MAX, "The voucher's code, in any accepted spelling.", EXAMPLE.code).nullish(),
    id: filledTextUpTo(ID_INPUT_MAX, "The voucher's id.", EXAMPLE.voucherId).nullish(),
    ...bodyOf(act.fields).shape,
  })
  .refine(({ code, id }) => code != null || id != null, { error: wholeProblem("codeOrId"), when: always })
  .refine(({ code, id }) => code == null || id == null, { error: wholeProblem("codeAndId"), when: always })
  .meta({
    id: "VoidVoucherRequest",
    description: "Exactly one of `code` and `id`. A null field is treated as absent.",
  });

const voidedVoucher = named("VoidedVoucher", {
  id: voucherId,
  voided: z.literal(true).meta({ description: "The voucher is voided.", examples: [true] }),
  alreadyVoided: flag("Whether it was voided before this call.").meta({ examples: [false] }),
});

examples.add(voidedVoucher, { voided: { summary: "The voucher is voided", value: sampleOf(voidedVoucher) } });

type Deps = IssuerDeps & DepsOf<typeof releaseEndedLease> & { limits: Pick<Limits, "misses"> };

export const voidVoucher = endpoint({
  method: "post",
  path: "/issuer/vouchers/void",
  operationId: "voidVoucher",
  summary: "Void one voucher",
  description: `${act.about} Exactly one of \`code\` and \`id\` names it. A repeat is a success. A voucher that was \
redeemed or has expired cannot be voided.`,
  access: ISSUER_KEY,
  body,
  response: voidedVoucher,
  responseDescription: "The voucher is voided.",
  handler: async (deps: Deps, { caller, body: { code, id: given, ...fields } }) => {
    const id = await inIssuer(deps, caller, (ctx) => findTarget(deps, ctx, caller, code ?? null, given ?? ""));
    const voided = (alreadyVoided: boolean) => ({ id, voided: true as const, alreadyVoided });
    const releaseLeaseOf = (one: Parameters<typeof releaseEndedLease>[1]) => releaseEndedLease(deps, one);
    return inIssuer(
      deps,
      caller,
      (ctx) => act.run({ ...ctx, lockWaitMs: VOID_LOCK_WAIT_MS, releaseLeaseOf }, id, valuesIn(act.fields, fields)),
      [act.name, { id, ...fields }],
    ).then(
      () => voided(false),
      (error: unknown) => {
        if (error instanceof AppError && error.code === "voucher_voided") return voided(true);
        throw isLockTimeout(error) ? voucherBusy() : error;
      },
    );
  },
});

/** The id of a voucher of the caller's organization. A code without one counts as a miss, as it does at a till. */
async function findTarget(
  { limits: { misses } }: Deps,
  ctx: IssuerCall,
  { organizationId, keyId }: Caller,
  code: string | null,
  id: string,
): Promise<string> {
  if (code === null) {
    await ctx.requireOwn("voucher", id);
    return id;
  }
  const codeKey = normaliseCode(normaliseTicket(code));
  const find = () => findVoucherInOrganization(ctx.pool, { organizationId, codeKey });
  const found =
    misses === null || codeKey === null
      ? { allowed: true as const, result: await find() }
      : await misses.guard(keyId, find, (one) => one === null);
  if (!found.allowed) throw tooManyMisses(found.resetMs);
  if (found.result === null) throw notOwn();
  return found.result;
}
