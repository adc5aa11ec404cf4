import express, { type Express } from "express";
import { createApp } from "../../../src/app.ts";
import { readApiConfig } from "../../../src/config.ts";
import { openApiContext } from "../../../src/context.ts";
import { readiness } from "../../../src/http/routes/health.ts";
import { lookUp } from "../../../src/http/routes/look-up.ts";
import { redeem } from "../../../src/http/routes/redeem.ts";
import { reserve } from "../../../src/http/routes/reserve.ts";
import { listen } from "../../../src/http/server.ts";
import { configureProcess, drainOnSignal } from "../../../src/process.ts";
import { replaceWork } from "./replace-work.ts";

// Baseline (c): what Express and Node alone cost. It answers a constant of the size of a look-up's answer; with BENCH_EDGE=on behind
// the service's own edge: request log, key, body.

const VOUCHER = {
  id: "vch_01jd3q5x7me0vt9r8k2w4z6y1a",
  code: "7Q4K-9MZX-2HTB-W8RC",
  serial: 4711,
  brand: "Bench Brand",
  productName: "Bench Pass",
  productKey: "bench-pass",
  type: "Subscription",
  retailPriceUsd: 29.9,
  priceUsd: 19.9,
  benefitMonths: 3,
  usageUnitLabel: null,
  validUntil: "2030-12-31T23:59:59.000Z",
  status: "Active",
  redeemedAt: null,
};
const ANSWER = {
  voucher: VOUCHER,
  reservation: null,
  verifyUrl: `http://localhost:3000/integrity/events/VoucherInstance/${VOUCHER.id}`,
};

const config = configureProcess(readApiConfig);
const ctx = openApiContext(config);
const server = await listen(process.env.BENCH_EDGE === "on" ? behindEdge() : bare(), config.port, ctx.log);
drainOnSignal(ctx.log, async () => {
  await server.close();
  await ctx.close();
});

function bare(): Express {
  const app = express();
  app.get("/readyz", (_request, response) => void response.json({ status: "ok" }));
  app.get("/partner/vouchers/:codeOrTicket", (_request, response) => void response.json(ANSWER));
  app.post("/partner/vouchers/:action", (_request, response) => void response.json(ANSWER));
  return app;
}

function behindEdge(): Express {
  return createApp(ctx, [
    replaceWork(reserve, "voucher.redeem", async () => ANSWER),
    replaceWork(redeem, "voucher.redeem", async () => ANSWER),
    replaceWork(lookUp, "voucher.read", async () => ANSWER),
    readiness,
  ]);
}
