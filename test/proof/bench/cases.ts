import type { Request } from "autocannon";
import type { ContenderId } from "./contenders.ts";
import type { Step, Unit } from "./load.ts";
import { endReservations, type Stage } from "./stage.ts";

/** A kind of load for comparing contenders. */
export interface Case {
  title: string;
  contenders: readonly ContenderId[];
  connections: readonly number[];
  supply: "vouchers" | "users";
  /** Null when the case only reads, so that its subjects can be reused. */
  proof: Proof | null;
  /** Whether the last response of a unit is correct. */
  isRight: (unit: Unit) => boolean;
  steps: (stage: Stage) => Step[];
  /** Undoes effects on the next turn. */
  afterwards?: (stage: Stage, redisUrl: string) => Promise<void>;
}

/** Compares answers with the database. */
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

const READ = { connections: [64], supply: "vouchers", proof: null } as const;

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

/** The cases in which contenders are compared. */
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
    contenders: ["service"],
    connections: [64],
    supply: "users",
    proof: {
      receipt: ({ body }) => JSON.parse(body).voucher.id,
      // All claims of these vouchers, so that a voucher with two users appears twice.
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
    // One connection shows the latency of an idle service.
    connections: [1, 64],
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
    // At most 32: below the limit of concurrent public reads, beyond which the API answers 503.
    connections: [1, 32],
    isRight: ({ subject, body }) => body.startsWith("<!doctype html>") && body.includes(subject.id),
    steps: () => [({ subject }) => get(`/integrity/events/VoucherInstance/${subject.id}`, { Accept: "text/html" })],
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
    // Live reservations add work to every sweep.
    afterwards: endReservations,
  },
} as const satisfies Record<string, Case>;

export type CaseId = keyof typeof CASES;
