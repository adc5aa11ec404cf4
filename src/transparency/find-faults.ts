import type { DepsOf } from "../platform/http/endpoint.ts";
import type { Finders } from "../watch/facts.ts";
import { readTlogStatus } from "./read-log-status.ts";

/** Reads the report of the log's last pass. */
export async function readLogFinders(ctx: DepsOf<typeof readTlogStatus>): Promise<Finders> {
  const status = await readTlogStatus(ctx);
  if (status === null) return {};
  const { origin, pass, published } = status;
  const { obstacle = null, claims = 0, setAside = 0 } = pass?.report ?? {};
  const lagMs = published?.lagMs ?? 0;
  const find = (what: string, isFault: boolean) => (isFault ? [{ what, subject: origin, page: ["log"] }] : []);
  return {
    VouchersLogStopped: () => find("The log can publish no checkpoint", obstacle === "witnesses"),
    VouchersLogRefused: () => find("The log is refused", obstacle !== null && obstacle !== "witnesses"),
    VouchersLogWitness: () => find("A witness contradicts the log", claims > 0),
    VouchersLogSetAside: () => find("Leaf batches are set aside", setAside > 0),
    VouchersLogLag: (secondsMax) => find("The log lags", lagMs > secondsMax * 1_000),
  };
}
