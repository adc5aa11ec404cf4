import type pg from "pg";
import type { Problem } from "../../acts/act.ts";
import type { Fields } from "../../acts/fields.ts";
import type { OperatorRole } from "../../acts/operator-role.ts";
import type { AuditContext } from "../../acts/with-audit-entry.ts";
import type { OperatorReads } from "../../core/callers/bulkhead.ts";
import type { Lineage } from "../../core/catalog/db/catalog.ts";
import type { Html } from "../../pages/html.ts";
import type { Site } from "../../pages/layout.ts";
import type { RandomBytes } from "../../platform/base32.ts";
import type { Queryable } from "../../platform/db/pool.ts";
import type { SendFile } from "../../platform/http/send-file.ts";
import type { QueueViews } from "../../platform/queues/queue-views.ts";

/** The dependencies that forms and actions take from the process that serves them. */
export type ActionDeps = OperatorReads & {
  pool: pg.Pool;
  config: Site;
  randomBytes: RandomBytes;
  queueViews: Pick<QueueViews, "open">;
  sendFile: SendFile;
};

/** The present values of what an action changes, by field, as a person types them. */
export type Present = Readonly<Record<string, string | undefined>>;

/** Thrown if the value entered in `field` cannot be used. The message continues the field's label. */
export class FieldProblem extends Error {
  readonly field: string;

  constructor(field: string, sentence: string) {
    super(sentence);
    this.field = field;
  }
}

/**
 * The context of a running action: connections that may write, the action's audit entry, and the process's own context.
 */
export interface Acting<Deps = object> extends AuditContext, Pick<ActionDeps, "config"> {
  api: ActionDeps & Deps;
  /** Shows the progress of a long run. @throws RunLeft when the operator has left the page or the process stops. */
  advance(done: number, total: number, soFar?: object): void;
}

/** Something that an operator can do: a page with a form. */
export interface Action<Deps = object> {
  /** The form's path after `/ops` (`:id` is the entity's id), the command of voucherctl, the page's title. */
  is: readonly [path: string, command: string, title: string];
  /** The role that an operator needs to see and to send the form. */
  role: OperatorRole;
  /** Sentences for the operator to read before the form. */
  about?: string;
  fields: Fields;
  present?(db: Queryable, id: string): Promise<Present>;
  /** The fields that serve only to confirm the act. The audit entry leaves them out. */
  unrecorded: readonly string[];
  /** Whether the page asks for confirmation if another entity under the same parent has the same `name`. */
  asksNamesake: boolean;
  /** Finds the values that the act refuses. A value that could not be read is undefined. */
  findProblems(db: Queryable, values: Record<string, unknown>): Promise<Problem[]>;
  /** The field to which a refusal by the service belongs if the refusal names no field. */
  refused?: string;
  /**
   * Only for a form that creates an entity. A form that is sent again creates no second entity. Receives the id of the
   * entity that the form has created, now or earlier, and the id in the form's path. Returns the next page's path after
   * `/ops`, or content to show.
   */
  creates?(id: string, parentId: string): string | Html;
  /**
   * What a long run did before it ended early, as a sentence. Null if it did nothing. A run without this function
   * changes nothing if it ends early.
   */
  partly?(done: number, total: number, soFar?: object): string | null;
  /**
   * Returns the next page's path after `/ops`, or content to show once. An action with `creates` returns the new
   * entity's id instead of a path. Null means the entity's own page.
   */
  run: (
    ctx: Acting<Deps>,
    id: string,
    values: Record<string, unknown>,
    lineage: Lineage,
  ) => Promise<string | Html | null>;
}
