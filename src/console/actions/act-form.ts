import { z } from "zod";
import { type Act, findProblems } from "../../acts/act.ts";
import { ENTITIES, type EntityKind } from "../../acts/entities.ts";
import type { Field as ActField, Fields as ActFields, Values } from "../../acts/fields.ts";
import { listCatalog } from "../../acts/list-catalog.ts";
import type { AuditContext } from "../../acts/with-audit-entry.ts";
import type { Lineage } from "../../core/catalog/db/catalog.ts";
import { type Html, html } from "../../pages/html.ts";
import type { Site } from "../../pages/layout.ts";
import { wholeNumber } from "../../platform/http/whole-number.ts";
import type { TimeUse } from "../../platform/times.ts";
import { type Acting, type Action, type ActionDeps, type Field, FieldProblem, type Fields } from "./action.ts";

/** Maximum number of products in a choice. */
const PRODUCTS_MAX = 1_000;
const HOUR_MS = 3_600_000;
/** Longest duration that a form takes: a year. */
const HOURS_MAX = 8_760;

/** How to enter a time. The meaning of a date without a time depends on the field's use. */
const TIME_HINT: Record<TimeUse, string> = {
  start: "From this day on: 2027-12-01. With a time: 2027-12-01 08:00.",
  end: "To the end of this day: 2027-12-31. With a time: 2027-12-31 18:00.",
  rangeEnd: "To the end of this day: 2027-12-31. With a time: 2027-12-31 18:00.",
};

/** The parts of an act that decide where its form is. */
export type FormPlace = Pick<Act, "on" | "creates" | "name">;

/** The path of an act's form after `/ops`. `named` is the id of the entity that the act changes. */
export function formPathOf({ on, creates, name }: FormPlace, named = ":id"): string {
  const place = on === null ? "" : `/${ENTITIES[on].collection}/${named}`;
  return creates === undefined ? `${place}/${name.split(" ")[1]}` : `${place}/${ENTITIES[creates].collection}/new`;
}

/**
 * The form of an act. `takes` supplies what the act needs from the serving process, besides what all forms have.
 * `named` is the entity's id if the form serves one entity only.
 */
export function formOf<F extends ActFields, Result extends object, Deps extends object, Api = object>(
  act: Act<F, Result, Deps>,
  takes: (ctx: Acting<Api>) => Deps = () => ({}) as Deps,
  named?: string,
): Action<Api> {
  const { on, creates, confirm, name, title, about, refused, leadsTo } = act;
  const typed = confirm?.typed;
  const collection = on === null ? "" : `/${ENTITIES[on].collection}`;
  const place = on === null ? "" : `${collection}/${named ?? ":id"}`;
  const fields: Fields = {
    ...(typed && { [typed.name]: { label: typed.label, unrecorded: true, schema: NOT_EMPTY } }),
    ...formFields(act.fields),
  };
  return {
    is: [formPathOf(act, named), name, named === undefined ? title : `${title} ${named}`],
    role: act.role,
    asksNamesake: act.asksNamesake === true,
    findProblems: (db, entered) => findProblems(act, valuesOf(act.fields, entered), db),
    partly: (_done: number, _total: number, soFar?: object) => (soFar && act.partly?.(soFar as Result)) ?? null,
    fields,
    ...(about !== undefined && { about: typeof about === "function" ? about(named ?? "") : about }),
    ...(refused !== undefined && { refused }),
    ...(creates !== undefined && {
      creates: (id: string, parentId: string) => {
        if (act.secret !== undefined) return sayShownOnce(creates, id);
        if (leadsTo !== undefined) return `/${ENTITIES[creates].collection}/${id}/${ENTITIES[leadsTo].collection}/new`;
        return "idField" in ENTITIES[creates] ? `/${ENTITIES[creates].collection}/${id}` : `${collection}/${parentId}`;
      },
    }),
    async run(ctx, id, entered, lineage) {
      const values = valuesOf(act.fields, entered);
      if (typed && !typed.matches(String(entered[typed.name]), lineage, values))
        throw new FieldProblem(typed.name, typed.isNot);
      const result = await act.run({ ...contextOf(ctx), ...takes(ctx) }, named ?? id, values, ctx.advance);
      const said = act.said(result, values, id);
      const secret = act.secret?.(result);
      if (secret !== undefined) return renderSecret(ctx, creates ?? on, said, secret);
      if (creates !== undefined) return (result as { id?: string }).id ?? id;
      if (act.isReport) return html`${said}`;
      return named === undefined ? null : place;
    },
  };
}

