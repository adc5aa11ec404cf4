import { marketplace } from "../../marketplace/in-api.ts";
import type { PublicPage } from "../../pages/mount-pages.ts";
import type { Endpoint } from "../../platform/http/endpoint.ts";
import type { BacklogMeasures } from "../../watch/measure-backlog.ts";

/** What a wing adds to the API. What its parts take is checked where they are mounted. */
interface ApiPart {
  /** Opens what it adds to the API's context. */
  open?: (core: never) => object;
  endpoints?: readonly Endpoint[];
  pages?: readonly PublicPage<never>[];
  backlog?: BacklogMeasures;
}

/** The wings of the API. Each can be taken away: its folder, and its name in the lists of this folder. */
const WINGS = [marketplace] satisfies readonly ApiPart[];

type Values<Part, Name extends string> = Part extends Record<Name, infer Value> ? Value : never;
type Each<Name extends keyof ApiPart> = Values<(typeof WINGS)[number], Name>;
type All<Union> = (Union extends unknown ? (value: Union) => void : never) extends (value: infer Both) => void
  ? Both
  : never;

/** What the wings have under this name. */
export function each<Name extends keyof ApiPart>(name: Name): Each<Name>[] {
  return WINGS.flatMap((wing: ApiPart) => (wing[name] === undefined ? [] : [wing[name] as Each<Name>]));
}

type OpenDeps = All<Parameters<Each<"open">>[0]>;

/** Opens what the wings add to the API's context. */
export function openWings(core: OpenDeps): object & All<ReturnType<Each<"open">>> {
  return Object.assign({}, ...each("open").map((open: (core: OpenDeps) => object) => open(core)));
}
