import { z } from "zod";

/** Fields of every job besides its data. */
export const jobEnvelope = z.object({
  /**
   * The server of the process that added the job (`DeploymentIdentity.serverId`). Workers of another deployment or
   * database reject the job.
   */
  origin: z.string(),
  /** The Redis channel on which a caller waits for the reply. */
  replyTo: z.string().optional(),
  /** The trace that the job is part of (W3C Trace Context). An invalid value is ignored. */
  traceparent: z.string().optional().catch(undefined),
});

/** A job's result, as its worker sends it to the waiting caller. */
export const jobEnd = z.object({
  jobId: z.string(),
  /** What the job returned, or why it failed. */
  outcome: z.union([z.object({ reply: z.unknown() }), z.object({ failure: z.string() })]),
  /** From adding the job to its start, by the clocks of both hosts. Milliseconds. */
  queuedMs: z.number(),
  /** From the job's start to its reply. Milliseconds. */
  workedMs: z.number(),
});
export type JobEnd = z.output<typeof jobEnd>;

/**
 * Why a worker refuses a job whose data it cannot read, perhaps because another release has added it. Release 0.1.0
 * uses these words, too.
 */
export const UNREADABLE_JOB = "the job's data is not what this queue carries";
