import { request } from "node:http";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Ended, type Started, startNode } from "../../support/child-process.ts";
import { partnerClient, type Reply, send } from "../../support/client.ts";
import { makeOffer, newUser, signedIn } from "../../support/marketplace.ts";
import { findSteadyPort } from "../../support/steady-port.ts";
import { issueVouchers } from "../../support/supply.ts";
import { openTraceCollector, type ReceivedSpan, type TraceCollector } from "../../support/trace-collector.ts";
import { until, untilStarted } from "../../support/until.ts";
import { useService } from "../../support/use-service.ts";
import { writeKeysFile } from "../../support/user-tokens.ts";

const [INTERNAL, SERVER, PRODUCER, CONSUMER] = [1, 2, 4, 5];

const { servers, partner, keys, issuer, issue } = useService({ apis: [], workers: [] });
let collector: TraceCollector;
/** All spans. The list is complete once both processes have ended, because they buffer spans for a minute. */
let spans: ReceivedSpan[];
let apiEnded: Ended;
let workerEnded: Ended;
/** Values that no span may contain. */
const secrets: string[] = [];
/** The trace id that the caller of each request chooses. */
const chosen = { redeem: "1".repeat(32), refused: "2".repeat(32), late: "3".repeat(32), crowd: "c" };

beforeAll(async () => {
  collector = await openTraceCollector();
  const keysFile = writeKeysFile(issuer);
  const { api, worker, url } = await startTraced({
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
    OTEL_EXPORTER_OTLP_PROTOCOL: "http/json",
    OTEL_BSP_SCHEDULE_DELAY: "60000",
    AUTH_JWKS_URL: keysFile.url,
  });

  const { key } = keys.till;
  const [one, reserved, late, ...crowd] = await issueVouchers(servers.db, partner, 43);
  if (one === undefined || reserved === undefined || late === undefined) throw new Error("vouchers were expected");
  const redeem = (code: string, externalRef: string, traceId?: string): Promise<Reply> =>
    send("POST", `${url}/partner/vouchers/redeem`, {
      key,
      body: { code, externalRef },
      headers: traceId === undefined ? {} : { traceparent: `00-${traceId}-00000000000000ab-01` },
    });
  expect((await redeem(one.code, "SECRET-REF-1", chosen.redeem)).status).toBe(200);
  expect((await redeem(one.code, "SECRET-REF-2", chosen.refused)).status).toBe(409);
  const body = JSON.stringify({ code: late.code, externalRef: "SECRET-LATE" });
  expect(await sendBodyLate(`${url}/partner/vouchers/redeem`, key, body, chosen.late)).toBe(200);
  const reservation = await partnerClient(url, key).reserve(reserved.code);
  await partnerClient(url, key).lookUp(reservation.body.ticket);
  const replies = await Promise.all(
    crowd.map(({ code }, index) => redeem(code, `SECRET-CROWD-${index}`, String(index).padStart(32, chosen.crowd))),
  );
  expect(replies.map(({ status }) => status)).toEqual(crowd.map(() => 200));
  const offer = await makeOffer(servers.db, 1);
  const user = newUser("user-secret");
  const market = await signedIn(url, issuer, user);
  const claim = await market.claimProduct(offer.productId);
  expect(claim.status).toBe(200);
  await send("GET", `${url}/nowhere/${one.code}`);
  const { ticket, token } = reservation.body;
  secrets.push(one.code, one.id, reserved.code, ticket, token, key, user, claim.body.voucher.code);
  secrets.push("SECRET-", partner.organizationId, ...crowd.flatMap(({ id, code }) => [id, code]));
  // Waits until no event is Pending, because a claim may answer before its seal.
  const pending = "SELECT FROM voucher_events WHERE seal_status = 'Pending'";
  await until(async () => (await servers.db.query(pending)).rowCount === 0);
  [apiEnded, workerEnded] = await stop({ api, worker });
  keysFile.remove();
  spans = collector.spans();
});

afterAll(() => collector.close());

const REDEEM = "POST /partner/vouchers/redeem";

it("a process sends all its traces before it stops", () => {
  expect([apiEnded.exitCode, workerEnded.exitCode]).toEqual([0, 0]);
  expect(spans.length).toBeGreaterThan(100);
});

