/**
 * A random id that is committed at a position of the database's past. Every later state of the same database has it.
 */
export interface Mark {
  readonly position: number;
  readonly id: string;
}

/** What a process has seen of a deployment's database. Never changed, only replaced. */
export interface Memory {
  readonly deploymentId: string;
  /** The server's timeline, in hex with a fixed length, so that timelines can be compared as text. */
  readonly timeline: string;
  /** The start of the server that was seen with the newest mark. Null if an earlier release wrote it. */
  readonly started: string | null;
  /** The newest mark whose COMMIT, or that of a later transaction, returned without a warning. */
  readonly newest: Mark;
  /** The newest mark that every promoted standby must have. Null if there is none yet. */
  readonly lasting: Mark | null;
  /** All accepted losses that were committed before the newest mark, and perhaps later ones. */
  readonly acceptedLosses: readonly string[];
}

/** What a server still has of a {@link Memory}: the ids of the marks at its positions, and facts about the server. */
export interface Recollection {
  readonly timeline: string;
  readonly started: string;
  readonly newestId: string | null;
  readonly lastingId: string | null;
  /** The position of the server's oldest mark. Null without marks. */
  readonly oldestPosition: number | null;
  readonly acceptedLosses: readonly string[];
}

/**
 * How a server compares with a process's memory.
 *
 * - `known`: it has all that the process saw committed.
 * - `promoted`: a standby that was promoted without the last marks, which no synchronous standby had confirmed.
 * - `accepted`: it has lost marks, and an operator has accepted that since.
 * - `setBack`: it has lost marks, and no operator has accepted that.
 */
export type Verdict = "known" | "promoted" | "accepted" | "setBack";

export function judgeServer(memory: Memory, found: Recollection): Verdict {
  // Marks are deleted after a day. A process without a newer mark counts as one that has just started.
  const has = (mark: Mark | null, id: string | null) =>
    mark === null || mark.id === id || mark.position < (found.oldestPosition ?? 0);
  if (has(memory.newest, found.newestId)) return "known";
  if (found.timeline > memory.timeline && has(memory.lasting, found.lastingId)) return "promoted";
  return found.acceptedLosses.some((id) => !memory.acceptedLosses.includes(id)) ? "accepted" : "setBack";
}

/** Whether a memory is newer than another memory whose marks the server still has. */
function isNewer(memory: Memory, other: Memory | null): boolean {
  return memory.newest.position > (other?.newest.position ?? 0);
}

/** The memory that a process keeps when it admits a server. */
export function keepAfter(verdict: Verdict, memory: Memory | null, found: Recollection): Memory | null {
  if (memory === null || verdict === "known") return memory;
  const { timeline, started } = found;
  return verdict === "promoted" && memory.lasting !== null
    ? { ...memory, timeline, started, newest: memory.lasting }
    : null;
}

/** The state of a server that one reading has found. */
export interface ServerReading {
  readonly deploymentId: string;
  readonly timeline: string;
  readonly started: string;
  readonly newest: Mark;
  /** The newest mark that is old enough for every promoted standby to have it. */
  readonly older: Mark | null;
  /** Whether the COMMIT waited for a synchronous standby. */
  readonly isReplicated: boolean;
  /** Read after the COMMIT. */
  readonly acceptedLosses: readonly string[];
}

export function remember(memory: Memory | null, reading: ServerReading): Memory {
  const { deploymentId, timeline, started, newest, older, isReplicated } = reading;
  const [before, now] = [memory?.lasting ?? null, isReplicated ? newest : older];
  const lasting = (before?.position ?? 0) > (now?.position ?? 0) ? before : now;
  const acceptedLosses = [...new Set([...(memory?.acceptedLosses ?? []), ...reading.acceptedLosses])];
  return { deploymentId, timeline, started, newest, lasting, acceptedLosses };
}

/** What processes have seen of one start of a server. */
interface SeenStart {
  readonly memory: Memory;
  /** How many different marks of this start were shared since the last mark of an earlier start. */
  readonly marks: number;
}

/**
 * What the processes of a deployment share: a memory for each start of a server, in the order in which they came. Each
 * start had all marks of the starts before it, so it is the same server, started again, or a copy that runs beside it.
 * Empty when this release cannot read what is stored.
 */
export type Shared = readonly SeenStart[];

/** After this many marks without a mark of an earlier start, a start counts as the only one. About ten seconds. */
const ALONE_AFTER_MARKS = 10;
/** The oldest start is forgotten when a server starts more often than this and never counts as the only one. */
const STARTS_MAX = 4;

/**
 * The starts whose marks a server must have. On its own timeline, those are the starts up to its own: later ones are
 * copies that run beside it. A server whose start is not known must have all marks.
 */
export function startsToHave(told: Shared, { started, timeline }: Pick<Memory, "started" | "timeline">): Shared {
  const own = told.findIndex(({ memory }) => memory.started === started);
  return told.filter(({ memory }, at) => own === -1 || at <= own || memory.timeline !== timeline);
}

/**
 * The shared memories after a process has compared its server with them and added its own. Null if nothing changes.
 * @param verdict how the server compares with the starts whose marks it must have.
 */
export function share(told: Shared, memory: Memory, verdict: Verdict): Shared | null {
  const last = told.at(-1)?.memory ?? null;
  if (verdict !== "known") return [{ memory, marks: 1 }];
  // An earlier release does not record which start it has seen.
  const own = told.findIndex(({ memory: { started } }) => started === null || started === memory.started);
  const before = told[own] ?? null;
  if (!isNewer(memory, before === null ? last : before.memory)) return null;
  const next = { memory, marks: (before?.marks ?? 0) + 1 };
  const isAlone = next.marks >= ALONE_AFTER_MARKS || memory.timeline > (last?.timeline ?? "");
  return isAlone ? [next] : [...told.slice(0, own === -1 ? told.length : own), next].slice(-STARTS_MAX);
}

/**
 * Where the processes of a deployment share their memories, outside of its database. It may be lost, and proves nothing
 * when it is empty.
 */
export interface SharedMemory {
  /** Null when it cannot be read. */
  read(deploymentId: string): Promise<SharedText | null>;
  /** Writes what is shared, unless another process has written since `before` was read. Returns false in that case. */
  replace(next: Shared, before: SharedText): Promise<boolean>;
  /**
   * Stores the memory of a process that refuses its server apart from the other memories: that server may be a copy
   * that other processes do not use.
   */
  keepLacked(memory: Memory): Promise<void>;
}

export interface SharedText {
  readonly starts: Shared;
  /** Empty when nothing is there. */
  readonly text: string;
  /** The memory whose mark a refused server lacks. */
  readonly lacked: Memory | null;
}

/** The shared memory of a process without Redis: none. */
export const NOTHING_SHARED: SharedMemory = {
  read: async () => null,
  replace: async () => true,
  keepLacked: async () => undefined,
};
