import type { Request } from "express";
import type { ApiContext } from "../../../src/context.ts";
import type { Scope } from "../../../src/domain/api-keys.ts";
import { partnerKey } from "../../../src/http/authenticate.ts";
import type { Endpoint } from "../../../src/http/endpoint.ts";
import { jsonBody } from "../../../src/http/json-body.ts";
import { answer } from "../../../src/http/route.ts";
import { validate } from "../../../src/http/validate.ts";
import type { Caller } from "../../../src/services/caller.ts";

/** An endpoint of the service with the same checks of key and body before another work. */
export function replaceWork<Body>(
  endpoint: Endpoint,
  scope: Scope,
  work: (ctx: ApiContext, caller: Caller, body: Body, request: Request) => Promise<unknown>,
): Endpoint {
  const { guard, whoOf } = partnerKey(scope);
  const { path, method, body, leavesToLater = [] } = endpoint;
  return {
    ...endpoint,
    route: (ctx) => ({
      path,
      leavesToLater,
      methods: {
        [method]: [
          ...guard(ctx),
          ...(body === undefined ? [] : jsonBody),
          answer((request, response) => {
            const read = body === undefined ? undefined : validate(body, request.body);
            return work(ctx, whoOf(response), read as Body, request);
          }),
        ],
      },
    }),
  };
}
