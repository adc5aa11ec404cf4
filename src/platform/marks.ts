/**
 * A random id that is committed at a position of the database's past. Every later state of the same database has it.
 */
export interface Mark {
  readonly position: number;
  readonly id: string;
}

/** One run of a database server. Another start, or another timeline, may be another server with the same files. */
export interface ServerStart {
  readonly deploymentId: string;
  /** In hex with a fixed length, so that timelines can be compared as text. Every promotion raises it. */
  readonly timeline: string;
  readonly started: string;
  /** Where operators find it. Decides nothing. */
  readonly host: string;
}

/** What a process remembers of the deployment's database, and of the server in use. Never changed, only replaced. */
export interface Memory extends ServerStart {
  /** The newest mark whose COMMIT, or that of a later transaction, returned without a warning. */
  readonly newest: Mark | null;
  /** The newest mark that every promoted standby must have. */
  readonly lasting: Mark | null;
  /** All accepted losses that were committed before the newest mark, and perhaps later losses. */
  readonly acceptedLosses: readonly string[];
}

/** What a server still has of a {@link Memory}: the ids of the marks at its positions, and facts about the server. */
export interface Recollection {
  readonly timeline: string;
  readonly newestId: string | null;
  readonly lastingId: string | null;
  /** The position of the server's oldest mark. Null without marks. */
  readonly oldestPosition: number | null;
  readonly acceptedLosses: readonly string[];
}

/**
 * How a server compares with a memory.
 *
 * - `known`: it has all that was seen committed.
 * - `promoted`: a standby that was promoted without the last marks, which no synchronous standby had confirmed.
 * - `accepted`: it has lost marks, and an operator has accepted that since.
 * - `former`: it was the primary before a standby was promoted.
 * - `setBack`: it has lost marks, and no operator has accepted that.
 */
export type ServerVerdict = "known" | "promoted" | "accepted" | "former" | "setBack";

export function judgeServer(memory: Memory | null, found: Recollection): ServerVerdict {
  if (memory === null) return "known";
  // Marks are deleted after a day. A process without a newer mark counts as one that has just started.
  const has = (mark: Mark | null, id: string | null) =>
    mark === null || mark.id === id || mark.position < (found.oldestPosition ?? 0);
  if (found.timeline >= memory.timeline && has(memory.newest, found.newestId)) return "known";
  if (found.timeline > memory.timeline && has(memory.lasting, found.lastingId)) return "promoted";
  if (found.acceptedLosses.some((id) => !memory.acceptedLosses.includes(id))) return "accepted";
  return found.timeline < memory.timeline ? "former" : "setBack";
}

/** The memory that is kept, or shared, when a server is admitted. */
export function keepAfter(
  verdict: ServerVerdict,
  memory: Memory | null,
  { deploymentId, timeline, started, host, acceptedLosses }: ServerStart & Recollection,
): Memory {
  const server = { deploymentId, timeline, started, host };
  if (memory === null) return { ...server, newest: null, lasting: null, acceptedLosses };
  if (verdict === "known") return isOf(memory, server) ? memory : { ...memory, ...server };
  if (verdict === "promoted") return { ...memory, ...server, newest: memory.lasting };
  return { ...server, newest: null, lasting: null, acceptedLosses: union(memory.acceptedLosses, acceptedLosses) };
}

/** The state of a server that one reading has found. */
export interface ServerReading {
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

/** The new memory after the server that the memory names has confirmed a mark. */
export function remember(memory: Memory, { newest, older, isReplicated, acceptedLosses }: ServerReading): Memory {
  const confirmed = isReplicated ? newest : older;
  const lasting = isNewer(confirmed, memory.lasting) ? confirmed : memory.lasting;
  return { ...memory, newest, lasting, acceptedLosses: union(memory.acceptedLosses, acceptedLosses) };
}

export function isNewer(mark: Mark | null, other: Mark | null | undefined): boolean {
  return (mark?.position ?? 0) > (other?.position ?? 0);
}

const union = (some: readonly string[], others: readonly string[]) => [...new Set([...some, ...others])];

/** What the processes of a deployment share: what they saw last, and on which server. They all use this server. */
export interface SharedText {
  /** Empty when nothing is there. */
  readonly text: string;
  /** Null when nothing is there, or nothing that this release can read. */
  readonly memory: Memory | null;
}

/** After this time without a new mark, another server may replace the server that shared the marks. Milliseconds. */
export const SERVER_GONE_MS = 4_000;
/** The same for a server that lacks the last marks, so that a server with the marks comes first. Milliseconds. */
export const LACKING_SERVER_GONE_MS = 8_000;

/** Whether a memory names this start of a server. */
export function isOf(memory: Memory | null, { timeline, started }: Pick<ServerStart, "timeline" | "started">): boolean {
  return memory?.timeline === timeline && memory.started === started;
}

/**
 * Whether a server may be used beside what is shared: it shared the last mark, or the server that did is silent. Where
 * nothing is shared, another server may be about to do so, unless no server of the deployment ever made a mark.
 * @param silentMs for how long the process that asks has seen the same text.
 */
export function mayUse(
  told: SharedText,
  verdict: ServerVerdict,
  silentMs: number,
  found: ServerStart & Recollection,
): boolean {
  const isFirst = told.text === "" && found.oldestPosition === null;
  const waitMs = verdict === "promoted" ? LACKING_SERVER_GONE_MS : SERVER_GONE_MS;
  return isOf(told.memory, found) || isFirst || silentMs >= waitMs;
}

/**
 * Where the processes of a deployment share their memory, outside of its database. It may be lost, and proves nothing
 * when it is empty.
 */
export interface SharedMemory {
  /** Null when it cannot be read. Takes at most some seconds. */
  read(deploymentId: string): Promise<SharedText | null>;
  /** Writes a memory as JSON, unless another process has written since `before` was read. Returns false then. */
  replace(memory: Memory, before: SharedText): Promise<boolean>;
}

/** The shared memory of a process without Redis: none. */
export const NOTHING_SHARED: SharedMemory = { read: async () => null, replace: async () => true };
