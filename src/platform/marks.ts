/**
 * A random id that was committed to the table `database_marks`. It is deleted after 86 400 later marks, about a day.
 * Until then, only a database that has lost commits lacks it.
 */
export interface Mark {
  /** The row's number in the table. It rises with each mark. */
  readonly position: number;
  readonly id: string;
}

/** One run of a database server. Another start or timeline may mean another server with a copy of the files. */
export interface ServerStart {
  readonly deploymentId: string;
  /** A hex text of fixed length, so that timelines compare as texts. Every promotion makes it higher. */
  readonly timeline: string;
  readonly started: string;
  /** Where operators find the server. No decision depends on it. */
  readonly host: string;
}

/** What a process remembers of the deployment's database and of the server in use. Immutable. */
export interface Memory extends ServerStart {
  /** The newest mark that is certainly committed: its COMMIT or a later one has returned without a warning. */
  readonly newest: Mark | null;
  /** The newest mark that every promoted standby must have. */
  readonly lasting: Mark | null;
  /** The losses of data that operators accepted: all committed before the newest mark, and perhaps later ones. */
  readonly acceptedLosses: readonly string[];
}

/**
 * What a server reports, to compare with the {@link Memory} of a process: the ids of the server's marks at the two
 * remembered positions, its timeline, its oldest mark and the losses that operators have accepted.
 */
export interface Recollection {
  readonly timeline: string;
  readonly newestId: string | null;
  readonly lastingId: string | null;
  /** The position of the server's oldest mark. Null if it has no marks. */
  readonly oldestPosition: number | null;
  readonly acceptedLosses: readonly string[];
}

/**
 * The result of comparing a server with the memory of a process.
 * - `known`: the server has every commit that the process knows of.
 * - `promoted`: the server is a promoted standby that lacks the last marks, which no synchronous standby had confirmed.
 * - `accepted`: the server has lost marks, and an operator has accepted this since.
 * - `former`: the server was the primary before a standby was promoted.
 * - `setBack`: the server has lost marks, and no operator has accepted this.
 */
export type ServerVerdict = "known" | "promoted" | "accepted" | "former" | "setBack";

export function judgeServer(memory: Memory | null, found: Recollection): ServerVerdict {
  if (memory === null) return "known";
  // Servers delete old marks. So a remembered mark that is older than the server's oldest mark counts as present.
  const has = (mark: Mark | null, id: string | null) =>
    mark === null || mark.id === id || mark.position < (found.oldestPosition ?? 0);
  if (found.timeline >= memory.timeline && has(memory.newest, found.newestId)) return "known";
  if (found.timeline > memory.timeline && has(memory.lasting, found.lastingId)) return "promoted";
  if (found.acceptedLosses.some((id) => !memory.acceptedLosses.includes(id))) return "accepted";
  return found.timeline < memory.timeline ? "former" : "setBack";
}

/** Returns what a process remembers and shares after it has admitted a server. */
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

/** What a process reads from the server in use after it has confirmed a mark. */
export interface ServerReading {
  readonly timeline: string;
  readonly started: string;
  readonly newest: Mark;
  /** The newest mark that is old enough to exist on every promoted standby. */
  readonly older: Mark | null;
  /** Whether the COMMIT has waited for a synchronous standby. */
  readonly isReplicated: boolean;
  /** Read after the COMMIT. */
  readonly acceptedLosses: readonly string[];
}

/** The new memory after the remembered server has confirmed a mark. */
export function remember(memory: Memory, { newest, older, isReplicated, acceptedLosses }: ServerReading): Memory {
  const confirmed = isReplicated ? newest : older;
  const lasting = isNewer(confirmed, memory.lasting) ? confirmed : memory.lasting;
  return { ...memory, newest, lasting, acceptedLosses: union(memory.acceptedLosses, acceptedLosses) };
}

export function isNewer(mark: Mark | null, other: Mark | null | undefined): boolean {
  return (mark?.position ?? 0) > (other?.position ?? 0);
}

const union = (some: readonly string[], others: readonly string[]) => [...new Set([...some, ...others])];

/** What the processes of a deployment share: the last mark that they saw, and its server, which all of them use. */
export interface SharedText {
  /** Empty if nothing is shared. */
  readonly text: string;
  /** Null if nothing is shared, or if this release cannot read the text. */
  readonly memory: Memory | null;
}

/** If no new mark is shared for this long, another server may replace the server in use. Milliseconds. */
export const SERVER_GONE_MS = 4_000;
/**
 * A server that lacks the last marks may replace the server in use only after this time without a new mark. Longer than
 * {@link SERVER_GONE_MS}, so that a server with all marks comes first. Milliseconds.
 */
export const LACKING_SERVER_GONE_MS = 8_000;

/** Whether a process's memory describes this run of a server. */
export function isOf(memory: Memory | null, { timeline, started }: Pick<ServerStart, "timeline" | "started">): boolean {
  return memory?.timeline === timeline && memory.started === started;
}

/**
 * Whether a server may be used, given the shared state. It may if the shared state names it, or has not changed for
 * long enough. If nothing is shared, another process may be about to share, so a server that has marks waits too.
 * @param silentMs for how long this process has seen the same shared text.
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
 * Where a deployment's processes share their memory, outside its database. The memory may be lost, so an empty one
 * proves nothing.
 */
export interface SharedMemory {
  /** Returns null if the memory cannot be read. Takes at most some seconds. */
  read(deploymentId: string): Promise<SharedText | null>;
  /** Writes a memory as JSON. Returns false without writing if another process has written since `before` was read. */
  replace(memory: Memory, before: SharedText): Promise<boolean>;
}

/** The shared memory of a process without Redis: nothing is shared. */
export const NOTHING_SHARED: SharedMemory = { read: async () => null, replace: async () => true };
