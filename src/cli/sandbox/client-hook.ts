import { spawn } from "node:child_process";
import { type ClientResult, type ClientStep, clientResult } from "../../contract/client-hook.ts";

/** Longest run of a client for one step. Milliseconds. */
const STEP_MAX_MS = 90_000;
/** Most text kept of each output stream of a client: its end. Characters. */
const OUTPUT_MAX = 64_000;

/** A fault of the client that ends a check. The message describes it. */
export class ClientFault extends Error {}

/**
 * Runs a partner's client for one step, through the shell.
 * @throws ClientFault when it fails, takes too long or prints no result; the signal's reason on abort.
 */
export async function runClient(command: string, step: ClientStep, signal: AbortSignal): Promise<ClientResult> {
  signal.throwIfAborted();
  const input = JSON.stringify(step);
  // A process group of its own, so that the shell's children end with it.
  const child = spawn(command, { shell: true, detached: true, env: { ...process.env, STEP: input } });
  let stdout = "";
  let stderr = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    stdout = (stdout + text).slice(-OUTPUT_MAX);
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr = (stderr + text).slice(-OUTPUT_MAX);
  });
  // A client that reads STEP may close its input.
  child.stdin.on("error", () => undefined).end(input);
  let timedOut = false;
  const kill = () => {
    if (child.pid !== undefined && child.exitCode === null) process.kill(-child.pid, "SIGKILL");
  };
  const timer = setTimeout(() => {
    timedOut = true;
    kill();
  }, STEP_MAX_MS);
  signal.addEventListener("abort", kill);
  const exitCode = await new Promise<number | null>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", resolve);
  }).finally(() => {
    clearTimeout(timer);
    signal.removeEventListener("abort", kill);
  });
  signal.throwIfAborted();
  if (timedOut) throw new ClientFault(`The client did not end within ${STEP_MAX_MS / 1_000} seconds.`);
  if (exitCode !== 0) {
    const last = stderr.trim().split("\n").at(-1) ?? "";
    throw new ClientFault(`The client ended with exit status ${exitCode}${last === "" ? "." : `: ${last}`}`);
  }
  const result = readResult(stdout);
  if (result === null) {
    throw new ClientFault('The last line of the client\'s output is not a result, such as {"outcome":"refused"}.');
  }
  return result;
}

/** Reads the result from the last line, so that a client may print more before it. */
function readResult(stdout: string): ClientResult | null {
  try {
    return clientResult.safeParse(JSON.parse(stdout.trim().split("\n").at(-1) ?? "")).data ?? null;
  } catch {
    return null;
  }
}
