import type { Request } from "express";
import type { Scope } from "../../../../src/core/keys/api-keys.ts";
import type { Caller } from "../../../../src/core/keys/caller.ts";
import { partnerKey } from "../../../../src/core/keys/routes/authenticate.ts";
import { readiness } from "../../../../src/core/servers/health.ts";
import { createApp } from "../../../../src/open/app.ts";
import { CONFIG_PARTS } from "../../../../src/open/config-parts.ts";
import { openApi } from "../../../../src/open/open-api.ts";
import { readApiConfig } from "../../../../src/platform/config.ts";
import { DatabaseFence } from "../../../../src/platform/db/database-fence.ts";
import { openPool } from "../../../../src/platform/db/pool.ts";
import { type Endpoint, validate } from "../../../../src/platform/http/endpoint.ts";
import { readJson } from "../../../../src/platform/http/middleware/json-body.ts";
import { respondJson } from "../../../../src/platform/http/respond.ts";
import { listen } from "../../../../src/platform/http/server.ts";
import { closeOnSignal, configureProcess } from "../../../../src/platform/process.ts";

/** Connections of each process to Postgres: eight for each of two cores. */
const POOL_MAX = 16;

/**
 * Opens a process with the service's checks of keys and bodies, its errors and its responses. The baseline does the
 * work of a request in its own way. `pool` is for this work.
 */
export function openBaseline() {
  const config = configureProcess((env) => readApiConfig(env, CONFIG_PARTS));
  const service = openApi(config);
  const { databaseUrl } = config;
  const { log } = service;
  const deployment = new DatabaseFence(log);
  const pool = openPool({ databaseUrl, max: POOL_MAX, applicationName: "baseline", use: "service", deployment, log });
  service.use({ close: () => pool.end() });
  return {
    work: { ...service, pool },
    /** Replaces the work that an endpoint does after the checks of key and body. */
    replaceWork<Body>(
      endpoint: Endpoint,
      scope: Scope,
      work: (caller: Caller, body: Body, request: Request) => Promise<unknown>,
    ): Endpoint<unknown> {
      const { guard, callerOf } = partnerKey(scope);
      const { path, method, body } = endpoint;
      const respond = respondJson((request, response) => {
        const read = body === undefined ? undefined : validate(body, request.body);
        return work(callerOf(response), read as Body, request);
      });
      const methods = { [method]: [...guard(service), ...(body === undefined ? [] : readJson()), respond] };
      return { ...endpoint, route: () => ({ path, methods }) };
    },
    /** Listens with these endpoints until a signal ends the process. */
    async serve(endpoints: Endpoint<unknown>[]): Promise<void> {
      service.use(await listen(createApp(service, [...endpoints, readiness]), config, log));
      closeOnSignal(log, service);
    },
    /** Keeps a process without endpoints running until a signal ends it. */
    serveNothing: () => closeOnSignal(log, service),
  };
}

export type Baseline = ReturnType<typeof openBaseline>;
