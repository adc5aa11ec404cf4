import type { Ended } from "./child-process.ts";
import type { HostedCommand } from "./voucherctl.ts";

// Runs voucherctl commands one after another in this process, each with its own arguments, environment and output.
let runs = 0;

process.on("message", (command: HostedCommand) => {
  void run(command).then((ended) => process.send?.(ended));
});

async function run({ args, env }: HostedCommand): Promise<Ended> {
  process.argv.splice(2, Infinity, ...args);
  for (const name of Object.keys(process.env)) if (name !== "PATH") delete process.env[name];
  Object.assign(process.env, env);
  const stdout = collect(process.stdout);
  const stderr = collect(process.stderr);
  // A new query string makes Node load the module again, which runs the command. Other modules stay loaded.
  await import(`../../src/cli/main.ts?run=${++runs}`);
  for (const event of ["SIGINT", "SIGTERM", "exit"]) process.removeAllListeners(event);
  process.stdout.removeAllListeners("error");
  const exitCode = Number(process.exitCode ?? 0);
  process.exitCode = undefined;
  return { exitCode, stdout: stdout(), stderr: stderr() };
}

/** Captures the output of a stream. The returned function restores the stream and returns the output. */
function collect(stream: NodeJS.WriteStream): () => string {
  const write = stream.write;
  let written = "";
  stream.write = (text: string | Uint8Array, ...rest: unknown[]) => {
    written += typeof text === "string" ? text : Buffer.from(text).toString();
    const done = rest.at(-1);
    if (typeof done === "function") process.nextTick(done);
    return true;
  };
  return () => {
    stream.write = write;
    return written;
  };
}