const contextOf = ({ pool, randomBytes, audited }: AuditContext): AuditContext => ({ pool, randomBytes, audited });

const NOT_EMPTY = z.string().min(1, "must not be empty").max(1_000);

/** What to do with the new secret of an entity, and the page that lists the entity. */
const SECRETS: Partial<Record<EntityKind, { use: (config: Site) => Html; page: string }>> = {
  key: {
    use: ({ basePath }) => html`Try it in <a href="${basePath}/docs#/Partner/redeemVoucher">the API reference</a>: \
choose Authorize, enter the key, and redeem a voucher's code.`,
    page: "its organization's page",
  },
  operator: {
    use: () => html`The operator signs in with the name, and with this token as the password.`,
    page: "the page of operators",
  },
};

/** Shows a secret, which appears only here, and what to do with it. */
function renderSecret({ config }: Pick<Acting, "config">, kind: EntityKind | null, said: string, secret: string): Html {
  return html`<strong>Copy this now. It is not shown again.</strong></p>
<pre class="secret"><code>${secret}</code></pre>
<p>${said}</p>
<p>${kind === null ? null : (SECRETS[kind]?.use(config) ?? null)}`;
}

const sayShownOnce = (
  kind: EntityKind,
  id: string,
) => html`The ${kind} <code>${id}</code> was created when this form was first sent, and its secret was \
shown only then. If you have not seen it, rotate it on ${SECRETS[kind]?.page ?? "its page"}.`;

/** The name of a field in the form. A duration is entered in hours. */
const nameIn = (name: string, { kind }: ActField) => (kind === "duration" ? `${name}Hours` : name);

function formFields(fields: ActFields): Fields {
  const shown = Object.entries(fields).filter(([, { commandOnly, onlyFor }]) => !commandOnly && onlyFor !== "programs");
  return Object.fromEntries(shown.map(([name, field]) => [nameIn(name, field), formField(field)]));
}

function formField(field: ActField): Field {
  const { kind, label, hint, values, initial, suggested, fromLink, use = "end" } = field;
  const notes = [
    kind === "time" && "UTC",
    kind === "duration" && "hours",
    (initial === null || kind === "list") && "optional",
  ].filter(Boolean);
  const common = {
    label: notes.length === 0 ? label : `${label} (${notes.join(", ")})`,
    hint: kind === "time" ? TIME_HINT[use] : hint,
    initial: suggested ?? (initial === undefined || initial === null ? [] : [String(initial)]),
    schema: field.typed,
    ...(field.verbatim && { verbatim: true }),
    ...(fromLink && { fromQuery: true }),
  };
  const choices = values?.map((value) => [value, value] as const) ?? [];
  switch (kind) {
    case "flag":
      return { ...common, type: "checkbox", initial: [] };
    case "choice":
      return { ...common, choices };
    case "choices":
      return { ...common, choices, many: true, initial: suggested ?? [] };
    case "list":
      return { ...common, initial: [] };
    case "time":
      return {
        ...common,
        schema: z
          .string()
          .transform(addZone)
          .pipe(field.typed as z.ZodType<unknown, string>),
      };
    case "duration":
      return { ...common, initial: [String(Number(initial) / HOUR_MS)], schema: HOURS };
    case "reference":
      return { ...common, choices: listProducts };
    default:
      return common;
  }
}

/** Adds the zone: a form takes times in UTC without one. */
const addZone = (text: string) => text.replace(/^(\S+)[ T](\S+?)Z?$/, "$1T$2Z");

const HOURS = z
  .string()
  .transform((value) => wholeNumber(value, 0, HOURS_MAX) ?? Number.NaN)
  .refine((value) => !Number.isNaN(value), `must be a whole number from 0 to ${HOURS_MAX}`);

async function listProducts(ctx: ActionDeps, { brandId }: Lineage) {
  const page = { after: "", limit: PRODUCTS_MAX };
  const { items } = await ctx.operatorReads({}, () => listCatalog(ctx, "products", { brand: String(brandId) }, page));
  return items.map(({ id, name }): [string, string] => [id, name]);
}

/** The act's values, from the values of its form. */
function valuesOf<F extends ActFields>(fields: F, entered: Record<string, unknown>): Values<F> {
  const values = Object.entries(fields).map(([name, field]) => {
    const key = nameIn(name, field);
    const value = key in entered ? entered[key] : field.initial;
    return [name, field.kind === "duration" ? Number(value) * HOUR_MS : value];
  });
  return Object.fromEntries(values) as Values<F>;
}
