import type { Request } from "autocannon";
import { type ContenderId, FILLED } from "./contenders.ts";
import type { Step, Unit } from "./load.ts";
import { BENCH_OPS_TOKEN, endReservations, type Stage, type Supply } from "./stage.ts";

/** A kind of load for comparing contenders. */
export interface Case {
  title: string;
  contenders: readonly ContenderId[];
  connections: readonly number[];
  supply: Supply;
  /** Null if the case only reads, so that each subject can be used again. */
  proof: Proof | null;
  isRight: (unit: Unit) => boolean;
  steps: (stage: Stage) => Step[];
  /**
   * For cases without load: milliseconds between two passes through the steps. Each pass waits first, then sends its
   * request, if the case has one.
   */
  everyMs?: number;
  /** Undoes effects of a contender's turn that would change the next turn. */
  afterwards?: (stage: Stage, redisUrl: string) => Promise<void>;
}

/** How to compare the answers with the database. */
export interface Proof {
  receipt: (unit: Unit) => string;
  /** Reads `subject` and `receipt` for the subject ids in `$1`. */
  sql: string;
}

const get = (path: string, headers: Record<string, string>): Request => ({ method: "GET", path, headers });

function post(path: string, headers: Record<string, string>, body: unknown): Request {
  return {
    method: "POST",
    path,
    headers: { ...headers, "Content-Type": "application/json" },
    body: JSON.stringify(body),
  };
}

const key = (stage: Stage) => ({ "X-Api-Key": stage.partner.key });

const READ = { connections: [64], supply: "samples", proof: null } as const;

const basic = (user: string, password: string) => ({ Authorization: `Basic ${btoa(`${user}:${password}`)}` });
const DAY_MS = 86_400_000;
/** The cases for filled databases only. They use one connection, because these calls are rare. */
const OF_FILLED = { ...READ, connections: [1], contenders: FILLED } as const;
const LISTED = 100;

const REDEMPTION: Pick<Case, "proof" | "isRight"> = {
  proof: {
    receipt: ({ reference, body }) => `${reference} ${JSON.parse(body).redeemCode}`,
    sql: `SELECT r.voucher_id AS subject, r.external_ref || ' ' || r.redeem_code AS receipt
            FROM redemptions AS r
            JOIN voucher_events AS e ON e.voucher_id = r.voucher_id AND e.event_type = 'voucher.instance.redeemed'
             AND e.seal_status = 'Sealed'
           WHERE r.voucher_id = ANY ($1::text[])`,
  },
  isRight({ subject, body }) {
    const { redeemed, alreadyConfirmed, voucherInstanceId } = JSON.parse(body);
    return redeemed && !alreadyConfirmed && voucherInstanceId === subject.id;
  },
};

