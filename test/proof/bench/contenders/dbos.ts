import { DBOS } from "@dbos-inc/dbos-sdk";
import {
  assertStillOwnsWorkflow,
  DBOSStepAlreadyRecordedError,
  migrateDataSourcePG,
  registerDataSource,
  replayRecordedStep,
  runTransaction,
} from "@dbos-inc/dbos-sdk/datasource";
import { inTransaction } from "../../../../src/platform/db/transaction.ts";
import { type RunTransaction, transact } from "../baselines/one-transaction.ts";
import { openBaseline } from "../baselines/open-baseline.ts";
import { type RedeemEnd, type RedeemJob, redeemId, runRedeem, serveRedeems } from "./redeem-job.ts";

// Contender (f): DBOS Transact. A workflow for each reference has one transaction step, which commits the redemption
// and DBOS's record of the step together. Each API process runs its own workflows, and continues them at its restart
// after a crash.

/** Size of the library's own connection pool. The pool for transactions has the same size. */
const POOL_MAX = 16;
/** A transaction step does not run again after a lost connection, so the workflow starts another step. */
const STEPS_MAX = 4;
/** Pause after the first failed step. Milliseconds. */
const PAUSE_MS = 500;

const baseline = openBaseline();
const { work } = baseline;
const { pool } = work;

// npm has no DBOS data source for node-postgres that fits version 5.3. This data source has the documented functions,
// on the connections that all contenders use.
const SOURCE = "redeem";
registerDataSource({
  name: SOURCE,
  initialize: () =>
    inTransaction(pool, (tx) => migrateDataSourcePG(async (statement) => (await tx.query(statement)).rows)),
  destroy: async () => undefined,
  deleteCheckpoints: (workflowId, fromStep, beforeCommit) =>
    inTransaction(pool, async (tx) => {
      await tx.query({
        name: "delete_steps",
        text: "DELETE FROM dbos.transaction_completion WHERE workflow_id = $1 AND function_num >= $2",
        values: [workflowId, fromStep],
      });
      await beforeCommit?.();
    }),
  invokeTransactionFunction: (_, target, run, ...args) => run.apply(target, args),
});

const inTransactionStep: RunTransaction = (ctx, read, redeem) =>
  runTransaction(
    async () => {
      const [workflowId, step] = [DBOS.workflowID as string, DBOS.stepID as number];
      const { rows } = await pool.query({
        name: "find_step",
        text: "SELECT output, error FROM dbos.transaction_completion WHERE workflow_id = $1 AND function_num = $2",
        values: [workflowId, step],
      });
      if (rows.length > 0) return replayRecordedStep(rows[0]);
      return transact(ctx, read, async (tx, state) => {
        const response = await redeem(tx, state);
        const { rowCount } = await tx.query({
          name: "record_step",
          text: `INSERT INTO dbos.transaction_completion (workflow_id, function_num, output) VALUES ($1, $2, $3)
                 ON CONFLICT (workflow_id, function_num) DO NOTHING`,
          values: [workflowId, step, JSON.stringify({ json: response })],
        });
        if (rowCount === 0) throw new DBOSStepAlreadyRecordedError(workflowId, step);
        await assertStillOwnsWorkflow(workflowId);
        return response;
      });
    },
    "redeem",
    { dsName: SOURCE },
  );

const redeemWorkflow = DBOS.registerWorkflow(
  async (job: RedeemJob): Promise<RedeemEnd> => {
    for (let step = 1; ; step++) {
      try {
        return await runRedeem(work, job, inTransactionStep);
      } catch (error) {
        if (step === STEPS_MAX) throw error;
        await DBOS.sleep(PAUSE_MS * 2 ** step);
      }
    }
  },
  { name: "redeem" },
);

// DBOS finds this process's workflows by this name.
process.env.DBOS__VMID = `api-${process.env.PORT}`;
DBOS.setConfig({
  name: "redeem",
  systemDatabaseUrl: work.config.databaseUrl,
  systemDatabasePoolSize: POOL_MAX,
  logLevel: "warn",
});
await DBOS.launch();
work.use({ close: () => DBOS.shutdown() });

await serveRedeems(baseline, async (job) => {
  const handle = await DBOS.startWorkflow(redeemWorkflow, { workflowID: redeemId(job) })(job);
  return handle.getResult();
});
