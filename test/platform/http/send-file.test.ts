import { once } from "node:events";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { Agent, get, type IncomingMessage } from "node:http";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import express from "express";
import { afterAll, beforeAll, expect, it, onTestFinished, vi } from "vitest";
import { observeRequests } from "../../../src/core/processes/observe-requests.ts";
import { nameTokenSecrets } from "../../../src/core/reserve/reservation-token.ts";
import { errorHandler } from "../../../src/platform/http/errors.ts";
import { FILE_LIMITS, openFiles } from "../../../src/platform/http/send-file.ts";
import { CONNECTION_LIMITS, listen } from "../../../src/platform/http/server.ts";
import { makeGate } from "../../support/gate.ts";
import { until } from "../../support/until.ts";

type Parts = () => AsyncIterable<string>;

/** A separate folder, so that the test sees which files remain. */
const folder = mkdtempSync(join(tmpdir(), "voucher-files-"));
beforeAll(() => void vi.stubEnv("TMPDIR", folder));
afterAll(() => {
  expect(readdirSync(folder)).toEqual([]);
  vi.unstubAllEnvs();
  rmSync(folder, { recursive: true });
});

it("a file's response begins only when the file is complete, states its length and logs no error", async () => {
  const { open, line } = await serve(async function* () {
    yield "id,code\n";
    yield "1,é\n";
  });
  // Keeps the connection. If the caller closed it after the last byte, the log might say that the caller left early.
  const agent = new Agent({ keepAlive: true });
  onTestFinished(() => agent.destroy());
  const { response, text } = await open({ agent });
  expect(response.headers).toMatchObject({ "content-length": "13", "content-type": "text/csv; charset=utf-8" });
  expect(response.headers).toMatchObject({ "x-of-file": "yes", "cache-control": "no-store" });
  expect(await text()).toBe("id,code\n1,é\n");
  expect(await line()).toMatchObject({ level: "info", status: 200 });
  expect(Object.keys(await line())).not.toEqual(expect.arrayContaining(["err", "reason"]));
});

it("a file that cannot be generated causes an error response that contains no part of the file", async () => {
  const cause = new Error("Postgres has gone");
  const { open, line } = await serve(async function* () {
    yield "id,code\n";
    throw cause;
  });
  const { response, text } = await open();
  expect([response.statusCode, response.headers["x-of-file"]]).toEqual([500, undefined]);
  expect(JSON.parse(await text())).toMatchObject({ code: "internal_error" });
  expect(await line()).toMatchObject({ level: "error", status: 500, err: cause });
});

it("a HEAD request gets the file's headers without generating the file", async () => {
  const made = vi.fn();
  const { open } = await serve(async function* () {
    made();
    yield "id,code\n";
  });
  const { response } = await open({ method: "HEAD" });
  expect([response.statusCode, response.headers["x-of-file"]]).toEqual([200, "yes"]);
  expect(response.headers["content-length"]).toBeUndefined();
  expect(made).not.toHaveBeenCalled();
});

const SHORTER = /Ask for a shorter range/;

it.each([
  ["is too large", { bytesMax: 8 }, 400, "invalid_request", SHORTER],
  ["takes too long", { makeMs: 50 }, 503, "overloaded", SHORTER],
  ["finds too little disk left by the others", { totalMax: 8 }, 503, "overloaded", /busy/],
] as const)("a file that %s is refused, and makes room for another", async (_, limits, status, code, sentence) => {
  const hanging = makeGate();
  const { open, isFree } = await serve(async function* () {
    yield "id,code\n";
    yield "1,2\n";
    await hanging.pass();
  }, limits);
  const { response, text } = await open();
  expect(response.statusCode).toBe(status);
  expect(JSON.parse(await text())).toMatchObject({ code, error: expect.stringMatching(sentence) });
  // The file counts as open until the part that hangs has arrived.
  hanging.open();
  await isFree();
});

it("a reader may load two files at a time, and all readers together up to a maximum of the process", async () => {
  const gate = makeGate();
  const { open } = await serve(
    async function* () {
      await gate.pass();
      yield "id,code\n";
    },
    { eachMax: FILE_LIMITS.eachMax, filesMax: 3 },
  );
  const [first, second] = [open(), open()];
  await gate.reached;
  const refused = await until(async () => {
    const { response, text } = await open({ headers: { reader: "a" } });
    return response.statusCode === 503 ? text() : null;
  });
  expect(JSON.parse(refused)).toMatchObject({ code: "overloaded", error: expect.stringMatching(/^At most 2 files/) });
  const other = open({ headers: { reader: "b" } });
  await until(async () => {
    const { response, text } = await open({ headers: { reader: "c" } });
    return response.statusCode === 503 && /busy/.test(await text());
  });
  gate.open();
  for (const file of [first, second, other]) expect((await file).response.statusCode).toBe(200);
});

it("a file's generation stops when its reader disconnects, and no longer counts as in progress", async () => {
  const gate = makeGate();
  let ended = false;
  const { open, line, isFree } = await serve(async function* () {
    try {
      await gate.pass();
      for (;;) yield "id,code\n";
    } finally {
      ended = true;
    }
  });
  const leaving = new AbortController();
  const left = open({ signal: leaving.signal }).catch(() => "left");
  await gate.reached;
  leaving.abort();
  expect(await left).toBe("left");
  expect(await line()).toMatchObject({ level: "info", status: 499 });
  gate.open();
  await isFree();
  expect(ended).toBe(true);
});

