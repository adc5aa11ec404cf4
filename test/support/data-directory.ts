import { chmodSync, mkdtempSync, statfsSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Linux keeps these files in memory. */
const IN_MEMORY = "/dev/shm";
/** More than the data of all servers of the tests. Bytes. */
const NEEDED = 4 * 2 ** 30;

/**
 * Creates a directory for the data of the tests' servers, in memory if there is room, because a busy disk can delay a
 * server for seconds. Data in memory survives the tests, which kill processes but not the machine.
 */
export function makeDataDirectory(prefix: string): string {
  const directory = mkdtempSync(join(hasRoomInMemory() ? IN_MEMORY : tmpdir(), prefix));
  // Postgres runs as another user when root runs the tests.
  chmodSync(directory, 0o755);
  return directory;
}

function hasRoomInMemory(): boolean {
  try {
    const { bavail, bsize } = statfsSync(IN_MEMORY);
    return bavail * bsize > NEEDED;
  } catch {
    return false;
  }
}
