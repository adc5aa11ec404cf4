import { Tinypool } from "tinypool";
import { openAdminContext } from "../admin-context.ts";
import { openLog } from "../log.ts";
import { type ChainRange, type VerifyResult, verifyRange } from "../services/verify-chains.ts";

// A thread of verify-in-threads.ts. It is given the database's address and then one range after another.

const ctx = openAdminContext(Tinypool.workerData, openLog("fatal", "voucherctl"));

/** Verifies a range. */
export default function verify(range: ChainRange): Promise<VerifyResult> {
  return verifyRange(ctx, range);
}

/** Closes the thread's connections. */
export function close(): Promise<void> {
  return ctx.close();
}
