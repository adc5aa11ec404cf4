import type { Request, RequestHandler, Response, Router } from "express";
import type { z } from "zod";
import {
  AppError,
  BODY_ERRORS,
  ERRORS,
  ERRORS_OF,
  type ErrorCode,
  type ErrorKind,
  errorsByCode,
  invalidFields,
} from "../api/errors.ts";
import type { Examples } from "../api/example.ts";
import { ID_INPUT_MAX } from "../api/fields.ts";
import { inAnyLanguage } from "../api/problems.ts";
import type { Language, Sentence } from "../api/sentences.ts";
import type { Config } from "../config.ts";
import type { Access, Tag } from "./access.ts";
import { allowOrigins } from "./middleware/allow-origins.ts";
import { type Visitor, visitorOf } from "./middleware/caller-signal.ts";
import { readJson } from "./middleware/json-body.ts";
import { type LimitingAddresses, limitAddress } from "./middleware/rate-limit.ts";
import { languageOf } from "./middleware/reader-language.ts";
import { respondCsv, respondJson, respondText, type TEXT } from "./respond.ts";
import type { RowFile, SendFile } from "./send-file.ts";

/** Names of the parameters in a path. `/r/:code/claim` has `code`. */
type ParameterOf<Path extends string> = Path extends `${infer Head}/${infer Rest}`
  ? ParameterOf<Head> | ParameterOf<Rest>
  : Path extends `:${infer Name}`
    ? Name
    : never;

/** The input of a handler. */
interface EndpointRequest<Caller, Parameter extends string, Query, Body> {
  caller: Caller;
  /** The caller as a visitor, for endpoints that are open to anyone. */
  readonly visitor: Visitor;
  /** Path parameters, not validated. */
  parameters: Record<Parameter, string>;
  query: Query;
  body: Body;
  /** The caller's language, for a response with sentences. Chosen when it is first read. */
  readonly language: Language;
  /** The time on the monotonic clock when the request's last byte was read. Milliseconds. */
  receivedAtMs: number;
}

/**
 * What operators learn about an endpoint's responses in addition to errors. `decision`: refusals about vouchers are
 * counted. `redemption`: the duration and missing responses are counted too. `probe`: nothing is counted, because the
 * many probes would make the share of errors look small.
 */
export type ReportedAs = "decision" | "redemption" | "probe";

/** The settings that the API reference mentions. */
export type DescribedSettings = Pick<Config, "baseUrl" | "reservationSeconds">;

interface Definition<
  Path extends string,
  Caller,
  Query extends z.ZodObject,
  Body extends z.ZodObject,
  Result extends z.ZodType,
  GuardDeps,
  Deps,
> {
  /** GET by default. */
  method?: Method;
  path: Path;
  /**
   * Names the operation in generated clients. It is also the key of the operation's errors in {@link ERRORS_OF}, unless
   * `ownErrors` lists them.
   */
  operationId: string;
  /** The operation's errors, if the operation is not in {@link ERRORS_OF}. */
  ownErrors?: readonly (ErrorCode | ErrorKind)[];
  /** A title of a few words, without a full stop. */
  summary: string;
  /** What a caller must know, in Markdown. A function if it depends on the configuration. */
  description: string | ((settings: DescribedSettings) => string);
  access: Access<Caller, GuardDeps>;
  reportedAs?: ReportedAs;
  query?: Query;
  /** The schema of the request body. Without a schema, the body is not read. */
  body?: Body;
  /** Maximum size of the body if it may contain a file. Bytes. */
  bodyMax?: number;
  /** Finds further problems of a body that its schema has refused, as sentences without full stops. */
  findFurtherProblems?: (deps: Deps, caller: Caller, body: unknown) => Promise<readonly Sentence[]>;
  response: Result;
  /** The media type of the response. JSON by default. Text is sent unchanged. */
  contentType?: typeof TEXT;
  responseDescription: string;
  /** The response as CSV, for callers that prefer it to JSON. */
  csv?: (
    deps: Deps,
    request: Pick<
      EndpointRequest<Caller, ParameterOf<Path>, z.output<Query>, unknown>,
      "caller" | "parameters" | "query"
    >,
  ) => Promise<RowFile>;
  /** Callers that do not prefer JSON get a page. The page's route is mounted before this one. */
  hasPage?: true;
  /** Replaces the examples of the response schema. */
  responseExamples?: Examples<z.input<Result>>;
  /** The schema of the endpoint's error responses, if they have fields that other error responses do not have. */
  errorDetails?: { schema: z.ZodObject; example: { error: string; [field: string]: string } };
  handler: (
    deps: Deps,
    request: EndpointRequest<Caller, ParameterOf<Path>, z.output<Query>, z.output<Body>>,
  ) => Promise<z.output<Result>>;
}

