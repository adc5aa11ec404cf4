import { execFileSync } from "node:child_process";
import {
  cpSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  statfsSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { Redis } from "ioredis";
import { type LocalRedis, redisUrl, startRedis } from "../../../src/local/redis.ts";
import { until } from "../../support/until.ts";
import { listProcesses, signal } from "./processes.ts";

/** The writes that a restart loses. `AppendOnlyTail` is the loss that Redis allows with one sync per second. */
export type RedisLoss = "Nothing" | "AppendOnlyTail" | "SinceKept" | "Everything";

/** Loss that `appendfsync everysec` allows, in milliseconds. */
const TAIL_MS = 1_000;
const SAMPLE_MS = 50;
/** How long samples of the file's size are kept: longer than any loss. Milliseconds. */
const KEEP_MS = 60_000;

/** A Redis server that tests can kill, freeze, and restart empty or without its last second of writes. */
export class FaultRedis {
  readonly #server: LocalRedis;
  readonly #logDirectory: string;
  readonly #keptDirectory: string;
  readonly #sampler: NodeJS.Timeout;
  readonly #filler: string;
  readonly #diskMb: number | null;
  #isMounted = false;
  #sizes: { atMs: number; file: string; bytes: number }[] = [];
  #pid: number | null = null;

  /** `diskMb` gives the server its own small disk, which only root can create. */
  constructor(directory: string, port: number, diskMb: number | null = null) {
    this.#server = { directory, port };
    this.#filler = join(directory, "filler");
    this.#diskMb = diskMb;
    this.#logDirectory = join(directory, "appendonlydir");
    this.#keptDirectory = join(directory, "kept");
    this.#sampler = setInterval(() => this.#sampleSize(), SAMPLE_MS).unref();
  }

  get url(): string {
    return redisUrl(this.#server);
  }

  /**
   * Starts the server on its data, unless it is running.
   * @throws Error if Redis runs in a container, where it has no process for signals.
   */
  async start(): Promise<void> {
    if (this.#pid !== null) return;
    this.#mount();
    await startRedis(this.#server, () => undefined);
    const info = await withClient(this.#server, (client) => client.info("server"));
    const pid = Number(/process_id:(\d+)/.exec(info)?.[1]);
    const ours = listProcesses().find((listed) => listed.pid === pid);
    if (!ours?.command.includes(String(this.#server.port))) throw new Error("this needs redis-server on PATH");
    this.#pid = pid;
  }

  /** Copies the server's files, so that `kill` can lose later writes. */
  keepFiles(): void {
    rmSync(this.#keptDirectory, { recursive: true, force: true });
    cpSync(this.#logDirectory, this.#keptDirectory, { recursive: true, preserveTimestamps: true });
  }

  /** Kills the server, like a crash of its machine, and removes the lost writes. */
  async kill(loss: RedisLoss): Promise<void> {
    const pid = this.#pid;
    if (pid === null) return;
    const keptUntilMs = Date.now() - TAIL_MS;
    this.#signal("SIGKILL");
    await until(() => !listProcesses().some((listed) => listed.pid === pid));
    this.#pid = null;
    if (loss === "AppendOnlyTail") this.#cutTail(keptUntilMs);
    if (loss === "Everything" || loss === "SinceKept") rmSync(this.#logDirectory, { recursive: true, force: true });
    if (loss === "SinceKept") renameSync(this.#keptDirectory, this.#logDirectory);
    this.#sizes = [];
  }

  freeze(): void {
    this.#signal("SIGSTOP");
  }

  thaw(): void {
    this.#signal("SIGCONT");
  }

  /** Makes this server a replica of another one. Resolves once they are in sync. */
  async follow(primary: FaultRedis): Promise<void> {
    // Makes Redis start the first copy at once, instead of waiting for more replicas.
    await withClient(primary.#server, (client) => client.config("SET", "repl-diskless-sync-delay", "0"));
    await withClient(this.#server, async (client) => {
      await client.replicaof("127.0.0.1", primary.#server.port);
      await until(async () => (await client.info("replication")).includes("master_link_status:up"));
    });
  }

  /** Makes this server a primary, as in a failover. */
  async promote(): Promise<void> {
    await withClient(this.#server, (client) => client.replicaof("NO", "ONE"));
  }

  /** Fills the server's own disk. */
  fillDisk(): void {
    const { bavail, bsize } = statfsSync(this.#server.directory);
    try {
      writeFileSync(this.#filler, Buffer.alloc(bavail * bsize));
    } catch (error) {
      // The server itself may have filled the disk meanwhile.
      if ((error as NodeJS.ErrnoException).code !== "ENOSPC") throw error;
    }
  }

  freeDisk(): void {
    rmSync(this.#filler, { force: true });
  }

  async close(): Promise<void> {
    clearInterval(this.#sampler);
    await this.kill("Nothing");
    if (this.#isMounted) execFileSync("umount", [this.#server.directory]);
  }

  #mount(): void {
    if (this.#diskMb === null || this.#isMounted) return;
    const { directory } = this.#server;
    mkdirSync(directory, { recursive: true });
    execFileSync("mount", ["-t", "tmpfs", "-o", `size=${this.#diskMb}m`, "tmpfs", directory]);
    this.#isMounted = true;
  }

  #signal(name: NodeJS.Signals): void {
    if (this.#pid !== null) signal(this.#pid, name);
  }

  /**
   * SIGKILL alone loses nothing, because the kernel keeps the writes. A crash of the machine would lose some, so this
   * cuts the file to its length at `keptUntilMs`.
   */
  #cutTail(keptUntilMs: number): void {
    const file = this.#newestLog();
    const size = this.#sizes.findLast((sample) => sample.atMs <= keptUntilMs && sample.file === file);
    if (file !== null && size !== undefined && statSync(file).size > size.bytes) truncateSync(file, size.bytes);
  }

  #sampleSize(): void {
    const file = this.#newestLog();
    const atMs = Date.now();
    if (this.#pid === null || file === null) return;
    this.#sizes.push({ atMs, file, bytes: statSync(file).size });
    this.#sizes = this.#sizes.filter((sample) => sample.atMs >= atMs - KEEP_MS);
  }

  #newestLog(): string | null {
    try {
      const names = readdirSync(this.#logDirectory).filter((name) => name.endsWith(".incr.aof"));
      const byNumber = (name: string) => Number(/\.(\d+)\.incr/.exec(name)?.[1]);
      const newest = names.sort((one, other) => byNumber(one) - byNumber(other)).at(-1);
      return newest === undefined ? null : join(this.#logDirectory, newest);
    } catch {
      return null;
    }
  }
}

async function withClient<T>(server: LocalRedis, work: (client: Redis) => Promise<T>): Promise<T> {
  const client = new Redis(redisUrl(server), { lazyConnect: true });
  client.on("error", () => undefined);
  try {
    await client.connect();
    return await work(client);
  } finally {
    client.disconnect();
  }
}
