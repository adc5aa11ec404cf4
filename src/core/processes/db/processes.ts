import {
  arrayOf,
  bigint,
  boolean,
  integer,
  orNull,
  type Row,
  real,
  text,
  timestamptz,
} from "../../../platform/db/columns.ts";
import type { Queryable } from "../../../platform/db/pool.ts";
import { Statements } from "../../../platform/db/statements.ts";

/** A process of the deployment. */
const PROCESS = {
  id: text,
  role: text,
  host: text,
  pid: integer,
  version: text,
  queues: arrayOf(text),
  since: timestamptz,
  seenAt: timestamptz,
  busy: real,
  /** Why the process cannot serve requests, as a sentence. */
  problem: orNull(text),
  canaryAt: orNull(timestamptz),
  isUp: boolean,
  /** The time since a worker last committed a canary (a test job) of this process. */
  canaryAgeMs: orNull(bigint),
};
export type ServiceProcess = Row<typeof PROCESS>;

/** A process that was not seen for this long is considered gone: it has missed two records. Milliseconds. */
const UP_MS = 25_000;

export const sql = new Statements(new URL("./processes.sql", import.meta.url));

export const recordProcess = sql.executeOne("record_process", {
  id: text,
  role: text,
  host: text,
  pid: integer,
  version: text,
  queues: arrayOf(text),
  busy: real,
  problem: orNull(text),
});
export const endProcess = sql.execute("end_process", { id: text });
export const removeUnseenProcesses = sql.execute("remove_unseen_processes");
/** Records the answers to canaries of these processes. Returns the processes whose rows were written. */
export const answerCanaries = sql.values("answer_canaries", { id: text }, { processId: arrayOf(text) });
const select = sql.rows("read_processes", PROCESS, { upMs: integer });

/** The processes that were seen in the last ten minutes, in order of role. */
export const readProcesses = (db: Queryable): Promise<ServiceProcess[]> => select(db, UP_MS);
