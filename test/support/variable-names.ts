import { z } from "zod";
import { CONFIG_PARTS } from "../../src/open/config-parts.ts";
import { ROLE_PASSWORDS, type Variables, variablesOf } from "../../src/platform/environment.ts";

const namesIn = (table: Variables): string[] =>
  Object.values(table).flatMap((entry) => (entry instanceof z.ZodType ? (entry.meta()?.title ?? []) : namesIn(entry)));

/** The names of the variables of a process. */
export const VARIABLE_NAMES = namesIn(variablesOf(CONFIG_PARTS));
/** The names of all variables. */
export const KNOWN_NAMES = [...VARIABLE_NAMES, ...namesIn({ ...ROLE_PASSWORDS })];
