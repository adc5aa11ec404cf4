import type pg from "pg";
import type { z } from "zod";
import type { Problem } from "../../acts/act.ts";
import type { OperatorRole } from "../../acts/operator-role.ts";
import type { Reports } from "../../acts/process/dismiss.ts";
import type { AuditContext } from "../../acts/with-audit-entry.ts";
import type { OperatorReads } from "../../core/callers/bulkhead.ts";
import type { Lineage } from "../../core/catalog/db/catalog.ts";
import type { releaseLease } from "../../core/reserve/lease.ts";
import type { Html } from "../../pages/html.ts";
import type { Site } from "../../pages/layout.ts";
import type { RandomBytes } from "../../platform/base32.ts";
import type { Queryable } from "../../platform/db/pool.ts";
import type { DepsOf } from "../../platform/http/endpoint.ts";
import type { QueueViews } from "../../platform/queues/queue-views.ts";

/** What forms and actions take from the process that serves them. */
export type ActionDeps = DepsOf<typeof releaseLease> &
  OperatorReads &
  Reports & {
    pool: pg.Pool;
    config: Site;
    randomBytes: RandomBytes;
    queueViews: Pick<QueueViews, "open">;
  };

/** A choice of a field: the value that is sent, and what the operator reads. */
export type Choice = readonly [value: string, label: string];

/** A field of a form. The sentences of its schema follow its label: "must not be empty". */
export interface Field {
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
  /** Whether surrounding blanks are part of what was entered. */
  verbatim?: boolean;
  /** Gets a text, or all chosen values. */
  schema: z.ZodType;
}

export type Fields = Record<string, Field>;

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
export interface Action<Deps = object> {
  /**
   * The path after `/ops`, whose `:id` names the entity; the command of voucherctl that does the same; the page's
   * title.
   */
  is: readonly [path: string, command: string, title: string];
  /** The role that the form needs, to be shown and to be sent. */
  role: OperatorRole;
  /** What the operator should know before. */
  about?: string;
  fields: Fields;
  /** Whether the field `name` should be unique among the entity's children. */
  asksNamesake: boolean;
  /** What the act refuses of the values that can be read; the others are undefined. */
  findProblems(db: Queryable, values: Record<string, unknown>): Promise<Problem[]>;
  /** The field that a refusal of the service concerns. */
  refused?: string;
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
  run: (
    ctx: Acting<Deps>,
    id: string,
    values: Record<string, unknown>,
    lineage: Lineage,
  ) => Promise<string | Html | null>;
}
