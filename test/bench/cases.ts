import type { ContenderId } from "./contenders.ts";
import { checkoutLine, type Load, type PreparedRequest, requestLine } from "./load/run-load.ts";
import type { Stage } from "./stage.ts";

/** A kind of load that contenders take turns in. */
export interface LoadCase {
  id: string;
  title: string;
  /** What is counted: answers, or checkouts of three answers each. */
  unit: "requests" | "checkouts";
  mode: Load["mode"];
  contenders: readonly ContenderId[];
  connections: readonly number[];
  /** Makes the line of one voucher; `reference` is unique in the whole run. */
  line: (code: string, reference: string) => string;
  /** Rows that each unit must leave behind, so that an answer that did nothing is found out; null: it leaves none. */
  leaves: { table: "redemptions" | "reservations" } | null;
  /** What must be undone after a round, so that later ones find what earlier ones found. */
  afterwards?: (stage: Stage) => Promise<void>;
  /** Units a second that no contender reaches, for the first guess of how many vouchers a round needs. */
  rateGuess: number;
}

const post = (path: string, body: unknown): PreparedRequest => ({ method: "POST", path, body: JSON.stringify(body) });
const redeem = (code: string, externalRef: string) =>
  requestLine(post("/partner/vouchers/redeem", { code, externalRef }));

/** The cases in which contenders are compared. */
export const LOAD_CASES: readonly LoadCase[] = [
  {
    id: "lookup",
    title: "Look-up by code",
    unit: "requests",
    mode: "again",
    contenders: ["service", "a", "c", "c-edge"],
    connections: [64],
    line: (code) => requestLine({ method: "GET", path: `/partner/vouchers/${code}` }),
    leaves: null,
    rateGuess: 0,
  },
  {
    id: "reserve",
    title: "Reserve",
    unit: "requests",
    mode: "once",
    contenders: ["service", "a", "a-2"],
    connections: [64],
    line: (code) => requestLine(post("/partner/vouchers/reserve", { code })),
    leaves: { table: "reservations" },
    // Live holds cost the sweeper something in each pass.
    afterwards: (stage) => stage.endHolds(),
    rateGuess: 8_000,
  },
  {
    id: "redeem",
    title: "Redeem by code",
    unit: "requests",
    mode: "once",
    contenders: ["service", "service-1-2", "a", "a-2", "b", "c", "d"],
    connections: [64, 256],
    line: redeem,
    leaves: { table: "redemptions" },
    rateGuess: 6_000,
  },
  {
    id: "single",
    title: "Redeem by code, one at a time",
    unit: "requests",
    mode: "once",
    contenders: ["service", "a", "b", "d"],
    connections: [1],
    line: redeem,
    leaves: { table: "redemptions" },
    rateGuess: 1_500,
  },
  {
    id: "checkout",
    title: "Checkout: look up, reserve, redeem by ticket",
    unit: "checkouts",
    mode: "checkout",
    contenders: ["service", "a", "a-2", "d"],
    connections: [64],
    line: checkoutLine,
    leaves: { table: "redemptions" },
    rateGuess: 2_500,
  },
];
