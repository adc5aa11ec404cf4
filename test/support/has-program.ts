import { installDebianPackages, onPath } from "../../src/local/debian-packages.ts";

/**
 * Whether a program that readers of the documents have is here; where it is missing, it is installed like other things that tests
 * need, and where that is not possible, it is said.
 */
export function hasProgram(program: string, say: (line: string) => void = console.warn): boolean {
  if (onPath(program) === null) installDebianPackages(program, [program], say);
  const found = onPath(program) !== null;
  if (!found) say(`SKIPPED: ${program} is not installed and cannot be; what needs it is not tested.`);
  return found;
}
