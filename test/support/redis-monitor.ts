import { Redis } from "ioredis";

/** What Redis is asked while a test runs. */
export interface RedisMonitor {
  /** How many commands named a key that begins so, up to this call, in whatever database. */
  count(keyPrefix: string): Promise<number>;
  close(): void;
}

/** Watches a Redis. */
export async function monitorRedis(redisUrl: string): Promise<RedisMonitor> {
  const redis = new Redis(redisUrl);
  const monitor = await redis.monitor();
  const commands: string[][] = [];
  monitor.on("monitor", (_time: string, command: string[]) => commands.push(command));
  let marks = 0;
  return {
    async count(keyPrefix) {
      // The monitor is told in the order of execution, so whatever came before the mark has been told before it.
      const mark = `monitor-mark-${++marks}`;
      const seen = new Promise<void>((resolve) => {
        const listen = (_time: string, [, argument]: string[]) => {
          if (argument !== mark) return;
          monitor.off("monitor", listen);
          resolve();
        };
        monitor.on("monitor", listen);
      });
      await redis.get(mark);
      await seen;
      return commands.filter((command) => command.some((argument) => argument.startsWith(keyPrefix))).length;
    },
    close() {
      monitor.disconnect();
      redis.disconnect();
    },
  };
}
