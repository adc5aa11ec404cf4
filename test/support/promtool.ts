import { spawnSync } from "node:child_process";
import { installDebianPackages, onPath } from "../../src/local/debian-packages.ts";

/** Whether promtool is on PATH, after trying to install the package. Announces the installation. */
export function hasPromtool(say: (line: string) => void = console.log): boolean {
  if (onPath("promtool") === null) installDebianPackages("promtool", ["prometheus"], say);
  const found = onPath("promtool") !== null;
  if (!found) say("The Prometheus files are not checked: promtool is missing and cannot be installed.");
  return found;
}

export function runPromtool(args: readonly string[], input = ""): { ok: boolean; output: string } {
  const { status, stdout, stderr } = spawnSync("promtool", args, { encoding: "utf8", input });
  return { ok: status === 0, output: `${stdout}${stderr}` };
}
