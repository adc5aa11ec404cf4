import { type Html, html } from "../../pages/html.ts";
import { OPS_PATH, type OperatedSite } from "../../pages/operator-frame.ts";
import { type FormPlace, formPathOf } from "./act-form.ts";

/**
 * What a page shows instead of an empty list: the sentence `empty`, and how to add the first entry. That is a link to
 * the form of `act` on the entity `id` for operators who may use it, and the command for all others.
 */
export function sayEmpty(site: OperatedSite, empty: string, act: FormPlace & { title: string }, id = ""): Html {
  const path = formPathOf(act, encodeURIComponent(id));
  return site.offers(path)
    ? html`${empty} <a href="${site.basePath}${OPS_PATH}${path}">${act.title}</a>`
    : html`${empty} To add one, an administrator runs <code>voucherctl ${act.name}</code>.`;
}
