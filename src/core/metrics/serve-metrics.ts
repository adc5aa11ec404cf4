import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { Logger } from "pino";
import type { Config } from "../../platform/config.ts";
import type { Closable } from "../../platform/lifetime.ts";
import type { Scrapable } from "./metrics.ts";

/** A server that listens for scrapes. */
interface MetricsServer extends Closable {
  port: number;
}

/**
 * Serves metrics at `/metrics` on METRICS_PORT, without authentication. If `isReady` is given, also serves a readiness
 * probe at `/readyz`. `isReady` must not reject. Returns null when the process has no metrics or METRICS_PORT is unset.
 * @throws Error that names METRICS_PORT when the port cannot be used.
 */
export async function serveMetrics(
  ctx: { config: Config; metrics: Scrapable | null; log: Logger },
  isReady?: () => Promise<boolean>,
): Promise<MetricsServer | null> {
  const { log, metrics } = ctx;
  const { metricsPort: port, host } = ctx.config;
  if (metrics === null || port === null) return null;
  const server = createServer({ keepAliveTimeout: ctx.config.keepAliveMs }, (request, response) => {
    const path = request.url?.split("?")[0];
    if (path === "/readyz" && isReady !== undefined) {
      void isReady().then((ready) => {
        response.writeHead(ready ? 200 : 503, { "Content-Type": "text/plain" }).end(ready ? "ready\n" : "not ready\n");
      });
      return;
    }
    if (path !== "/metrics" || (request.method !== "GET" && request.method !== "HEAD")) {
      response.writeHead(404, { "Content-Type": "text/plain" }).end("Metrics are at /metrics.\n");
      return;
    }
    metrics.scrape().then(
      (text) => response.writeHead(200, { "Content-Type": metrics.contentType }).end(text),
      (error: unknown) => {
        log.error({ err: error }, "the metrics could not be read");
        response.writeHead(500).end();
      },
    );
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", (error) =>
      reject(new Error(`cannot listen on METRICS_PORT ${port}: ${error.message}`, { cause: error })),
    );
    server.listen({ port, ...(host !== null && { host }) }, resolve);
  });
  const bound = (server.address() as AddressInfo).port;
  log.info({ port: bound }, "serving metrics");
  return {
    port: bound,
    close: () => new Promise((resolve, reject) => server.close((error) => (error ? reject(error) : resolve()))),
  };
}
