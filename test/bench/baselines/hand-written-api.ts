import { createApp } from "../../../src/app.ts";
import { readApiConfig } from "../../../src/config.ts";
import { readiness } from "../../../src/http/routes/health.ts";
import { lookUp } from "../../../src/http/routes/look-up.ts";
import { redeem } from "../../../src/http/routes/redeem.ts";
import { reserve } from "../../../src/http/routes/reserve.ts";
import { listen } from "../../../src/http/server.ts";
import { openApi } from "../../../src/open-api.ts";
import { configureProcess, drainOnSignal } from "../../../src/process.ts";
import {
  lookUpInOneQuery,
  openTransactionPool,
  type RedeemBody,
  redeemInOneTransaction,
  reserveInOneTransaction,
  toRedeemInput,
} from "./one-transaction.ts";
import { replaceWork } from "./replace-work.ts";

// Baseline (a): a simple service. After the service's own checks each request runs one transaction in the API process, without queue and
// lease.

/** Connections per process: eight for each of two cores. */
const POOL_MAX = 16;

const config = configureProcess(readApiConfig);
const ctx = openApi(config);
const own = { ...ctx, pool: openTransactionPool(config, POOL_MAX, ctx.log) };
const app = createApp(ctx, [
  replaceWork(reserve, "voucher.redeem", (_ctx, caller, body: { code: string }) =>
    reserveInOneTransaction(own, caller, body.code),
  ),
  replaceWork(redeem, "voucher.redeem", (_ctx, caller, body: RedeemBody) =>
    redeemInOneTransaction(own, caller, toRedeemInput(body)),
  ),
  replaceWork(lookUp, "voucher.read", (_ctx, caller, _body, request) =>
    lookUpInOneQuery(own, caller, String(request.params.codeOrTicket)),
  ),
  readiness,
]);
const server = await listen(app, config.port, ctx.log);
drainOnSignal(ctx.log, async () => {
  await server.close();
  await own.pool.end();
  await ctx.close();
});
