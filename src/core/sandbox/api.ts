import { z } from "zod";
import { examples } from "../../platform/api/example.ts";
import { count, named } from "../../platform/api/fields.ts";
import { problem } from "../../platform/api/problems.ts";

/** Maximum number of seconds by which one call moves times: 400 days. `advance_sandbox` enforces it too. */
const ADVANCE_SECONDS_MAX = 34_560_000;

/** Maximum number of live reservations of a sandbox whose times move. `advance_sandbox` enforces it too. */
export const LIVE_RESERVATIONS_MAX = 10_000;

const SECONDS = problem("notWhole", { min: 1, max: ADVANCE_SECONDS_MAX });

export const advanceRequest = named("AdvanceSandboxRequest", {
  seconds: z
    .int({ error: (issue) => (issue.input === undefined ? problem("required") : SECONDS) })
    .min(1, SECONDS)
    .max(ADVANCE_SECONDS_MAX, SECONDS)
    .meta({ description: "How far to move the times back: at most 400 days.", examples: [900] }),
});

examples.add(advanceRequest, {
  reservation: { summary: "As long as a reservation lasts", value: { seconds: 900 } },
});

export const advanceResponse = named("SandboxAdvance", {
  advancedSeconds: count(1, "How far the times moved.", 900),
  reservationsEnded: count(0, "Reservations that were live before this call and have ended.", 1),
  vouchersExpired: count(0, "Active vouchers that were valid before this call and have expired.", 0),
});

export type AdvanceResponse = z.output<typeof advanceResponse>;

examples.add(advanceResponse, {
  advanced: {
    summary: "One reservation has ended",
    value: { advancedSeconds: 900, reservationsEnded: 1, vouchersExpired: 0 },
  },
});
