import { chmodSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { lockFile } from "#tlog/durable-file.ts";
import { identify, isRunning } from "./process-identity.ts";

/** Maximum wait for another process to start or stop the servers. Milliseconds. */
const LOCK_TIMEOUT_MS = 120_000;

/** A process that uses the embedded servers of a directory, as recorded in a file named by the process id. */
interface User {
  /** Distinguishes the recorded process from a later process with the same id. */
  identity?: string;
  /** The process id of the `npm start` that this process has joined, and the ports that this process has reserved. */
  joined?: number;
  ports?: number[];
}

/** Runs `work` while no other process of this checkout starts or stops the servers. */
export async function lockUsers<T>(root: string, work: () => Promise<T>): Promise<T> {
  mkdirSync(root, { recursive: true });
  // Only the owner can list this folder. The embedded Postgres may run as another user, who must be able to pass
  // through the folder to its own files.
  chmodSync(root, 0o711);
  const unlock = await lockFile(join(root, "servers"), LOCK_TIMEOUT_MS);
  return work().finally(unlock);
}

/** Records that this process uses the embedded servers, and which `npm start` it has joined. */
export function addUser(root: string, user: Omit<User, "identity"> = {}): void {
  mkdirSync(join(root, "users"), { recursive: true });
  writeFileSync(fileOf(root, process.pid), JSON.stringify({ ...user, identity: identify(process.pid) ?? "" }));
}

export function removeUser(root: string): void {
  rmSync(fileOf(root, process.pid), { force: true });
}

/** The processes that use the embedded servers of a directory. */
export function findUsers(root: string): User[] {
  return listNames(join(root, "users")).flatMap((name) => {
    const user = readUser(fileOf(root, Number(name)));
    return isRunning(Number(name), user.identity) ? [user] : [];
  });
}

const fileOf = (root: string, pid: number) => join(root, "users", String(pid));

function listNames(directory: string): string[] {
  try {
    return readdirSync(directory);
  } catch {
    return [];
  }
}

/** Empty when the file was removed, or when an earlier release wrote it. */
function readUser(file: string): User {
  try {
    return Object(JSON.parse(readFileSync(file, "utf8")));
  } catch {
    return {};
  }
}