it("a redeem's trace continues the caller's trace and includes the worker's transaction", () => {
  const expected = [
    [REDEEM, "voucher-api", SERVER, undefined],
    ["lookups batch", "voucher-api", INTERNAL, REDEEM],
    ["send redeem", "voucher-api", PRODUCER, REDEEM],
    ["process redeem", "voucher-worker", CONSUMER, "send redeem"],
    ["redeem batch", "voucher-worker", INTERNAL, "process redeem"],
  ] as const;
  for (const [name, service, kind, parent] of expected) {
    const parentSpanId = parent === undefined ? "00000000000000ab" : spanOf(chosen.redeem, parent).spanId;
    expect(spanOf(chosen.redeem, name)).toMatchObject({ service, kind, parentSpanId });
  }
  expect(spans.filter(({ traceId }) => traceId === chosen.redeem)).toHaveLength(5);
});

it("a request whose body arrives after its headers has one trace", () => {
  const names = spans.filter(({ traceId }) => traceId === chosen.late).map(({ name }) => name);
  expect(names.sort()).toEqual([REDEEM, "lookups batch", "process redeem", "redeem batch", "send redeem"]);
});

it("traces contain each request's status and error code", () => {
  expect(spanOf(chosen.redeem, REDEEM).attributes).toEqual({
    "http.request.method": "POST",
    "http.route": "/partner/vouchers/redeem",
    "http.response.status_code": 200,
  });
  const refused = spanOf(chosen.refused, REDEEM);
  expect(refused.attributes).toMatchObject({ "http.response.status_code": 409, "error.type": "voucher_used" });
  // A refusal is the caller's error, so the service's span does not count as failed.
  expect(refused.failed).toBe(false);
  expect(spans.filter(({ traceId, name }) => traceId === chosen.refused && name === "send redeem")).toEqual([]);
});

it("traces link each transaction to its jobs, and each job to its transaction", () => {
  // A batch of redeems continues the trace of its first job, which may be a canary (a test job of the service).
  const batches = spans.filter(({ name }) => name === "redeem batch");
  const shared = batches.filter(({ attributes }) => Number(attributes["voucher.batch.items"]) > 1);
  expect(shared.length).toBeGreaterThan(0);
  const jobs = new Map(spans.filter(({ name }) => name === "process redeem").map((span) => [span.spanId, span]));
  for (const batch of shared) {
    const others = batch.links.map((spanId) => jobs.get(spanId));
    expect(others).toHaveLength(Number(batch.attributes["voucher.batch.items"]) - 1);
    for (const other of others) expect(other?.links).toEqual([batch.spanId]);
    expect(jobs.has(batch.parentSpanId ?? "")).toBe(true);
  }
  // No redeem is missing.
  const reached = batches.flatMap(({ parentSpanId, links }) => [parentSpanId, ...links]);
  const isRedeem = (spanId = "") => jobs.get(spanId)?.traceId.startsWith(chosen.crowd.repeat(30));
  expect([...new Set(reached)].filter(isRedeem)).toHaveLength(40);
});

it("a claim's trace includes the seal job of the claim's event", () => {
  const claims = spans.filter(({ name }) => name === "POST /products/:id/claim");
  expect(claims).toHaveLength(1);
  const traceId = claims[0]?.traceId ?? "";
  const asked = spanOf(traceId, "send seal");
  expect(asked.parentSpanId).toBe(claims[0]?.spanId);
  const job = spanOf(traceId, "process seal");
  expect([job.service, job.parentSpanId]).toEqual(["voucher-worker", asked.spanId]);
});

it("the trace of a request to an unknown path is named by the method only", () => {
  const unknown = spans.filter(({ kind, attributes }) => kind === SERVER && attributes["error.type"] === "not_found");
  expect(unknown.map(({ name }) => name)).toEqual(["GET"]);
});

it("traces contain no code, ticket, token, key, reference, user or id", () => {
  const sent = collector.bodies.map(({ bytes }) => bytes.toString("utf8")).join("\n");
  expect(sent).toContain("redeem batch");
  for (const secret of secrets) expect(sent).not.toContain(secret);
});

