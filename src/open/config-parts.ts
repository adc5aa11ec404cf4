import { CORE_QUEUES } from "../core/queues.ts";
import type { ConfigParts } from "../platform/environment.ts";
import { WINGS } from "./wings.ts";

/** The parts of the configuration that the core and the optional features (wings) add. */
export const CONFIG_PARTS: ConfigParts = {
  queues: [...Object.values(CORE_QUEUES), ...WINGS.flatMap(({ queues }) => queues ?? [])],
  variables: WINGS.flatMap(({ variables }) => variables ?? []),
};
