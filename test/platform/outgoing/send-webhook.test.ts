import type { ServerResponse } from "node:http";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { afterEach, expect, it } from "vitest";
import { isPublicAddress } from "../../../src/platform/addresses.ts";
import { openWebhookSender, sendWebhook } from "../../../src/platform/outgoing/send-webhook.ts";
import { HOSTILE_KINDS, type HostileKind, startHostileReceiver } from "../../support/hostile-receiver.ts";
import { type PartnerServer, SELF_SIGNED, startPartnerServer } from "../../support/partner-server.ts";
import { until } from "../../support/until.ts";

const OK = { status: 204, failure: null, retryAfterMs: null };
const failed = (failure: string) => ({ status: null, failure, retryAfterMs: null });

const closers: (() => unknown)[] = [];

afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

type SenderOptions = Partial<Parameters<typeof openWebhookSender>[0]>;

it("a webhook endpoint gets the exact body and headers on reused connections", async () => {
  const receiver = await receive();
  const send = makeSender();
  expect(await send(receiver.url, '{"name":"ä"}')).toEqual(OK);
  for (let count = 1; count < 5; count++) expect(await send(receiver.url)).toEqual(OK);
  // The client opens at most two connections, because it may open the second while it frees the first.
  expect(receiver.connections).toBeLessThanOrEqual(2);
  expect(receiver.received.map(({ body }) => body)).toEqual(['{"name":"ä"}', "{}", "{}", "{}", "{}"]);
  expect(receiver.received[0]?.headers).toMatchObject({
    "content-type": "application/json",
    "content-length": "13",
    "webhook-id": "1",
  });
});

it("a webhook endpoint gets the request on a new connection if it has closed the idle connection", async () => {
  const sockets: Socket[] = [];
  const url = await serveRaw((socket) => {
    sockets.push(socket);
    socket.once("data", () => socket.end("HTTP/1.1 204 No Content\r\n\r\n"));
  });
  const send = makeSender();
  expect(await send(url)).toEqual(OK);
  expect(await send(url)).toEqual(OK);
  expect(sockets).toHaveLength(2);
});

it("a webhook endpoint may use a trusted authority's certificate, only for its own name", async () => {
  const { port } = await receive({ tls: true });
  const send = makeSender({ ca: SELF_SIGNED.cert, resolve: async () => ["127.0.0.1"] });
  expect(await send(`https://hooks.test:${port}/`)).toEqual(OK);
  expect(await send(`https://other.test:${port}/`)).toEqual(failed("tls"));
});

const guarded = { mayConnectTo: isPublicAddress };

it("a webhook attempt refuses a private address in a URL and among a host name's addresses", async () => {
  const receiver = await receive();
  const hosts = "127.0.0.1 [::1] [::ffff:127.0.0.1] 2130706433 0x7f.1 169.254.169.254 [64:ff9b::7f00:1]";
  for (const host of hosts.split(" "))
    expect(await makeSender(guarded)(`http://${host}:${receiver.port}/`), host).toEqual(failed("refused_address"));
  for (const addresses of [
    ...[
      ["127.0.0.1"],
      ["192.168.0.1", "64:ff9b::10.0.0.1"],
      ["::ffff:10.0.0.1"],
      ["2002:7f00:1::"],
      ["not an address"],
    ],
  ]) {
    const send = makeSender({ ...guarded, resolve: async () => addresses });
    const result = await send(`http://hooks.test:${receiver.port}/`);
    expect(result, String(addresses)).toEqual(failed("refused_address"));
  }
  expect(receiver.connections).toBe(0);
});

it("a webhook attempt skips a host name's private addresses, and uses its other addresses", async () => {
  const secret = await receive();
  const good = await receive({ host: "127.0.0.2", port: secret.port });
  for (const addresses of [
    ["127.0.0.1", "127.0.0.2"],
    ["::1", "127.0.0.2", "127.0.0.1"],
    ["not an address", "127.0.0.2"],
  ]) {
    const send = makeSender({ resolve: async () => addresses, mayConnectTo: (address) => address === "127.0.0.2" });
    expect(await send(`http://hooks.test:${good.port}/`), String(addresses)).toEqual(OK);
  }
  expect([good.connections, secret.connections]).toEqual([3, 0]);
});

