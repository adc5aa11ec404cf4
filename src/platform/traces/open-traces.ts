import type { Logger } from "pino";
import type { Config } from "../config.ts";
import { TRACES_OFF, type Traces } from "./traces.ts";

/** Opens the traces of a process. Loads OpenTelemetry only when traces are on. */
export async function openTraces(settings: Config["traces"], role: string, log: Logger): Promise<Traces> {
  if (!settings.on) return TRACES_OFF;
  const { startOpenTelemetry } = await import("./open-telemetry.ts");
  return startOpenTelemetry(settings.serviceNamed ? undefined : `voucher-${role}`, log);
}
