/**
 * Among whom a kind of caller divides its connections. A visitor is a signed-in user, or an anonymous caller's address.
 */
export type Share = "organization" | "visitor" | "none";

/** A kind of caller: its own connections, and limits for calls that wait for one of them. */
export interface CallerKind<Who extends Share = Share> {
  /** The calls of this kind, as listed in `docs/design/callers.md`. */
  calls: string;
  connections: number;
  share: Who;
  /** Maximum number of waiting calls. Further calls are refused with `overloaded`. */
  waitingMax: number;
  /** Maximum number of waiting calls of one organization or visitor, so that one alone cannot use up `waitingMax`. */
  waitingMaxEach: number;
}

const kind = <const Who extends Share>(declared: CallerKind<Who>) => declared;

/**
 * Kinds of callers whose calls are not batched. Each call takes one of the Postgres connections of its kind. Where
 * `share` is not `none`, no single caller can take all of them.
 */
export const CALLER_KINDS = {
  /** With chains of usual length, a call starts within half a second, even if the maximum number of calls waits. */
  partnerCalls: kind({
    calls: "Partners' histories, lists, receipts and webhook endpoints",
    connections: 4,
    share: "organization",
    waitingMax: 200,
    waitingMaxEach: 50,
  }),
  /** All waiting calls together take a minute if they move the times of large sandboxes. */
  sandboxAdvances: kind({
    calls: "Moves of sandboxes' times",
    connections: 1,
    share: "organization",
    waitingMax: 20,
    waitingMaxEach: 5,
  }),
  /** Few calls may wait, because one sum over many redemptions takes seconds. */
  portalReads: kind({
    calls: "The portal",
    connections: 3,
    share: "organization",
    waitingMax: 60,
    waitingMaxEach: 15,
  }),
  /** There are few operators. Their sign-ins and the service's own search for faults use these connections too. */
  operatorReads: kind({
    calls: "Pages for operators",
    connections: 2,
    share: "none",
    waitingMax: 50,
    waitingMaxEach: 50,
  }),
  /** All waiting calls together take a few seconds if they read large pages. */
  publicReads: kind({
    calls: "Public pages, listings, histories and the log",
    connections: 3,
    share: "visitor",
    waitingMax: 100,
    waitingMaxEach: 25,
  }),
};

/**
 * Calls of the issuer API. They use a separate pool with the rights of `voucherctl`, so a large issue takes no
 * connection from redemptions. An issue may run for half a minute.
 */
export const ISSUER_CALLS = kind({
  calls: "The issuer API",
  connections: 3,
  share: "organization",
  waitingMax: 40,
  waitingMaxEach: 10,
});

/** Connections of one group committer for items that wait for a lock. */
export const LOCK_CONNECTIONS = { vouchers: 4, acquisitions: 3 };

/** Connections of batched calls. Many callers share each statement, so these calls need no connections of their own. */
const BATCHED_CONNECTIONS = {
  "look-up batches": 2,
  "batch of confirmations": 1,
  "batch of redeem outcomes": 1,
  "batch of redemptions by reference": 1,
  "batch of counts of listings": 1,
  "key look-ups": 3,
  "batch of reservations": 1,
  "locked rows": LOCK_CONNECTIONS.vouchers,
  "shared reads of acquisitions": 2,
  "batch of acquisitions": 1,
  "acquisitions that wait for locks": LOCK_CONNECTIONS.acquisitions,
};

/**
 * Connections for the process's own use: one each for metrics scrapes, for checks of the server, and for writing marks,
 * which show that the database has lost no data.
 */
const OWN_CONNECTIONS = 3;

/** Connections of the separate pool for readiness probes. Concurrent probes share one result. */
export const PROBE_CONNECTIONS = 1;

const sum = (counts: readonly number[]) => counts.reduce((total, count) => total + count, 0);

/** Connections of an API process's pool: enough for all kinds together, so that no kind waits for another. */
export const POOL_MAX =
  sum(Object.values(BATCHED_CONNECTIONS)) +
  sum(Object.values(CALLER_KINDS).map(({ connections }) => connections)) +
  OWN_CONNECTIONS;

/** Maximum number of Postgres connections of an API process. A test compares this number with `docs/scaling.md`. */
export const API_CONNECTIONS_MAX = POOL_MAX + PROBE_CONNECTIONS;
