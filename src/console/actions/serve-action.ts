import type { Request, RequestHandler } from "express";
import type pg from "pg";
import { z } from "zod";
import { InvalidValues, sayNamesake } from "../../acts/act.ts";
import { assertNotSent, SentBefore } from "../../acts/claim-form.ts";
import { ENTITIES, type EntityNames } from "../../acts/entities.ts";
import { type Field, KINDS, withoutBlanks } from "../../acts/fields.ts";
import { hasLineage, readLineage } from "../../acts/read-lineage.ts";
import { auditedCommand } from "../../acts/with-audit-entry.ts";
import { findNamesake, type Lineage } from "../../core/catalog/db/catalog.ts";
import { Html, html } from "../../pages/html.ts";
import { OPS_PATH, opsPath, pathOf } from "../../pages/operator-frame.ts";
import { AppError } from "../../platform/api/errors.ts";
import { inEnglish } from "../../platform/api/problems.ts";
import { confirmed } from "../../platform/db/durability.ts";
import { isDatabaseAway, isForbidden } from "../../platform/db/transaction.ts";
import { pathId } from "../../platform/http/endpoint.ts";
import { sendPage } from "../../platform/http/negotiate.ts";
import { actingOf, operatorOf } from "../sign-in/signed-in.ts";
import { textOf } from "../visit.ts";
import { type Action, type ActionDeps, FieldProblem } from "./action.ts";
import { openProgress, RunLeft } from "./progress.ts";
import { type Entered, FORM_TOKEN, renderFormPage, renderPage } from "./render-form.ts";

/**
 * What operators' changes need: connections that may write, and a signal that ends long runs when the process stops.
 */
export interface Console {
  pool: pg.Pool;
  signal: AbortSignal;
}

/** The context of one act by an operator. `args` must contain no secret and no voucher code. */
export function actingAs(
  request: Request,
  ctx: Pick<ActionDeps, "randomBytes">,
  console: Console,
  command: string,
  args: object,
  formToken: string | null = null,
) {
  const audited = auditedCommand(command, { ...args }, { ...actingOf(request), host: "console", formToken });
  return { pool: console.pool, randomBytes: ctx.randomBytes, audited };
}

/** The entity that a path such as `/brands/:id/…` names, with its parents. Null if it belongs to no organization. */
export async function openLineage(ctx: ActionDeps, path: string, { params }: Request): Promise<Lineage | null> {
  const [, collection = ""] = path.split("/");
  return path.includes(":id") && hasLineage(collection)
    ? ctx.operatorReads({}, () => readLineage(ctx, collection, pathId(params.id)))
    : null;
}

/** Shows an action's form. */
export function showForm(ctx: ActionDeps, action: Action<never>): RequestHandler {
  return async (request, response) => {
    const lineage = await openLineage(ctx, action.is[0], request);
    const linked = Object.entries(action.fields).filter(([, { fromLink }]) => fromLink);
    const entered = Object.fromEntries(linked.map(([name]) => [name, [textOf(request.query[name])]]));
    sendPage(response, 200, await renderFormPage(ctx, action, lineage, idIn(action, request), entered));
  };
}

/** The id of the entity that the action's path names. Null if it names none. */
function idIn({ is: [path] }: Action<never>, { params }: Request): string | null {
  return path.includes(":id") ? pathId(params.id) : null;
}

function entityIn(path: string): EntityNames {
  const [, collection] = path.split("/");
  const found = Object.values(ENTITIES).find((entity) => entity.collection === collection);
  if (found === undefined) throw new Error(`${path} names no entity`);
  return found;
}

