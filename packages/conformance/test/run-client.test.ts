import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { until } from "../../../test/support/until.ts";
import { runClient } from "../src/run-client.ts";

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "voucher-run-client-"));
});
afterEach(() => {
  for (const name of ["child", "shell"]) if (isAlive(name)) process.kill(pidOf(name), "SIGKILL");
  rmSync(directory, { recursive: true });
});

const RESULT = `echo '{"outcome":"refused"}'`;
/** Writes to files the process id of the child that was just started, and that of the shell. */
const noted = () => `echo $! > ${join(directory, "child")}; echo $$ > ${join(directory, "shell")}`;
const none = new AbortController().signal;

it("runClient returns the result that the client prints as its last line", async () => {
  expect(await runClient(`echo hello; ${RESULT}`, {}, none)).toMatchObject({ outcome: "refused" });
});

it.each([
  ["in the background", () => `sleep 1000 & ${noted()}; ${RESULT}`, false],
  ["when a signal ended the shell", () => `sleep 1000 & ${noted()}; kill -9 $$`, false],
  ["in a group of its own", () => `setsid sleep 1000 & ${noted()}; ${RESULT}`, true],
  ["in a group of its own when a signal ended the shell", () => `setsid sleep 1000 & ${noted()}; kill -9 $$`, true],
  ["in the foreground", () => `sleep 1000 & ${noted()}; wait`, false],
])("runClient ends at its limit and on abort, although a child holds the output: %s", async (_name, command, lives) => {
  // On a busy machine, the time limit may be reached before both process ids are written.
  await until(async () => {
    await expect(runClient(command(), {}, none, 250)).rejects.toThrow("The client did not end within 0.25 seconds.");
    return existsSync(join(directory, "shell")) && pidOf("child") > 0;
  });
  await until(() => !isAlive("shell") && (lives || !isAlive("child")));
  expect(isAlive("child")).toBe(lives);
  if (lives) process.kill(pidOf("child"), "SIGKILL");
  rmSync(join(directory, "shell"));

  const interrupted = new AbortController();
  const running = runClient(command(), {}, interrupted.signal, 600_000).catch((error) => error);
  await until(() => existsSync(join(directory, "shell")) && (command().endsWith("wait") || !isAlive("shell")));
  interrupted.abort(new Error("Interrupted."));
  expect(await running).toMatchObject({ message: "Interrupted." });
  await until(() => lives || !isAlive("child"));
});

const pidOf = (name: string) => Number(readFileSync(join(directory, name), "utf8"));

/** Whether the process whose id is in this file runs. */
function isAlive(name: string): boolean {
  if (!existsSync(join(directory, name)) || pidOf(name) === 0) return false;
  try {
    process.kill(pidOf(name), 0);
    return true;
  } catch {
    return false;
  }
}
