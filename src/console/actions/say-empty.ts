import { type Html, html } from "../../pages/html.ts";
import { OPS_PATH, type OperatedSite } from "../../pages/operator-frame.ts";
import { type FormPlace, formPathOf } from "./act-form.ts";

/**
 * The content of an empty list: the sentence `empty`, and how to add the first entry. Operators who may use the form of
 * `act` on the entity `id` get a link to it. All other operators get the command.
 */
export function sayEmpty(site: OperatedSite, empty: string, act: FormPlace & { title: string }, id = ""): Html {
  const path = formPathOf(act, encodeURIComponent(id));
  return site.offers(path)
    ? html`${empty} <a href="${site.basePath}${OPS_PATH}${path}">${act.title}</a>`
    : html`${empty} To add one, an administrator runs <code>voucherctl ${act.name}</code>.`;
}
