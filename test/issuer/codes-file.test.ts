import { beforeAll, expect, it } from "vitest";
import { lockEntity } from "../../src/acts/db/audit-entries.ts";
import { revokeApiKey } from "../../src/acts/key/revoke.ts";
import { ISSUER_CALLS } from "../../src/core/callers/caller-kinds.ts";
import { fillLine } from "../support/fill-line.ts";
import { besideTransaction, exportWhileLocked, untilWaiting } from "../support/outside-transaction.ts";
import { issueTestBatch, makeKey, provisioning } from "../support/supply.ts";
import { until } from "../support/until.ts";
import { useService } from "../support/use-service.ts";

const { api, db, partner } = useService({ apis: [{ ISSUER_API: "true" }] });

/** One more than the 5,000 codes in a chunk of the file. */
const COUNT = 5_001;
let batchId: string;
beforeAll(async () => {
  ({ batchId } = await issueTestBatch(db, partner, COUNT));
});

const newKey = () => makeKey(db, partner.organizationId, { scopes: ["voucher.issue"] });

/** Requests the file of the batch's codes. */
const get = (key: string) =>
  fetch(`${api.url}/issuer/batches/${batchId}/vouchers`, { headers: { "x-api-key": key, accept: "text/csv" } });

it("a request for a file of codes may wait beyond the maximum, and uses no connection between chunks", async () => {
  const { key } = await newKey();
  const { issuer } = api.ctx;
  if (issuer === null) throw new Error("there is no issuer");
  const [pending, empty] = await besideTransaction(db, async (holder) => {
    await lockEntity(holder, { type: "Batch", id: batchId });
    const file = get(key);
    await untilWaiting(db, 1);
    // The request keeps a connection until its audit entry is written. Then the read of its first chunk finds no free
    // place in the queue of calls.
    return [file, await fillLine(issuer.calls, ISSUER_CALLS, partner)] as const;
  });
  await until(() => issuer.pool.idleCount === issuer.pool.totalCount);
  expect((await get(key)).status).toBe(503);
  await empty();
  const response = await pending;
  const text = await response.text();
  expect([response.status, response.headers.get("content-length")]).toEqual([200, String(text.length)]);
  expect(response.headers.get("content-disposition")).toBe(`attachment; filename="${batchId}.csv"`);
  const [heading, ...lines] = text.trimEnd().split("\n");
  expect(heading).toBe("id,code,serial");
  expect(lines.map((line) => line.split(",")[2])).toEqual(Array.from({ length: COUNT }, (_, at) => `${at + 1}`));
});

it("a request for a file of codes is refused if its key is revoked meanwhile, even during a lock wait", async () => {
  const { key, id } = await newKey();
  const refused = await refusedWhileLocked(key, () => revokeApiKey.run(provisioning(db), id, {}));
  expect(refused).toMatchObject({ status: 401, body: { code: "unknown_key" } });
});

it("a request for a file of codes is refused if its database session ends before the file is complete", async () => {
  const { key } = await newKey();
  const endSession = () =>
    db.query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
               WHERE datname = current_database() AND wait_event_type = 'Lock'`);
  expect(await refusedWhileLocked(key, endSession)).toMatchObject({ status: 503, body: { code: "unavailable" } });
});

/** Requests the file of codes, and runs `happen` while the codes' rows are locked. Returns the refusal. */
async function refusedWhileLocked(key: string, happen: () => Promise<unknown>) {
  const response = await exportWhileLocked(db, batchId, () => get(key), happen);
  return { status: response.status, body: await response.json() };
}
