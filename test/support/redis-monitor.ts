import { once } from "node:events";
import { connect } from "node:net";
import { createInterface } from "node:readline";
import { Redis } from "ioredis";
import { until } from "./until.ts";

/** What Redis is asked while a test runs. */
export interface RedisMonitor {
  /** How many commands named a key that begins so, up to this call, in whatever database. */
  count(keyPrefix: string): Promise<number>;
  close(): void;
}

/**
 * Watches a Redis, on a socket of its own: ioredis's `monitor` takes what other connections ask in the moment in which it begins for
 * replies to itself, and throws.
 */
export async function monitorRedis(redisUrl: string): Promise<RedisMonitor> {
  const redis = new Redis(redisUrl);
  const { hostname, port } = new URL(redisUrl);
  const socket = connect(Number(port), hostname);
  const lines = createInterface({ input: socket });
  const commands: string[][] = [];
  // +1795335603.881700 [1 127.0.0.1:34438] "get" "key"
  lines.on("line", (line) => commands.push(Array.from(line.matchAll(/"((?:[^"\\]|\\.)*)"/g), ([, text = ""]) => text)));
  socket.write("MONITOR\r\n");
  await once(lines, "line");
  let marks = 0;
  return {
    async count(keyPrefix) {
      // The monitor is told in the order of execution, so whatever came before the mark has been told before it.
      const mark = `monitor-mark-${++marks}`;
      await redis.get(mark);
      await until(() => commands.some(([, argument]) => argument === mark));
      return commands.filter((command) => command.some((argument) => argument.startsWith(keyPrefix))).length;
    },
    close() {
      socket.destroy();
      redis.disconnect();
    },
  };
}
