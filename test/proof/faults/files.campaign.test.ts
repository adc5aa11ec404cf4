import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, it, onTestFinished } from "vitest";
import { exchangeOnce } from "./exchange.ts";
import { type Exchange, History, type ListAsk } from "./history.ts";
import { checkIssuers } from "./issuer-rules.ts";
import { checkLists, restoreTimes } from "./lists.ts";
import { type RecordedRedemption, toRecords } from "./records.ts";
import { SteppedClock } from "./stepped-clock.ts";

// Truncated files must count as failed calls.

const key = { id: "key_1", secret: "", organizationId: "org_1" };
const list = { operation: "list", key, from: new Date(0).toISOString(), after: null, limit: Infinity } as const;
const CHANGED = "a list never changes before its completeUntil";

/** Two redemptions in the same second, which each kind of file contains. */
const AT = [1_250, 1_750].map((ms) => new Date(ms).toISOString());
const FILES: Record<NonNullable<ListAsk["file"]>, string[]> = {
  partner: [
    "externalRef,voucherInstanceId,redeemCode,redeemedAt",
    `order-1,vch_1,R-1,${AT[0]}`,
    `"order,2",vch_2,R-2,${AT[1]}`,
  ],
  portal: [
    '\ufeff"externalRef","voucherInstanceId","redeemCode","redeemedAtUtc"',
    '"order-1","vch_1","R-1","1970-01-01 00:00:01"',
    '"order,2","vch_2","R-2","1970-01-01 00:00:01"',
  ],
};
const recorded = ["1", "2"].map((n, place): RecordedRedemption => {
  const row = { voucherId: `vch_${n}`, redeemCode: `R-${n}`, externalRef: n === "1" ? "order-1" : "order,2" };
  const { organizationId, id: keyId } = key;
  return { ...row, organizationId, keyId, ticket: null, redeemedAtMs: Date.parse(String(AT[place])) };
});

/** How the server ends a file: after all lines, or after some of them. */
const ENDS: Record<string, (response: ServerResponse, lines: string[]) => void> = {
  whole: (response, lines) => response.end(lines.join("")),
  "cut before its length": (response, [head = "", first = "", ...others]) => {
    response.setHeader("content-length", [head, first, ...others].join("").length);
    response.write(head + first, () => response.destroy());
  },
  "cut without a length": (response, [head = "", first = ""]) => response.end(head + first),
};

async function read(ask: Parameters<typeof exchangeOnce>[0], lines: readonly string[], end: string): Promise<Exchange> {
  const server = createServer((_request, response) => {
    response.setHeader("complete-until", new Date(5_000).toISOString()).setHeader("connection", "close");
    ENDS[end]?.(
      response,
      lines.map((line) => `${line}\r\n`),
    );
  }).listen(0, "127.0.0.1");
  onTestFinished(() => void server.close());
  await once(server, "listening");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return new History().add(await exchangeOnce(ask, { process: { name: "api-1" }, url }, 1));
}

it.each([
  "partner",
  "portal",
] as const)("checkLists reports a truncated file of the %s that looks complete", async (file) => {
  const check = async (end: string) => {
    const history = new History();
    const records = toRecords(new SteppedClock(), { redemptions: recorded });
    const { status } = history.add(await read({ ...list, file }, FILES[file], end));
    restoreTimes(history, records);
    return [status, ...checkLists(history, records).map(({ rule }) => rule)];
  };
  expect(await check("whole")).toEqual([200]);
  expect(await check("cut before its length")).toEqual([null]);
  expect(await check("cut without a length")).toEqual([200, CHANGED]);
});

it("checkIssuers reports a truncated file of codes that looks complete", async () => {
  const ask = { operation: "codes", key, batchId: "bat_1", count: 2, file: "issuer" } as const;
  const lines = ["id,code,serial", "vch_1,AAAA,1", "vch_2,BBBB,2"];
  const check = async (end: string) => {
    const history = new History();
    const { status } = history.add(await read(ask, lines, end));
    return [status, ...checkIssuers(history, toRecords(new SteppedClock(), {})).map(({ rule }) => rule)];
  };
  expect(await check("whole")).toEqual([200]);
  expect(await check("cut before its length")).toEqual([null]);
  expect(await check("cut without a length")).toEqual([200, "a batch shows all of its vouchers"]);
});
