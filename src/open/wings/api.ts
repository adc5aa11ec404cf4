import type { ConsolePart } from "../../console/console-part.ts";
import { marketplace } from "../../marketplace/in-api.ts";
import type { PagesPart } from "../../pages/mount-pages.ts";
import type { DescribedParts } from "../../pages/openapi/describe-api.ts";
import type { Endpoint, Route } from "../../platform/http/endpoint.ts";
import type { PortalPart } from "../../portal/portal-frame.ts";
import { transparency } from "../../transparency/in-api.ts";
import type { ReadFindings } from "../../watch/facts.ts";
import type { BacklogMeasures } from "../../watch/measure-backlog.ts";
import { webhooks } from "../../webhooks/in-api.ts";
import type { All } from "./all.ts";

/** What a wing adds to the API. The dependencies of its parts are checked where the parts are mounted. */
interface ApiPart {
  /** Opens the wing's part of the API's context. */
  open?: (core: never) => object;
  endpoints?: readonly Endpoint[];
  /** Routes that serve no JSON and need no page. */
  routes?: (deps: never) => readonly Route[];
  /** The wing's part of the API reference, besides its endpoints. */
  described?: Partial<DescribedParts>;
  pages?: PagesPart;
  backlog?: BacklogMeasures;
  /** Reads the data in which the wing's faults are found, for the overview. */
  readFindings?: ReadFindings;
  operatorPages?: ConsolePart<never>;
  portal?: PortalPart;
}

/** The wings of the API. To remove a wing, delete its folder and its name in the lists of this folder. */
const WINGS = [marketplace, transparency, webhooks] as const satisfies readonly ApiPart[];

type Values<Part, Name extends string> = Part extends Record<Name, infer Value> ? Value : never;
type Each<Name extends keyof ApiPart> = Values<(typeof WINGS)[number], Name>;

/** The parts with this name, of all wings that have one. */
export function each<Name extends keyof ApiPart>(name: Name): Each<Name>[] {
  return WINGS.flatMap((wing: ApiPart) => (wing[name] === undefined ? [] : [wing[name] as unknown as Each<Name>]));
}

type OpenDeps = All<Parameters<Each<"open">>[0]>;

/** Opens the wings' parts of the API's context. */
export function openWings(core: OpenDeps): object & All<ReturnType<Each<"open">>> {
  return Object.assign({}, ...each("open").map((open: (core: OpenDeps) => object) => open(core)));
}
