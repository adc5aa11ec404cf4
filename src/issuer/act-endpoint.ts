import type { z } from "zod";
import { type Act, CREATED, findProblems } from "../acts/act.ts";
import { ENTITIES, type EntityKind } from "../acts/entities.ts";
import { bodyOf, type Fields, readableIn, valuesIn } from "../acts/fields.ts";
import { partnerKey } from "../core/keys/routes/authenticate.ts";
import { ISSUER } from "../platform/api/errors.ts";
import { EXAMPLE } from "../platform/api/example.ts";
import { pickFields, sampleOf, text } from "../platform/api/fields.ts";
import { endpoint } from "../platform/http/endpoint.ts";
import { type IssuerDeps, inIssuer } from "./issuer.ts";

/** The security of endpoints that require a key with the scope for issuing. */
export const ISSUER_KEY = partnerKey("voucher.issue");

/** The path parameter for the id of an entity. */
export const idOf = (kind: EntityKind) => text(`The id of a ${kind} of your organization.`);

/** Maximum size of the body of an act that takes a picture. By default, proxies pass on this much. Bytes. */
const FILE_BODY_MAX = 1_048_576;

/** The operation's id: `createProduct` for `product create`. */
const operationOf = (name: string) =>
  name.replace(/^(\w)(\w*) (\w+)$/, (_, first, rest, verb) => verb + first.toUpperCase() + rest);

const exampleOf = ({ shape }: z.ZodObject, kind: EntityKind) =>
  "id" in shape ? { id: Object(EXAMPLE)[`${kind}Id`] } : {};

/** The given values of a body, for the audit trail. */
export const givenIn = (body: object) => Object.fromEntries(Object.entries(body).filter(([, value]) => value !== null));

/** The endpoint of an act. Its path, body, errors and response are derived from the act. */
export function endpointOf<F extends Fields, Result extends object>(act: Act<F, Result>) {
  const { name, on, creates, title, about, fields, refusals = [] } = act;
  if (on === null) throw new Error(`${name} is on nothing, so it cannot belong to an organization`);
  const collection = ENTITIES[on].collection;
  const last = creates === undefined ? String(name.split(" ")[1]) : ENTITIES[creates].collection;
  const operationId = operationOf(name);
  const component = operationId.charAt(0).toUpperCase() + operationId.slice(1);
  const body = bodyOf(fields).meta({ id: `${component}Request` });
  const result = (act.response ?? act.result ?? CREATED).clone().meta({ id: `${component}Result` });
  const idName = creates === undefined ? "id" : ENTITIES[on].option;
  return endpoint({
    method: "post",
    path: `/issuer/${collection}/:id/${last}`,
    operationId,
    ownErrors: [...ISSUER, ...refusals],
    summary: title,
    description: about ?? `${title}. It leaves an audit entry.`,
    access: ISSUER_KEY,
    parameters: { id: idOf(on) },
    ...(Object.keys(body.shape).length > 0 && { body }),
    ...(Object.values(fields).some(({ kind }) => kind === "picture") && { bodyMax: FILE_BODY_MAX }),
    findFurtherProblems: async (deps: IssuerDeps, caller, given) => {
      const { error } = body.safeParse(given);
      if (error === undefined) return [];
      return inIssuer(deps, caller, async ({ pool }) => {
        const problems = await findProblems(act, readableIn(fields, given, error), pool);
        return problems.map(({ say }) => say((field) => field));
      });
    },
    response: result,
    responseDescription: "It is done.",
    responseExamples: { done: { summary: title, value: sampleOf(result, exampleOf(result, creates ?? on)) } },
    handler: async (deps: IssuerDeps, { caller, parameters, body: given }) => {
      const done = await inIssuer(
        deps,
        caller,
        async (ctx) => {
          await ctx.requireOwn(on, parameters.id);
          const values = valuesIn(fields, given);
          return ctx.whileKeyWorks((assertGoing) => act.run(ctx, parameters.id, values, assertGoing));
        },
        [name, { [idName]: parameters.id, ...givenIn(given) }],
      );
      return pickFields(result, done as never);
    },
  });
}
