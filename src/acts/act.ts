import { z } from "zod";
import { isPast, type Lineage } from "../core/catalog/db/catalog.ts";
import { AppError, type ErrorCode } from "../platform/api/errors.ts";
import { text } from "../platform/api/fields.ts";
import { problemIn } from "../platform/api/problems.ts";
import type { Sentence } from "../platform/api/sentences.ts";
import { confirmed } from "../platform/db/durability.ts";
import type { Queryable } from "../platform/db/pool.ts";
import type { EntityKind } from "./entities.ts";
import type { Field, Fields, Readable, Values } from "./fields.ts";
import type { OperatorRole } from "./operator-role.ts";
import type { AuditContext } from "./with-audit-entry.ts";

/** A field's name in one interface: `--valid-until` in a command, "Valid until" in a form, `validUntil` in the API. */
export type NameOf = (field: string) => string;

/** The problem with a field: a sentence without a full stop, with the field names of the interface. */
export interface Problem {
  field: string;
  say: (nameOf: NameOf) => Sentence;
  isPast?: boolean;
}

/** The error for values that an act refuses. It lists every problem. */
export class InvalidValues extends AppError {
  readonly problems: readonly Problem[];

  constructor(problems: readonly Problem[], nameOf: NameOf = (field) => field) {
    super("invalid_request", (t) => problems.map(({ say }) => `${say(nameOf)(t)}.`).join(" "));
    this.problems = problems;
  }
}

/** A problem with one field: the field's name, followed by the given sentence. */
export const problemWith = (field: string, sentence: Sentence): Problem => ({
  field,
  say: (nameOf) => (t) => `${nameOf(field)} ${sentence(t)}`,
});

/**
 * Reports the progress of a long act: `done` of `total` steps. `soFar` is what the act has committed so far.
 * @throws an error that ends the act when its caller has disconnected.
 */
export type Advance = (done: number, total: number, soFar?: object) => void;

/** Refuses a field, or a part of its value, such as `windows.claim.opensAt`. */
type Refuse<F extends Fields> = (
  field: (keyof F & string) | `${string}.${string}`,
  say: (nameOf: NameOf) => Sentence,
) => void;

/** The question before an act that cannot be undone. */
interface Confirmation<F extends Fields> {
  /** What will be lost, as a sentence in a command's question. Null if nothing will be lost. */
  loss(ctx: Pick<AuditContext, "pool">, id: string, values: Values<F>): Promise<string | null> | string | null;
  typed?: Typed<F>;
}

/** The text that a person must type into a form to confirm an act. */
interface Typed<F extends Fields> {
  name: string;
  label: string;
  isNot: string;
  matches(typed: string, lineage: Lineage, values: Values<F>): boolean;
}

/** A second form for an act, on pages of another kind of entity. The entity's id becomes one of the act's values. */
interface FurtherForm<F extends Fields> {
  on: EntityKind;
  /** The act's field that takes the entity's id. */
  field: keyof F & string;
  /** Fields that this form shows differently from the act's own form, under the same names. */
  fields: Readonly<Partial<Record<keyof F & string, Field>>>;
  typed?: Typed<F>;
}

/**
 * An administrator's act, declared once. The verb of `voucherctl`, the console's form, the endpoint of the issuer API
 * and the audit trail follow from it. These interfaces may add presentation, never a rule.
 */
