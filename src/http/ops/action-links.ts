import type { ApiContext } from "../../open-api.ts";
import { type Html, html } from "../pages/html.ts";
import { opsPath } from "./operator-frame.ts";

/** What a page needs to link to actions: whether there are any. */
export type OperatedSite = Pick<ApiContext["config"], "basePath" | "baseUrl" | "storefrontUrl" | "ops">;

/** Links to the actions on an entity: each with its path after the entity's and its label. Nothing without OPS_WRITABLE. */
export function linkActions(
  site: OperatedSite,
  entity: readonly string[],
  ...actions: readonly (readonly [path: string, label: string])[]
): Html | null {
  if (!site.ops.writable || actions.length === 0) return null;
  const links = actions.map(([path, label]) => html`<a href="${opsPath(site, ...entity)}/${path}">${label}</a> `);
  return html`<p class="actions">${links}</p>`;
}
