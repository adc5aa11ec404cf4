import type { RequestListener } from "node:http";
import { connect, type Socket } from "node:net";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { createApp } from "../../src/app.ts";
import { ASSETS } from "../../src/http/pages/assets.ts";
import { type ConnectionLimits, type HttpServer, listen } from "../../src/http/server.ts";
import { partnerClient, send } from "../support/client.ts";
import { openTestServers, type TestServers } from "../support/servers.ts";
import { startApi, type TestApi } from "../support/service.ts";
import { issueVoucher, makeKey, makePartner } from "../support/supply.ts";
import { until } from "../support/until.ts";

/** What the service's own limits are, in a hurry. */
const LIMITS: ConnectionLimits = {
  headersMs: 400,
  requestMs: 800,
  idleMs: 400,
  stalledMs: 1_500,
  checkEveryMs: 50,
  connectionsMax: 1_000,
  pipelinedMax: 32,
};

/** The largest that is served. */
const SCRIPT = `/assets/${ASSETS.swaggerScript.fileName}`;

let servers: TestServers;
let api: TestApi;
/** The same application behind these limits. */
let hurried: HttpServer;
let url: string;
let key: string;
let code: string;
/** Answers of `hurried` that ended before their time. */
let cutShort = 0;
const sockets = new Set<Socket>();

beforeAll(async () => {
  servers = await openTestServers();
  api = await startApi(servers, { RATE_LIMIT_RPS: "0", MISS_LIMIT_PER_MINUTE: "0" });
  const app = createApp(api.ctx);
  const watched: RequestListener = (request, response) => {
    response.once("close", () => {
      if (!response.writableFinished) cutShort += 1;
    });
    app(request, response);
  };
  hurried = await listen(watched, 0, api.ctx.log, () => undefined, LIMITS);
  url = `http://127.0.0.1:${hurried.port}`;
  const partner = await makePartner(servers.db);
  key = (await makeKey(servers.db, partner.organizationId)).key;
  code = (await issueVoucher(servers.db, partner)).code;
});

afterEach(() => {
  for (const socket of sockets) socket.destroy();
  sockets.clear();
  cutShort = 0;
});

afterAll(async () => {
  await hurried.close();
  await api.close();
  await servers.close();
});

/** A connection and what came over it. */
interface Client {
  socket: Socket;
  received(): string;
  /** Whether the server has ended it, whatever this end does. */
  ended: Promise<void>;
}

function open(bytes = "", port = hurried.port): Promise<Client> {
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
    socket.on("error", reject);
    socket.once("connect", () => {
      socket.write(bytes);
      resolve({ socket, received: () => received, ended });
    });
  });
}

/** Sends the rest byte after byte, each long before anybody loses patience with a silent connection. */
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

/** How many answers came over a connection. */
const countAnswers = (text: string) => text.split(/HTTP\/1\.1 [2-5]\d\d /).length - 1;

