import type { RequestListener } from "node:http";
import { connect, type Socket } from "node:net";
import { afterEach, beforeAll, expect, it } from "vitest";
import { createApp } from "../../../src/open/app.ts";
import { ASSETS } from "../../../src/pages/assets.ts";
import { type ConnectionLimits, type HttpServer, listen } from "../../../src/platform/http/server.ts";
import { partnerClient, send } from "../../support/client.ts";
import { until } from "../../support/until.ts";
import { useService } from "../../support/use-service.ts";

/** The service's limits, with short times. */
const LIMITS: ConnectionLimits & { keepAliveMs: number } = {
  headersMs: 400,
  requestMs: 800,
  keepAliveMs: 400,
  stalledMs: 1_500,
  checkEveryMs: 50,
  closingIdleMs: 100,
  connectionsMax: 1_000,
  backlog: 511,
  pipelinedMax: 32,
};

const ASK = "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n";

const { servers, api, keys, issue } = useService({ workers: [] });
/** A second server of the same application, with `LIMITS`. */
let limited: HttpServer;
let key: string;
let code: string;
/** The number of answers that `limited` has cut short. */
let cutShort = 0;
const sockets = new Set<Socket>();

beforeAll(async () => {
  const app = createApp(api.ctx);
  limited = await serve((request, response) => {
    response.once("close", () => {
      if (!response.writableFinished) cutShort += 1;
    });
    app(request, response);
  });
  key = keys.till.key;
  code = (await issue()).code;
});

afterEach(() => {
  for (const socket of sockets) socket.destroy();
  sockets.clear();
  cutShort = 0;
});

it.each([
  ["that sends its headers byte by byte", "GET /healthz HTTP/1.1\r\nHost: x\r\n", `X-Padding: ${"x".repeat(2_000)}`],
  ["that connects and sends nothing", "", ""],
  ["that sends half a line", "GET /hea", ""],
  [
    "that sends its body byte by byte",
    "POST /partner/vouchers/reserve HTTP/1.1\r\nHost: x\r\nContent-Length: 9000\r\n\r\n",
    "x".repeat(2_000),
  ],
  [
    "that sends chunks of one byte",
    "POST /partner/vouchers/reserve HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n",
    "1\r\nx\r\n".repeat(400),
  ],
])("a slow client %s gets 408 in JSON and is disconnected", async (_title, begun, rest) => {
  const client = await open(begun.replace("Host: x", `Host: x\r\nX-Api-Key: ${key}`));
  await Promise.all([dribble(client, rest), client.ended]);
  expect(client.received()).toMatch(/^HTTP\/1\.1 408 Request Timeout\r\n/);
  expect(client.received()).toContain('"code":"request_timeout"');
  expect(countAnswers(client.received())).toBe(1);
  // Writing to a closed connection resets it.
  await until(() => client.socket.destroyed || !client.socket.write("x"));
});

it("a client that never finishes its request gets no 408 in the middle of a response", async () => {
  let cut = false;
  // More bytes than the network's buffers can hold.
  const answer: RequestListener = (_request, response) => {
    response.once("close", () => {
      cut = true;
    });
    response.end(Buffer.alloc(64_000_000, "."));
  };
  const large = await serve(answer, { stalledMs: 60_000 });
  const client = await open("GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n", large.port);
  client.socket.pause();
  await until(() => cut);
  client.socket.resume();
  await client.ended;
  expect(client.received()).toMatch(/^HTTP\/1\.1 200/);
  expect(client.received()).not.toContain("request_timeout");
});

/** The largest asset. */
const SCRIPT = `/assets/${ASSETS.swaggerScript.fileName}`;

it("a client that does not read a large response is disconnected", async () => {
  const client = await open(`GET ${SCRIPT} HTTP/1.1\r\nHost: x\r\n\r\n`.repeat(LIMITS.pipelinedMax));
  client.socket.pause();
  await until(() => cutShort > 0);
});

it("a client that pauses between two requests is disconnected, and a fast client gets its answers", async () => {
  const client = await open(ASK);
  await client.ended;
  expect(client.received()).toMatch(/^HTTP\/1\.1 200[\s\S]*\{"status":"ok"\}\n$/);
  expect((await partnerClient(`http://127.0.0.1:${limited.port}`, key).lookUp(code)).status).toBe(200);
});

