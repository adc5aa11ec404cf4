import { createApp } from "../../../src/app.ts";
import { readApiConfig } from "../../../src/config.ts";
import { openApiContext } from "../../../src/context.ts";
import { readiness } from "../../../src/http/routes/health.ts";
import { lookUp } from "../../../src/http/routes/look-up.ts";
import { redeem } from "../../../src/http/routes/redeem.ts";
import { reserve } from "../../../src/http/routes/reserve.ts";
import { listen } from "../../../src/http/server.ts";
import { configureProcess, drainOnSignal } from "../../../src/process.ts";
import { lookUpInOneQuery, redeemInOneTransaction, reserveInOneTransaction } from "./one-transaction.ts";
import { openTransactionPool } from "./open-transaction-pool.ts";
import { type RedeemBody, toRedeemInput } from "./redeem-body.ts";
import { replaceWork } from "./replace-work.ts";

// Baseline (a): the service that one would write by hand. Behind the service's own edge each request is a transaction of its own in
// the process that got it; no queue, no lease. With BENCH_STEPS each statement is a trip of its own.

/** Connections of a process: eight for each of two cores. */
const POOL_MAX = 16;

const config = configureProcess(readApiConfig);
const ctx = openApiContext(config);
const inSteps = process.env.BENCH_STEPS === "on";
const own = { ...ctx, inSteps, pool: openTransactionPool(config, POOL_MAX, ctx.log) };
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
