import { spawn } from "node:child_process";
import { parseObject } from "./service.ts";

/** One step that a check demands of the client: JSON on standard input and in the environment variable STEP. */
export interface ClientStep {
  /**
   * checkout: redeem the voucher for the order. reserve: reserve it until the customer has paid. pay: the customer has
   * paid, so redeem it. cancel: the customer has left. basket: reserve every voucher of the order, then redeem each.
   */
  step: "checkout" | "reserve" | "pay" | "cancel" | "basket";
  /** The address for every call of this step. */
  api: string;
  key: string;
  /** The shop's order number. A step with the order and code of an earlier step repeats that step. */
  order: string;
  /** The codes that the customer has entered. A basket has several. Otherwise there is one, which is also in `code`. */
  codes: readonly string[];
  code: string | null;
  /** A `state` that the client returned earlier for this order, or null. */
  state: unknown;
}

/**
 * redeemed, reserved, released: the step is done. refused: the voucher cannot be used, or no voucher of a basket was
 * redeemed. partly: some vouchers of a basket were redeemed. unknown: there is no final response yet, and the step is
 * run again. unsupported: the client does not have this step.
 */
const OUTCOMES = [
  "redeemed",
  "partly",
  "reserved",
  "released",
  "refused",
  "unknown",
  "unsupported",
  "issued",
  "voided",
  "suspended",
  "resumed",
  "extended",
] as const;

/** The last line that the client prints on standard output, as JSON. */
export interface ClientResult {
  outcome: (typeof OUTCOMES)[number];
  /** For the outcome redeemed: the code for the customer. */
  redeemCode?: string;
  /** For a basket: one code per voucher, in order. Null for a voucher that was not redeemed. */
  redeemCodes?: readonly unknown[];
  /** For the outcome issued: the codes, in order of serials. */
  codes?: readonly unknown[];
  /** Passed to the next step of the order. */
  state?: unknown;
}

/** Maximum duration of one step of a client. Milliseconds. */
const STEP_MAX_MS = 90_000;
/**
 * Maximum length of the text that is kept of each output stream of a client. The end of the stream is kept. Characters.
 */
const OUTPUT_MAX = 64_000;

/** A fault of the client that ends a check. The message describes the fault. */
export class ClientFault extends Error {}

/**
 * Runs a partner's client for one step, through the shell, for at most `maxMs`.
 * @throws ClientFault when the client fails, takes too long or prints no result; the signal's reason on abort.
 */
export async function runClient(
  command: string,
  step: object,
  signal: AbortSignal,
  maxMs = STEP_MAX_MS,
): Promise<ClientResult> {
  signal.throwIfAborted();
  const input = JSON.stringify(step);
  // The client has its own process group, so that the shell's children can be ended together with it.
  const child = spawn(command, { shell: true, detached: true, env: { ...process.env, STEP: input } });
  let stdout = "";
  let stderr = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    stdout = (stdout + text).slice(-OUTPUT_MAX);
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr = (stderr + text).slice(-OUTPUT_MAX);
  });
  // A client that reads the variable STEP may close its standard input.
  child.stdin.on("error", () => undefined).end(input);
  let timedOut = false;
  const kill = () => {
    killGroup(child.pid);
    // Closes the streams too, which a child outside the shell's process group may keep open.
    child.stdout.destroy();
    child.stderr.destroy();
  };
  const timer = setTimeout(() => {
    timedOut = true;
    kill();
  }, maxMs);
  signal.addEventListener("abort", kill);
  const exitCode = await new Promise<number | null>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", resolve);
  }).finally(() => {
    clearTimeout(timer);
    signal.removeEventListener("abort", kill);
  });
  signal.throwIfAborted();
  if (timedOut) throw new ClientFault(`The client did not end within ${maxMs / 1_000} seconds.`);
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

/** Ends a process group, even if its first process has already ended. */
function killGroup(pid: number | undefined): void {
  try {
    if (pid !== undefined) process.kill(-pid, "SIGKILL");
  } catch (error) {
    // Ignores two errors: the group has ended, or its id now belongs to a group of another user.
    if (!["ESRCH", "EPERM"].includes((error as NodeJS.ErrnoException).code ?? "")) throw error;
  }
}

/** Reads the result from the last line. A client may print other lines before it. */
function readResult(stdout: string): ClientResult | null {
  const { outcome, redeemCode, redeemCodes, codes, state } = parseObject(stdout.trim().split("\n").at(-1) ?? "");
  const known = OUTCOMES.find((name) => name === outcome);
  if (known === undefined || !["string", "undefined"].includes(typeof redeemCode)) return null;
  return {
    outcome: known,
    ...(typeof redeemCode === "string" && { redeemCode }),
    ...(Array.isArray(redeemCodes) && { redeemCodes }),
    ...(Array.isArray(codes) && { codes }),
    state,
  };
}