it("a file is refused at once if the reader's sign-in ends during its generation", async () => {
  const gate = makeGate();
  const { open, signOut, isFree } = await serve(async function* () {
    await gate.pass();
    yield "id,code\n";
  });
  const refused = open();
  await gate.reached;
  signOut();
  const { response, text } = await refused;
  expect([response.statusCode, JSON.parse(await text()).code]).toEqual([401, "unknown_key"]);
  gate.open();
  await isFree();
});

/** More than the kernel buffers for a reader that reads nothing. MiB. */
const MEGABYTES = 16;
const large: Parts = async function* () {
  for (let made = 0; made < MEGABYTES; made += 1) yield "x".repeat(2 ** 20);
};

it("a file response ends if the reader's sign-in ends, even if the reader has stalled", async () => {
  const { stop, signOut, line, isFree } = await serve(large);
  const stopped = await stop();
  signOut();
  expect(await line()).toMatchObject({
    level: "error",
    status: 500,
    err: expect.objectContaining({ code: "unknown_key" }),
  });
  expect(await stopped.readAll()).toBeLessThan(MEGABYTES * 2 ** 20);
  await isFree();
});

it("a reader that takes no data for a while is disconnected", async () => {
  const { stop, line, isFree } = await serve(large, {}, { stalledMs: 1_000 });
  await stop();
  expect(await line()).toMatchObject({ status: 499 });
  await isFree();
});

it("a reader that is too slow to finish a file in time is disconnected", async () => {
  const { stop, line, isFree } = await serve(large, { readMs: 500, readRateMin: 2 ** 30 });
  await stop();
  expect(await line()).toMatchObject({ status: 499 });
  await isFree();
});

it("a stalled reader of a file uses little memory", async () => {
  const { stop } = await serve(large, { eachMax: 8 });
  await stop();
  const before = bytesInUse();
  const stopped = await Promise.all(Array.from({ length: 7 }, () => stop()));
  await until(() => (bytesInUse() - before) / stopped.length < 256 * 1024);
});

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc");

/** Measures the reachable memory on the heap and in buffers. */
function bytesInUse(): number {
  collectGarbage();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

/** Reads the start of a file and then stops. */
async function readAndStop(port: number, sockets: Set<{ destroy(): void }>) {
  const socket = connect(port, "127.0.0.1");
  sockets.add(socket);
  socket.write("GET / HTTP/1.0\r\nHost: x\r\n\r\n");
  await once(socket, "readable");
  const readAll = async () => {
    let bytes = 0;
    for await (const chunk of socket) bytes += chunk.length;
    return bytes;
  };
  return { readAll };
}

/** Serves one file to readers who are all signed in until `signOut`. */
async function serve(parts: Parts, limits: Partial<typeof FILE_LIMITS> = {}, connections = {}) {
  const log = { info: vi.fn(), warn: vi.fn(), error: vi.fn() };
  const [counts, calls] = [{ observe: vi.fn() }, { note: vi.fn() }];
  let isSignedIn = true;
  const sendFile = openFiles({ ...FILE_LIMITS, eachMax: 1, ...limits });
  const app = express();
  const tokenSecrets = nameTokenSecrets(["a secret"]);
  app.use(
    observeRequests({ log: log as never, counts, calls, keys: { known: () => null }, metrics: null, tokenSecrets }, []),
  );
  app.get("/", (request, response) => {
    response.locals.reader = { id: request.get("reader") ?? "a", stillHolds: async () => isSignedIn };
    return sendFile(response, { headers: { "X-Of-File": "yes" }, parts: request.get("small") ? small() : parts() });
  });
  app.use(errorHandler);
  const settings = { port: 0, keepAliveMs: 5_000 };
  const server = await listen(app, settings, log as never, undefined, { ...CONNECTION_LIMITS, ...connections });
  const sockets = new Set<{ destroy(): void }>();
  onTestFinished(async () => {
    for (const socket of sockets) socket.destroy();
    await server.close();
  });
  const url = `http://127.0.0.1:${server.port}/`;
  const open = async (options: object = {}) => {
    const [response] = (await once(get(url, { agent: false, ...options }), "response")) as [IncomingMessage];
    const text = async () => {
      let received = "";
      for await (const chunk of response.setEncoding("utf8")) received += chunk;
      return received;
    };
    return { response, text };
  };
  const lines = () =>
    Object.entries(log).flatMap(([level, { mock }]) =>
      mock.calls.filter(([, what]) => what === "request").map(([facts]) => ({ level, ...facts })),
    );
  return {
    open,
    signOut() {
      isSignedIn = false;
    },
    /** Waits for the log line of the first request. */
    line: () => until(() => lines()[0]),
    /** Waits until the service sends a file again. */
    isFree: () =>
      until(async () => {
        const { response, text } = await open({ headers: { reader: "a", small: "yes" } });
        await text();
        return response.statusCode === 200;
      }),
    stop: () => readAndStop(server.port, sockets),
  };
}

/** Yields a file of the maximum size that the limits above allow. */
async function* small() {
  yield "id,code\n";
}
