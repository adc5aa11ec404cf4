import { spawnSync } from "node:child_process";

/** Finds a program on PATH and returns its path, or null. */
export function onPath(program: string): string | null {
  const found = spawnSync("sh", ["-c", `command -v ${program}`], { encoding: "utf8" });
  return found.status === 0 ? found.stdout.trim() : null;
}

/**
 * Installs packages with apt, as root or with passwordless sudo, after printing the command. Does nothing without apt
 * or these rights. Reports no failure, so the caller must check that the program exists.
 */
export function installDebianPackages(name: string, packages: readonly string[], say: (line: string) => void): void {
  if (onPath("apt-get") === null) return;
  const sudo = process.getuid?.() === 0 ? [] : ["sudo", "-n"];
  if (sudo.length > 0 && spawnSync("sudo", ["-n", "true"], { stdio: "ignore" }).status !== 0) return;
  // Waits up to 300 seconds if another installation holds apt's lock.
  const aptGet = [...sudo, "apt-get", "-o", "DPkg::Lock::Timeout=300"];
  const install = ["install", "-y", "--no-install-recommends", ...packages];
  say(`${name} is not installed. Installing it: ${[...sudo, "apt-get", ...install].join(" ")}`);
  const quiet = { stdio: "ignore", env: { ...process.env, DEBIAN_FRONTEND: "noninteractive" } } as const;
  for (const step of [["update"], install]) {
    const [program = "", ...args] = [...aptGet, ...step];
    spawnSync(program, args, quiet);
  }
}