it("a webhook attempt finds a working address although all addresses of the other IP version fail", async () => {
  const { port } = await receive({ host: "::1" });
  // No server listens at these addresses.
  const others = [2, 3, 4, 5, 6].map((last) => `127.0.0.${last}`);
  expect(await makeSender({ resolve: async () => [...others, "::1"] })(`http://hooks.test:${port}/`)).toEqual(OK);
});

it("a webhook attempt never connects to a private address from a host name's second look-up", async () => {
  const secret = await receive();
  // Listens on the receiver's port, at an address that no other program uses.
  const good = await receive({
    host: "127.0.0.2",
    port: secret.port,
    answer: (response) => response.setHeader("connection", "close").writeHead(204).end(),
  });
  const answers = ["127.0.0.2", "127.0.0.1"];
  const send = makeSender({
    resolve: async () => [answers.shift() ?? "127.0.0.1"],
    mayConnectTo: (address) => address !== "127.0.0.1",
  });
  expect(await send(`http://hooks.test:${good.port}/`)).toEqual(OK);
  expect(answers, "one look-up per connection").toEqual(["127.0.0.1"]);
  expect(await send(`http://hooks.test:${good.port}/`)).toEqual(failed("refused_address"));
  expect([good.connections, secret.connections]).toEqual([1, 0]);
});

it("a webhook attempt refuses a private address that was allowed when the endpoint was created", async () => {
  const receiver = await receive();
  const anywhere = makeSender({ allowPrivate: false, mayConnectTo: () => true });
  expect(await anywhere(receiver.url)).toEqual(failed("refused_address"));
  expect(receiver.connections).toBe(0);
  const byName = makeSender({ allowPrivate: false, resolve: async () => ["127.0.0.1"] });
  expect(await byName("https://hooks.example.com/")).toEqual(failed("refused_address"));
});

it("a webhook attempt follows no redirect", async () => {
  const target = await receive();
  for (const status of [301, 302, 304, 307, 308]) {
    const receiver = await receive({
      answer: (response) => response.writeHead(status, { location: target.url }).end(),
    });
    expect(await makeSender()(receiver.url)).toEqual({ status, failure: "redirect", retryAfterMs: null });
  }
  expect(target.connections).toBe(0);
});

it("a webhook attempt with an unsuccessful response reports a valid Retry-After", async () => {
  for (const [header, retryAfterMs] of [
    ...([
      ["30", 30_000],
      ["-1", null],
      ["soon", null],
      ["1e3", null],
    ] as const),
    ...([
      ["99999999999999999999", null],
      ["Sun, 06 Nov 1994 08:49:37 GMT", 0],
    ] as const),
  ]) {
    const { url } = await receive({
      answer: (response) => response.writeHead(503, { "retry-after": header }).end("busy"),
    });
    expect(await makeSender()(url), header).toEqual({ status: 503, failure: "status", retryAfterMs });
  }
});

it("a webhook response that is not HTTP or has endless headers is invalid", async () => {
  const garbage = await serveRaw((socket) => socket.end("220 smtp.example.com ESMTP\r\n"));
  expect(await makeSender()(garbage)).toEqual(failed("invalid_response"));
  const endless = await serveRaw((socket) => {
    socket.write("HTTP/1.1 200 OK\r\n");
    const more = () => socket.write(`x-more: ${"x".repeat(1_000)}\r\n`, (error) => error ?? more());
    more();
  });
  expect(await makeSender()(endless)).toEqual(failed("invalid_response"));
});

it("a webhook attempt fails if the connection is refused or cut", async () => {
  const closed = await receive();
  await closed.close();
  expect(await makeSender()(closed.url)).toEqual(failed("connection"));
  const cut = await serveRaw((socket) => socket.once("data", () => socket.destroy()));
  expect(await makeSender()(cut)).toEqual(failed("connection"));
  const halfway = await receive({
    answer: (response) => {
      response.writeHead(200, { "content-length": "10" }).write("x");
      setImmediate(() => response.destroy());
    },
  });
  expect(await makeSender()(halfway.url)).toEqual(failed("connection"));
});

it("a webhook attempt fails for an untrusted certificate, without TLS, and for a name without an address", async () => {
  const [trusted, plain] = [await receive({ tls: true }), await receive()];
  for (const { port } of [trusted, plain])
    expect(await makeSender()(`https://127.0.0.1:${port}/`)).toEqual(failed("tls"));
  for (const resolve of [async () => [], () => Promise.reject(new Error("no such host"))])
    expect(await makeSender({ resolve })("http://hooks.test/")).toEqual(failed("unknown_host"));
});

