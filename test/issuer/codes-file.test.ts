import { beforeAll, expect, it } from "vitest";
import { lockEntity } from "../../src/acts/db/audit-entries.ts";
import { revokeApiKey } from "../../src/acts/key/revoke.ts";
import { ISSUER_CALLS } from "../../src/core/callers/caller-kinds.ts";
import { streamCodes } from "../../src/issuer/stream-codes.ts";
import { fillLine } from "../support/fill-line.ts";
import { besideTransaction, untilWaiting } from "../support/outside-transaction.ts";
import { issueTestBatch, makeKey, provisioning } from "../support/supply.ts";
import { useService } from "../support/use-service.ts";

const { api, db, partner } = useService({ apis: [{ ISSUER_API: "true" }] });

/** One more than a chunk of the file has. */
const COUNT = 5_001;
let batchId: string;
beforeAll(async () => {
  ({ batchId } = await issueTestBatch(db, partner, COUNT));
});

const newKey = () => makeKey(db, partner.organizationId, { scopes: ["voucher.issue"] });

it("a file of codes that has begun waits in a full line, keeps no place between chunks and is complete", async () => {
  const { issuer, randomBytes } = api.ctx;
  if (issuer === null) throw new Error("there is no issuer");
  const caller = { keyId: (await newKey()).id, organizationId: partner.organizationId, sandbox: false };
  const leaving = new AbortController();
  const open = (signal?: AbortSignal) => streamCodes({ issuer, randomBytes }, { ...caller, signal }, batchId);
  const file = (await open())[Symbol.asyncIterator]();
  const left = (await open(leaving.signal))[Symbol.asyncIterator]();
  const read = [await file.next(), await file.next()];
  await left.next();
  // If one of the files kept a place, no call of the organization would have the second one.
  const empty = await fillLine(issuer.calls, ISSUER_CALLS, partner);
  await expect(open()).rejects.toMatchObject({ code: "overloaded" });
  const pending = file.next();
  const abandoned = left.next();
  leaving.abort();
  await expect(abandoned).rejects.toThrow("the caller has left");
  await empty();
  read.push(await pending);
  expect(await file.next()).toMatchObject({ done: true });
  const lines = read
    .map(({ value }) => value)
    .join("")
    .trimEnd()
    .split("\n");
  expect(lines.map((line) => line.split(",")[2]).slice(1)).toEqual(
    Array.from({ length: COUNT }, (_, at) => `${at + 1}`),
  );
});

it("a file of codes whose key is revoked meanwhile breaks off, and does not end as if it were complete", async () => {
  const { key, id } = await newKey();
  const headers = { "x-api-key": key, accept: "text/csv" };
  const { body } = await besideTransaction(db, async (holder) => {
    await lockEntity(holder, { type: "Batch", id: batchId });
    const pending = fetch(`${api.url}/issuer/batches/${batchId}/vouchers`, { headers });
    await untilWaiting(db, 1);
    return besideTransaction(db, async (outside) => {
      // Its first chunk waits for this lock, after its look at the key.
      await outside.query("LOCK TABLE vouchers IN ACCESS EXCLUSIVE MODE");
      await holder.query("ROLLBACK");
      const response = await pending;
      await untilWaiting(db, 1);
      await revokeApiKey.run(provisioning(db), id, {});
      return response;
    });
  });
  let text = "";
  const reading = (async () => {
    for await (const part of body ?? []) text += new TextDecoder().decode(part);
  })();
  await expect(reading).rejects.toThrow("terminated");
  expect(text.trimEnd().split("\n").length).toBeLessThanOrEqual(COUNT);
});
