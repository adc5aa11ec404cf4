import { z } from "zod";

/** Hash tag and prefix of every queue key: a Redis Cluster keeps all of a queue in one slot. */
export const PREFIX = "{vouchers}";

/** A queue, what its jobs carry and how much it keeps. Every process takes these numbers from here. */
export interface QueueDefinition<Data> {
  name: string;
  /** Validates a job's data, which may come from an older release or from someone's dashboard. */
  data: z.ZodType<Data>;
  /** Largest job data, in bytes. */
  dataMaxBytes: number;
  /** Jobs that may wait for a worker: when there are more, new callers are turned away at once. */
  waitingMax: number;
  /** Whether a job that nobody waits for any more is taken back if no worker has started it. */
  takesBack: boolean;
  /** Finished jobs are kept for this long (seconds) and this many, for people who look and for callers whose reply was lost. */
  keep: { age: number; count?: number };
  keepFailed: { age: number; count: number };
  /** Fields of a job's data and of its reply that operators may see. What is not named here may be a caller's own words or secret. */
  shown: { data: readonly (keyof Data & string)[]; reply: readonly string[] };
}

/** What goes with a job besides its data. A trace that cannot be read fails no job. */
export const jobEnvelope = z.object({
  /** Where its reply is awaited, if it is. */
  replyTo: z.string().optional(),
  /** The trace that it is part of, if there is one (W3C Trace Context). */
  traceparent: z.string().optional().catch(undefined),
});

/** One attempt to burn one voucher. Names the voucher by id, never by code, and carries a token's hash, never the token. */
export const redeemQueue: QueueDefinition<RedeemJob> = {
  name: "redeem",
  data: z.object({
    voucherId: z.string(),
    organizationId: z.string(),
    keyId: z.string(),
    externalRef: z.string(),
    ticket: z.string().nullable(),
    tokenHash: z.string().nullable(),
    note: z.string().nullable(),
    deadlineMs: z.number(),
  }),
  dataMaxBytes: 8_192,
  // Its caller must know that nothing will be burnt later.
  takesBack: true,
  // What two workers burn in the ten seconds that a caller waits, at 1 000 jobs/s: who comes later would wait in vain.
  waitingMax: 10_000,
  // 225 MB at 5 000 jobs a second. Counting them besides would cost Redis a tenth of what a job costs it.
  keep: { age: 30 },
  keepFailed: { age: 86_400, count: 5_000 },
  shown: { data: ["voucherId", "organizationId", "keyId", "deadlineMs"], reply: ["kind", "code", "redeemedAtMs"] },
};

export interface RedeemJob {
  voucherId: string;
  organizationId: string;
  keyId: string;
  externalRef: string;
  ticket: string | null;
  tokenHash: string | null;
  note: string | null;
  /** Database time in milliseconds. */
  deadlineMs: number;
}

const refusalCodes = [
  "voucher_used",
  "voucher_voided",
  "voucher_expired",
  "reservation_ended",
  "token_mismatch",
  "voucher_reserved",
] as const;

/** How a redeem attempt ended. Refusals are values; a job fails only by accident. */
export const redeemReply = z.discriminatedUnion("kind", [
  /** This attempt burnt the voucher. */
  z.object({ kind: z.literal("burnt"), redeemCode: z.string(), redeemedAtMs: z.number() }),
  /** The reference stands for a burn already; read it. */
  z.object({ kind: z.literal("confirmed") }),
  z.object({ kind: z.literal("refused"), code: z.enum(refusalCodes) }),
  /** The deadline had passed; nothing was burnt by this attempt. */
  z.object({ kind: z.literal("late") }),
  /** The voucher's row stayed locked by someone else; nothing was burnt by this attempt. */
  z.object({ kind: z.literal("busy") }),
]);
export type RedeemReply = z.infer<typeof redeemReply>;

/** A request to seal the Pending events of one voucher. */
export const sealQueue: QueueDefinition<SealJob> = {
  name: "seal",
  data: z.object({ voucherId: z.string() }),
  dataMaxBytes: 1_024,
  // Sealing late is as good.
  takesBack: false,
  waitingMax: 10_000,
  keep: { age: 30 },
  keepFailed: { age: 86_400, count: 5_000 },
  shown: { data: ["voucherId"], reply: ["sealed"] },
};

export interface SealJob {
  voucherId: string;
}

/** How a seal job ended: how many events it sealed; none when another sealer was first. */
export const sealReply = z.object({ sealed: z.number() });
export type SealReply = z.infer<typeof sealReply>;

/** The sweeper's regular pass. Its jobs carry nothing: what there is to do is in Postgres. */
export const sweepQueue: QueueDefinition<Record<string, never>> = {
  name: "sweep",
  data: z.object({}).strict(),
  dataMaxBytes: 64,
  takesBack: false,
  waitingMax: 1,
  keep: { age: 3_600, count: 1_000 },
  keepFailed: { age: 86_400, count: 1_000 },
  shown: {
    data: [],
    reply: [
      "holdsExpired",
      "leasesRestored",
      "leasesRemoved",
      "expiriesRecorded",
      "contractsEnded",
      "sealsRequested",
      "chainsChecked",
      "chainsBroken",
      "failures",
      "durationMs",
    ] satisfies (keyof SweepReport)[],
  },
};

/** What a pass of the sweeper did. */
export interface SweepReport {
  /** Holds past their time whose end was recorded. */
  holdsExpired: number;
  /** Leases that were missing behind a live hold. */
  leasesRestored: number;
  /** Leases without a live hold that were removed. */
  leasesRemoved: number;
  /** Vouchers past their `validUntil` whose history says so now. */
  expiriesRecorded: number;
  /** Referrer contracts past their end whose end was recorded. */
  contractsEnded: number;
  /** Vouchers with an event that waits for its seal, for which a seal job was added. */
  sealsRequested: number;
  /** Chains that were verified, and how many of them are broken. */
  chainsChecked: number;
  chainsBroken: number;
  /** Tasks that failed, with why; the next pass tries them again. */
  failures: Record<string, string>;
  durationMs: number;
}