const FAILURES: Record<HostileKind, string> = {
  upgrade: "invalid_response",
  continues: "invalid_response",
  chunkExtensions: "invalid_response",
  silence: "timeout",
  slowHeaders: "timeout",
  slowBody: "timeout",
  late: "timeout",
  close: "connection",
};

/** Answers with these headers and then with chunks, as fast as the client reads them. */
function pourBody(response: ServerResponse): void {
  response.writeHead(200);
  const pour = () => {
    while (!response.destroyed && response.write("x".repeat(65_536)));
  };
  response.on("drain", pour);
  pour();
}

it("a webhook attempt does not read an endless response body to the end, and uses the response's status", async () => {
  let written = 0;
  const receiver = await receive({
    answer: (response) => {
      response.once("close", () => {
        written = response.socket?.bytesWritten ?? 0;
      });
      pourBody(response);
    },
  });
  expect(await makeSender()(receiver.url)).toMatchObject({ status: 200, failure: null });
  // The network buffers of both sides hold less than this. A client without a limit would read far more.
  expect(written).toBeLessThan(20_000_000);
});

it.each(
  HOSTILE_KINDS,
)("a hostile webhook response ends within the attempt's time limit, and leaves no connection: %s", async (kind) => {
  const receiver = await startHostileReceiver(kind);
  closers.push(receiver.close);
  const startedAt = performance.now();
  // A busy machine might reach a short limit before the expected failure, so only tests of timeouts have one.
  const attemptMaxMs = FAILURES[kind] === "timeout" ? 1_500 : 60_000;
  const { failure } = (await makeSender({ attemptMaxMs })(receiver.url)) ?? {};
  // Most of these answers never end, so the attempt must end by its own limit.
  expect(performance.now() - startedAt).toBeLessThan(attemptMaxMs + 3_500);
  expect(failure).toBe(FAILURES[kind]);
  expect(receiver.requests()).toBe(1);
  await until(() => receiver.connections() === 0);
});

it("a webhook is not sent again if its reused connection breaks a second after the request", async () => {
  let requests = 0;
  const url = await serveRaw((socket) => {
    socket.on("data", () => {
      requests += 1;
      if (requests === 1) socket.write("HTTP/1.1 204 No Content\r\n\r\n");
      else setTimeout(() => socket.destroy(), 1_000);
    });
  });
  const send = makeSender();
  expect(await send(url)).toEqual(OK);
  expect(await send(url)).toEqual(failed("connection"));
  expect(requests).toBe(2);
});

it("a webhook attempt stops reading interim responses and chunk extensions at a quarter of a megabyte", async () => {
  for (const kind of ["continues", "chunkExtensions"] as const) {
    const receiver = await startHostileReceiver(kind);
    closers.push(receiver.close);
    expect(await makeSender()(receiver.url), kind).toEqual(failed("invalid_response"));
  }
});

it("a webhook attempt ends at the connection time limit if TLS or DNS does not respond", async () => {
  const silent = await serveRaw(() => undefined);
  const quick = { connectMaxMs: 200, attemptMaxMs: 3_600_000 };
  expect(await makeSender(quick)(silent.replace("http:", "https:"))).toEqual(failed("timeout"));
  const lost = makeSender({ ...quick, resolve: () => new Promise(() => undefined) });
  expect(await lost("http://hooks.test/")).toEqual(failed("timeout"));
});

/** Makes a webhook sender that may connect to loopback, unless the options forbid it. */
function makeSender(options: SenderOptions = {}) {
  const webhookSender = openWebhookSender({
    allowPrivate: true,
    connectMaxMs: 60_000,
    attemptMaxMs: 60_000,
    ...options,
  });
  closers.push(webhookSender.close);
  return (url: string, body = "{}") => sendWebhook({ webhookSender }, { url, body, headers: { "webhook-id": "1" } });
}

async function receive(options: Parameters<typeof startPartnerServer>[0] = {}): Promise<PartnerServer> {
  const receiver = await startPartnerServer(options);
  closers.push(receiver.close);
  return receiver;
}

/** Starts a TCP server on loopback. Returns its URL. */
async function serveRaw(onConnection: (socket: Socket) => void): Promise<string> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket.on("error", () => undefined));
    onConnection(socket);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  closers.push(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
}
