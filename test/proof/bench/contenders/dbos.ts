import { DBOS } from "@dbos-inc/dbos-sdk";
import { openBaseline } from "../baselines/open-baseline.ts";
import { type RedeemJob, redeemId, runRedeem, serveRedeems } from "./redeem-job.ts";

// Contender (f): DBOS Transact. A workflow for each reference has one step, the transaction. Each API process runs its
// own workflows; at its next start it continues those that a crash left.

const baseline = openBaseline();
const { work } = baseline;

const redeemWorkflow = DBOS.registerWorkflow(
  (job: RedeemJob) => DBOS.runStep(() => runRedeem(work, job), { name: "redeem", retriesAllowed: true }),
  { name: "redeem" },
);

// DBOS finds the workflows of this process by this name.
process.env.DBOS__VMID = `api-${process.env.PORT}`;
DBOS.setConfig({ name: "redeem", systemDatabaseUrl: work.config.databaseUrl, logLevel: "warn" });
await DBOS.launch();
work.use({ close: () => DBOS.shutdown() });

await serveRedeems(baseline, async (job) => {
  const handle = await DBOS.startWorkflow(redeemWorkflow, { workflowID: redeemId(job) })(job);
  return handle.getResult();
});
