import { actOfFurtherForm } from "../../acts/act.ts";
import { ACTS, type AnyAct } from "../../acts/acts.ts";
import { ENTITIES, type EntityKind } from "../../acts/entities.ts";
import { queueActs } from "../../acts/queue/acts.ts";
import type { Html } from "../../pages/html.ts";
import { linkActions } from "../../pages/operator-frame.ts";
import type { QueueSettings } from "../../platform/queues/queue-settings.ts";
import { formOf } from "./act-form.ts";
import type { Action } from "./action.ts";

/**
 * The forms of all acts, including those of optional features (wings). A form that a wing declares replaces the form
 * that is made from the act. An act on queues has one form per queue.
 */
export function formsOf<Deps>(
  queues: readonly QueueSettings[],
  ofWings: { acts: readonly AnyAct[]; forms: readonly Action<Deps>[] },
) {
  const following = [...ACTS, ...ofWings.acts].filter(
    ({ only, name }) => only !== "command" && !ofWings.forms.some(({ is: [, command] }) => command === name),
  );
  return [
    ...following.flatMap((act) => [act, actOfFurtherForm(act) ?? []].flat()).map((act) => formOf(act)),
    ...ofWings.forms,
    ...queues.flatMap((queue) =>
      queueActs(queue).map((act) => formOf(act, ({ api: { queueViews } }) => ({ queueViews }), queue.name)),
    ),
  ];
}

/** Links to forms on an entity, for acts of the core that create nothing and apply in every state of the entity. */
export function linkActs(site: Parameters<typeof linkActions>[0], kind: EntityKind, id: string): Html | null {
  const acts = ACTS.filter(({ only, on, creates }) => only !== "command" && on === kind && creates === undefined);
  const links = acts.map(({ name, title }) => [String(name.split(" ")[1]), title] as const);
  return linkActions(site, [ENTITIES[kind].collection, id], ...links);
}
