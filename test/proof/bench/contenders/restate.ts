import { spawn } from "node:child_process";
import { rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type ObjectContext, object, serve } from "@restatedev/restate-sdk";
import { Pool } from "undici";
import { normaliseCode } from "../../../../src/core/voucher/codes.ts";
import { openBaseline } from "../baselines/open-baseline.ts";
import { type RedeemEnd, type RedeemJob, redeemId, runRedeem, serveRedeems } from "./redeem-job.ts";

// Contender (h): Restate. An object for each reference calls an object for each voucher, which runs the transaction as
// a durable step. The API calls the ingress with the reference as the idempotency key. The process that has the
// variable PORT is the API. The other one runs the handlers and Restate's server, whose data survives a kill of both.

/** The server's data and sockets. The benchmark gives each contender's processes their own folder. */
const FOLDER = join(tmpdir(), "restate");
const NODE = "bench";
const socketOf = (name: string) => ({ connect: { socketPath: join(FOLDER, NODE, `${name}.sock`) } });
/** Maximum wait for an answer, the same as the service's. Milliseconds. */
const WAIT_MS = 10_000;
/** Pause before the next check whether the server has started. Milliseconds. */
const ASK_AGAIN_MS = 200;

const baseline = openBaseline();
const { work, serveNothing } = baseline;

const voucher = object({
  name: "voucher",
  handlers: {
    redeem: (ctx: ObjectContext, job: RedeemJob): Promise<RedeemEnd> => ctx.run("redeem", () => runRedeem(work, job)),
  },
});

const reference = object({
  name: "reference",
  handlers: {
    redeem: (ctx: ObjectContext, job: RedeemJob): Promise<RedeemEnd> => {
      const { code, ticket } = job.body;
      const key = (code == null ? ticket : normaliseCode(code)) ?? "no voucher";
      return ctx.objectClient<typeof voucher>({ name: "voucher" }, key).redeem(job);
    },
  },
});

/** Runs Restate's server as a child process that always ends with this process. */
function startRestate(): void {
  const packages = createRequire(createRequire(import.meta.url).resolve("@restatedev/restate-server/package.json"));
  const binary = packages.resolve(`@restatedev/restate-server-${process.platform}-${process.arch}/bin/restate-server`);
  const options = ["--base-dir", FOLDER, "--node-name", NODE, "--listen-mode", "unix", "--log-filter", "warn"];
  const child = spawn("setpriv", ["--pdeathsig", "KILL", binary, "--no-logo", ...options], {
    stdio: ["ignore", "inherit", "inherit"],
    env: { ...process.env, RESTATE_DISABLE_TELEMETRY: "true" },
  });
  const ended = new Promise((resolve) => child.once("exit", resolve));
  // Ends this process when Restate's server exits, so that a supervisor restarts both.
  child.once("exit", () => process.exit(1));
  work.use({
    async close() {
      child.removeAllListeners("exit");
      child.kill();
      await ended;
      rmSync(FOLDER, { recursive: true, force: true });
    },
  });
}

/** Repeats a request to the server until it succeeds, because the server needs seconds to start. */
async function askUntilDone(pool: Pool, request: { path: string; method: "GET" | "POST"; body?: string }) {
  const headers = { "content-type": "application/json" };
  for (;;) {
    const answer = await pool.request({ ...request, headers }).catch(() => null);
    const text = (await answer?.body.text()) ?? "";
    if (answer !== null && answer.statusCode < 300 && text.includes(reference.name)) return;
    await sleep(ASK_AGAIN_MS);
  }
}

if (process.env.PORT === undefined) {
  startRestate();
  // The handlers always listen on the same port, because an invocation continues at the address where it began.
  const port = await serve({ services: [reference, voucher], port: Number(process.env.METRICS_PORT) });
  const admin = new Pool("http://restate", socketOf("admin"));
  const body = JSON.stringify({ uri: `http://127.0.0.1:${port}`, force: true });
  await askUntilDone(admin, { path: "/deployments", method: "POST", body });
  await admin.close();
  serveNothing();
} else {
  const ingress = new Pool("http://restate", { ...socketOf("ingress"), headersTimeout: WAIT_MS });
  work.use({ close: () => ingress.close() });
  await askUntilDone(ingress, { path: "/restate/health", method: "GET" });
  await serveRedeems(baseline, async (job) => {
    const id = redeemId(job);
    const { statusCode, body } = await ingress.request({
      path: `/reference/${encodeURIComponent(id)}/redeem`,
      method: "POST",
      headers: { "content-type": "application/json", "idempotency-key": encodeURIComponent(id) },
      body: JSON.stringify(job),
    });
    if (statusCode === 200) return (await body.json()) as RedeemEnd;
    throw new Error(`Restate answered ${statusCode}: ${await body.text()}`);
  });
}
