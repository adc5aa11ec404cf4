import { z } from "zod";
import { isPast, type Lineage } from "../core/catalog/db/catalog.ts";
import { AppError, type ErrorCode } from "../platform/api/errors.ts";
import { text } from "../platform/api/fields.ts";
import { problemIn } from "../platform/api/problems.ts";
import type { Sentence } from "../platform/api/sentences/sentences.ts";
import type { Queryable } from "../platform/db/pool.ts";
import type { EntityKind } from "./entities.ts";
import type { Fields, Readable, Values } from "./fields.ts";
import type { OperatorRole } from "./operator-role.ts";
import type { AuditContext } from "./with-audit-entry.ts";

/** The name of a field as a face shows it: `--valid-until`, "Valid until" or `validUntil`. */
export type NameOf = (field: string) => string;

/** What is wrong with a field: a sentence without its full stop, with the names of a face. */
export interface Problem {
  field: string;
  say: (nameOf: NameOf) => Sentence;
  /** Whether it is a time that has passed. */
  isPast?: boolean;
}

/** Values that an act refuses, with all that is wrong with them. */
export class InvalidValues extends AppError {
  readonly problems: readonly Problem[];

  constructor(problems: readonly Problem[], nameOf: NameOf = (field) => field) {
    super("invalid_request", (sentences) => problems.map(({ say }) => `${say(nameOf)(sentences)}.`).join(" "));
    this.problems = problems;
  }
}

/** What a field's schema found wrong with it. */
export const problemWith = (field: string, sentence: Sentence): Problem => ({
  field,
  say: (nameOf) => (sentences) => `${nameOf(field)} ${sentence(sentences)}`,
});

/**
 * Reports how much of a long act is done, with what it has changed for good until then.
 * @throws an error that ends the act when its caller has left.
 */
type Advance = (done: number, total: number, soFar?: object) => void;

/** Refuses a field, or a part of its value: `windows.claim.opensAt`. */
type Refuse<F extends Fields> = (
  field: (keyof F & string) | `${string}.${string}`,
  say: (nameOf: NameOf) => Sentence,
) => void;

/** What is asked before an act that cannot be undone. */
interface Confirmation<F extends Fields> {
  /** What is lost, as a sentence, which a command asks about; null if nothing is. */
  loss(ctx: Pick<AuditContext, "pool">, id: string, values: Values<F>): Promise<string | null> | string | null;
  /** What must be typed into a form. */
  typed?: { name: string; label: string; isNot: string; matches(typed: string, lineage: Lineage): boolean };
}

/**
 * What an administrator can do, declared once. The verb of `voucherctl`, the form of the console, the endpoint of the
 * issuer API and the audit trail follow from it: a face may add presentation, never a rule.
 */
