import type { WingFaults } from "../watch/facts.ts";
import { readTlogStatus } from "./read-log-status.ts";

/** The faults of the log, from the report of its last pass. */
export const tlogFaults: WingFaults<"VouchersLogRefused" | "VouchersLogWitness" | "VouchersLogStopped"> = {
  severities: { VouchersLogRefused: "red", VouchersLogWitness: "amber", VouchersLogStopped: "amber" },
  async find(ctx) {
    const status = await readTlogStatus(ctx);
    if (status === null) return {};
    const { origin, pass } = status;
    const { obstacle = null, claims = 0 } = pass?.report ?? {};
    const found = (what: string, isFault: boolean) => (isFault ? [{ what, subject: origin, page: ["log"] }] : []);
    return {
      VouchersLogStopped: found("The log can publish no checkpoint", obstacle === "witnesses"),
      VouchersLogRefused: found("The log is refused", obstacle !== null && obstacle !== "witnesses"),
      VouchersLogWitness: found("A witness contradicts the log", claims > 0),
    };
  },
};
