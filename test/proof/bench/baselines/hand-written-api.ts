import type { Request } from "express";
import type { Scope } from "../../../../src/core/keys/api-keys.ts";
import type { Caller } from "../../../../src/core/keys/caller.ts";
import { partnerKey } from "../../../../src/core/keys/routes/authenticate.ts";
import { lookUp } from "../../../../src/core/look-up/routes/look-up.ts";
import { redeem } from "../../../../src/core/redeem/routes/redeem.ts";
import { reserve } from "../../../../src/core/reserve/routes/reserve.ts";
import { readiness } from "../../../../src/core/servers/health.ts";
import { createApp } from "../../../../src/open/app.ts";
import { openApi } from "../../../../src/open/open-api.ts";
import { readApiConfig } from "../../../../src/platform/config.ts";
import { DatabaseFence } from "../../../../src/platform/db/database-fence.ts";
import { openPool } from "../../../../src/platform/db/pool.ts";
import { type Endpoint, validate } from "../../../../src/platform/http/endpoint.ts";
import { jsonBody } from "../../../../src/platform/http/middleware/json-body.ts";
import { respondJson } from "../../../../src/platform/http/respond.ts";
import { listen } from "../../../../src/platform/http/server.ts";
import { closeOnSignal, configureProcess } from "../../../../src/platform/process.ts";
import {
  lookUpInOneQuery,
  type RedeemBody,
  redeemInOneTransaction,
  reserveInOneTransaction,
} from "./one-transaction.ts";

// Baseline (a): a simple service. After the service's own checks each request runs one transaction in the API process,
// without queue and lease.

/** Connections per process: eight for each of two cores. */
const POOL_MAX = 16;

const config = configureProcess(readApiConfig);
const ctx = openApi(config);
const { databaseUrl } = config;
const { log } = ctx;
const deployment = new DatabaseFence(log);
const pool = openPool({ databaseUrl, max: POOL_MAX, applicationName: "baseline", deployment, log });
ctx.use({ close: () => pool.end() });
const own = { ...ctx, pool };

/** Replaces the work of an endpoint after its checks of key and body. */
function replaceWork<Body>(
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
  const methods = { [method]: [...guard(ctx), ...(body === undefined ? [] : jsonBody), respond] };
  return { ...endpoint, route: () => ({ path, methods }) };
}

const app = createApp(ctx, [
  replaceWork(reserve, "voucher.redeem", (caller, { code }: { code: string }) =>
    reserveInOneTransaction(own, caller, code),
  ),
  replaceWork(redeem, "voucher.redeem", (caller, body: RedeemBody) => redeemInOneTransaction(own, caller, body)),
  replaceWork(lookUp, "voucher.read", (caller, _body, request) =>
    lookUpInOneQuery(own, caller, String(request.params.codeOrTicket)),
  ),
  readiness,
]);
ctx.use(await listen(app, config, log));
closeOnSignal(log, ctx);
