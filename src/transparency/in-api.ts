import type { ConsolePart } from "../console/console-part.ts";
import type { WingBacklog } from "../core/metrics/open-metrics.ts";
import { CHAIN_PATH } from "../pages/mount-pages.ts";
import type { DepsOf } from "../platform/http/endpoint.ts";
import { LOG_FILES } from "./api/log-files.ts";
import { tlogPage } from "./console/log-page.ts";
import { findTlogProgress } from "./db/log-checkpoints.ts";
import { TLOG_METRICS } from "./declared.ts";
import { tlogFaults } from "./find-faults.ts";
import { readChainNotes } from "./pages/chain-notes.ts";
import { orderReceipt } from "./portal/order-receipt.ts";
import type { readTlogStatus } from "./read-log-status.ts";
import { eventProof } from "./routes/event-proof.ts";
import { eventReceipt } from "./routes/event-receipt.ts";
import { tlogRoutes } from "./routes/log.ts";
import { receiptByReference } from "./routes/receipt-by-reference.ts";
import { redemptionReceipt } from "./routes/redemption-receipt.ts";

const backlog: WingBacklog<Awaited<ReturnType<typeof findTlogProgress>>> = {
  name: "transparency",
  measure: findTlogProgress,
  record(metrics, progress) {
    if (progress === null) return;
    const { logSize, logLag } = TLOG_METRICS.of(metrics);
    logSize.with().set(progress.size);
    logLag.with().set(progress.lagMs / 1_000);
  },
};

const operatorPages: ConsolePart<DepsOf<typeof readTlogStatus>> = {
  sections: ["Log"],
  pages: { "/log": ["viewer", tlogPage] },
};

/** What the transparency log adds to the API: the log's files, receipts and proofs. */
export const api = {
  endpoints: [eventReceipt, redemptionReceipt, receiptByReference, eventProof],
  routes: tlogRoutes,
  described: {
    files: LOG_FILES,
    documents: `proof.md transparency-log.md runbook/log.md verify-receipt.mjs verify-receipt.py receipt-verifier.html
      log-vectors.json`.split(/\s+/),
  },
  pages: { pages: [{ path: `${CHAIN_PATH}/:sequence/proof`, render: null }], readChainNotes },
  backlog,
  faults: tlogFaults,
  operatorPages,
  portal: { order: orderReceipt },
};
