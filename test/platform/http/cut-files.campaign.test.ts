import { type AddressInfo, connect, createServer } from "node:net";
import { expect, it, onTestFinished } from "vitest";
import { startNode, startProgram } from "../../support/child-process.ts";
import { hasProgram } from "../../support/has-program.ts";
import { exportWhileLocked } from "../../support/outside-transaction.ts";
import { startPlainNginx } from "../../support/proxy-examples.ts";
import { issueTestBatch, makeKey } from "../../support/supply.ts";
import { untilStarted } from "../../support/until.ts";
import { useService } from "../../support/use-service.ts";

const { api, db, partner } = useService({ apis: [{ ISSUER_API: "true" }], workers: [] });

/** The ways by which a file reaches curl. By default, nginx uses HTTP/1.0 to the service. */
const WAYS = (["HTTP/1.1", "HTTP/1.0", "nginx as it is installed"] as const).filter(
  (way) => hasProgram("curl") && (way.startsWith("HTTP") || hasProgram("nginx")),
);
/** The size of the file that `serve-large-file.ts` serves. Bytes. */
const WHOLE = 32 * 2 ** 20;
/** curl's exit status for a file with fewer bytes than its Content-Length. */
const PARTIAL = 18;

it.each(WAYS)("a client can detect that a file is truncated because the process was killed: %s", async (way) => {
  const server = startNode(["test/support/serve-large-file.ts"], {});
  onTestFinished(() => void server.child.kill("SIGKILL"));
  const port = await untilStarted(() => /^\d+\n/.exec(server.output())?.[0]);
  const relay = await openRelay(Number(port));
  const url = await openWay(way, relay.url);
  expect(await download(way, url)).toMatchObject({ exitCode: 0, stdout: `200 ${WHOLE}` });
  const stopped = relay.stopNext(2 ** 20);
  const cut = download(way, url);
  // By now, the process has sent as much as the kernel accepts, and waits.
  const goOn = await stopped;
  server.child.kill("SIGKILL");
  await server.ended;
  goOn();
  const { exitCode, stdout } = await cut;
  const [status, bytes] = stdout.split(" ").map(Number);
  expect([exitCode, status]).toEqual([PARTIAL, 200]);
  expect(bytes).toBeLessThan(WHOLE);
});

it.each(WAYS)("a request for a file gets an error response if its database session ends: %s", async (way) => {
  const { key } = await makeKey(db, partner.organizationId, { scopes: ["voucher.issue"] });
  const { batchId } = await issueTestBatch(db, partner, 2);
  const url = `${await openWay(way, api.url)}/issuer/batches/${batchId}/vouchers`;
  const headers = ["-H", `X-Api-Key: ${key}`, "-H", "Accept: text/csv"];
  const endSession = () =>
    db.query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
               WHERE datname = current_database() AND wait_event_type = 'Lock'`);
  const { stdout } = await exportWhileLocked(db, batchId, () => download(way, url, headers), endSession);
  expect(stdout).toMatch(/^503 /);
  expect((await download(way, url, headers)).stdout).toMatch(/^200 /);
});

/** Downloads a file with curl, which prints its status and number of bytes. */
function download(way: (typeof WAYS)[number], url: string, headers: readonly string[] = []) {
  const version = way === "HTTP/1.0" ? ["--http1.0"] : [];
  const args = ["-s", "-o", "/dev/null", "-w", "%{http_code} %{size_download}", ...version, ...headers, url];
  return startProgram("curl", args, {}).ended;
}

async function openWay(way: (typeof WAYS)[number], url: string): Promise<string> {
  if (way.startsWith("HTTP")) return url;
  const nginx = await startPlainNginx(url);
  onTestFinished(() => nginx.stop());
  return nginx.url;
}

/** Passes connections on to a port. It can stop the next connection after a number of response bytes. */
async function openRelay(port: number) {
  let left = Number.POSITIVE_INFINITY;
  let stop = (_goOn: () => void) => {};
  const relay = createServer((client) => {
    const server = connect(port, "127.0.0.1");
    client.on("data", (bytes) => server.write(bytes)).on("error", () => server.destroy());
    server.on("data", (bytes) => {
      client.write(bytes);
      left -= bytes.length;
      if (left > 0) return;
      left = Number.POSITIVE_INFINITY;
      server.pause();
      stop(() => server.resume());
    });
    server.on("error", () => undefined).on("close", () => client.end());
  }).listen(0, "127.0.0.1");
  await untilStarted(() => relay.listening);
  onTestFinished(() => void relay.close());
  return {
    url: `http://127.0.0.1:${(relay.address() as AddressInfo).port}`,
    /** Resolves when the next connection has stopped, with a function that continues it. */
    stopNext(bytes: number): Promise<() => void> {
      left = bytes;
      return new Promise((resolve) => {
        stop = resolve;
      });
    },
  };
}
