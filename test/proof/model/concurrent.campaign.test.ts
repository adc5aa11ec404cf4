import { afterAll, beforeAll, expect, it } from "vitest";
import { openTestServers, type TestServers } from "../../support/servers.ts";
import { endService } from "../../support/service.ts";
import { makePartner } from "../../support/supply.ts";
import { describeViolation, type Exchange, History } from "../faults/history.ts";
import { judge } from "../faults/judge.ts";
import { readRecords } from "../faults/records.ts";
import { SeededRandom } from "../faults/seeded-random.ts";
import { SteppedClock } from "../faults/stepped-clock.ts";
import { contend, makeSuppliedKey, RESERVATION_SECONDS, type Scene } from "./contend.ts";
import { type Processes, startProcesses } from "./start-processes.ts";

// Many clients of two API processes make random overlapping calls, in each organization about one voucher at a time.
// CONCURRENT_VOUCHERS and CONCURRENT_SEED set the length and the seed.

/** The vouchers of each organization. */
const VOUCHERS = Number(process.env.CONCURRENT_VOUCHERS || 16);
const ORGANIZATIONS = 4;
const SEED = Number(process.env.CONCURRENT_SEED || 20_261_127);
const API_PROCESSES = 2;
const REDEEM_WAIT_MS = 10_000;

let servers: TestServers;
let processes: Processes;

beforeAll(async () => {
  servers = await openTestServers();
  const env = {
    ISSUER_API: "true",
    REDEEM_WAIT_MS: String(REDEEM_WAIT_MS),
    RESERVATION_SECONDS: String(RESERVATION_SECONDS),
  };
  processes = await startProcesses(servers, API_PROCESSES, env);
});

afterAll(() => endService(servers));

it("every set of answers to overlapping calls about one voucher is explained by an order of the calls", async () => {
  const { db } = servers;
  const { apis, accidents } = processes;
  const history = new History();
  const random = new SeededRandom(SEED);
  await Promise.all(
    Array.from({ length: ORGANIZATIONS }, async (_, at) => {
      const partner = await makePartner(db);
      const keys = [await makeSuppliedKey({ db, partner }), await makeSuppliedKey({ db, partner })];
      const scene: Scene = { db, history, apis, partner, keys, ended: [], tokens: [] };
      for (let turn = 0; turn < VOUCHERS; turn++) await contend(scene, turn, random.fork(`voucher ${at} ${turn}`));
    }),
  );
  const clock = new SteppedClock();
  const records = await readRecords(db, clock);
  expect(judge(history, records, { redeemWaitMs: REDEEM_WAIT_MS }).map(describeViolation)).toEqual([]);
  expect(accidents).toEqual([]);
  expect([...new Set(history.exchanges.flatMap(outcomesOf))]).toEqual(expect.arrayContaining(MUST_HAPPEN));
});

/** Without these events, a run would prove little. */
const MUST_HAPPEN = [
  ...[
    "lookUp",
    "reserve",
    "release",
    "redeem",
    "redemption",
    "events",
    "list",
    "void",
    "suspend",
    "resume",
    "extend",
  ].map((operation) => `${operation} 200`),
  ...["redeem", "reserve"].flatMap((operation) =>
    ["voided", "expired", "suspended"].map((state) => `${operation} voucher_${state}`),
  ),
  "extend invalid_request",
  "lookUp 200 after an extension",
  ...[
    "redeem null",
    "reserve null",
    "redeem reservation_ended",
    "redeem voucher_used",
    "redeem voucher_reserved",
    "reserve voucher_reserved",
  ],
  ...["redeem with token 200", "redeem with token token_mismatch", "list after a page 200"],
  ...["lookUp", "reserve", "redeem"].map((operation) => `${operation} unknown_key`),
];

function outcomesOf({ ask, status, code, body, sentAtMs }: Exchange): string[] {
  const outcome = code ?? status;
  const isExtended = ask.operation === "lookUp" && sentAtMs > (ask.voucher.validUntilMs ?? 0);
  const details = [
    ...(isExtended && body?.status === "Active" ? [`lookUp ${outcome} after an extension`] : []),
    ...(ask.operation === "redeem" && ask.token !== null ? [`redeem with token ${outcome}`] : []),
    ...(ask.operation === "list" && ask.after !== null ? [`list after a page ${outcome}`] : []),
  ];
  return [`${ask.operation} ${outcome}`, ...details];
}
