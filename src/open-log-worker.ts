import type { WorkerService } from "./open-worker-service.ts";
import { readLogSettings } from "./services/log/log-settings.ts";
import { Sequencer } from "./services/log/run-log.ts";

/** Opens the log's sequencer. Null without the log's key. @throws LogSettingsError when its key or its policy cannot be used. */
export async function openLogWorker(service: WorkerService) {
  const { transparencyLog } = service.config;
  const { keyFile } = transparencyLog;
  if (keyFile === null) return null;
  const logSettings = await readLogSettings({ ...transparencyLog, keyFile });
  return { ...service, sequencer: new Sequencer({ ...service, logSettings }) };
}
