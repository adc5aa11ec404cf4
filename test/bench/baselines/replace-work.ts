import type { Request } from "express";
import type { Scope } from "../../../src/domain/api-keys.ts";
import { type Endpoint, respondJson, validate } from "../../../src/http/endpoint.ts";
import { partnerKey } from "../../../src/http/middleware/authenticate.ts";
import { jsonBody } from "../../../src/http/middleware/json-body.ts";
import type { ApiContext } from "../../../src/open-api.ts";
import type { Caller } from "../../../src/services/auth/caller.ts";

/** Replaces the work of an endpoint after its checks of key and body. */
export function replaceWork<Body>(
  endpoint: Endpoint,
  scope: Scope,
  work: (ctx: ApiContext, caller: Caller, body: Body, request: Request) => Promise<unknown>,
): Endpoint {
  const { guard, callerOf } = partnerKey(scope);
  const { path, method, body } = endpoint;
  return {
    ...endpoint,
    route: (ctx) => ({
      path,
      methods: {
        [method]: [
          ...guard(ctx),
          ...(body === undefined ? [] : jsonBody),
          respondJson((request, response) => {
            const read = body === undefined ? undefined : validate(body, request.body);
            return work(ctx, callerOf(response), read as Body, request);
          }),
        ],
      },
    }),
  };
}
