import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { expect } from "vitest";
import { type Ended, runNode } from "./child-process.ts";
import type { TestServers } from "./servers.ts";

/** A command that the shared process runs, with its environment variables. */
export interface HostedCommand {
  args: readonly string[];
  env: Record<string, string>;
}

/** Runs voucherctl on the servers of a test file. */
export interface Voucherctl {
  /** Runs a command to its end. */
  run(args: readonly string[], env?: Record<string, string>): Promise<Ended>;
  /** Runs a command with --json and returns the object that it prints. Fails unless the command succeeds and prints nothing else. */
  // biome-ignore lint/suspicious/noExplicitAny: each command prints an object of its own shape.
  json(...args: string[]): Promise<any>;
  close(): void;
}

const HOST = fileURLToPath(new URL("./voucherctl-host.ts", import.meta.url));

/**
 * Runs voucherctl commands. The first command with each noun and verb gets a process of its own, as for operators. Later ones share a
 * process, because starting hundreds of processes takes longer than their work.
 */
export function openVoucherctl(servers: Pick<TestServers, "adminUrl" | "redisUrl">): Voucherctl {
  const defaultEnv = {
    DATABASE_URL: servers.adminUrl,
    REDIS_URL: servers.redisUrl,
    WEBHOOK_SECRET: "test-webhook-secret-of-32-characters",
  };
  const started = new Set<string>();
  let host: ChildProcess | null = null;
  let previous: Promise<unknown> = Promise.resolve();

  const runHosted = async (command: HostedCommand): Promise<Ended> => {
    host ??= fork(HOST, { stdio: ["ignore", "ignore", "inherit", "ipc"] });
    const settled = new AbortController();
    const answered = once(host, "message", { signal: settled.signal });
    const exited = once(host, "exit", { signal: settled.signal }).then(([exitCode]): never => {
      throw new Error(`the process that runs commands ended with ${exitCode} at ${command.args.join(" ")}`);
    });
    host.send(command);
    try {
      const [ended] = await Promise.race([answered, exited]);
      return ended;
    } finally {
      for (const promise of [answered, exited]) promise.catch(() => undefined);
      settled.abort();
    }
  };
  const voucherctl: Voucherctl = {
    run(args, env = {}) {
      const nounAndVerb = args.slice(0, 2).join(" ");
      if (!started.has(nounAndVerb)) {
        started.add(nounAndVerb);
        return runNode(["src/cli/main.ts", ...args], { ...defaultEnv, ...env });
      }
      const ended = previous.then(() => runHosted({ args, env: { ...defaultEnv, ...env } }));
      previous = ended.catch(() => undefined);
      return ended;
    },
    async json(...args) {
      const { exitCode, stdout, stderr } = await voucherctl.run([...args, "--json"]);
      expect({ exitCode, stderr }, args.join(" ")).toEqual({ exitCode: 0, stderr: "" });
      expect(stdout.split("\n")).toHaveLength(2);
      expect(stdout.endsWith("\n")).toBe(true);
      return JSON.parse(stdout);
    },
    close: () => host?.disconnect(),
  };
  return voucherctl;
}
