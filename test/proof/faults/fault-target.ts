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
  /** The caller that sends floods. Its calls are not in the history. */
  flooder: Flooder;
  /** An organization that acts, and the history of its calls. */
  issuer: Pick<Organization, "keys" | "brandId" | "productId">;
  history: History;
  /** Vouchers that partners will use next. */
  upcomingVouchers: () => string[];
  /** Turns an organization's hostile receivers of one kind on or off. */
  enableReceivers: (kind: HostileKind, enabled: boolean) => Promise<unknown>;
  /**
   * Called once a primary has stopped answering, because commits that no standby has may be lost with it. By default it
   * stopped now. Otherwise `fromMs` is the earliest time at which it may have stopped, on the monotonic clock.
   */
  onPrimaryLost: (fromMs?: number) => void;
  /** Called once the right files are back. `fromMs` is when they were set back, on the monotonic clock. */
  onSetBack: (fromMs: number) => void;
  /** Number of faults by kind. */
  counts: Record<string, number>;
  violations: Violation[];
}

/** Does work that excludes all other work. Returns false without doing it if the run has ended by then. */
export type Turn = <T>(work: () => Promise<T>) => Promise<T | false>;

export interface Scene extends Stage {
  random: SeededRandom;
  /** Waits. Returns at once if the run has ended, so that the caller soon undoes its fault. */
  pause: (ms: number) => Promise<void>;
  /**
   * Excludes faults of the server from work that needs a running server. A fault that needs `redisTurn` too takes
   * `postgresTurn` first.
   */
  postgresTurn: Turn;
  redisTurn: Turn;
  /** Excludes the time in which files are set back. Work that needs several locks takes this one last. */
  startTurn: Turn;
}

export interface Fault<Action extends string = string> {
  action: Action;
  /** Duration. Milliseconds. */
  forMs: number;
}

/** A target and the endless sequence of its faults. The same seed gives the same sequence, but not the same timing. */
export interface Target {
  /** Longest pause between two faults. Targets are independent of each other. Milliseconds. */
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
 * Time for jobs to accumulate before a fault, so that it meets some that no worker has started or finished.
 * Milliseconds.
 */
export const GATHER_MS = 500;
/** Time for a restarted Postgres to recover and for callers to repeat their requests. Milliseconds. */
export const RETRIED_MS = 2_500;
/**
 * Long enough that a replica or standby takes over, because they notice the loss after two or three seconds.
 * Milliseconds.
 */
export const takeover = (random: SeededRandom) => random.between(4_000, 7_000);