it("a malformed request gets 400, and its connection closes even if the client keeps its side open", async () => {
  const client = await open("garbage\r\n\r\n");
  await client.ended;
  expect(client.received()).toContain('"code":"invalid_http"');
  await until(() => {
    client.socket.write("x");
    return client.socket.destroyed || client.socket.errored;
  });
});

const hidden = "GET /partner/vouchers/reserve HTTP/1.1\r\nHost: x\r\n\r\n";
const post = (headers: string, body: string) =>
  `POST /partner/vouchers/release HTTP/1.1\r\nHost: x\r\n${headers}\r\n\r\n${body}`;
const chunked = "Transfer-Encoding: chunked";

it.each([
  ["a length and chunks", post(`Content-Length: 6\r\n${chunked}`, `0\r\n\r\n${hidden}`)],
  ["chunks and a length", post(`${chunked}\r\nContent-Length: ${hidden.length + 5}`, `0\r\n\r\n${hidden}`)],
  ["two lengths", post(`Content-Length: 0\r\nContent-Length: ${hidden.length}`, hidden)],
  ["two lengths in one header", post(`Content-Length: 0, ${hidden.length}`, hidden)],
  ["a length with a sign", post("Content-Length: +0", hidden)],
  ["a hexadecimal length", post("Content-Length: 0x0", hidden)],
  ["a huge length", post(`Content-Length: ${"9".repeat(30)}`, hidden)],
  ["an encoding that is not chunked", post("Transfer-Encoding: xchunked", hidden)],
  ["an encoding after chunked", post("Transfer-Encoding: chunked, identity", `0\r\n\r\n${hidden}`)],
  ["a space before the colon", post("Transfer-Encoding : chunked", `0\r\n\r\n${hidden}`)],
  ["a folded header", post("A: b\r\n Transfer-Encoding: chunked\r\nContent-Length : 0", hidden)],
  ["a bare CR in a header", post(`A: b\r${chunked}`, `0\r\n\r\n${hidden}`)],
  ["a bare LF after the first line", `POST /partner/vouchers/release HTTP/1.1\nHost: x\n${chunked}\n\n0\n\n${hidden}`],
  ["a huge chunk size", post(chunked, `${"f".repeat(20)}\r\n${hidden}`)],
  ["a negative chunk size", post(chunked, `-1\r\n${hidden}`)],
  ["a chunk longer than its size", post(chunked, `1\r\n${hidden}0\r\n\r\n`)],
  ["a bare LF after a chunk size", post(chunked, `0\n\n${hidden}`)],
  ["NUL in a header", post("A: \0", hidden)],
])("a malformed request gets one answer, and a second request inside it gets none: %s", async (_title, bytes) => {
  const client = await open(bytes);
  await client.ended;
  expect(client.received()).toMatch(/^HTTP\/1\.1 (400|401)/);
  const last = client.received().slice(client.received().lastIndexOf("HTTP/1.1 "));
  expect(last).toMatch(/^HTTP\/1\.1 400 [\s\S]*"code":"invalid_http"/);
  expect(client.received()).not.toContain("GET, HEAD");
  // At most two answers: to a complete request before the error, if there is one, and to the error.
  expect(countAnswers(client.received())).toBeLessThanOrEqual(2);
});

it("a request with two key headers or a key in a trailer is refused", async () => {
  const twice = await open(
    `GET /partner/vouchers/${code} HTTP/1.1\r\nHost: x\r\nX-Api-Key: ${key}\r\nX-Api-Key: ${key}\r\n\r\n`,
  );
  const trailer = await open(post(chunked, `0\r\nX-Api-Key: ${key}\r\n\r\n`));
  await until(() => countAnswers(twice.received()) === 1 && countAnswers(trailer.received()) === 1);
  expect(twice.received()).toContain('"code":"unknown_key"');
  expect(trailer.received()).toContain('"code":"missing_key"');
});