/**
 * Descriptions of the path parameters for the API reference. They validate nothing: an invalid id gets the same
 * response as an unknown one.
 */
type PathParameters<Path extends string> = [ParameterOf<Path>] extends [never]
  ? { parameters?: undefined }
  : { parameters: Record<ParameterOf<Path>, z.ZodType> };

type NamedErrors = { operationId: keyof typeof ERRORS_OF } | { ownErrors: readonly (ErrorCode | ErrorKind)[] };

/** The dependencies of a use case, for the handler of its endpoint. */
// biome-ignore lint/suspicious/noExplicitAny: the other parameters may be of any type.
export type DepsOf<Service extends (deps: any, ...rest: any[]) => unknown> = Parameters<Service>[0];

interface RouteDeps {
  config: Pick<Config, "corsOrigins">;
  sendFile: SendFile;
}

/**
 * An endpoint for the route table and the API reference. The compiler checks the dependencies of its access and its
 * handler where the endpoint is mounted.
 */
export interface Endpoint<Deps = never>
  extends Omit<
    Definition<string, unknown, z.ZodObject, z.ZodObject, z.ZodType, unknown, unknown>,
    "method" | "handler" | "access" | "csv" | "ownErrors" | "findFurtherProblems"
  > {
  method: Method;
  tag: Tag;
  parameters: Record<string, z.ZodType>;
  security: Access<unknown>["security"];
  hasCsv: boolean;
  /** The errors of the endpoint's access, input and handler. Any address can also return `ANY_ADDRESS_ERRORS`. */
  errors: ReadonlyMap<string, ErrorKind>;
  route: (deps: Deps) => Route;
}

/**
 * One method and path: its input, its response and the handler between them. The schemas validate the input, but only
 * type the response. The checks run in this order: access, query and body, handler.
 */
export function endpoint<
  const Path extends string,
  Caller,
  Query extends z.ZodObject,
  Body extends z.ZodObject,
  Result extends z.ZodType,
  GuardDeps,
  Deps,
>(
  definition: Definition<Path, Caller, Query, Body, Result, GuardDeps, Deps> & PathParameters<Path> & NamedErrors,
): Endpoint<GuardDeps & Deps & RouteDeps> {
  const { access, handler, csv, method = "get", ownErrors, findFurtherProblems, ...described } = definition;
  const { query, body } = definition;
  const own = ownErrors ?? ERRORS_OF[definition.operationId as keyof typeof ERRORS_OF];
  const readBody = async (deps: Deps, caller: Caller, given: unknown): Promise<z.output<Body>> =>
    body === undefined
      ? ({} as z.output<Body>)
      : validate(body, given, await findFurtherProblems?.(deps, caller, given));
  const read = (request: Request, response: Response) => ({
    caller: access.callerOf(response),
    get visitor() {
      return visitorOf(request, response);
    },
    parameters: request.params as Record<ParameterOf<Path>, string>,
    query: query === undefined ? ({} as z.output<Query>) : validate(query, request.query),
    get language() {
      return languageOf(response);
    },
    receivedAtMs: response.locals.receivedAtMs,
  });
  return {
    ...described,
    method,
    parameters: definition.parameters ?? {},
    tag: access.tag,
    security: access.security,
    hasCsv: csv !== undefined,
    errors: errorsByCode([...access.errors, ...errorsOfInput(definition), ...own]),
    route: (deps) => ({
      path: definition.path,
      reportedAs: definition.reportedAs,
      crossOrigin: access.crossOrigin ? allowOrigins(deps.config.corsOrigins) : [],
      limitsCallers: true,
      methods: {
        [method]: [
          ...access.guard(deps),
          ...(body === undefined ? [] : readJson(definition.bodyMax)),
          ...(csv === undefined
            ? []
            : [respondCsv(deps.sendFile, (request, response) => csv(deps, read(request, response)))]),
          (definition.contentType === undefined ? respondJson : respondText)(async (request, response) => {
            const asked = read(request, response);
            const given = await readBody(deps, asked.caller, request.body);
            const result = await handler(deps, Object.assign(asked, { body: given }));
            return access.extraFieldsOf === undefined || definition.contentType !== undefined
              ? result
              : { ...(result as object), ...access.extraFieldsOf(response) };
          }),
        ],
      },
    }),
  };
}

