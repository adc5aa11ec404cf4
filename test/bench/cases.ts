import type { ContenderId } from "./contenders.ts";
import { checkoutLine, type Load, type PreparedRequest, requestLine } from "./load/run-load.ts";
import type { Stage } from "./stage.ts";
import type { Partner } from "./voucherctl.ts";

export type LoadCaseId = "lookup" | "reserve" | "redeem" | "single" | "checkout" | "claim";

/** A kind of load that contenders take turns in. */
export interface LoadCase {
  id: LoadCaseId;
  title: string;
  /** What is counted: answers, or checkouts of three answers each. */
  unit: "requests" | "checkouts";
  mode: Load["mode"];
  contenders: readonly ContenderId[];
  connections: readonly number[];
  /** What each request is about. */
  subject: "vouchers" | "users";
  /** Makes the line of one subject; `reference` is unique in the whole run. */
  line: (subject: string, reference: string, partner: Partner) => string;
  /** The table in which each unit must leave a row, so that an answer that did nothing is found out; null: none. */
  leaves: "redemptions" | "reservations" | "claims" | null;
  /** What must be undone after a round, so that later ones find what earlier ones found. */
  afterwards?: (stage: Stage) => Promise<void>;
  /** Units a second that no contender reaches, for the first guess of how much supply a round needs. */
  rateGuess: number;
}

const post = (path: string, body: unknown): PreparedRequest => ({ method: "POST", path, body: JSON.stringify(body) });
const redeem = (code: string, externalRef: string) =>
  requestLine(post("/partner/vouchers/redeem", { code, externalRef }));

/** The cases in which contenders are compared. Where it is not obvious how many processes serve one best on two cores, it plays with one and with two. */
export const LOAD_CASES: Record<LoadCaseId, LoadCase> = {
  lookup: {
    id: "lookup",
    title: "Look-up by code",
    unit: "requests",
    mode: "again",
    contenders: ["service", "service-2-1", "a", "a-2", "c", "c-edge"],
    connections: [64],
    subject: "vouchers",
    line: (code) => requestLine({ method: "GET", path: `/partner/vouchers/${code}` }),
    leaves: null,
    rateGuess: 0,
  },
  reserve: {
    id: "reserve",
    title: "Reserve",
    unit: "requests",
    mode: "once",
    contenders: ["service", "service-2-1", "a", "a-2"],
    connections: [64],
    subject: "vouchers",
    line: (code) => requestLine(post("/partner/vouchers/reserve", { code })),
    leaves: "reservations",
    // Live holds cost the sweeper something in each pass.
    afterwards: (stage) => stage.endHolds(),
    rateGuess: 8_000,
  },
  redeem: {
    id: "redeem",
    title: "Redeem by code",
    unit: "requests",
    mode: "once",
    contenders: ["service", "service-1-2", "a", "a-2", "a-steps", "b", "c", "d"],
    connections: [64, 256],
    subject: "vouchers",
    line: redeem,
    leaves: "redemptions",
    rateGuess: 6_000,
  },
  single: {
    id: "single",
    title: "Redeem by code, one at a time",
    unit: "requests",
    mode: "once",
    contenders: ["service", "a", "a-steps", "b", "d"],
    connections: [1],
    subject: "vouchers",
    line: redeem,
    leaves: "redemptions",
    rateGuess: 1_500,
  },
  checkout: {
    id: "checkout",
    title: "Checkout: look up, reserve, redeem by ticket",
    unit: "checkouts",
    mode: "checkout",
    contenders: ["service", "service-1-2", "a", "a-2", "d"],
    connections: [64],
    subject: "vouchers",
    line: checkoutLine,
    leaves: "redemptions",
    rateGuess: 2_500,
  },
  claim: {
    id: "claim",
    title: "Claim",
    unit: "requests",
    mode: "once",
    contenders: ["service", "service-2-1"],
    connections: [64],
    subject: "users",
    line: (token, _reference, { productId }) =>
      requestLine({ method: "POST", path: `/products/${productId}/claim`, header: `Authorization: Bearer ${token}` }),
    leaves: "claims",
    rateGuess: 1_500,
  },
};
