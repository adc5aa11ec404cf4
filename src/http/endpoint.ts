import type { z } from "zod";
import type { ApiContext } from "../context.ts";
import type { ErrorCode } from "../domain/errors.ts";
import type { Access } from "./access.ts";
import { jsonBody } from "./json-body.ts";
import { answer, type Method, type Route } from "./route.ts";
import { validate } from "./validate.ts";

/** Names of the parameters in a path: `/r/:code/claim` has `code`. */
type ParameterOf<Path extends string> = Path extends `${infer Head}/${infer Rest}`
  ? ParameterOf<Head> | ParameterOf<Rest>
  : Path extends `:${infer Name}`
    ? Name
    : never;

/** The groups of the API reference. */
export type Tag = "Partner" | "Marketplace" | "Public verification" | "Health";

/** What an endpoint's work gets. */
export interface Asked<Who, Parameter extends string, Query, Body> {
  /** The caller, as its access tells. */
  who: Who;
  /** From the path, as they came. */
  parameters: Record<Parameter, string>;
  /** What the schemas made of query and body. */
  query: Query;
  body: Body;
}

/** Named requests or answers that the reference shows. */
export type Examples<Value> = Record<string, { summary: string; value: Value }>;

interface Definition<
  Path extends string,
  Who,
  Query extends z.ZodObject,
  Body extends z.ZodObject,
  Answer extends z.ZodType,
> {
  method: Method;
  path: Path;
  /** Methods that a later route with a parameter answers at this very path. */
  leavesToLater?: readonly string[];
  /** Names the operation in generated clients. */
  operationId: string;
  tag: Tag;
  /** A few words, without a full stop. */
  summary: string;
  /** What a caller has to know, in Markdown. */
  description: string;
  access: Access<Who>;
  /** Describe what stands in the path. What names nothing is not found, so nothing is refused by these. */
  parameters: Record<ParameterOf<Path>, z.ZodType>;
  query?: Query;
  /** Without one, nothing is read from the body. */
  body?: Body;
  bodyExamples?: Examples<z.input<Body>>;
  answer: Answer;
  answerDescription: string;
  answerExamples: Examples<z.output<Answer>>;
  /** What its refusals say besides what every refusal says. */
  refusalDetails?: { fields: z.ZodObject; example: { error: string; [field: string]: string } };
  /** What the work refuses with, besides what its access and the shape of its input are refused with. */
  errors: readonly ErrorCode[];
  work(
    ctx: ApiContext,
    asked: Asked<Who, ParameterOf<Path>, z.output<Query>, z.output<Body>>,
  ): Promise<z.output<Answer>>;
}

/** An endpoint as the table of routes and the API reference see it. */
export interface Endpoint
  extends Omit<
    Definition<string, unknown, z.ZodObject, z.ZodObject, z.ZodType>,
    "parameters" | "work" | "access" | "errors"
  > {
  parameters: Record<string, z.ZodType>;
  security: Access<unknown>["security"];
  /** Everything it refuses with, whatever the reason, save what every address may answer. */
  errors: ReadonlySet<ErrorCode>;
  route(ctx: ApiContext): Route;
}

/** The query or body of an endpoint that reads none. */
const NOTHING = {};

/** What every endpoint with a body may refuse it with. */
const BODY_ERRORS: readonly ErrorCode[] = ["invalid_json", "invalid_request", "body_too_large", "unsupported_encoding"];

/**
 * One method and path: what it asks for, what it answers and the work between. The schemas that are declared here check the
 * input, and the compiler checks the work's result against the answer's; answers are not checked while serving.
 * Order of checks: the access's guard, the shape of query and body, the work.
 */
export function endpoint<
  const Path extends string,
  Who,
  Query extends z.ZodObject,
  Body extends z.ZodObject,
  Answer extends z.ZodType,
>(definition: Definition<Path, Who, Query, Body, Answer>): Endpoint {
  const { access, work, query, body, ...described } = definition;
  const errors = new Set<ErrorCode>([
    ...access.errors,
    ...(query === undefined ? [] : (["invalid_request"] as const)),
    ...(body === undefined ? [] : BODY_ERRORS),
    ...definition.errors,
  ]);
  return {
    ...described,
    ...(query !== undefined && { query }),
    ...(body !== undefined && { body }),
    security: access.security,
    errors,
    route: (ctx) => ({
      path: definition.path,
      leavesToLater: definition.leavesToLater ?? [],
      methods: {
        [definition.method]: [
          ...access.guard(ctx),
          ...(body === undefined ? [] : jsonBody),
          answer((request, response) =>
            work(ctx, {
              who: access.whoOf(response),
              parameters: request.params as Record<ParameterOf<Path>, string>,
              query: query === undefined ? (NOTHING as z.output<Query>) : validate(query, request.query),
              body: body === undefined ? (NOTHING as z.output<Body>) : validate(body, request.body),
            }),
          ),
        ],
      },
    }),
  };
}
