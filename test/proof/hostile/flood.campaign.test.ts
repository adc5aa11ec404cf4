import { connect, type Socket } from "node:net";
import { afterAll, beforeAll, expect, it } from "vitest";
import { makeApiKey } from "../../../src/core/keys/api-keys.ts";
import { pooledRandomBytes } from "../../../src/platform/random.ts";
import { partnerClient, send } from "../../support/client.ts";
import { scrape } from "../../support/scrape.ts";
import { until } from "../../support/until.ts";
import { useService } from "../../support/use-service.ts";
import { type HostileService, startHostileService } from "./hostile-service.ts";

const { servers, keys, issue } = useService({ apis: [], workers: [] });
let service: HostileService;
let key: string;
let code: string;
const sockets: Socket[] = [];

beforeAll(async () => {
  // A small heap, so that little garbage counts as memory in use.
  const small = { NODE_OPTIONS: "--max-old-space-size=128 --max-semi-space-size=2" };
  service = await startHostileService(servers, small);
  key = keys.till.key;
  code = (await issue()).code;
});

afterAll(async () => {
  for (const socket of sockets) socket.destroy();
  await service.stop();
});

const FILLING = "x".repeat(16_000);

it("500 silent connections and 200 incomplete requests do not delay other requests", async () => {
  await Promise.all(Array.from({ length: 500 }, () => open()));
  const half = "POST /partner/vouchers/reserve HTTP/1.1\r\nHost: x\r\nContent-Length: 9000\r\n\r\n{";
  await Promise.all(Array.from({ length: 200 }, () => open(half)));
  expect((await partnerClient(service.url, key).lookUp(code)).status).toBe(200);
  expect((await send("GET", `${service.url}/readyz`)).status).toBe(200);
  for (const socket of sockets.splice(0)) socket.destroy();
});

/** Maximum growth of the process's memory. The bodies in the next test take more than twice as much. */
const GROWTH_MAX_MIB = 28;

it("a flood of answered requests and unread responses uses bounded memory", async () => {
  const rounds = async (count: number) => {
    for (let round = 0; round < count; round++)
      await Promise.all(Array.from({ length: 4 }, () => pipeline(largeRequests(30))));
  };
  await rounds(12);
  const before = await residentMiB();
  await rounds(40);
  // The process has answered requests with 75 MiB of bodies. The next requests ask for 300 MiB of answers, which the
  // client does not read.
  (await open("GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n".repeat(3_000))).pause();
  expect((await partnerClient(service.url, key).lookUp(code)).status).toBe(200);
  // Waits until the process has collected so much garbage that its memory has hardly grown.
  await until(async () => (await residentMiB()) - before < GROWTH_MAX_MIB);
});

async function open(bytes = ""): Promise<Socket> {
  const { hostname, port } = new URL(service.url);
  const socket = connect(Number(port), hostname).on("error", () => undefined);
  sockets.push(socket);
  await new Promise<void>((resolve) => socket.once("connect", resolve));
  socket.write(bytes, "latin1");
  return socket;
}

/** Sends pipelined requests. Resolves once all answers have arrived. */
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
  await until(() => answers >= requests.length);
  socket.destroy();
}

const residentMiB = async () =>
  ((await scrape(service.metricsUrls.api)).value("process_resident_memory_bytes") ?? 0) / 2 ** 20;

/** Makes different requests of nearly the maximum size, a quarter of them with unknown keys. */
function largeRequests(count: number): string[] {
  return Array.from({ length: count }, (_, index) => {
    const secret = index % 4 > 0 ? key : makeApiKey(pooledRandomBytes);
    const body = JSON.stringify({ code: `no-code-${Math.random()}`, [`field${Math.random()}`]: FILLING });
    const head = `Host: x\r\nX-Api-Key: ${secret}\r\nX-Request-Id: ${crypto.randomUUID()}`;
    return `POST /partner/vouchers/reserve HTTP/1.1\r\n${head}\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
  });
}
