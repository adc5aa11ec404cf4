import { connect, type Socket } from "node:net";
import { afterAll, beforeAll, expect, it } from "vitest";
import { makeApiKey } from "../../src/domain/api-keys.ts";
import { pooledRandomBytes } from "../../src/random.ts";
import { partnerClient, send } from "../support/client.ts";
import { assertInvariants } from "../support/invariants.ts";
import { scrape } from "../support/scrape.ts";
import { openTestServers, type TestServers } from "../support/servers.ts";
import { issueVoucher, makeKey, makePartner } from "../support/supply.ts";
import { until } from "../support/until.ts";
import { type HostileService, startHostileService } from "./hostile-service.ts";

let servers: TestServers;
let service: HostileService;
let key: string;
let code: string;
const sockets: Socket[] = [];

beforeAll(async () => {
  servers = await openTestServers();
  service = await startHostileService(servers, {
    // With little room for garbage, what is gone does not pass for memory in use.
    NODE_OPTIONS: "--max-old-space-size=128 --max-semi-space-size=2",
  });
  const partner = await makePartner(servers.db);
  key = (await makeKey(servers.db, partner.organizationId)).key;
  code = (await issueVoucher(servers.db, partner)).code;
});

afterAll(async () => {
  await assertInvariants(servers.db);
  for (const socket of sockets) socket.destroy();
  await service.stop();
  await servers.close();
});

/** Opens a connection and sends these bytes at once. */
async function open(bytes = ""): Promise<Socket> {
  const { hostname, port } = new URL(service.url);
  const socket = connect(Number(port), hostname).on("error", () => undefined);
  sockets.push(socket);
  await new Promise<void>((resolve) => socket.once("connect", resolve));
  socket.write(bytes, "latin1");
  return socket;
}

/** Sends requests one behind another without waiting, and waits for all their answers. */
async function pipeline(requests: readonly string[]): Promise<void> {
  const socket = await open();
  let answers = 0;
  let rest = "";
  socket.setEncoding("latin1").on("data", (text: string) => {
    const parts = (rest + text).split(/HTTP\/1\.1 \d{3} /);
    answers += parts.length - 1;
    rest = (parts.at(-1) ?? "").slice(-12);
  });
  socket.write(requests.join(""), "latin1");
  await until(() => answers >= requests.length, 50_000);
  socket.destroy();
}

/** The bodies that the test below has read would take twice this, were they kept. */
const GROWTH_MAX_MIB = 28;

const residentMiB = async () =>
  ((await scrape(service.metricsUrls.api)).value("process_resident_memory_bytes") ?? 0) / 2 ** 20;

const FILLING = "x".repeat(16_000);

/** Requests as large as they may be, each different from all others: a quarter of them with keys that were never made. */
function largeRequests(count: number): string[] {
  return Array.from({ length: count }, (_, index) => {
    const secret = index % 4 > 0 ? key : makeApiKey(pooledRandomBytes);
    const body = JSON.stringify({ code: `no-code-${Math.random()}`, [`field${Math.random()}`]: FILLING });
    const head = [
      "Host: x",
      `X-Api-Key: ${secret}`,
      `X-Request-Id: ${crypto.randomUUID()}`,
      `Content-Length: ${body.length}`,
    ];
    return `POST /partner/vouchers/reserve HTTP/1.1\r\n${head.join("\r\n")}\r\n\r\n${body}`;
  });
}

it("five hundred silent connections and two hundred half requests keep nobody else from an answer", async () => {
  await Promise.all(Array.from({ length: 500 }, () => open()));
  const half = "POST /partner/vouchers/reserve HTTP/1.1\r\nHost: x\r\nContent-Length: 9000\r\n\r\n{";
  await Promise.all(Array.from({ length: 200 }, () => open(half)));
  expect((await partnerClient(service.url, key).lookUp(code)).status).toBe(200);
  expect((await send("GET", `${service.url}/readyz`)).status).toBe(200);
  for (const socket of sockets.splice(0)) socket.destroy();
});

it("what has been answered, or is not read, is not kept in memory", async () => {
  const rounds = async (count: number) => {
    for (let round = 0; round < count; round++)
      await Promise.all(Array.from({ length: 4 }, () => pipeline(largeRequests(30))));
  };
  await rounds(12);
  const before = await residentMiB();
  await rounds(40);
  // 75 MiB of bodies have gone through, and answers of 300 MiB are asked for that nobody takes.
  (await open("GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n".repeat(3_000))).pause();
  expect((await partnerClient(service.url, key).lookUp(code)).status).toBe(200);
  expect((await residentMiB()) - before).toBeLessThan(GROWTH_MAX_MIB);
});
