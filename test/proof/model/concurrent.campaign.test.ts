import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, it } from "vitest";
import { openTestServers, type TestServers } from "../../support/servers.ts";
import { endService, startApi, startWorkers, type TestApi } from "../../support/service.ts";
import { issueVouchers, makeKey, makePartner } from "../../support/supply.ts";
import { exchangeOnce } from "../faults/exchange.ts";
import {
  describeViolation,
  History,
  type PartnerAsk,
  type SuppliedKey,
  type SuppliedVoucher,
} from "../faults/history.ts";
import { checkOrder } from "../faults/order.ts";
import { SeededRandom } from "../faults/seeded-random.ts";
import { SteppedClock } from "../faults/stepped-clock.ts";

// Random calls that overlap, from many clients of two API processes, about one voucher at a time. CONCURRENT_VOUCHERS
// and CONCURRENT_SEED make longer and other runs.

const VOUCHERS = Number(process.env.CONCURRENT_VOUCHERS || 30);
const SEED = Number(process.env.CONCURRENT_SEED || 20_261_127);
const CLIENTS = 6;
const CALLS_PER_CLIENT = 8;
/** Longest pause of a client between two calls. Milliseconds. */
const PAUSE_MAX_MS = 12;
/** Some calls are given up while they run. Milliseconds. */
const PATIENCE_MS = { patient: 20_000, impatient: 8 };
const RESERVATION_SECONDS = 1;
/** How often a voucher's clients wait until its reservation is over. */
const OVERSTAY_CHANCE = 0.03;
/** Relative frequency of each call. */
const CALLS = { lookUp: 6, reserve: 5, release: 3, redeem: 1, redeemByTicket: 1, redemption: 2, events: 2, list: 1 };

let servers: TestServers;
let apis: { url: string; process: { name: string }; api: TestApi }[];

beforeAll(async () => {
  servers = await openTestServers();
  const env = { RESERVATION_SECONDS: String(RESERVATION_SECONDS) };
  const started = [await startApi(servers, env), await startApi(servers, env)];
  apis = started.map((api, at) => ({ api, url: api.url, process: { name: `api-${at + 1}` } }));
  await startWorkers(servers);
});

afterAll(() => endService(servers));

it("overlapping calls to two API processes about one voucher have an order that explains every answer", async () => {
  const { db } = servers;
  const random = new SeededRandom(SEED);
  const partner = await makePartner(db);
  const { organizationId } = partner;
  const makeSuppliedKey = async (): Promise<SuppliedKey> => {
    const { id, key } = await makeKey(db, organizationId);
    return { id, secret: key, organizationId };
  };
  let keys = [await makeSuppliedKey(), await makeSuppliedKey()];
  const history = new History();
  const issued = await issueVouchers(db, partner, VOUCHERS);
  for (const [turn, { id, code }] of issued.entries()) {
    const voucher = { id, code, organizationId };
    await contend(voucher, keys, history, random.fork(`voucher ${turn}`));
    if (turn % 10 === 9) keys = [...keys.slice(1), await makeSuppliedKey()];
  }
  expect(checkOrder(history, new SteppedClock()).map(describeViolation)).toEqual([]);
  const outcomes = Object.keys(
    Object.groupBy(history.exchanges, ({ ask, status, code }) => `${ask.operation} ${code ?? status}`),
  );
  expect(outcomes).toEqual(expect.arrayContaining(MUST_HAPPEN));
});

/** A run without these would prove little. */
const MUST_HAPPEN = [
  ...["lookUp", "reserve", "release", "redeem", "redemption", "events", "list"].map((operation) => `${operation} 200`),
  ...["redeem null", "reserve null", "redeem voucher_used", "redeem voucher_reserved", "reserve voucher_reserved"],
];

/** Lets clients call about one voucher at the same time, in a random order. */
async function contend(
  voucher: SuppliedVoucher,
  keys: readonly SuppliedKey[],
  history: History,
  random: SeededRandom,
): Promise<void> {
  const tickets: string[] = [];
  const refs = [`${voucher.id}-1`, `${voucher.id}-2`, `${voucher.id}-3`];
  const from = new Date(Date.now() - 5_000).toISOString();
  const askFor = (name: keyof typeof CALLS, by: SeededRandom): PartnerAsk => {
    const key = by.pick(keys);
    const externalRef = by.pick(refs);
    const ticket = tickets.length === 0 ? null : by.pick(tickets);
    switch (name) {
      case "redemption":
        return { operation: "redemption", key, externalRef };
      case "list":
        return { operation: "list", key, from, limit: 1_000 };
      case "release":
        return ticket === null
          ? { operation: "reserve", key, voucher }
          : { operation: "release", key, voucher, ticket };
      case "redeem":
      case "redeemByTicket": {
        const named = name === "redeem" || ticket === null ? { code: voucher.code } : { ticket };
        return { operation: "redeem", key, voucher, externalRef, by: named, token: null };
      }
      default:
        return { operation: name, key, voucher };
    }
  };
  const client = async (by: SeededRandom) => {
    for (let calls = 0; calls < CALLS_PER_CLIENT; calls++) {
      const ask = askFor(by.weigh(CALLS), by);
      const timeoutMs = by.chance(0.1) ? PATIENCE_MS.impatient : PATIENCE_MS.patient;
      const { status, body } = history.add(await exchangeOnce(ask, by.pick(apis), 1, { timeoutMs }));
      if (ask.operation === "reserve" && status === 200) tickets.push(body.ticket);
      await sleep(by.chance(OVERSTAY_CHANCE) ? RESERVATION_SECONDS * 1_000 : by.between(0, PAUSE_MAX_MS));
    }
  };
  await Promise.all(Array.from({ length: CLIENTS }, (_, at) => client(random.fork(`client ${at}`))));
}