describe("a slow client", () => {
  it.each([
    [
      "that sends its headers byte after byte",
      "GET /healthz HTTP/1.1\r\nHost: x\r\n",
      `X-Padding: ${"x".repeat(2_000)}`,
    ],
    ["that connects and sends nothing", "", ""],
    ["that sends half a line and nothing more", "GET /hea", ""],
    [
      "that sends its body byte after byte",
      "POST /partner/vouchers/reserve HTTP/1.1\r\nHost: x\r\nContent-Length: 9000\r\n\r\n",
      "x".repeat(2_000),
    ],
    [
      "that sends chunk after chunk of a byte",
      "POST /partner/vouchers/reserve HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n",
      "1\r\nx\r\n".repeat(400),
    ],
  ])("%s is answered 408 in JSON, and is gone", async (_what, begun, rest) => {
    const client = await open(begun.replace("Host: x", `Host: x\r\nX-Api-Key: ${key}`));
    client.socket.on("error", () => undefined);
    await Promise.all([dribble(client, rest), client.ended]);
    expect(client.received()).toMatch(/^HTTP\/1\.1 408 Request Timeout\r\n/);
    expect(client.received()).toContain('"code":"request_timeout"');
    expect(countAnswers(client.received())).toBe(1);
    // Written to, an end that is gone resets the connection.
    await until(() => client.socket.destroyed || !client.socket.write("x"));
  });

  it("that never finishes a request while its answer is on the way gets no refusal in the middle of it", async () => {
    let cut = false;
    // More than the buffers between both ends take.
    const large = await listen(
      (_request, response) => {
        response.once("close", () => {
          cut = true;
        });
        response.end(Buffer.alloc(64_000_000, "."));
      },
      0,
      api.ctx.log,
      () => undefined,
      { ...LIMITS, stalledMs: 60_000 },
    );
    const client = await open("GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n", large.port);
    client.socket.on("error", () => undefined).pause();
    await until(() => cut);
    client.socket.resume();
    await client.ended;
    expect(client.received()).toMatch(/^HTTP\/1\.1 200/);
    expect(client.received()).not.toContain("request_timeout");
    await large.close();
  });

  it("that does not read a large answer is cut off, and does not hold it in memory for ever", async () => {
    const client = await open(`GET ${SCRIPT} HTTP/1.1\r\nHost: x\r\n\r\n`.repeat(LIMITS.pipelinedMax));
    client.socket.on("error", () => undefined).pause();
    await until(() => cutShort > 0);
  });

  it("is let go when it has been idle between two requests", async () => {
    const client = await open("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
    await client.ended;
    expect(client.received()).toMatch(/^HTTP\/1\.1 200[\s\S]*\{"status":"ok"\}$/);
  });

  it("is waited for as long as its own request takes", async () => {
    const reply = await partnerClient(url, key).lookUp(code);
    expect(reply.status).toBe(200);
  });
});

describe("a broken request", () => {
  it("is answered, and its connection is gone though the client keeps its end open", async () => {
    const client = await open("garbage\r\n\r\n");
    client.socket.on("error", () => undefined);
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
    ["a length beside chunks", post(`Content-Length: 6\r\n${chunked}`, `0\r\n\r\n${hidden}`)],
    ["chunks beside a length", post(`${chunked}\r\nContent-Length: ${hidden.length + 5}`, `0\r\n\r\n${hidden}`)],
    ["two lengths", post(`Content-Length: 0\r\nContent-Length: ${hidden.length}`, hidden)],
    ["two lengths in one", post(`Content-Length: 0, ${hidden.length}`, hidden)],
    ["a length with a sign", post("Content-Length: +0", hidden)],
    ["a hexadecimal length", post("Content-Length: 0x0", hidden)],
    ["a length beyond all bounds", post(`Content-Length: ${"9".repeat(30)}`, hidden)],
    ["an encoding that is not chunked", post("Transfer-Encoding: xchunked", hidden)],
    ["an encoding behind chunked", post("Transfer-Encoding: chunked, identity", `0\r\n\r\n${hidden}`)],
    ["a space before the colon", post("Transfer-Encoding : chunked", `0\r\n\r\n${hidden}`)],
    ["a folded header", post("A: b\r\n Transfer-Encoding: chunked\r\nContent-Length : 0", hidden)],
    ["a bare CR in a header", post(`A: b\r${chunked}`, `0\r\n\r\n${hidden}`)],
    [
      "a bare LF behind the first line",
      `POST /partner/vouchers/release HTTP/1.1\nHost: x\n${chunked}\n\n0\n\n${hidden}`,
    ],
    ["a chunk size beyond all bounds", post(chunked, `${"f".repeat(20)}\r\n${hidden}`)],
    ["a negative chunk size", post(chunked, `-1\r\n${hidden}`)],
    ["a chunk that is longer than its size", post(chunked, `1\r\n${hidden}0\r\n\r\n`)],
    ["a bare LF behind a chunk size", post(chunked, `0\n\n${hidden}`)],
    ["NUL in a header", post("A: \0", hidden)],
  ])("is answered once and hides no other request: %s", async (_what, bytes) => {
    const client = await open(bytes);
    client.socket.on("error", () => undefined);
    await client.ended;
    expect(client.received()).toMatch(/^HTTP\/1\.1 (400|401)/);
    const last = client.received().slice(client.received().lastIndexOf("HTTP/1.1 "));
    expect(last).toMatch(/^HTTP\/1\.1 400 [\s\S]*"code":"invalid_http"/);
    expect(client.received()).not.toContain("GET, HEAD");
    // One answer to what came before the break, if that was a whole request, and one to the break.
    expect(countAnswers(client.received())).toBeLessThanOrEqual(2);
  });

  it("takes one key that comes twice for no key, and headers behind a body for none", async () => {
    const twice = await open(
      `GET /partner/vouchers/${code} HTTP/1.1\r\nHost: x\r\nX-Api-Key: ${key}\r\nX-Api-Key: ${key}\r\n\r\n`,
    );
    const trailer = await open(post(chunked, `0\r\nX-Api-Key: ${key}\r\n\r\n`));
    await until(() => countAnswers(twice.received()) === 1 && countAnswers(trailer.received()) === 1);
    expect(twice.received()).toContain('"code":"unknown_key"');
    expect(trailer.received()).toContain('"code":"missing_key"');
  });
});

describe("many connections", () => {
  it("beyond the bound are closed, take nothing from those that are there, and there is room again when some have gone", async () => {
    const connectionsMax = 30;
    const patient = { ...LIMITS, headersMs: 60_000, requestMs: 60_000, idleMs: 60_000, connectionsMax };
    const full = await listen(createApp(api.ctx), 0, api.ctx.log, () => undefined, patient);
    const ask = "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n";
    const crowd: Client[] = [];
    for (let count = 0; count < connectionsMax; count++) crowd.push(await open(ask, full.port));
    await until(() => crowd.every((client) => countAnswers(client.received()) === 1));
    for (let count = 0; count < 5; count++) {
      const turnedAway = await open("", full.port);
      turnedAway.socket.on("error", () => undefined);
      await turnedAway.ended;
      expect(turnedAway.received()).toBe("");
    }
    for (const { socket } of crowd) socket.write(ask);
    await until(() => crowd.every((client) => countAnswers(client.received()) === 2));
    crowd.pop()?.socket.destroy();
    await until(
      async () => (await send("GET", `http://127.0.0.1:${full.port}/healthz`).catch(() => null))?.status === 200,
    );
    for (const { socket } of crowd) socket.destroy();
    await full.close();
  });
});

describe("requests that are sent one behind another without waiting", () => {
  const ask = "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n";

  it("are all answered, in their order, up to the bound, and again when these have their answers", async () => {
    const numbered = (from: number) =>
      Array.from({ length: LIMITS.pipelinedMax }, (_, index) =>
        ask.replace("Host", `X-Request-Id: n-${from + index}\r\nHost`),
      );
    const client = await open(numbered(0).join(""));
    await until(() => countAnswers(client.received()) === LIMITS.pipelinedMax);
    client.socket.write(numbered(LIMITS.pipelinedMax).join(""));
    await until(() => countAnswers(client.received()) === 2 * LIMITS.pipelinedMax);
    const ids = Array.from(client.received().matchAll(/X-Request-Id: n-(\d+)/g), ([, id]) => Number(id));
    expect(ids).toEqual(ids.map((_, index) => index));
  });

  it("close the connection when they are too many", async () => {
    const client = await open(ask.repeat(1_000));
    client.socket.on("error", () => undefined);
    await client.ended;
    expect(countAnswers(client.received())).toBeLessThanOrEqual(LIMITS.pipelinedMax);
  });
});

describe("a header that asks for a part of an answer, or for a version", () => {
  it.each([
    ["If-Match", '"x"'],
    ["If-Unmodified-Since", "Thu, 01 Jan 1970 00:00:00 GMT"],
    ["If-None-Match", "*"],
    ["If-None-Match", '"x", *'],
    ["Range", "bytes=0-0"],
    ["Range", "bytes=99999999-"],
  ])("changes nothing, whatever the address: %s: %s", async (name, value) => {
    for (const path of [`/partner/vouchers/${code}`, "/healthz", "/openapi.json", "/docs", SCRIPT, "/"]) {
      const { status } = await fetch(`${api.url}${path}`, { headers: { [name]: value, "x-api-key": key } });
      expect(status, path).toBe(200);
    }
  });
});