/** The codes of the core, and the codes that only endpoints of optional features (wings) send. */
export const codesOf = (endpoints: readonly Pick<Endpoint, "errors">[]): string[] => [
  ...new Set([...Object.keys(ERRORS), ...endpoints.flatMap(({ errors }) => [...errors.keys()])]),
];

const errorsOfInput = ({ query, body }: { query?: unknown; body?: unknown }): readonly ErrorCode[] => [
  ...(query === undefined ? [] : (["invalid_request"] as const)),
  ...(body === undefined ? [] : BODY_ERRORS),
];

/**
 * Parses input and ignores unknown fields.
 * @throws AppError `invalid_request` that names each invalid field and every further problem.
 */
export function validate<Schema extends z.ZodType>(
  schema: Schema,
  input: unknown,
  further: readonly Sentence[] = [],
): z.output<Schema> {
  const parsed = schema.safeParse(input);
  if (parsed.success) return parsed.data;
  const first = new Map(parsed.error.issues.toReversed().map(({ path, message }) => [path.join("."), message]));
  const named = [...first].toReversed().map(([field, message]) => [field, inAnyLanguage(message)] as const);
  throw invalidFields([...named, ...further.map((say) => ["", say] as const)]);
}

/** An id or a link code from the path. One that is too long or contains NUL becomes "", which matches no row. */
export function pathId(value: unknown): string {
  const id = String(value);
  return id.length > ID_INPUT_MAX || id.includes("\0") ? "" : id;
}

type Method = "get" | "post" | "patch" | "delete";

/** One path and its handlers. */
export interface Route {
  path: string;
  reportedAs?: ReportedAs;
  methods: Partial<Record<Method, RequestHandler[]>>;
  /**
   * Handlers before those of every method. They answer CORS preflights, and let pages of other origins read responses.
   */
  crossOrigin?: RequestHandler[];
  /** Set if the route limits callers by key, user, password or address. Otherwise {@link mount} limits addresses. */
  limitsCallers?: true;
}

/** A route that only reads. */
export function getRoute(path: string, ...get: RequestHandler[]): Route {
  return { path, methods: { get } };
}

/**
 * Merges the routes of each path into one, and puts them into the order in which to mount them. Routes with the same
 * path must have different methods. Fixed paths come first, because a path with a parameter could match them.
 */
export function joinRoutes(routes: readonly Route[]): Route[] {
  const joined = [...Map.groupBy(routes, ({ path }) => path).values()].map((samePath) => ({
    ...(samePath[0] as Route),
    reportedAs: samePath.find(({ reportedAs }) => reportedAs !== undefined)?.reportedAs,
    methods: Object.assign({}, ...samePath.map(({ methods }) => methods)),
  }));
  return joined.toSorted((a, b) => Number(a.path.includes(":")) - Number(b.path.includes(":")));
}

/**
 * Mounts a route. Other methods get 405 with `Allow`. Requests are limited per address, unless the route limits its
 * callers. This limit runs just before the last handler, because the earlier handlers choose the form of the refusal.
 */
export function mount(
  router: Router,
  deps: LimitingAddresses,
  { path, methods, crossOrigin = [], limitsCallers, reportedAs }: Route,
): void {
  const route = router.route(path);
  const limit = limitsCallers ? [] : [limitAddress(deps)];
  route.all(
    (_request, response, next) => {
      Object.assign(response.locals, { route: path, reportedAs });
      next();
    },
    ...crossOrigin,
  );
  for (const [method, handlers] of Object.entries(methods)) {
    route[method as Method](...handlers.slice(0, -1), ...limit, ...handlers.slice(-1));
  }
  const allow = Object.keys(methods).flatMap((method) => (method === "get" ? ["GET", "HEAD"] : [method.toUpperCase()]));
  route.all((_request, response) => {
    response.setHeader("Allow", allow.join(", "));
    throw new AppError("method_not_allowed");
  });
}