it("the log line of a request has the ids of its trace", () => {
  const lines = apiEnded.stdout.split("\n").filter((line) => line.includes(chosen.redeem));
  expect(lines.map((line) => JSON.parse(line))).toMatchObject([{ msg: "request", traceId: chosen.redeem }]);
});

describe("OpenTelemetry's environment variables", () => {
  it("OpenTelemetry's variables set the service's name, and the default protocol works", async () => {
    const named = { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, OTEL_SERVICE_NAME: "till-service" };
    await stop(await startTraced(named));
    const binary = collector.bodies.filter(({ contentType }) => contentType === "application/x-protobuf");
    expect(binary.map(({ bytes }) => bytes.toString("latin1")).join("\n")).toContain("till-service");
  });

  it("redeems succeed and processes exit normally if OpenTelemetry's collector is unreachable", async () => {
    const { api, worker, url } = await startTraced({
      OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${await findSteadyPort()}`,
      OTEL_BSP_SCHEDULE_DELAY: "100",
    });
    const { code } = await issue();
    expect((await partnerClient(url, keys.till.key).redeem({ code, externalRef: "away" })).status).toBe(200);
    const ended = await stop({ api, worker });
    expect(ended.map(({ exitCode }) => exitCode)).toEqual([0, 0]);
  });

  it("OpenTelemetry's packages are loaded only if OpenTelemetry's variables enable them", async () => {
    // Prints LOADED for every module of the OpenTelemetry SDK that is loaded.
    const witness = `import { registerHooks } from "node:module";
      registerHooks({
        load(url, context, next) {
          if (/opentelemetry.sdk|open-telemetry/.test(url)) console.log("LOADED");
          return next(url, context);
        },
      });`;
    const NODE_OPTIONS = `--import=data:text/javascript,${encodeURIComponent(witness)}`;
    for (const [otel, loads] of [
      [{ OTEL_TRACES_EXPORTER: "none" }, false],
      [{ OTEL_EXPORTER_OTLP_ENDPOINT: collector.url }, true],
    ] as const) {
      const { api, worker } = await startTraced({ ...otel, NODE_OPTIONS });
      await stop({ api, worker });
      expect([api.output().includes("LOADED"), worker.output().includes("LOADED")]).toEqual([loads, loads]);
    }
  });
});

async function startTraced(otel: Record<string, string>): Promise<{ api: Started; worker: Started; url: string }> {
  const port = await findSteadyPort();
  const env = { DATABASE_URL: servers.databaseUrl, REDIS_URL: servers.redisUrl, PORT: String(port), ...otel };
  const api = startNode(["src/main.ts"], env);
  const worker = startNode(["workers/main.ts"], env);
  const url = `http://127.0.0.1:${port}`;
  await untilStarted(() => api.output().includes('"listening"') && worker.output().includes('"working"'));
  await untilStarted(async () => (await send("GET", `${url}/readyz`)).status === 200);
  return { api, worker, url };
}

/** Ends both processes. */
function stop({ api, worker }: { api: Started; worker: Started }): Promise<[Ended, Ended]> {
  for (const { child } of [api, worker]) child.kill("SIGTERM");
  return Promise.all([api.ended, worker.ended]);
}

/** Posts a body after the server has read the headers and started the request. Resolves to the status. */
function sendBodyLate(url: string, key: string, body: string, traceId: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const headers = {
      "x-api-key": key,
      traceparent: `00-${traceId}-00000000000000ab-01`,
      "content-type": "application/json",
      "content-length": Buffer.byteLength(body),
      expect: "100-continue",
    };
    const sent = request(url, { method: "POST", headers }, (response) => {
      response.resume();
      response.once("end", () => resolve(response.statusCode ?? 0));
    });
    sent.once("error", reject);
    sent.once("continue", () => sent.end(body));
    sent.flushHeaders();
  });
}

/** The only span of a trace with this name. */
function spanOf(traceId: string, name: string): ReceivedSpan {
  const found = spans.filter((span) => span.traceId === traceId && span.name === name);
  expect(found, `${name} of ${traceId}`).toHaveLength(1);
  return found[0] as ReceivedSpan;
}
