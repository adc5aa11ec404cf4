/**
 * Among whom the places of a kind are divided. A visitor is a signed-in user, or the address of an anonymous caller.
 */
export type Share = "organization" | "visitor" | "none";

/** The connections that a kind of caller has for itself, and how many of its calls may wait for one. */
export interface CallerKind<Who extends Share = Share> {
  /** The calls of this kind, as `docs/design.md` lists them. */
  calls: string;
  connections: number;
  share: Who;
  /** Maximum number of waiting calls. Each further one gets `overloaded`. */
  waitingMax: number;
  /** The same for one organization or visitor, so that it cannot fill the line. */
  waitingMaxEach: number;
}

const kind = <const Who extends Share>(declared: CallerKind<Who>) => declared;

/**
 * Kinds of callers whose calls are not batched: each call has a connection to Postgres of its own. No kind uses a
 * connection of another, and the share keeps some connections of each kind free of any one caller.
 */
export const CALLER_KINDS = {
  /** Half a second's worth of chains of usual length may wait. */
  partnerCalls: kind({
    calls: "Partners' histories, lists, receipts and webhook endpoints",
    connections: 4,
    share: "organization",
    waitingMax: 200,
    waitingMaxEach: 50,
  }),
  /** A minute's worth of large moves may wait. */
  sandboxAdvances: kind({
    calls: "Moves of sandboxes' times",
    connections: 1,
    share: "organization",
    waitingMax: 20,
    waitingMaxEach: 5,
  }),
  /** A large sum takes seconds. */
  portalReads: kind({
    calls: "The portal",
    connections: 3,
    share: "organization",
    waitingMax: 60,
    waitingMaxEach: 15,
  }),
  /** Operators are few. Their sign-ins are looked up here, and the service itself looks for faults. */
  operatorReads: kind({
    calls: "Pages for operators",
    connections: 2,
    share: "none",
    waitingMax: 50,
    waitingMaxEach: 50,
  }),
  /** A few seconds' worth of large pages may wait. */
  publicReads: kind({
    calls: "Public pages, listings, histories and the log",
    connections: 3,
    share: "visitor",
    waitingMax: 100,
    waitingMaxEach: 25,
  }),
};

/**
 * Calls of the issuer API. Their connections are not of the process's pool but of one with the rights of `voucherctl`,
 * so that no issue, however large, takes one of a redemption. An issue may run for half a minute.
 */
export const ISSUER_CALLS = kind({
  calls: "The issuer API",
  connections: 3,
  share: "organization",
  waitingMax: 40,
  waitingMaxEach: 10,
});

/** Connections of batched calls: many callers share each statement, so none of them waits for a place. */
export const BATCHED_CONNECTIONS = {
  "look-up batches": 2,
  "batch of confirmations": 1,
  "batch of redeem outcomes": 1,
  "batch of redemptions by reference": 1,
  "batch of counts of listings": 1,
  "key look-ups": 3,
  "batch of reservations": 1,
  "locked rows": 4,
  "shared reads of acquisitions": 2,
  "batch of acquisitions": 1,
  "acquisitions that wait for locks": 3,
};

/** Connections of the process itself: a metrics scrape, and each second a check of the server and a mark. */
export const OWN_CONNECTIONS = 3;

/** A pool of its own for readiness probes. They share one probe. */
export const PROBE_CONNECTIONS = 1;

const sum = (counts: readonly number[]) => counts.reduce((total, count) => total + count, 0);

/** Connections of an API process's pool: as many as all kinds have together, so no kind waits for another. */
export const POOL_MAX =
  sum(Object.values(BATCHED_CONNECTIONS)) +
  sum(Object.values(CALLER_KINDS).map(({ connections }) => connections)) +
  OWN_CONNECTIONS;

/** Postgres connections of an API process, at most. A test compares it with `docs/scaling.md`. */
export const API_CONNECTIONS_MAX = POOL_MAX + PROBE_CONNECTIONS;
