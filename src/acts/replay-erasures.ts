import type pg from "pg";
import { z } from "zod";
import { AppError } from "../platform/api/errors.ts";
import { isErasedForm } from "../platform/api/fields.ts";
import { confirmed } from "../platform/db/durability.ts";
import { columnsOf } from "../platform/db/statements.ts";
import {
  findReferencesToErase,
  findUsersToErase,
  selectErasedReferences,
  selectErasedUsers,
  selectErasures,
} from "./db/erasures.ts";
import { addCounts, type ErasureResult, eraseEventsAgain, erasePerson, type ReplayResult } from "./erase-person.ts";
import type { AuditContext } from "./with-audit-entry.ts";

const form = z.string().refine(isErasedForm);
const erasedAt = z.iso.datetime();
const erasures = z.object({
  items: z.array(z.object({ voucherId: z.string(), sequences: z.array(z.int().min(1)), erasedAt })),
  users: z.array(form),
  /** The time at which each user was erased. A user without a time is erased completely. */
  usersErasedAt: z.record(z.string(), erasedAt).default({}),
  references: z.array(z.object({ organizationId: z.string(), reference: form, erasedAt: erasedAt.optional() })),
});

/** The content of the list: ids, sequences and replacement texts. It names no person. */
type Erasures = z.output<typeof erasures>;

/** Lists the erasures since a time. Operators keep this list with the backups. */
export async function listErasures({ pool }: { pool: pg.Pool }, since: Date): Promise<Erasures> {
  const items = await selectErasures(pool, since);
  const users = await selectErasedUsers(pool, since);
  const references = await selectErasedReferences(pool, since);
  const withTime = <Listed extends { erasedAt: Date }>(listed: Listed) => ({
    ...listed,
    erasedAt: listed.erasedAt.toISOString(),
  });
  return {
    items: items.map(withTime),
    users: users.map(({ form }) => form),
    usersErasedAt: Object.fromEntries(users.map(withTime).map(({ form, erasedAt }) => [form, erasedAt])),
    references: references.map(withTime),
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
 * Repeats the erasures of a list in a database that was restored to an earlier time. Keeps what was written after an
 * erasure, such as a later event, reason or member. Of users and of batches' references, the list contains only the
 * replacement texts. With the keys in the backup, the run computes these texts again from the restored rows, and so
 * finds the rows to erase. The run can be interrupted and repeated. The synchronous standbys confirm the result.
 */
export function replayErasures(
  ctx: AuditContext,
  erasures: Erasures,
  onStep: () => void = () => undefined,
): Promise<ReplayResult> {
  return confirmed(ctx.pool, () => replayAll(ctx, erasures, onStep));
}

async function replayAll(
  ctx: AuditContext,
  { items, users, usersErasedAt, references }: Erasures,
  onStep: () => void,
): Promise<ReplayResult> {
  const total: ErasureResult = { vouchers: 0, events: 0, references: 0 };
  const dated = items.map((item) => ({ ...item, erasedAt: new Date(item.erasedAt) }));
  const { otherEvents, ...again } = await eraseEventsAgain(ctx, dated, onStep);
  addCounts(total, again);
  const forms = references.map(({ organizationId, reference }) => ({ organizationId, form: reference }));
  for (const { form, ...found } of await findReferencesToErase(ctx.pool, columnsOf(forms, "organizationId", "form"))) {
    const listed = references.find(
      ({ organizationId, reference }) => organizationId === found.organizationId && reference === form,
    );
    addCounts(total, await erasePerson(ctx, { by: "reference", ...found }, null, onStep, timeOf(listed?.erasedAt)));
  }
  for (const { userId, form } of await findUsersToErase(ctx.pool, users)) {
    addCounts(total, await erasePerson(ctx, { by: "user", userId }, null, onStep, timeOf(usersErasedAt[form])));
  }
  return { ...total, otherEvents };
}

const timeOf = (listed: string | undefined) => (listed === undefined ? null : new Date(listed));
