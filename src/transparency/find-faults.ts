import type { WingFaults } from "../watch/facts.ts";
import { readTlogStatus } from "./read-log-status.ts";

/** The faults of the log, from the report of the sequencer's last pass. */
export const tlogFaults: WingFaults<"VouchersLogRefused" | "VouchersLogWitness"> = {
  severities: { VouchersLogRefused: "red", VouchersLogWitness: "amber" },
  async find(ctx) {
    const status = await readTlogStatus(ctx);
    if (status === null) return {};
    const { origin, pass } = status;
    const { obstacle = null, claims = 0 } = pass?.report ?? {};
    // Both faults have the same remedy: ask the operators of the witnesses.
    const ofWitnesses = [
      ...(obstacle === "witnesses" ? ["Too few witnesses answer, so the log can publish no checkpoint"] : []),
      ...(claims > 0 ? ["A witness contradicts the log"] : []),
    ];
    const found = (what: string, isFault: boolean) => (isFault ? [{ what, subject: origin, page: ["log"] }] : []);
    return {
      VouchersLogRefused: found("The log is refused", obstacle !== null && obstacle !== "witnesses"),
      VouchersLogWitness: found(ofWitnesses.join(". "), ofWitnesses.length > 0),
    };
  },
};
