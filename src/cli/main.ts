import { CommanderError } from "commander";
import { buildVoucherctl } from "../local/voucherctl.ts";
import { EXIT, Interrupted } from "./exit-code.ts";
import { explain } from "./explain.ts";
import { paintError } from "./format.ts";

// The program that reads the output may stop early, as in `voucherctl audit list | head`.
process.stdout.on("error", (error: NodeJS.ErrnoException) => process.exit(error.code === "EPIPE" ? 0 : EXIT.fault));

try {
  await buildVoucherctl().parseAsync();
} catch (error) {
  if (error instanceof CommanderError) {
    // Commander has already printed its message.
    process.exitCode = error.exitCode === 0 ? 0 : EXIT.usage;
  } else {
    const { message, hint, exitCode } = explain(error);
    process.stderr.write(`${paintError("red", message)}\n${hint === undefined ? "" : `${hint}\n`}`);
    // Exits at once. Otherwise Node would first restore the default action of signals, and a late second Ctrl-C would
    // kill the process.
    if (error instanceof Interrupted) process.exit(exitCode);
    process.exitCode = exitCode;
  }
}
