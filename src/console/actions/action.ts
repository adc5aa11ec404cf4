import type pg from "pg";
import type { z } from "zod";
import type { OperatorRole } from "../../acts/operator-role.ts";
import type { AuditContext } from "../../acts/with-audit-entry.ts";
import type { OperatorReads } from "../../core/callers/bulkhead.ts";
import type { Lineage } from "../../core/catalog/db/catalog.ts";
import type { releaseLease } from "../../core/reserve/lease.ts";
import type { Html } from "../../pages/html.ts";
import type { Site } from "../../pages/layout.ts";
import type { RandomBytes } from "../../platform/base32.ts";
import type { DepsOf } from "../../platform/http/endpoint.ts";
import type { QueueViews } from "../../platform/queues/queue-views.ts";

/** What forms and actions take from the process that serves them. */
export type ActionDeps = DepsOf<typeof releaseLease> &
  OperatorReads & {
    pool: pg.Pool;
    config: Site;
    randomBytes: RandomBytes;
    queueViews: Pick<QueueViews, "open">;
  };

/** A choice of a field: the value that is sent, and what the operator reads. */
export type Choice = readonly [value: string, label: string];

/** A field of a form. The sentences of its schema follow its label: "must not be empty". */
export interface Field<Value = unknown> {
  label: string;
  hint?: string;
  /** The type of the input. */
  type?: "checkbox";
  /** Makes the field a list, or boxes if `many`. */
  choices?: readonly Choice[] | ((ctx: ActionDeps, lineage: Lineage) => Promise<Choice[]>);
  many?: boolean;
  /** What the empty form contains. */
  initial?: readonly string[];
  /** Whether a link to the form may fill the field, by a parameter of its query with the field's name. */
  fromQuery?: boolean;
  /** A confirmation, which is not written into the audit entry. */
  unrecorded?: boolean;
  /** Gets a text without surrounding blanks, or all chosen values. */
  schema: z.ZodType<Value>;
}

export type Fields = Record<string, Field>;
type Values<F extends Fields> = { [Name in keyof F]: F[Name] extends Field<infer Value> ? Value : never };

/** What was entered in `field` cannot be used. The message follows the field's label. */
export class FieldProblem extends Error {
  readonly field: string;

  constructor(field: string, sentence: string) {
    super(sentence);
    this.field = field;
  }
}

/**
 * What an action runs with: connections that may write, the audit entry that it leaves, and the process's own context.
 */
export interface Acting<Deps = object> extends AuditContext, Pick<ActionDeps, "config"> {
  api: ActionDeps & Deps;
  /**
   * Shows how much of a long run is done.
   * @throws RunLeft when the operator has left the page, or the process stops.
   */
  advance(done: number, total: number, soFar?: object): void;
}

/** One thing that an operator can do: a page with a form. */
export interface Action<F extends Fields = Fields, Deps = object> {
  /**
   * The path after `/ops`, whose `:id` names the entity; the command of voucherctl that does the same; the page's
   * title.
   */
  is: readonly [path: string, command: string, title: string];
  /** The role that the form needs, to be shown and to be sent. */
  role: OperatorRole;
  /** What the operator should know before. */
  about?: (lineage: Lineage) => string | Html;
  /** A field `name` should be unique among the entity's children. */
  fields?: F;
  /** The field that a refusal of the service concerns. */
  refused?: keyof F & string;
  /**
   * For a form that creates something: the path after `/ops` of the next page, or what to show, if the form is sent
   * again after it has created the entity with this id. `parentId` is the id in the form's path. Such a form acts once.
   */
  creates?(id: string, parentId: string): string | Html;
  /** What a long run that ended early had done, as a sentence. Without it, such a run does nothing. */
  partly?(done: number, total: number, soFar?: object): string | null;
  /**
   * Returns the path after `/ops` of the next page, or what to show once; if the action `creates`, the id of the entity
   * instead of the path. Null: the entity's own page is next.
   */
  run: (ctx: Acting<Deps>, id: string, values: Values<F>, lineage: Lineage) => Promise<string | Html | null>;
}

/** Checks an action's types, and forgets them, so that different actions fit into one list. */
export function defineAction<const F extends Fields, Deps = object>(action: Action<F, Deps>): Action<Fields, Deps> {
  return action as unknown as Action<Fields, Deps>;
}

/** An action without fields, and without a page of its own after it. */
export const defineSimpleAction = (
  role: OperatorRole,
  is: readonly [string, string, string],
  about: string,
  act: (ctx: Acting, id: string) => Promise<unknown>,
) =>
  defineAction<Fields>({
    is,
    role,
    about: () => about,
    run: async (ctx, id) => {
      await act(ctx, id);
      return is[0].replace(/:id.*/, id);
    },
  });
