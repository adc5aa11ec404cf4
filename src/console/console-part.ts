import type { Lineage } from "../core/catalog/db/catalog.ts";
import type { Html } from "../pages/html.ts";
import type { Action } from "./actions/action.ts";
import type { Pages, Visit } from "./visit.ts";

/** A section of an entity's page. */
export type Section<Deps = object> = (visit: Visit<Deps>, lineage: Lineage) => Promise<Html>;

/** What an optional feature (wing) adds to the operator pages. */
export interface ConsolePart<Deps = object> {
  /** Names in the navigation. Each links to the page below `/ops` with the same name in lower case. */
  sections?: readonly string[];
  pages?: Pages<Deps>;
  /** The forms of acts that need dependencies of the process. All other forms are derived from their acts. */
  forms?: readonly Action<Deps>[];
  /** The last section of an organization's, a brand's or a batch's page. */
  organizationSection?: (visit: Visit<Deps>) => Promise<Html>;
  brandSection?: Section<Deps>;
  batchSection?: Section<Deps>;
}
