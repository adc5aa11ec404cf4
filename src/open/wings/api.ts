import type { ConsolePart } from "../../console/console-part.ts";
import { marketplace } from "../../marketplace/in-api.ts";
import type { PagesPart } from "../../pages/mount-pages.ts";
import type { DescribedParts } from "../../pages/openapi/describe-api.ts";
import type { Endpoint, Route } from "../../platform/http/endpoint.ts";
import type { PortalPart } from "../../portal/portal-frame.ts";
import { transparency } from "../../transparency/in-api.ts";
import type { ReadFinders } from "../../watch/facts.ts";
import type { BacklogMeasures } from "../../watch/measure-backlog.ts";
import { webhooks } from "../../webhooks/in-api.ts";
import type { All } from "./all.ts";

/** What a wing adds to the API. What its parts take is checked where they are mounted. */
interface ApiPart {
  /** Opens what it adds to the API's context. */
  open?: (core: never) => object;
  endpoints?: readonly Endpoint[];
  /** What is not JSON, and needs no page. */
  routes?: (deps: never) => readonly Route[];
  /** Its part of the API reference besides its endpoints. */
  described?: Partial<DescribedParts>;
  pages?: PagesPart;
  backlog?: BacklogMeasures;
  /** What finds its faults for the overview. */
  readFinders?: ReadFinders;
  operatorPages?: ConsolePart<never>;
  portal?: PortalPart;
}

/** The wings of the API. Each can be taken away: its folder, and its name in the lists of this folder. */
const WINGS = [marketplace, transparency, webhooks] as const satisfies readonly ApiPart[];

type Values<Part, Name extends string> = Part extends Record<Name, infer Value> ? Value : never;
type Each<Name extends keyof ApiPart> = Values<(typeof WINGS)[number], Name>;

/** What the wings have under this name. */
export function each<Name extends keyof ApiPart>(name: Name): Each<Name>[] {
  return WINGS.flatMap((wing: ApiPart) => (wing[name] === undefined ? [] : [wing[name] as unknown as Each<Name>]));
}

type OpenDeps = All<Parameters<Each<"open">>[0]>;

/** Opens what the wings add to the API's context. */
export function openWings(core: OpenDeps): object & All<ReturnType<Each<"open">>> {
  return Object.assign({}, ...each("open").map((open: (core: OpenDeps) => object) => open(core)));
}