export interface Definition<F extends Fields, Result extends object, Deps extends object> {
  /** Noun and verb. They are the command, and the act's name in the audit trail. */
  name: `${string} ${string}`;
  /** The kind of entity that the act changes, or to which it adds something. Null if it concerns no entity. */
  on: EntityKind | null;
  /** Whether the act also works without an entity of the kind `on`. */
  mayStandAlone?: true;
  /** The kind of entity that the act creates. `run` returns its `id`. A form that is sent twice creates one entity. */
  creates?: EntityKind;
  /** The lowest role that may perform the act. */
  role: OperatorRole;
  /** Set if programs of an organization may perform the act. */
  scope?: "issuer";
  /** Set if only one interface offers the act. By default, all do. */
  only?: "command" | "console";
  /** An imperative phrase: "Create a brand". */
  title: string;
  /** Sentences that a person reads before the act. */
  about?: string;
  /** More text for the help of the command. */
  help?: string;
  /** The arguments after the command's name, one text per example. */
  examples: readonly string[];
  fields: F;
  /** The present values of what the act changes, as a person types them. The act's form shows these values. */
  present?(db: Queryable, id: string): Promise<Partial<Record<keyof F, string>>>;
  /** The field at which a form shows a refusal that names no field. */
  refused?: keyof F & string;
  /** Error codes of refusals of well-formed values, in addition to the codes that every act can return. */
  refusals?: readonly ErrorCode[];
  /** Whether voucherctl and the console ask before an entity gets the `name` of another under the same parent. */
  asksNamesake?: true;
  /** Checks rules across several fields, on the values that could be read. Fields declare their own rules. */
  rules?(values: Readable<F>, refuse: Refuse<F>): void;
  /** Times inside composite values that must be in the future, by their paths. */
  ends?(values: Readable<F>): Readonly<Record<string, Date | null>>;
  confirm?: Confirmation<F>;
  /** A second form of the act in the console, without an entity of the kind `on`. So it requires `mayStandAlone`. */
  furtherForm?: FurtherForm<F>;
  /** Words for the progress of a long act: "Issuing", "vouchers", "issued". */
  progress?: { doing: string; of: string; done: string };
  /** The part of the result that programs receive. By default, all of it. */
  result?: z.ZodObject;
  /** The schema of the issuer API's response, if it contains more than `result`. */
  response?: z.ZodObject;
  /** Returns the result of the earlier call that this call repeats, if any. The act then does nothing else. */
  repeated?(ctx: AuditContext, id: string, values: Values<F>): Promise<Result | null>;
  /** Performs the act in a transaction with its audit entry. `id` names an entity of kind `on`, or is empty. */
  run(ctx: AuditContext & Deps, id: string, values: Values<F>, advance: Advance): Promise<Result>;
  /** A sentence about what was done. */
  said(result: Result, values: Values<F>, id: string): string;
  /** What a long act did before it ended early, as a sentence. Without this function, an early end changes nothing. */
  partly?(soFar: Result): string;
  /** The secret in the result, which is shown once. */
  secret?(result: Result): string;
  /** Whether the console shows what `said` returns, instead of the entity's page. */
  isReport?: true;
  /** What the user of a command usually does next. */
  next?(result: Result, values: Values<F>, id: string): string;
  /** The kind of entity that the console offers to create next, under the new entity. */
  leadsTo?: EntityKind;
}

/** An act whose `run` first checks its rules. `Deps` is what the act needs in addition to the audit context. */
export interface Act<F extends Fields = Fields, Result extends object = object, Deps extends object = object>
  extends Omit<Definition<F, Result, Deps>, "run"> {
  /** @throws InvalidValues; the act's own errors; UnusableDatabase when no standby confirms the answer. */
  run(ctx: AuditContext & Deps, id: string, values: Values<F>, advance?: Advance): Promise<Result>;
  /** Never called. With it, the compiler rejects a process that lacks what the act needs. */
  readonly needs?: (deps: Deps) => void;
}

/** The warning before a new entity gets the name of an existing entity. */
export const sayNamesake = (id: string, name: string): string => `There is already ${id} with the name ${name}.`;

/** The result of an act that only creates an entity. */
export const CREATED = z.object({ id: text("The id of what was created.") });

/** Declares an act. The synchronous standbys confirm all that the act answers, including refusals and repeats. */
export function act<const F extends Fields, Result extends object, Deps extends object = object>(
  definition: Definition<F, Result, Deps>,
): Act<F, Result, Deps> {
  return {
    ...definition,
    run: (ctx, id, values, advance = () => undefined) =>
      confirmed(ctx.pool, async () => {
        const before = (await definition.repeated?.(ctx, id, values)) ?? null;
        if (before !== null) return before;
        const problems = await findProblems(definition, values, ctx.pool);
        if (problems.length > 0) throw new InvalidValues(problems);
        return definition.run(ctx, id, values, advance);
      }),
  };
}

/** Returns the act for its second form, if it has one. The form's entity id becomes one of the act's values. */
export function actOfFurtherForm<F extends Fields, Result extends object, Deps extends object>(
  act: Act<F, Result, Deps>,
): Act<F, Result, Deps> | null {
  const { furtherForm, confirm, ...same } = act;
  if (furtherForm === undefined) return null;
  const { on, field, fields, typed } = furtherForm;
  return {
    ...same,
    on,
    fields: { ...act.fields, ...fields },
    ...(confirm && typed && { confirm: { ...confirm, typed } }),
    run: (ctx, id, values, advance) => act.run(ctx, "", { ...values, [field]: id }, advance),
  };
}

/**
 * Finds violated rules across fields, and times that have passed on the database's clock, unless `mayBePast` accepts
 * them. Interfaces call it even with values that they could not read, to report all problems at once.
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
    problems.push({ ...problemWith(field, problemIn("isPast", { time: end.toISOString() })), isPast: true });
  }
  return problems;
}
