import { once } from "node:events";
import { Agent, request } from "node:http";
import { connect } from "node:net";
import { expect, it } from "vitest";
import { CONNECTION_LIMITS } from "../../../src/platform/http/server.ts";
import { startNode } from "../../support/child-process.ts";
import { expectFairRound } from "../../support/fair-rounds.ts";
import { countJobs } from "../../support/redeem-jobs.ts";
import { startApi } from "../../support/service.ts";
import { findSteadyPort } from "../../support/steady-port.ts";
import { until, untilStarted } from "../../support/until.ts";
import { useService } from "../../support/use-service.ts";

/** Longer than all other steps of closing take together, even on a busy machine. Milliseconds. */
const REDEEM_WAIT_MS = 5_000;

const { servers, keys, issue } = useService({ apis: [], workers: [] });

it("a stopping API answers running requests, then closes their connections", async () => {
  // No worker runs, so the redeem lasts until the end of its wait.
  const api = await startApi(servers, { REDEEM_WAIT_MS: String(REDEEM_WAIT_MS) });
  const { code } = await issue();
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  expect((await send(agent, `${api.url}/healthz`, "GET")).connection).toBe("keep-alive");
  const body = JSON.stringify({ code, externalRef: "under-way" });
  const redeem = send(agent, `${api.url}/partner/vouchers/redeem`, "POST", body);
  await until(async () => (await countJobs(servers, "redeem")) === 1);
  const closed = api.close();
  expect(await redeem).toEqual({ status: 503, connection: "close" });
  await closed;
  await expect(send(agent, `${api.url}/healthz`, "GET")).rejects.toThrow("ECONNREFUSED");
  agent.destroy();
});

it("an API process that gets SIGTERM answers all requests of 64 clients on open connections", async () => {
  // A busy machine may keep clients from sending for two seconds, after which their connections count as idle.
  await expectFairRound(3, stopUnderLoad, (failures) => failures.length === 0);
});

/** Stops an API process while 64 clients send. Returns the failures of clients without an answer. */
async function stopUnderLoad(): Promise<string[]> {
  const port = await findSteadyPort();
  const api = startNode(["src/main.ts"], {
    DATABASE_URL: servers.databaseUrl,
    REDIS_URL: servers.redisUrl,
    PORT: String(port),
  });
  await untilStarted(() => api.output().includes('"listening"'));
  let answered = 0;
  const sendUntilClosed = async () => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    for (;;) {
      const { connection } = await send(agent, `http://127.0.0.1:${port}/healthz`, "GET");
      answered += 1;
      if (connection === "close") return agent.destroy();
    }
  };
  const clients = Promise.allSettled(Array.from({ length: 64 }, sendUntilClosed));
  // Stops the process early, when it has not accepted all connections yet.
  await until(() => answered > 100);
  api.child.kill("SIGTERM");
  const failures = (await clients).filter((client) => client.status === "rejected").map(({ reason }) => String(reason));
  expect((await api.ended).exitCode).toBe(0);
  return failures;
}

it("after two Ctrl-C an API process still answers running requests, including a waiting redeem", async () => {
  const port = await findSteadyPort();
  const { databaseUrl: DATABASE_URL, redisUrl: REDIS_URL } = servers;
  const QUEUE_SHARDS = String(servers.queueShards[0]);
  // A redeem waits longer than the time limit for closing.
  const settings = { PORT: String(port), REDEEM_WAIT_MS: "60000", QUEUE_SHARDS };
  const api = startNode(["src/main.ts"], { DATABASE_URL, REDIS_URL, ...settings });
  await untilStarted(async () => (await fetch(`http://127.0.0.1:${port}/readyz`).catch(() => null))?.ok);
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const body = JSON.stringify({ code: (await issue()).code, externalRef: "twice" });
  const redeem = send(agent, `http://127.0.0.1:${port}/partner/vouchers/redeem`, "POST", body);
  await until(async () => (await countJobs(servers, "redeem")) === 1);
  api.child.kill("SIGINT");
  await until(() => api.output().includes('"draining"'));
  api.child.kill("SIGINT");
  expect((await redeem).status).toBe(503);
  expect((await api.ended).exitCode).toBe(0);
  agent.destroy();
});

it("a stopping API does not wait for connections without a complete request", async () => {
  const api = await startApi(servers);
  const { hostname, port } = new URL(api.url);
  const sockets = [connect(Number(port), hostname), connect(Number(port), hostname)];
  await Promise.all(sockets.map((socket) => once(socket, "connect")));
  sockets[1]?.write("GET /healthz HTTP/1.1\r\nHost:");
  await (await fetch(`${api.url}/healthz`)).text();
  await Promise.all([api.close(), ...sockets.map((socket) => once(socket.resume(), "close"))]);
});

it("a stopping API answers the first request of an open connection, then closes the connection", async () => {
  const api = await startApi(servers, {}, CONNECTION_LIMITS);
  const { hostname, port } = new URL(api.url);
  const socket = connect(Number(port), hostname);
  await once(socket, "connect");
  // A server accepts connections in order. Once it answers on a later connection, it has accepted the earlier one.
  await (await fetch(`${api.url}/healthz`)).text();
  const closed = api.close();
  let text = "";
  socket.on("data", (bytes) => {
    text += bytes;
  });
  socket.write("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
  await once(socket, "close");
  expect(text).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
  expect(text).toMatch(/\r\nConnection: close\r\n/i);
  await closed;
});

it.each([
  ["ten minutes and more by default", {}, 620],
  ["as long as KEEP_ALIVE_SECONDS says", { KEEP_ALIVE_SECONDS: "1" }, 1],
])("an API keeps idle connections %s, including connections to its metrics port", async (_title, env: Record<
  string,
  string
>, seconds) => {
  const api = await startApi(servers, { ...env, METRICS_PORT: "0" });
  for (const url of [`${api.url}/healthz`, api.metricsUrl]) {
    const { hostname, port, pathname } = new URL(url);
    const socket = connect(Number(port), hostname);
    socket.write(`GET ${pathname} HTTP/1.1\r\nHost: x\r\n\r\n`);
    const [answer] = await once(socket, "data");
    expect(String(answer)).toMatch(new RegExp(`^HTTP/1\\.1 200 OK\\r\\n[\\s\\S]*Keep-Alive: timeout=${seconds}\\r\\n`));
    if (seconds === 1) await expect(once(socket.resume(), "close")).resolves.toBeDefined();
    socket.destroy();
  }
});

interface Answer {
  status: number | undefined;
  connection: string | undefined;
}

/** Sends a request on a reused connection. */
function send(agent: Agent, url: string, method: string, body?: string): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const sent = request(url, { method, agent, headers: { "x-api-key": keys.till.key } }, (answer) => {
      answer.resume().once("end", () => resolve({ status: answer.statusCode, connection: answer.headers.connection }));
    });
    sent.once("error", reject).end(body);
  });
}
