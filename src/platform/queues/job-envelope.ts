import { z } from "zod";

/** Fields of every job besides its data. */
export const jobEnvelope = z.object({
  /**
   * The server of the process that added the job (`DeploymentIdentity.serverId`). Workers that use another deployment
   * or database refuse the job.
   */
  origin: z.string(),
  /** The Redis channel on which a caller waits for the reply. */
  replyTo: z.string().optional(),
  /** The trace to which the job belongs (W3C Trace Context). An invalid value is ignored. */
  traceparent: z.string().optional().catch(undefined),
});

/** A job's result, as its worker sends it to the waiting caller. */
export const jobEnd = z.object({
  jobId: z.string(),
  /** What the job has returned, or why it failed. */
  outcome: z.union([z.object({ reply: z.unknown() }), z.object({ failure: z.string() })]),
  /** Time from adding the job to its start, by the clocks of both hosts. Milliseconds. */
  queuedMs: z.number(),
  /** Time from the job's start to its reply. Milliseconds. */
  workedMs: z.number(),
});
export type JobEnd = z.output<typeof jobEnd>;

/**
 * The failure of a job whose data the worker cannot read. Another release may have added the job. Release 0.1.0 uses
 * the same words.
 */
export const UNREADABLE_JOB = "the job's data is not what this queue carries";