/** Performs a form's action and shows the result, or shows the form again with the values and their problems. */
export function runAction<Deps extends ActionDeps>(ctx: Deps, console: Console, action: Action<Deps>): RequestHandler {
  const [path, command] = action.is;
  const { option, collection, listedOn = [collection] } = entityIn(path);
  const idName = path.endsWith("/new") ? option : "id";
  const { config } = ctx;
  return async (request, response) => {
    const lineage = await openLineage(ctx, path, request);
    const id = idIn(action, request);
    const entered = enteredIn(action, request.body);
    const refuse = async (status: number, problems: Record<string, string>, offersNamesake = false) =>
      sendPage(response, status, await renderFormPage(ctx, action, lineage, id, entered, problems, offersNamesake));
    const { values, recorded, problems } = await check(action, entered, console.pool);
    if (Object.keys(problems).length > 0) return refuse(400, problems);
    const { [FORM_TOKEN]: sentToken, namesake: insists } = Object(request.body) as Record<string, unknown>;
    const formToken = action.creates === undefined ? null : z.uuid().safeParse(sentToken).data;
    if (formToken === undefined) return refuse(400, { "": "This form is out of date. Check it, and send it again." });
    const next = lineage === null ? opsPath(config, ...listedOn) : pathOf(config, lineage);
    const { advance, end } = openProgress(response, console.signal, {
      render: (lines) => renderPage(config, action, lineage, html`<p><a href="${next}">Stop</a></p>${lines}`),
      stillHolds: operatorOf(request).stillHolds,
      partly: (...done) => action.partly?.(...done) ?? null,
    });
    const answer = (outcome: string | Html | null) => {
      const [shown, goOn] =
        outcome instanceof Html
          ? [outcome, next]
          : [html`Done.`, outcome === null ? next : `${config.basePath}${OPS_PATH}${outcome}`];
      const done = html`<p role="status">${shown}</p><p><a href="${goOn}">Continue</a></p>`;
      if (end(done)) return;
      if (outcome instanceof Html) sendPage(response, 200, renderPage(config, action, lineage, done));
      else response.redirect(303, goOn);
    };
    const args = { ...(id !== null && { [idName]: id }), ...recorded };
    const act = actingAs(request, ctx, console, command, args, formToken);
    try {
      const namesake = action.asksNamesake && insists !== "on" ? await findTaken(console.pool, id, values) : null;
      if (namesake !== null) {
        // If this form was sent before, it may have created the entity with this name.
        await confirmed(console.pool, () => assertNotSent(console.pool, act.audited));
        return refuse(409, { name: namesake }, true);
      }
      const outcome = await action.run({ ...act, api: ctx, config, advance }, String(id), values, lineage as Lineage);
      answer(typeof outcome === "string" ? (action.creates?.(outcome, String(id)) ?? outcome) : outcome);
    } catch (error) {
      if (error instanceof SentBefore && action.creates !== undefined) {
        return error.isSame ? answer(action.creates(error.entityId, String(id))) : refuse(409, { "": SENT_BEFORE });
      }
      if (error instanceof InvalidValues) return refuse(400, explainProblems(action, error));
      if (error instanceof FieldProblem) return refuse(400, { [error.field]: say(action, error.field, error.message) });
      const refusal = explain(error, act.audited.mayHaveWritten);
      const sentence = refusal instanceof AppError ? refusal.message : "It ended before everything was done.";
      if (end(html`<p class="problem" role="alert">${sentence} <a href="${next}">See what is left</a></p>`)) {
        if (!(refusal instanceof RunLeft)) response.locals.failure = refusal;
      } else if (!(refusal instanceof AppError) || refusal.status >= 500) throw refusal;
      else await refuse(refusal.status, { [action.refused ?? ""]: sentence });
    }
  };
}

/** A sentence if another entity of the same parent has this name. Otherwise null. */
async function findTaken(pool: pg.Pool, parentId: string | null, { name }: Record<string, unknown>) {
  const namesake = await findNamesake(pool, { parentId, name: String(name) });
  return namesake === null ? null : sayNamesake(namesake, String(name));
}

const SENT_BEFORE =
  "This form was sent before with other values, and has acted then. Nothing was done now. Send it again to act again.";

/** Replaces an error by one with a sentence for the operator. */
function explain(cause: unknown, mayHaveWritten: boolean): unknown {
  if (isForbidden(cause)) {
    const sentence = "Nothing was done: the database role of OPS_DATABASE_URL may not do this.";
    return new AppError("unavailable", sentence, { cause });
  }
  if (!mayHaveWritten || !isDatabaseAway(cause)) return cause;
  return new AppError("unavailable", "It is not known whether this was done. Look before you try again.", { cause });
}

function enteredIn({ fields }: Action<never>, body: unknown): Entered {
  const sent = Object(body) as Record<string, unknown>;
  const valuesOf = (name: string, field: Field) =>
    [sent[name] ?? []].flat().map((value) => withoutBlanks(field, String(value)));
  return Object.fromEntries(Object.entries(fields).map(([name, field]) => [name, valuesOf(name, field)]));
}

/** Parses a form. `recorded` has the given values for the audit entry, without the action's `unrecorded` fields. */
async function check(action: Action<never>, entered: Entered, db: pg.Pool) {
  const [values, recorded, problems]: [Record<string, unknown>, Record<string, unknown>, Record<string, string>] = [
    {},
    {},
    {},
  ];
  for (const [name, field] of Object.entries(action.fields)) {
    const { shape, read } = KINDS[field.kind].input;
    const schema = read?.(field) ?? field.typed;
    const { success, data, error } = schema.safeParse(shape === "boxes" ? entered[name] : (entered[name]?.[0] ?? ""));
    if (!success) problems[name] = say(action, name, error.issues[0]?.message ?? "is invalid");
    values[name] = data;
    const isRecorded = !action.unrecorded.includes(name);
    if (isRecorded && data !== null && data !== false && !(Array.isArray(data) && data.length === 0))
      recorded[name] = data;
  }
  if (Object.keys(problems).length === 0) return { values, recorded, problems };
  const further = new InvalidValues(await action.findProblems(db, values));
  return { values, recorded, problems: { ...explainProblems(action, further), ...problems } };
}

function explainProblems(action: Action<never>, { problems }: InvalidValues): Record<string, string> {
  const labelled = problems.map((problem): [string, string] => [
    problem.field,
    new InvalidValues([problem], (field) => labelOf(action, field)).message,
  ]);
  return Object.fromEntries(labelled.toReversed());
}

/** The label of a field, without a part in brackets at its end. */
const labelOf = ({ fields }: Action<never>, name: string) => String(fields[name]?.label).replace(/ \(.*\)$/, "");

/** A sentence about a problem: the label of the field, then the problem in the words of the API. */
function say(action: Action<never>, name: string, problem: string): string {
  return `${labelOf(action, name)} ${inEnglish(problem)}.`;
}
