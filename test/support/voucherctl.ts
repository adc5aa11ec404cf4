import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { afterAll, expect } from "vitest";
import type { Ended } from "./child-process.ts";
import { dumpRows } from "./row-dump.ts";
import type { TestServers } from "./servers.ts";

/** A command that the shared process runs, with its environment variables. */
export interface HostedCommand {
  args: readonly string[];
  env: Record<string, string>;
}

/** Runs voucherctl on the servers of a test file. */
export interface Voucherctl {
  /** Runs a command to its end: words, or a line like `org create --name 'Corner Shop'`. */
  run(command: string | readonly string[], env?: Record<string, string>): Promise<Ended>;
  /**
   * Runs a command with --json and returns the object that it prints. Fails unless the command succeeds and prints nothing else.
   * The first argument may be a line. The others are passed unchanged.
   */
  // biome-ignore lint/suspicious/noExplicitAny: each command prints an object of its own shape.
  json(...lineAndArgs: string[]): Promise<any>;
  close(): void;
}

const HOST = fileURLToPath(new URL("./voucherctl-host.ts", import.meta.url));

/** The words of a line, which stand in single quotes where they contain spaces. */
const split = (line: string) => Array.from(line.matchAll(/'([^']*)'|\S+/g), ([word, quoted]) => quoted ?? word);

/** Runs voucherctl commands in one process, because starting hundreds of processes takes longer than their work. */
export function openVoucherctl(servers: Pick<TestServers, "adminUrl" | "redisUrl">): Voucherctl {
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
    run(command, more = {}) {
      const env = {
        DATABASE_URL: servers.adminUrl,
        REDIS_URL: servers.redisUrl,
        WEBHOOK_SECRET: "test-webhook-secret-of-32-characters",
        ...more,
      };
      const args = typeof command === "string" ? split(command) : command;
      const ended = previous.then(() => runHosted({ args, env }));
      previous = ended.catch(() => undefined);
      return ended;
    },
    async json(line = "", ...args) {
      const { exitCode, stdout, stderr } = await voucherctl.run([...split(line), ...args, "--json"]);
      expect({ exitCode, stderr }, [line, ...args].join(" ")).toEqual({ exitCode: 0, stderr: "" });
      expect(stdout.split("\n")).toHaveLength(2);
      expect(stdout.endsWith("\n")).toBe(true);
      return JSON.parse(stdout);
    },
    close: () => host?.disconnect(),
  };
  return voucherctl;
}

/** Opens voucherctl for a test file, and ends its process after the last test. */
export function useVoucherctl(servers: Pick<TestServers, "adminUrl" | "redisUrl" | "db">) {
  const voucherctl = openVoucherctl(servers);
  afterAll(() => voucherctl.close());
  return {
    ...voucherctl,
    /** Runs a command that must succeed without a warning on standard error, and returns its text. */
    async text(command: string): Promise<string> {
      const { exitCode, stdout, stderr } = await voucherctl.run(command);
      const silent = { exitCode: 0, stderr: expect.stringMatching(/^(Next: .*\n)?$/) };
      expect({ exitCode, stderr }, command).toEqual(silent);
      return stdout;
    },
    /** Expects that a command fails with a message for a person, prints no result and writes no row. */
    async fails(exitCode: number, sentence: RegExp, command: string, env: Record<string, string> = {}) {
      const before = await dumpRows(servers.db);
      const ended = await voucherctl.run(command, env);
      expect(ended, command).toEqual({ exitCode, stdout: "", stderr: expect.stringMatching(sentence) });
      expect(ended.stderr, "a stack trace").not.toMatch(/^\s+at .+:\d+/m);
      expect(await dumpRows(servers.db)).toEqual(before);
    },
  };
}