it("connections beyond the limit are closed without affecting others, and are accepted again later", async () => {
  const connectionsMax = 30;
  const full = await serve(null, { headersMs: 60_000, requestMs: 60_000, keepAliveMs: 60_000, connectionsMax });
  const crowd: Client[] = [];
  while (crowd.length < connectionsMax) crowd.push(await open(ASK, full.port));
  await until(() => crowd.every((client) => countAnswers(client.received()) === 1));
  for (let count = 0; count < 5; count++) {
    const rejected = await open("", full.port);
    await rejected.ended;
    expect(rejected.received()).toBe("");
  }
  for (const { socket } of crowd) socket.write(ASK);
  await until(() => crowd.every((client) => countAnswers(client.received()) === 2));
  crowd.pop()?.socket.destroy();
  const url = `http://127.0.0.1:${full.port}/healthz`;
  await until(async () => (await send("GET", url).catch(() => null))?.status === 200);
});

it("pipelined requests up to the limit are answered in order", async () => {
  const numbered = (from: number) =>
    Array.from({ length: LIMITS.pipelinedMax }, (_, index) =>
      ASK.replace("Host", `X-Request-Id: n-${from + index}\r\nHost`),
    );
  // Uses a long idle limit, because the connection is idle until this test sees the answers.
  const patient = await serve(null, { keepAliveMs: 60_000 });
  const client = await open(numbered(0).join(""), patient.port);
  await until(() => countAnswers(client.received()) === LIMITS.pipelinedMax);
  client.socket.write(numbered(LIMITS.pipelinedMax).join(""));
  await until(() => countAnswers(client.received()) === 2 * LIMITS.pipelinedMax);
  const ids = Array.from(client.received().matchAll(/X-Request-Id: n-(\d+)/g), ([, id]) => Number(id));
  expect(ids).toEqual(ids.map((_, index) => index));
});

it("pipelined requests beyond the limit close the connection", async () => {
  const client = await open(ASK.repeat(1_000));
  await client.ended;
  expect(countAnswers(client.received())).toBeLessThanOrEqual(LIMITS.pipelinedMax);
});

it.each([
  ["If-Match", '"x"'],
  ["If-Unmodified-Since", "Thu, 01 Jan 1970 00:00:00 GMT"],
  ["If-None-Match", "*"],
  ["If-None-Match", '"x", *'],
  ["Range", "bytes=0-0"],
  ["Range", "bytes=99999999-"],
])("a GET with a conditional or range header still gets 200: %s: %s", async (name, value) => {
  for (const path of [`/partner/vouchers/${code}`, "/healthz", "/openapi.json", "/docs", SCRIPT, "/"]) {
    const { status } = await fetch(`${api.url}${path}`, { headers: { [name]: value, "x-api-key": key } });
    expect(status, path).toBe(200);
  }
});

/** Serves the application, or another listener, with changed limits until the end of the file. */
async function serve(listener: RequestListener | null, changed: Partial<typeof LIMITS> = {}): Promise<HttpServer> {
  const { keepAliveMs, ...limits } = { ...LIMITS, ...changed };
  const at = { port: 0, keepAliveMs };
  const server = await listen(listener ?? createApp(api.ctx), at, api.ctx.log, () => undefined, limits);
  servers.onClose(() => server.close());
  return server;
}

interface Client {
  socket: Socket;
  received(): string;
  /** Resolves when the server has closed the connection. */
  ended: Promise<void>;
}

function open(bytes = "", port = limited.port): Promise<Client> {
  return new Promise((resolve, reject) => {
    let received = "";
    const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
    sockets.add(socket);
    const ended = new Promise<void>((over) => {
      socket.once("end", over).once("close", () => over());
    });
    socket.setEncoding("latin1").on("data", (text) => {
      received += text;
    });
    // Rejects only before the connection is open. Later errors only end the connection.
    socket.on("error", reject);
    socket.once("connect", () => {
      socket.write(bytes);
      resolve({ socket, received: () => received, ended });
    });
  });
}

/** Sends the rest byte by byte. Each pause is well below the idle limit. */
async function dribble({ socket, ended }: Client, rest: string): Promise<void> {
  let over = false;
  void ended.then(() => {
    over = true;
  });
  for (const byte of rest) {
    if (over) return;
    socket.write(byte, () => undefined);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

const countAnswers = (text: string) => text.split(/HTTP\/1\.1 [2-5]\d\d /).length - 1;
