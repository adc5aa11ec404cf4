import { spawnSync } from "node:child_process";

/** Path of a program on PATH, or null. */
export function findProgram(program: string): string | null {
  const found = spawnSync("sh", ["-c", `command -v ${program}`], { encoding: "utf8" });
  return found.status === 0 ? found.stdout.trim() : null;
}

/**
 * Finds a program, installing the distribution's package that brings it, after saying so, where there is apt-get and the right to use
 * it. Null when there is none and none can be installed.
 */
export function findOrInstallProgram(program: string, packageName: string, say: (line: string) => void): string | null {
  const there = findProgram(program);
  if (there !== null) return there;
  if (findProgram("apt-get") === null) return null;
  const sudo = process.getuid?.() === 0 ? [] : ["sudo", "-n"];
  if (sudo.length > 0 && spawnSync("sudo", ["-n", "true"], { stdio: "ignore" }).status !== 0) return null;
  const install = [...sudo, "apt-get", "install", "-y", "--no-install-recommends", packageName];
  say(`${program} is not installed. Installing it: ${install.join(" ")}`);
  const quiet = { stdio: "ignore", env: { ...process.env, DEBIAN_FRONTEND: "noninteractive" } } as const;
  for (const [command = "", ...args] of [[...sudo, "apt-get", "update"], install]) spawnSync(command, args, quiet);
  return findProgram(program);
}
