import { actOfFurtherForm } from "../../acts/act.ts";
import { ACTS } from "../../acts/acts.ts";
import { ENTITIES, type EntityKind } from "../../acts/entities.ts";
import { queueActs } from "../../acts/queue/acts.ts";
import { voidVoucher } from "../../acts/voucher/void.ts";
import { releaseEndedLease } from "../../core/reserve/lease.ts";
import type { Html } from "../../pages/html.ts";
import { linkActions } from "../../pages/operator-frame.ts";
import type { QueueSettings } from "../../platform/queues/queue-settings.ts";
import { formOf } from "./act-form.ts";

/** Acts, besides those on queues, that need something from the process. Other forms follow from their acts alone. */
const TAKING: readonly string[] = [voidVoucher.name];
const PLAIN = ACTS.filter(({ only, name }) => only !== "command" && !TAKING.includes(name)).flatMap((act) =>
  [act, actOfFurtherForm(act) ?? []].flat(),
);

/** The forms of all acts except those of wings. An act on queues has one form for each queue. */
export const formsOf = (queues: readonly QueueSettings[]) => [
  ...PLAIN.map((act) => formOf(act)),
  formOf(voidVoucher, ({ api }) => ({ releaseLeaseOf: (voided) => releaseEndedLease(api, voided) })),
  ...queues.flatMap((queue) =>
    queueActs(queue).map((act) => formOf(act, ({ api: { queueViews } }) => ({ queueViews }), queue.name)),
  ),
];

/** Links to the forms of all acts on an entity that create nothing, without regard to the entity's state. */
export function linkActs(site: Parameters<typeof linkActions>[0], kind: EntityKind, id: string): Html | null {
  const acts = PLAIN.filter(({ on, creates }) => on === kind && creates === undefined);
  const links = acts.map(({ name, title }) => [String(name.split(" ")[1]), title] as const);
  return linkActions(site, [ENTITIES[kind].collection, id], ...links);
}
