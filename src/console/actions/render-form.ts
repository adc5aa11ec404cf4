import { LISTS } from "../../acts/db/lists.ts";
import { type Field, KINDS } from "../../acts/fields.ts";
import { listCatalog } from "../../acts/list-catalog.ts";
import type { Lineage } from "../../core/catalog/db/catalog.ts";
import { type Html, html } from "../../pages/html.ts";
import type { Site } from "../../pages/layout.ts";
import {
  isFinal,
  layOutForOperators,
  renderSteps,
  renderTrail,
  sectionStep,
  siteOfRequest,
} from "../../pages/operator-frame.ts";
import type { Action, ActionDeps, Present } from "./action.ts";

/** Maximum number of products from which a form lets the operator choose. */
const PRODUCTS_MAX = 1_000;

/** The values of a form by field, as sent by the browser. */
export type Entered = Readonly<Record<string, readonly string[]>>;

/**
 * Whether a field without a value changes nothing. A form shows the present value beside this field, not in it.
 * Otherwise a form that was opened earlier would undo another operator's change.
 */
const isOptional = ({ initial }: Field): boolean => initial === null;

/** Name of the hidden field with a token. Each display of a form has a new token, which acts only once. */
export const FORM_TOKEN = "formToken";

/** Whether a form sends files. */
export const sendsFiles = ({ fields }: Pick<Action<never>, "fields">): boolean =>
  Object.values(fields).some(({ kind }) => KINDS[kind].input.shape === "file");

/** The page of an action: the links to its parents, its title, and `content`. */
export function renderPage(
  config: Site,
  { is: [path, , title] }: Action<never>,
  lineage: Lineage | null,
  content: Html,
): Html {
  const site = siteOfRequest(config, { path });
  const section = path.charAt(1).toUpperCase() + path.split("/")[1]?.slice(1);
  const trail =
    lineage === null
      ? renderSteps([sectionStep(site, section), { path: site.shown, label: title }])
      : renderTrail(site, lineage, { path: site.shown, label: title });
  return layOutForOperators(site, title, html`${trail}<h1>${title}</h1>\n${content}`);
}

/**
 * The page with an action's form, the entered values and their problems. Fields without an entry in `entered` have the
 * values with which the form begins. `id` is the id of the entity that the action changes. `problems` has the problem
 * of each field. The empty name stands for the whole form.
 */
export async function renderFormPage(
  ctx: ActionDeps,
  action: Action<never>,
  lineage: Lineage | null,
  id: string | null,
  entered: Entered,
  problems: Readonly<Record<string, string>> = {},
  offersNamesake = false,
): Promise<Html> {
  const { present: read } = action;
  const present: Present =
    read === undefined || id === null ? {} : await ctx.operatorReads({}, () => read(ctx.pool, id));
  const fields: Html[] = [];
  for (const [name, declared] of Object.entries(action.fields)) {
    const now = present[name];
    const field =
      now === undefined || !isOptional(declared)
        ? declared
        : { ...declared, hint: `${declared.hint} Now: ${now}.`.trim() };
    const values = entered[name] ?? beginningOf(declared, now);
    fields.push(renderField(name, field, values, await choicesOf(ctx, field, lineage), problems[name]));
  }
  if (offersNamesake) fields.push(renderBox("namesake", "on", "Create another one with this name", false));
  return renderPage(
    ctx.config,
    action,
    lineage,
    html`${
      action.about === undefined
        ? null
        : html`<p>${action.about}\
</p>\n`
    }${renderProblem("", problems[""])}
<form class="act" method="post"${sendsFiles(action) ? html` enctype="multipart/form-data"` : null} novalidate>${
      action.creates === undefined
        ? null
        : html`<input type="hidden" \
name="${FORM_TOKEN}" value="${crypto.randomUUID()}">`
    }
${fields}<button type="submit"${isFinal(action.is[0]) ? html` class="final"` : null}>${action.is[2]}</button>
</form>`,
  );
}

function renderProblem(name: string, problem: string | undefined): Html | null {
  return problem === undefined ? null : html`<p class="problem" id="f-${name}-problem" role="alert">${problem}</p>`;
}

function renderBox(name: string, value: string, label: string, checked: boolean): Html {
  const id = `f-${name}-${value}`;
  return html`<p class="tick"><input type="checkbox" id="${id}" name="${name}" \
value="${value}"${checked ? html` checked` : null}><label for="${id}">${label}</label></p>\n`;
}

type Choice = readonly [value: string, text: string];

async function choicesOf(ctx: ActionDeps, { kind, values = [] }: Field, lineage: Lineage | null): Promise<Choice[]> {
  if (KINDS[kind].input.shape !== "products") return values.map((value) => [value, value]);
  const [brand, page] = [String(lineage?.brandId), { after: "", limit: PRODUCTS_MAX }];
  const { items } = await ctx.operatorReads({}, () => listCatalog(ctx, LISTS.products, { brand }, page));
  return items.map(({ id, name }) => [id, name]);
}

function beginningOf(field: Field, present: string | undefined): readonly string[] {
  return present === undefined || isOptional(field) ? initialOf(field) : [present];
}

/** What an empty form contains. */
function initialOf(field: Field): readonly string[] {
  const { suggested, initial, kind } = field;
  const own = suggested ?? (initial === undefined || initial === null ? [] : [String(initial)]);
  return KINDS[kind].input.initial?.(field) ?? own;
}

function labelOf(field: Field): string {
  const { kind, label } = field;
  const { unit, isOptional: mayBeEmpty } = KINDS[kind].input;
  const notes = [unit, (isOptional(field) || mayBeEmpty) && "optional"].filter(Boolean);
  return notes.length === 0 ? label : `${label} (${notes.join(", ")})`;
}

function renderField(
  name: string,
  field: Field,
  values: readonly string[],
  choices: readonly Choice[],
  problem: string | undefined,
): Html {
  const { shape, ...shown } = KINDS[field.kind].input;
  const label = labelOf(field);
  const hint = shown.hint?.(field) ?? field.hint;
  const [value = ""] = values;
  if (shape === "box") return renderBox(name, "on", label, value !== "");
  const id = `f-${name}`;
  const describedBy = [hint ? `${id}-hint` : "", problem ? `${id}-problem` : ""].join(" ").trim();
  const description = describedBy ? html` aria-describedby="${describedBy}"` : null;
  const about = html`${description}${problem ? html` aria-invalid="true"` : null}`;
  const notes = html`${hint ? html`<p class="fine" id="${id}-hint">${hint}</p>` : null}${renderProblem(name, problem)}`;
  if (shape === "boxes") {
    const boxes = choices.map(([each, text]) => renderBox(name, each, text, values.includes(each)));
    return html`<fieldset${about}><legend>${label}</legend>${notes}${boxes}</fieldset>\n`;
  }
  const options = choices.map(
    ([each, text]) => html`<option value="${each}"${each === value ? html` selected` : null}>${text}</option>`,
  );
  const controls = {
    line: html`<input id="${id}" name="${name}" type="text" value="${value}" autocomplete="off" \
spellcheck="false"${about}>`,
    // A browser drops the chosen file when a form is shown again, so the value is not set.
    file: html`<input id="${id}" name="${name}" type="file"${about}>`,
  };
  const control =
    controls[shape as keyof typeof controls] ?? html`<select id="${id}" name="${name}"${about}>${options}</select>`;
  return html`<div class="field"><label for="${id}">${label}</label>${notes}${control}</div>\n`;
}
