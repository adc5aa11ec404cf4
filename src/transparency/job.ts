import { z } from "zod";
import { defineQueue } from "../platform/queues/queue-settings.ts";
import { TLOG_QUEUE } from "./declared.ts";

/**
 * A job that asks for one pass of the log's sequencer. It is empty, because the sequencer reads its work from Postgres.
 */
const tlogJob = z.object({});

/** The results of one pass. */
const tlogReport = z.object({
  /** Number of leaves that this pass added to the tree. */
  placed: z.number(),
  /** Number of leaves in the tree. */
  size: z.number(),
  /** Number of leaves in the served checkpoint. */
  published: z.number(),
  /** Number of witnesses that cosigned in this pass. */
  cosigned: z.number(),
  /** The anchor files, each with the number of leaves in its checkpoint. Null if the file is missing. */
  anchors: z.array(z.object({ file: z.string(), size: z.number().nullable() })),
  /**
   * Number of witnesses that contradicted the log in the last request. They gave no proof, and the other witnesses met
   * the quorum.
   */
  claims: z.number(),
  /** Number of waiting batches that never get a position, because their ids are not from the database's sequence. */
  setAside: z.number(),
  /** Why the pass stopped before it served a checkpoint, for example an unusable anchor. Null if it did not. */
  refused: z.string().nullable(),
  /**
   * The kind of reason in `refused`: the database contradicts what was signed, too few witnesses answer, or an anchor
   * is unusable.
   */
  obstacle: z.enum(["contradiction", "witnesses", "anchor"]).nullable(),
  durationMs: z.number(),
});
export type TlogReport = z.output<typeof tlogReport>;

export const tlogQueue = defineQueue(TLOG_QUEUE, { data: tlogJob, reply: tlogReport });
