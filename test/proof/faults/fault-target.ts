import type { HostileKind } from "../../support/hostile-receiver.ts";
import type { Cluster, Deployment } from "./cluster.ts";
import type { Flooder } from "./floods.ts";
import type { History, Violation } from "./history.ts";
import type { Organization } from "./organizations.ts";
import type { SeededRandom } from "./seeded-random.ts";

/** The service under faults, and its callers. */
export interface Stage {
  cluster: Cluster;
  secondDeployment: Deployment;
  copyOfDatabase: Deployment;
  /** Sends floods of calls, which are not in the history. */
  flooder: Flooder;
  /** An organization that issues vouchers, and the history of its calls. */
  issuer: Pick<Organization, "keys" | "brandId" | "productId">;
  history: History;
  /** Vouchers that partners will use next. */
  upcomingVouchers: () => string[];
  /** Enables or disables an organization's hostile receivers of one kind. */
  enableReceivers: (kind: HostileKind, enabled: boolean) => Promise<unknown>;
  /**
   * Reports that a primary may be lost, with commits that no standby has. `fromMs` is the earliest time at which it may
   * have stopped, by default now. Milliseconds of the monotonic clock.
   */
  onPrimaryLost: (fromMs?: number) => void;
  /** Reports that the right files are back, and when older ones replaced them, on the monotonic clock. */
  onSetBack: (fromMs: number) => void;
  counts: Record<string, number>;
  violations: Violation[];
}

/** Does work while it holds this lock. Returns false, without doing it, if the run ended first. */
export type Turn = <T>(work: () => Promise<T>) => Promise<T | false>;

export interface Scene extends Stage {
  random: SeededRandom;
  /** Waits, but not beyond the end of the run, so that the caller soon undoes its fault. */
  pause: (ms: number) => Promise<void>;
  /**
   * Keeps faults of Postgres apart from work that needs a running Postgres. Work that needs `redisTurn` too takes
   * `postgresTurn` first.
   */
  postgresTurn: Turn;
  redisTurn: Turn;
  /** Keeps work apart from times in which the server has older files. Work with several locks takes this one last. */
  startTurn: Turn;
}

export interface Fault<Action extends string = string> {
  action: Action;
  /** Duration. Milliseconds. */
  forMs: number;
}

/** What faults hit, such as Redis, and an endless sequence of faults. A seed determines it, but not the timing. */
export interface Target {
  /** Longest pause between two faults of this target. Milliseconds. */
  pauseMaxMs: number;
  next(random: SeededRandom): Fault;
  /** Inflicts a fault and undoes it. Returns false if no fault was possible. */
  inflict(scene: Scene, fault: Fault): Promise<unknown>;
}

export function target<Action extends string>(
  pauseMaxMs: number,
  next: (random: SeededRandom) => Fault<Action>,
  inflict: (scene: Scene, fault: Fault<Action>) => Promise<unknown>,
): Target {
  return { pauseMaxMs, next, inflict } as Target;
}

/**
 * How long jobs accumulate before a fault, so that it hits jobs that no worker has started or finished. Milliseconds.
 */
export const GATHER_MS = 500;
/** How long a restarted Postgres recovers and callers repeat their requests. Milliseconds. */
export const RETRIED_MS = 2_500;
/** So long that a replica or standby takes over. It notices the loss after two or three seconds. Milliseconds. */
export const takeover = (random: SeededRandom) => random.between(4_000, 7_000);
