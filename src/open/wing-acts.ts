import { loadParts } from "./wings.ts";

/** The acts of all wings. */
export const WING_ACTS = (await loadParts("acts")).flat();
