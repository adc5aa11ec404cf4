import { once } from "node:events";
import { connect } from "node:net";
import { createInterface } from "node:readline";
import { Redis } from "ioredis";
import { until } from "./until.ts";

/** Records the commands that Redis receives. */
export interface RedisMonitor {
  /** Counts the commands so far with a key of this prefix, in any database. */
  count(keyPrefix: string): Promise<number>;
  close(): void;
}

/**
 * Monitors Redis on a plain socket, because ioredis's `monitor` throws when another connection sends a command while it starts.
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
      // The monitor reports commands in order, so all earlier commands come before the mark.
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