/** The cases that compare contenders. */
export const CASES = {
  "look-up": {
    title: "Look-up by code",
    ...READ,
    contenders: ["service", "a", "c"],
    isRight: ({ subject, body }) => JSON.parse(body).voucher.id === subject.id,
    steps: (stage) => [({ subject }) => get(`/partner/vouchers/${subject.code}`, key(stage))],
  },
  redeem: {
    title: "Redeem by code",
    contenders: ["service", "a", "c", "d", "e", "f", "g", "h", "i"],
    connections: [64, 256],
    supply: "vouchers",
    ...REDEMPTION,
    steps: (stage) => [
      ({ subject, reference }) =>
        post("/partner/vouchers/redeem", key(stage), { code: subject.code, externalRef: reference }),
    ],
  },
  checkout: {
    title: "Checkout: look up, reserve, redeem by ticket",
    contenders: ["service", "a", "d"],
    connections: [64],
    supply: "vouchers",
    ...REDEMPTION,
    steps: (stage) => [
      ({ subject }) => get(`/partner/vouchers/${subject.code}`, key(stage)),
      ({ subject }) => post("/partner/vouchers/reserve", key(stage), { code: subject.code }),
      ({ reference, body }) =>
        post("/partner/vouchers/redeem", key(stage), { ticket: JSON.parse(body).ticket, externalRef: reference }),
    ],
  },
  claim: {
    title: "Claim",
    contenders: ["service", "c"],
    connections: [64],
    supply: "users",
    proof: {
      receipt: ({ body }) => JSON.parse(body).voucher.id,
      // All claims of the claimed vouchers, so that a voucher with two users appears twice.
      sql: `SELECT user_id AS subject, voucher_id AS receipt FROM claims
             WHERE voucher_id IN (SELECT voucher_id FROM claims WHERE user_id = ANY ($1::text[]))`,
    },
    isRight: ({ body }) => JSON.parse(body).alreadyConfirmed === false,
    steps: ({ partner }) => [
      ({ subject }) => post(`/products/${partner.productId}/claim`, { Authorization: `Bearer ${subject.token}` }, {}),
    ],
  },
  events: {
    title: "Read a voucher's events",
    ...READ,
    // One connection shows an idle service's latency. 32 connections stay below an organization's limit of 54 calls.
    connections: [1, 32],
    contenders: ["service"],
    isRight({ subject, body }) {
      const { entityId, events } = JSON.parse(body);
      return entityId === subject.id && events.length === 1;
    },
    steps: (stage) => [({ subject }) => get(`/partner/vouchers/${subject.code}/events`, key(stage))],
  },
  page: {
    title: "Verification page",
    ...READ,
    contenders: ["service"],
    // 24 connections are below a visitor's limit of concurrent public reads. Above that limit, the API answers 503.
    connections: [1, 24],
    isRight: ({ subject, body }) => body.startsWith("<!doctype html>") && body.includes(subject.id),
    steps: () => [({ subject }) => get(`/integrity/events/VoucherInstance/${subject.id}`, { Accept: "text/html" })],
  },
  list: {
    title: "Page of 100 of the list of redemptions, from any time",
    ...OF_FILLED,
    isRight: ({ body }) => JSON.parse(body).redemptions.length === LISTED,
    steps: (stage) => [
      () => get(`/partner/redemptions?limit=${LISTED}&from=${stage.anyTime().toISOString()}`, key(stage)),
    ],
  },
  day: {
    title: "Portal's page of a day with 10 000 redemptions",
    ...OF_FILLED,
    isRight: ({ body }) => body.includes("10,000"),
    steps: ({ partner }) => {
      const day = new Date(Date.now() - DAY_MS).toISOString().slice(0, 10);
      const headers = { ...basic("bench", partner.readKey), Accept: "text/html" };
      return [() => get(`/portal/redemptions?day=${day}`, headers)];
    },
  },
  sweep: {
    title: "Sweeper's pass, with all that runs in five seconds without a call",
    ...OF_FILLED,
    everyMs: 5_000,
    isRight: () => true,
    steps: () => [],
  },
  overview: {
    title: "Operators' overview, with all that runs in three seconds",
    ...OF_FILLED,
    // The API reuses an overview that it read less than three seconds ago.
    everyMs: 3_100,
    isRight: ({ body }) => Array.isArray(JSON.parse(body).attention),
    steps: () => [() => get("/ops/overview.json", basic("bench", BENCH_OPS_TOKEN))],
  },
  reserve: {
    title: "Reserve",
    contenders: ["service", "a"],
    connections: [64],
    supply: "vouchers",
    proof: {
      receipt: ({ body }) => JSON.parse(body).ticket,
      sql: "SELECT voucher_id AS subject, ticket AS receipt FROM reservations WHERE voucher_id = ANY ($1::text[])",
    },
    isRight: ({ subject, body }) => JSON.parse(body).voucher === subject.id,
    steps: (stage) => [({ subject }) => post("/partner/vouchers/reserve", key(stage), { code: subject.code })],
    // Ends reservations, because Live ones add work to every sweep.
    afterwards: endReservations,
  },
} as const satisfies Record<string, Case>;

export type CaseId = keyof typeof CASES;
