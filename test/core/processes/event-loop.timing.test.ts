import { brotliCompressSync, constants } from "node:zlib";
import type { Redis } from "ioredis";
import { beforeAll, expect, it } from "vitest";
import { basic, OPS_TOKEN } from "../../support/browse.ts";
import { expectFairRound } from "../../support/fair-rounds.ts";
import { longestTurnMs } from "../../support/longest-turn.ts";
import { issueVouchers } from "../../support/supply.ts";
import { START_MS, until, untilStarted } from "../../support/until.ts";
import { useService } from "../../support/use-service.ts";

/** The service's own limit is 20 ms. The rest is for this thread's client and uncompiled code. CPU milliseconds. */
const TURN_MAX_MS = 40;
/** On a slow core, the limit is this many times the duration of a piece of work, which is usually 3 to 4 ms. */
const TURN_MAX_PIECES = 10;
const PIECE = Array.from({ length: 20_000 }, (_, n) => n * n).join();
const RUNS_MAX = 8;
/** The maximum number of labels on a print sheet. */
const LABELS = 1_200;

const { api, db, partner } = useService({
  env: { OPS_TOKEN, OPS_WRITABLE: "true", METRICS_PORT: "0" },
  workers: [],
  shards: 256,
});
const DASHBOARD = "/ops/queues/jobs/api/queues";
let batch: string;

beforeAll(async () => {
  const [voucher] = await issueVouchers(db, partner, LABELS);
  const { rows } = await db.query("SELECT batch_id FROM vouchers WHERE id = $1", [voucher?.id]);
  batch = `/ops/batches/${rows[0].batch_id}`;
  // The dashboard connects to Redis when it is opened. Its requests send a thousand commands at once, for which a busy
  // machine may need longer than the dashboard waits.
  const [view] = await untilStarted(() => api.ctx.queueViews.open().catch(() => null));
  const { options } = view?.queue.opts.connection as Redis;
  Object.assign(options, { commandTimeout: START_MS });
  await get(`${api.url}${DASHBOARD}`);
});

const WORK: Record<string, () => Promise<unknown>> = {
  "a scrape of 256 shards": () => get(api.metricsUrl),
  "a readiness probe of 256 shards": () => get(`${api.url}/readyz`),
  "a look for faults in 256 shards": () => api.ctx.watch.lookAnew(),
  "the overview of 256 shards": () => get(`${api.url}/ops`),
  "the queue dashboard of 256 shards": () => get(`${api.url}${DASHBOARD}`),
  "the codes of a batch": () => get(`${api.url}${batch}/codes.csv`, ""),
  "a print sheet of 1 200 labels": async () => {
    const sheet = await get(`${api.url}${batch}/print`, `from=1&to=${LABELS}`);
    expect(sheet.match(/<svg class="qr"/g)?.length).toBe(LABELS);
  },
  "the guide": () => get(`${api.url}/docs/guide`),
  "the OpenAPI document": () => get(`${api.url}/openapi.json`),
};

it.each(Object.keys(WORK))("%s blocks the event loop of an API for a few milliseconds at most", async (name) => {
  const work = WORK[name] as () => Promise<unknown>;
  // The first runs compile the code. Other programs on the core slow a run down, so the best run counts.
  await expectFairRound(
    RUNS_MAX,
    async () => ({ maxMs: Math.max(TURN_MAX_MS, TURN_MAX_PIECES * (await pieceMs())), ms: await longestTurnMs(work) }),
    ({ ms, maxMs }) => ms < maxMs,
  );
});

/** Measures the minimum CPU time of the piece of work, over several runs. */
async function pieceMs(): Promise<number> {
  const params = { [constants.BROTLI_PARAM_QUALITY]: 5 };
  let leastMs = Number.POSITIVE_INFINITY;
  for (let run = 0; run < 5; run++)
    leastMs = Math.min(leastMs, await longestTurnMs(async () => brotliCompressSync(PIECE, { params })));
  return leastMs;
}

/** Requests an address, with a body as a form. Repeats the request if a busy machine exceeded a limit. */
async function get(url: string, body?: string): Promise<string> {
  const headers = { ...basic(OPS_TOKEN), accept: "text/html", "content-type": "application/x-www-form-urlencoded" };
  const form = body === undefined ? {} : { method: "POST", body };
  const answer = await until(async () => {
    const response = await fetch(url, { ...form, headers: { ...headers, "sec-fetch-site": "same-origin" } });
    const text = await response.text();
    return response.status < 500 ? { text } : null;
  });
  return answer.text;
}
