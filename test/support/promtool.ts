import { spawnSync } from "node:child_process";
import { installDebianPackages, onPath } from "../../src/local/debian-packages.ts";

/** Whether Prometheus' own checker is there: on PATH, else from the distribution's package. Says so when it installs it or cannot. */
export function hasPromtool(say: (line: string) => void = console.log): boolean {
  if (onPath("promtool") === null) installDebianPackages("promtool", ["prometheus"], say);
  const found = onPath("promtool") !== null;
  if (!found) say("The files for Prometheus are not checked: there is no promtool on PATH, and none can be installed.");
  return found;
}

/** Runs it, with a text to read if it reads one; returns what it said. */
export function runPromtool(args: readonly string[], input = ""): { ok: boolean; output: string } {
  const { status, stdout, stderr } = spawnSync("promtool", args, { encoding: "utf8", input });
  return { ok: status === 0, output: `${stdout}${stderr}` };
}
