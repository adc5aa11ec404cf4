import { once } from "node:events";
import { Agent, request } from "node:http";
import { connect } from "node:net";
import { afterAll, beforeAll, expect, it } from "vitest";
import { assertInvariants } from "../support/invariants.ts";
import { openTestServers, type TestServers } from "../support/servers.ts";
import { startApi } from "../support/service.ts";
import { issueVoucher, makeKey, makePartner, type TestPartner } from "../support/supply.ts";
import { until } from "../support/until.ts";

/** Longer than what closing takes apart from waiting for the answer. */
const REDEEM_WAIT_MS = 1_500;

let servers: TestServers;
let partner: TestPartner;
let key: string;

beforeAll(async () => {
  servers = await openTestServers();
  partner = await makePartner(servers.db);
  ({ key } = await makeKey(servers.db, partner.organizationId));
});

afterAll(async () => {
  await assertInvariants(servers.db);
  await servers.close();
});

interface Answer {
  status: number | undefined;
  connection: string | undefined;
}

/** Sends a request on a kept connection. */
function send(agent: Agent, url: string, method: string, body?: string): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const sent = request(url, { method, agent, headers: { "x-api-key": key } }, (answer) => {
      answer.resume().once("end", () => resolve({ status: answer.statusCode, connection: answer.headers.connection }));
    });
    sent.once("error", reject).end(body);
  });
}

it("an API that is told to stop answers what is under way, ends that connection, and is done then", async () => {
  // No worker runs, so the redeem is under way until its wait is over.
  const api = await startApi(servers, { REDEEM_WAIT_MS: String(REDEEM_WAIT_MS) });
  const { code } = await issueVoucher(servers.db, partner);
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  expect((await send(agent, `${api.url}/healthz`, "GET")).connection).toBe("keep-alive");
  const body = JSON.stringify({ code, externalRef: "under-way" });
  const redeem = send(agent, `${api.url}/partner/vouchers/redeem`, "POST", body);
  await until(async () => (await servers.redis.llen("{vouchers}:redeem:wait")) === 1);
  const startedAt = performance.now();
  const closed = api.close();
  expect(await redeem).toEqual({ status: 503, connection: "close" });
  await closed;
  expect(performance.now() - startedAt).toBeLessThan(REDEEM_WAIT_MS + 1_000);
  await expect(send(agent, `${api.url}/healthz`, "GET")).rejects.toThrow("ECONNREFUSED");
  agent.destroy();
});

it("an API that is told to stop is not kept by clients who go on sending on their connections", async () => {
  const api = await startApi(servers);
  const agent = new Agent({ keepAlive: true, maxSockets: 4 });
  let failed = 0;
  let answered = 0;
  const senders = Array.from({ length: 4 }, async () => {
    while (failed < 4) {
      await send(agent, `${api.url}/healthz`, "GET").then(
        () => {
          answered += 1;
        },
        () => {
          failed += 1;
        },
      );
    }
  });
  await until(() => answered > 50);
  const startedAt = performance.now();
  await api.close();
  expect(performance.now() - startedAt).toBeLessThan(5_000);
  await Promise.all(senders);
  agent.destroy();
});

it("an API that is told to stop does not wait for who has connected and asks nothing, or half a question", async () => {
  const api = await startApi(servers);
  const { hostname, port } = new URL(api.url);
  const sockets = [connect(Number(port), hostname), connect(Number(port), hostname)];
  await Promise.all(sockets.map((socket) => once(socket, "connect")));
  sockets[1]?.write("GET /healthz HTTP/1.1\r\nHost:");
  await (await fetch(`${api.url}/healthz`)).text();
  const startedAt = performance.now();
  await Promise.all([api.close(), ...sockets.map((socket) => once(socket.resume(), "close"))]);
  expect(performance.now() - startedAt).toBeLessThan(6_000);
});

it("an API that is told to stop answers who had connected and not asked yet, and ends that connection", async () => {
  const api = await startApi(servers);
  const { hostname, port } = new URL(api.url);
  const socket = connect(Number(port), hostname);
  await once(socket, "connect");
  // The server knows of the connection once it has answered a later one.
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
