import { z } from "zod";
import { ROLE_PASSWORDS, VARIABLES, type Variables } from "../../src/platform/environment.ts";

const namesIn = (table: Variables): string[] =>
  Object.values(table).flatMap((entry) => (entry instanceof z.ZodType ? (entry.meta()?.title ?? []) : namesIn(entry)));

/** The names of the variables of a process. */
export const VARIABLE_NAMES = namesIn(VARIABLES);
/** The names of all variables. */
export const KNOWN_NAMES = [...VARIABLE_NAMES, ...namesIn({ ...ROLE_PASSWORDS })];
