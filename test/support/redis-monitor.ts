import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { createInterface } from "node:readline";
import { mastersOf } from "../../src/platform/redis/connections.ts";
import { connectRedis } from "./servers.ts";
import { until } from "./until.ts";

/** Records the commands that Redis, or each master of a cluster, receives. */
export interface RedisMonitor {
  /** Counts the commands so far with a key of this prefix, in the URL's database. Other files use other databases. */
  count(keyPrefix: string): Promise<number>;
  close(): void;
}

/**
 * Calls `onLine` with each command that a server receives, until the returned socket is destroyed. This is a plain
 * socket, because ioredis's `monitor` throws if another connection sends a command while it starts.
 */
export async function watchCommands(
  server: { host: string; port: number; password?: string | undefined },
  onLine: (line: string) => void,
): Promise<Socket> {
  const socket = connect(server.port, server.host);
  const lines = createInterface({ input: socket });
  for (const command of [...(server.password ? [`AUTH ${server.password}`] : []), "MONITOR"]) {
    socket.write(`${command}\r\n`);
    const [reply] = await once(lines, "line");
    if (reply !== "+OK") throw new Error(`Redis refuses ${command.split(" ")[0]}: ${reply}`);
  }
  lines.on("line", onLine);
  return socket;
}

/** Monitors Redis, or all masters of a cluster. */
export async function monitorRedis(redisUrl: string): Promise<RedisMonitor> {
  const redis = await connectRedis(redisUrl);
  const masters = mastersOf(redis);
  const commands: string[][] = [];
  const sockets: Socket[] = [];
  for (const { options } of masters) {
    const { host = "", port = 0, db = 0, password } = options;
    // +1795335603.881700 [1 127.0.0.1:34438] "get" "key"
    const record = (line: string) => {
      if (!line.slice(0, 40).includes(`[${db} `)) return;
      commands.push(Array.from(line.matchAll(/"((?:[^"\\]|\\.)*)"/g), ([, text = ""]) => text));
    };
    sockets.push(await watchCommands({ host, port, password }, record));
  }
  let marks = 0;
  return {
    async count(keyPrefix) {
      // The monitor reports commands in order. Once it reports these echoes, it has reported all earlier commands.
      const mark = `monitor-mark-${++marks}`;
      await Promise.all(masters.map((master) => master.echo(mark)));
      await until(() => commands.filter(([, argument]) => argument === mark).length === masters.length);
      return commands.filter((command) => command.some((argument) => argument.startsWith(keyPrefix))).length;
    },
    close() {
      for (const socket of sockets) socket.destroy();
      redis.disconnect();
    },
  };
}