export interface Definition<F extends Fields, Result extends object, Deps extends object> {
  /** Noun and verb: the command, and the name in the audit trail. */
  name: `${string} ${string}`;
  /** What it acts on, or adds something to; null if it stands alone. */
  on: EntityKind | null;
  /** Whether it may be done without what it is on. */
  mayStandAlone?: true;
  /** What it adds. `run` then returns its id as `id`. A form acts once for each time that it is opened. */
  creates?: EntityKind;
  /** The least role that may do it. */
  role: OperatorRole;
  /** Whether an organization's own programs may do it. */
  scope?: "issuer";
  /** The face that offers it, if not all do. */
  only?: "command" | "console";
  /** An order of a few words: "Create a brand". */
  title: string;
  /** What one should know before, as sentences; by the id if that is a fixed name. */
  about?: string | ((id: string) => string);
  /** More text for the help of the command. */
  help?: string;
  /** What follows a command's name in its examples. */
  examples: readonly string[];
  fields: F;
  /** The field that a refusal concerns if the refusal names none. */
  refused?: keyof F & string;
  /** The codes with which it refuses values that have the right form, besides those of every act. */
  refusals?: readonly ErrorCode[];
  /** Whether to ask before a second entity gets the same `name` under the same parent. */
  asksNamesake?: true;
  /** Rules across fields that can be read. Those of one field belong to its declaration. */
  rules?(values: Readable<F>, refuse: Refuse<F>): void;
  /** Times in values of several parts that must not have passed, by the names of the parts. */
  ends?(values: Readable<F>): Readonly<Record<string, Date | null>>;
  confirm?: Confirmation<F>;
  /** Words for the progress of a long act: "Issuing", "vouchers", "issued". */
  progress?: { doing: string; of: string; done: string };
  /** What programs get of the result. By default all of it. */
  result?: z.ZodObject;
  /** What programs of organizations get, if it is more than that. */
  response?: z.ZodObject;
  /** What an earlier call has done that this one repeats: the rules then do not apply, and nothing is done. */
  repeated?(ctx: AuditContext, id: string, values: Values<F>): Promise<Result | null>;
  /** Does it, in a transaction with its audit entry. `id` is of what it is on; empty if it stands alone. */
  run(ctx: AuditContext & Deps, id: string, values: Values<F>, advance: Advance): Promise<Result>;
  /** What was done, as a sentence. */
  said(result: Result, values: Values<F>, id: string): string;
  /** What a long act that ended early had done, as a sentence. Without it, such an act does nothing. */
  partly?(soFar: Result): string;
  /** The secret in the result, which is shown once. */
  secret?(result: Result): string;
  /** Whether the console shows what was done before it goes on. */
  isReport?: true;
  /** What usually comes next, for the user of a command. */
  next?(result: Result, values: Values<F>, id: string): string;
  /** What the console offers next to create on the new entity. */
  leadsTo?: EntityKind;
}

/** An act whose `run` has checked its rules. What it takes from its process besides the audit context is `Deps`. */
export interface Act<F extends Fields = Fields, Result extends object = object, Deps extends object = object>
  extends Omit<Definition<F, Result, Deps>, "run"> {
  /** @throws InvalidValues; what the act throws. */
  run(ctx: AuditContext & Deps, id: string, values: Values<F>, advance?: Advance): Promise<Result>;
  /** Keeps a table of acts from taking one that needs more than the table's process has. */
  readonly needs?: (deps: Deps) => void;
}

/** What to say when something new has the name of another entity. */
export const sayNamesake = (id: string, name: string): string => `There is already ${id} with the name ${name}.`;

/** The result of an act that only creates something. */
export const CREATED = z.object({ id: text("The id of what was created.") });

/** Declares an act. */
export function act<const F extends Fields, Result extends object, Deps extends object = object>(
  definition: Definition<F, Result, Deps>,
): Act<F, Result, Deps> {
  return {
    ...definition,
    run: async (ctx, id, values, advance = () => undefined) => {
      const before = (await definition.repeated?.(ctx, id, values)) ?? null;
      if (before !== null) return before;
      const problems = await findProblems(definition, values, ctx.pool);
      if (problems.length > 0) throw new InvalidValues(problems);
      return definition.run(ctx, id, values, advance);
    },
  };
}

/**
 * What the rules of an act refuse: those across fields, and times that have passed by the database's clock, unless the
 * value `mayBePast` accepts them. A face calls it for values of which some cannot be read, to name all that is wrong at
 * once.
 */
export async function findProblems<F extends Fields>(
  { fields, rules, ends }: Pick<Definition<F, object, object>, "fields" | "rules" | "ends">,
  values: Readable<F>,
  db: Queryable,
): Promise<Problem[]> {
  const problems: Problem[] = [];
  rules?.(values, (field, say) => problems.push({ field, say }));
  const future = Object.entries(fields).flatMap(([field, declared]) =>
    declared.future ? [[field, values[field]]] : [],
  );
  for (const [field, end] of [...future, ...Object.entries(ends?.(values) ?? {})] as [string, unknown][]) {
    if (!(end instanceof Date) || values.mayBePast === true || !(await isPast(db, end))) continue;
    problems.push({ ...problemWith(field, problemIn("isPast", end.toISOString())), isPast: true });
  }
  return problems;
}
