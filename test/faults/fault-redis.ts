import { readdirSync, rmSync, statSync, truncateSync } from "node:fs";
import { join } from "node:path";
import { Redis } from "ioredis";
import { type LocalRedis, redisUrl, startRedis } from "../../src/local/redis.ts";
import { until } from "../support/until.ts";
import { listProcesses, signal } from "./process-list.ts";

/** What a restart finds of what was written. `AppendOnlyTail` is what Redis promises with a sync every second. */
export type RedisLoss = "Nothing" | "AppendOnlyTail" | "Everything";

/** Loss that `appendfsync everysec` allows, in milliseconds. */
const TAIL_MS = 1_000;
const SAMPLE_MS = 50;

interface FileSize {
  atMs: number;
  file: string;
  bytes: number;
}

/** A Redis that can be killed and frozen, and that can come back without its last second or without anything. */
export class FaultRedis {
  readonly #server: LocalRedis;
  readonly #sampler: NodeJS.Timeout;
  #sizes: FileSize[] = [];
  #pid: number | null = null;

  constructor(directory: string, port: number) {
    this.#server = { directory, port };
    this.#sampler = setInterval(() => this.#sampleSize(), SAMPLE_MS);
    this.#sampler.unref();
  }

  get url(): string {
    return redisUrl(this.#server);
  }

  /**
   * Starts it on its data, or does nothing when it runs.
   * @throws Error when Redis came as a container, which has no process here to signal.
   */
  async start(): Promise<void> {
    if (this.#pid !== null) return;
    await startRedis(this.#server, () => undefined);
    this.#pid = await findPid(this.#server);
  }

  /** Kills it, as when its machine dies, and takes away what the next start shall not find. */
  async kill(loss: RedisLoss): Promise<void> {
    const pid = this.#pid;
    if (pid === null) return;
    const killedAtMs = Date.now();
    signal(pid, "SIGKILL");
    await until(() => !listProcesses().some((listed) => listed.pid === pid));
    this.#pid = null;
    if (loss === "AppendOnlyTail") this.#cutTail(killedAtMs - TAIL_MS);
    if (loss === "Everything") rmSync(this.#logDirectory, { recursive: true, force: true });
    this.#sizes = [];
  }

  freeze(): void {
    if (this.#pid !== null) signal(this.#pid, "SIGSTOP");
  }

  thaw(): void {
    if (this.#pid !== null) signal(this.#pid, "SIGCONT");
  }

  async close(): Promise<void> {
    clearInterval(this.#sampler);
    await this.kill("Nothing");
  }

  /**
   * A SIGKILL alone loses nothing, because the system still has what was written; the death of the machine does. So the file
   * gets back the length that it had at that moment.
   */
  #cutTail(backToMs: number): void {
    const file = this.#newestLog();
    const size = this.#sizes.findLast((sample) => sample.atMs <= backToMs && sample.file === file);
    if (file !== null && size !== undefined && statSync(file).size > size.bytes) truncateSync(file, size.bytes);
  }

  #sampleSize(): void {
    const file = this.#newestLog();
    if (this.#pid === null || file === null) return;
    const atMs = Date.now();
    this.#sizes.push({ atMs, file, bytes: statSync(file).size });
    this.#sizes = this.#sizes.filter((sample) => sample.atMs >= atMs - 2 * TAIL_MS);
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

  get #logDirectory(): string {
    return join(this.#server.directory, "appendonlydir");
  }
}

async function findPid(server: LocalRedis): Promise<number> {
  const client = new Redis(redisUrl(server), { lazyConnect: true });
  client.on("error", () => undefined);
  try {
    await client.connect();
    const pid = Number(/process_id:(\d+)/.exec(await client.info("server"))?.[1]);
    const ours = listProcesses().find((listed) => listed.pid === pid);
    if (!ours?.command.includes(String(server.port))) throw new Error("this needs redis-server on PATH");
    return pid;
  } finally {
    client.disconnect();
  }
}
