import { AppError } from "../domain/errors.ts";
import { explain } from "./explain.ts";
import { buildProgram } from "./program.ts";

try {
  await buildProgram().parseAsync();
} catch (error) {
  process.stderr.write(`${error instanceof AppError ? error.message : explain(error)}\n`);
  process.exitCode = 1;
}
