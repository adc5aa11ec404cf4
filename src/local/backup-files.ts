import { execFile, spawnSync } from "node:child_process";
import { parseArgs, promisify } from "node:util";
import { onPath } from "./debian-packages.ts";

const run = promisify(execFile);

/** Tells the user that another process of this folder must end first, or that the arguments are wrong. */
export class Refused extends Error {
  readonly exitCode: number;

  constructor(message: string, exitCode = 1) {
    super(message);
    this.exitCode = exitCode;
  }
}

/** Reads the only argument, FILE, of `npm run backup` and `npm run restore`. @throws Refused with `usage` otherwise. */
export function readFileArgument(usage: string): string {
  try {
    const { values, positionals } = parseArgs({
      allowPositionals: true,
      options: { help: { type: "boolean", short: "h" } },
    });
    const [file, ...others] = positionals;
    if (values.help) {
      console.log(usage);
      process.exit(0);
    }
    if (file !== undefined && others.length === 0) return file;
  } catch {
    // An unknown option is refused below.
  }
  throw new Refused(usage, 2);
}

/** Prints the error that ended a command, and ends the process with its exit status. */
export function fail(error: unknown): never {
  console.error(error instanceof Error ? error.message : error);
  process.exit(error instanceof Refused ? error.exitCode : 1);
}

/**
 * Runs tar. Only the owner may read the files that it writes. A file that changes while tar reads it is not an error,
 * because its WAL is in the backup.
 */
export async function runTar(args: readonly string[]): Promise<string> {
  if (onPath("tar") === null) throw new Refused("There is no program tar.");
  const umask = process.umask(0o077);
  try {
    const running = run("tar", [...args], { maxBuffer: 64 * 1024 * 1024, env: { ...process.env, LC_ALL: "C" } });
    return (await running).stdout;
  } catch (error) {
    // GNU tar ends with status 1 for files that changed or were removed, and with 2 for real errors.
    if ((error as { code?: unknown }).code === 1 && isGnuTar()) return "";
    throw new Refused(`tar failed: ${String((error as { stderr?: string }).stderr ?? error).trim()}`);
  } finally {
    process.umask(umask);
  }
}

function isGnuTar(): boolean {
  return spawnSync("tar", ["--version"], { encoding: "utf8" }).stdout.includes("GNU tar");
}
