import type { Config } from "../platform/config.ts";
import { TRACES_OFF, type Traces } from "../platform/traces/traces.ts";
import { each } from "./api-parts.ts";
import { type ApiCore, openCore } from "./open-core.ts";
import { WINGS } from "./wings.ts";

/**
 * Opens an API process, including what optional features (wings) open. Postgres and Redis need not be reachable yet.
 * The configuration must come from learnRedis.
 */
export function openApi(config: Config, traces: Traces = TRACES_OFF): ApiContext {
  const watched = { wings: WINGS, backlogs: each("backlog"), faultsOfWings: each("faults") };
  const core = openCore(config, traces, watched);
  return Object.assign({}, core, ...each("open").map((open) => open(core)));
}

/** The context of an API process. Its type does not show what optional features (wings) have opened. */
export type ApiContext = ApiCore;
