import type pg from "pg";
import { z } from "zod";
import { AppError } from "../platform/api/errors.ts";
import { isErasedForm } from "../platform/api/fields.ts";
import { columnsOf } from "../platform/db/statements.ts";
import {
  findReferencesToErase,
  findUsersToErase,
  selectErasedReferences,
  selectErasedUsers,
  selectErasures,
} from "./db/erasures.ts";
import { type ErasureResult, eraseEventsAgain, erasePerson, type ReplayResult } from "./erase-person.ts";
import type { AuditContext } from "./with-audit-entry.ts";

const form = z.string().refine(isErasedForm);
const erasures = z.object({
  items: z.array(z.object({ voucherId: z.string(), sequences: z.array(z.int().min(1)), erasedAt: z.iso.datetime() })),
  users: z.array(form),
  references: z.array(z.object({ organizationId: z.string(), reference: form })),
});

/** The content of the list: ids, sequences and replaced texts. It names no person. */
type Erasures = z.output<typeof erasures>;

/** Lists the erasures since a time. Operators keep this list with the backups. */
export async function listErasures({ pool }: { pool: pg.Pool }, since: Date): Promise<Erasures> {
  const items = await selectErasures(pool, since);
  return {
    items: items.map((item) => ({ ...item, erasedAt: item.erasedAt.toISOString() })),
    users: await selectErasedUsers(pool, since),
    references: await selectErasedReferences(pool, since),
  };
}

/** Parses the list. @throws AppError `invalid_request` if the text is not such a list. */
export function parseErasures(text: string): Erasures {
  try {
    return erasures.parse(JSON.parse(text));
  } catch (cause) {
    throw new AppError("invalid_request", "The file is not a list of voucherctl erasure list --json.", { cause });
  }
}

/**
 * Repeats the erasures of a list in a database that was restored to an earlier time. The keys of the replaced texts are
 * in the backup, so users and references of batches are found by these texts. Can be interrupted and repeated.
 */
export async function replayErasures(
  ctx: AuditContext,
  { items, users, references }: Erasures,
  onStep: () => void = () => undefined,
): Promise<ReplayResult> {
  const total: ErasureResult = { vouchers: 0, events: 0, references: 0 };
  const add = (result: ErasureResult) => {
    total.vouchers += result.vouchers;
    total.events += result.events;
    total.references += result.references;
  };
  const dated = items.map((item) => ({ ...item, erasedAt: new Date(item.erasedAt) }));
  const { otherEvents, ...again } = await eraseEventsAgain(ctx, dated, onStep);
  add(again);
  const forms = references.map(({ organizationId, reference: form }) => ({ organizationId, form }));
  for (const found of await findReferencesToErase(ctx.pool, columnsOf(forms, "organizationId", "form"))) {
    add(await erasePerson(ctx, { by: "reference", ...found }, null, onStep));
  }
  for (const userId of await findUsersToErase(ctx.pool, users)) {
    add(await erasePerson(ctx, { by: "user", userId }, null, onStep));
  }
  return { ...total, otherEvents };
}
