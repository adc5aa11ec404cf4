import { z } from "zod";
import { defineQueue } from "../platform/queues/queue-settings.ts";
import { TLOG_QUEUE } from "./declared.ts";

/** One pass of the log's sequencer. The sequencer reads its work from Postgres. */
const tlogJob = z.object({});

/** The results of one pass. */
const tlogReport = z.object({
  /** Leaves that this pass added to the tree. */
  placed: z.number(),
  /** Number of leaves in the tree. */
  size: z.number(),
  /** Number of leaves in the served checkpoint. */
  published: z.number(),
  /** Witnesses that cosigned in this pass. */
  cosigned: z.number(),
  /** The anchor files, each with the number of leaves in its checkpoint; null for a missing file. */
  anchors: z.array(z.object({ file: z.string(), size: z.number().nullable() })),
  /** Witnesses that contradicted the log without a proof in the last request, while the others met the quorum. */
  claims: z.number(),
  /** Waiting batches that never get a position, because the sequence has not drawn their ids. */
  setAside: z.number(),
  /**
   * The reason why the pass stopped before it served a checkpoint, such as an anchor that contradicts the database.
   * Null if it did not stop.
   */
  refused: z.string().nullable(),
  /** What stopped it: the database contradicts what was signed, too few witnesses answer, or an anchor is unusable. */
  obstacle: z.enum(["contradiction", "witnesses", "anchor"]).nullable(),
  durationMs: z.number(),
});
export type TlogReport = z.output<typeof tlogReport>;

export const tlogQueue = defineQueue(TLOG_QUEUE, { data: tlogJob, reply: tlogReport });
