import { pino } from "pino";
import { readLogConfig } from "../../src/config.ts";
import { Deployment } from "../../src/db/deployment.ts";
import { openPool } from "../../src/db/pool.ts";
import { readLogSettings } from "../../src/services/log/log-settings.ts";
import { Sequencer } from "../../src/services/log/run-log.ts";

// Runs one pass of the sequencer after another, until it is killed. Its output says when a pass was refused.
const log = pino({ level: "silent" });
const config = readLogConfig(process.env);
const pool = openPool({
  databaseUrl: process.env.DATABASE_URL ?? "",
  ...{ max: 2, applicationName: "sequencer", log, deployment: new Deployment(log) },
});
pool.on("error", () => undefined);
const logSettings = await readLogSettings({ ...config, keyFile: config.keyFile ?? "" });
const sequencer = new Sequencer({ pool, logSettings, log });
for (let isReady = false; ; ) {
  const report = await sequencer.run().catch(() => null);
  if (report !== null && !isReady) isReady = process.stdout.write("ready\n");
  if (report !== null && report.refused !== null) process.stdout.write(`refused: ${report.refused}\n`);
}
