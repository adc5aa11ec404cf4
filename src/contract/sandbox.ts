import { z } from "zod";
import { examples } from "./example.ts";
import { count } from "./fields.ts";

/** The field that marks every response about a sandbox organization. */
export const sandbox = z.literal(true).optional().meta({
  description: "Present only for a sandbox organization: its vouchers are for tests and have no value.",
});

/** The field as part of a response; nothing for a live organization. */
export function markSandbox(isSandbox: boolean): { sandbox?: true } {
  return isSandbox ? { sandbox: true } : {};
}

/** The most seconds that one call can move the times: 400 days. The database function `advance_sandbox` has the same bound. */
export const ADVANCE_SECONDS_MAX = 34_560_000;

const SECONDS = `must be a whole number from 1 to ${ADVANCE_SECONDS_MAX}`;

export const advanceRequest = z
  .object({
    seconds: z
      .int({ error: (issue) => (issue.input === undefined ? "is required" : SECONDS) })
      .min(1, SECONDS)
      .max(ADVANCE_SECONDS_MAX, SECONDS)
      .meta({ description: "How far to move the times back: at most 400 days.", examples: [900] }),
  })
  .meta({ id: "AdvanceSandboxRequest" });

examples.add(advanceRequest, {
  reservation: { summary: "As long as a reservation lasts", value: { seconds: 900 } },
});

export const advanceResponse = z
  .object({
    advancedSeconds: count(1, "How far the times moved.", 900),
    reservationsEnded: count(0, "Reservations that were live before this call and have ended.", 1),
    vouchersExpired: count(0, "Active vouchers that were valid before this call and have expired.", 0),
  })
  .meta({ id: "SandboxAdvance" });

export type AdvanceResponse = z.output<typeof advanceResponse>;

examples.add(advanceResponse, {
  advanced: {
    summary: "One reservation has ended",
    value: { advancedSeconds: 900, reservationsEnded: 1, vouchersExpired: 0 },
  },
});
