import type { DepsOf } from "../platform/http/endpoint.ts";
import type { FindingsOfWing } from "../watch/facts.ts";
import { readTlogStatus } from "./read-log-status.ts";

/** Reads the report of the log's last pass. */
export async function readLogFindings(ctx: DepsOf<typeof readTlogStatus>): Promise<FindingsOfWing> {
  const status = await readTlogStatus(ctx);
  if (status === null) return {};
  const { origin, pass } = status;
  const { obstacle = null, claims = 0 } = pass?.report ?? {};
  const find = (what: string, isFault: boolean) => (isFault ? [{ what, subject: origin, page: ["log"] }] : []);
  return {
    VouchersLogStopped: find("The log can publish no checkpoint", obstacle === "witnesses"),
    VouchersLogRefused: find("The log is refused", obstacle !== null && obstacle !== "witnesses"),
    VouchersLogWitness: find("A witness contradicts the log", claims > 0),
  };
}
