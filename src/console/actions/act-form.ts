import { z } from "zod";
import { type Act, findProblems } from "../../acts/act.ts";
import { ENTITIES, type EntityKind } from "../../acts/entities.ts";
import { type Fields, fieldsOfForm, valuesOfForm } from "../../acts/fields.ts";
import { type Html, html } from "../../pages/html.ts";
import type { Site } from "../../pages/layout.ts";
import { type Acting, type Action, FieldProblem } from "./action.ts";

/** The properties of an act that determine the path of its form. */
export type FormPlace = Pick<Act, "on" | "creates" | "name">;

/** The path of an act's form after `/ops`. `named` is the id of the entity that the act changes. */
export function formPathOf({ on, creates, name }: FormPlace, named = ":id"): string {
  const entityPath = on === null ? "" : `/${ENTITIES[on].collection}/${named}`;
  return creates === undefined
    ? `${entityPath}/${name.split(" ")[1]}`
    : `${entityPath}/${ENTITIES[creates].collection}/new`;
}

/**
 * The form of an act. `takes` supplies what the act needs from the process, in addition to the dependencies of all
 * forms. `named` is the entity's id if the form serves only one entity.
 */
export function formOf<F extends Fields, Result extends object, Deps extends object, Api = object>(
  act: Act<F, Result, Deps>,
  takes: (ctx: Acting<Api>) => Deps = () => ({}) as Deps,
  named?: string,
): Action<Api> {
  const { on, creates, confirm, name, title, about, refused, leadsTo } = act;
  const typed = confirm?.typed;
  const collection = on === null ? "" : `/${ENTITIES[on].collection}`;
  const entityPath = on === null ? "" : `${collection}/${named ?? ":id"}`;
  const confirmation: Fields = typed ? { [typed.name]: { ...CONFIRMATION, label: typed.label } } : {};
  return {
    is: [formPathOf(act, named), name, named === undefined ? title : `${title} ${named}`],
    role: act.role,
    asksNamesake: act.asksNamesake === true,
    ...(act.present && { present: act.present }),
    findProblems: (db, entered) => findProblems(act, valuesOfForm(act.fields, entered), db),
    partly: (_done: number, _total: number, soFar?: object) => (soFar && act.partly?.(soFar as Result)) ?? null,
    fields: { ...fieldsOfForm(act.fields), ...confirmation },
    unrecorded: Object.keys(confirmation),
    ...(about !== undefined && { about }),
    ...(refused !== undefined && { refused }),
    ...(creates !== undefined && {
      creates: (id: string, parentId: string) => {
        if (act.secret !== undefined) return sayShownOnce(creates, id);
        if (leadsTo !== undefined) return `/${ENTITIES[creates].collection}/${id}/${ENTITIES[leadsTo].collection}/new`;
        return "idField" in ENTITIES[creates] ? `/${ENTITIES[creates].collection}/${id}` : `${collection}/${parentId}`;
      },
    }),
    async run(ctx, id, entered, lineage) {
      const values = valuesOfForm(act.fields, entered);
      if (typed && !typed.matches(String(entered[typed.name]), lineage, values))
        throw new FieldProblem(typed.name, typed.isNot);
      const result = await act.run({ ...contextOf(ctx), ...takes(ctx) }, named ?? id, values, ctx.advance);
      const said = act.said(result, values, id);
      const secret = act.secret?.(result);
      if (secret !== undefined) return renderSecret(ctx, creates ?? on, said, secret);
      if (creates !== undefined) return (result as { id?: string }).id ?? id;
      if (act.isReport) return renderReport(said);
      return named === undefined ? null : entityPath;
    },
  };
}

/** Makes the first line a sentence. Further lines are unchanged. */
function renderReport(said: string): Html {
  const [first = "", ...lines] = said.split("\n");
  return lines.length === 0 ? html`${first}` : html`${first}</p>\n<pre>${lines.join("\n")}</pre>\n<p>`;
}

const contextOf = ({ pool, randomBytes, audited, config }: Omit<Acting, "api">) => ({
  pool,
  randomBytes,
  audited,
  config,
});

const NOT_EMPTY = z.string().min(1, "must not be empty").max(1_000);
/** The text that must be typed to confirm an act. */
const CONFIRMATION = { kind: "text", hint: "", typed: NOT_EMPTY, json: NOT_EMPTY } as const;

/** For each kind of entity with a secret: what to do with a new secret, and the page that lists the entity. */
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

/** Shows a secret, which appears nowhere else, and what to do with it. */
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
