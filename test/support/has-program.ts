import { installDebianPackages, onPath } from "../../src/local/debian-packages.ts";

/**
 * Whether a program is on PATH, after trying to install the distribution's package. Announces a failed installation.
 */
export function hasProgram(program: string, say: (line: string) => void = console.warn): boolean {
  if (onPath(program) === null) installDebianPackages(program, [program], say);
  const found = onPath(program) !== null;
  if (!found) say(`SKIPPED: ${program} is missing and cannot be installed; its tests are skipped.`);
  return found;
}
