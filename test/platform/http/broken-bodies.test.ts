import { once } from "node:events";
import { createServer, get } from "node:http";
import type { AddressInfo } from "node:net";
import express from "express";
import { expect, it, vi } from "vitest";
import { observeRequests } from "../../../src/core/processes/observe-requests.ts";
import { nameTokenSecrets } from "../../../src/core/reserve/reservation-token.ts";
import { sendCsv } from "../../../src/platform/http/respond.ts";
import { makeGate } from "../../support/gate.ts";
import { until } from "../../support/until.ts";

/** Sends these parts to a caller who reads until the response ends, or leaves at `leave`; returns the log's line. */
async function logOf(parts: () => AsyncIterable<string>, leave?: Promise<void>) {
  const log = { info: vi.fn(), warn: vi.fn(), error: vi.fn() };
  const [report, calls] = [{ observe: vi.fn() }, { note: vi.fn() }];
  const app = express();
  app.use(
    observeRequests({ log: log as never, report, calls, metrics: null, tokenSecrets: nameTokenSecrets(["a secret"]) }),
  );
  app.get("/", (_request, response) => sendCsv(response, { headers: {}, parts: parts() }));
  const server = createServer(app).listen(0, "127.0.0.1");
  await once(server, "listening");
  const request = get(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
  request.on("error", () => undefined);
  const [response] = await once(request, "response");
  let received = "";
  response.on("data", (chunk: Buffer) => {
    received += chunk;
  });
  response.on("error", () => undefined);
  void leave?.then(() => request.destroy());
  const lines = () =>
    Object.entries(log).flatMap(([level, { mock }]) => mock.calls.map(([facts]) => ({ level, ...facts })));
  await until(() => lines().length > 0 && response.closed);
  server.close();
  return { line: lines()[0], isComplete: response.complete, received };
}

it("a body that breaks in the middle is logged as a 500 with its cause, and breaks for the caller", async () => {
  const cause = new Error("Postgres has gone");
  const { line, ...seen } = await logOf(async function* () {
    yield "id,code\n";
    await new Promise(setImmediate);
    throw cause;
  });
  expect(line).toMatchObject({ level: "error", status: 500, err: cause });
  expect(seen).toEqual({ isComplete: false, received: "id,code\n" });
});

it("a whole body, and one whose caller leaves, are logged without a cause", async () => {
  const whole = await logOf(async function* () {
    yield "id,code\n";
  });
  expect(whole).toMatchObject({ isComplete: true, line: { level: "info", status: 200 } });
  const first = makeGate();
  let isEnded = false;
  const left = await logOf(async function* () {
    try {
      yield "id,code\n";
      void first.pass();
      for (;;) yield "more\n".repeat(10_000);
    } finally {
      isEnded = true;
    }
  }, first.reached);
  expect(left.line).toMatchObject({ level: "info", status: 499 });
  for (const { line } of [whole, left]) {
    expect(Object.keys(line ?? {})).not.toEqual(expect.arrayContaining(["err"]));
    expect(Object.keys(line ?? {})).not.toEqual(expect.arrayContaining(["reason"]));
  }
  await until(() => isEnded);
});
