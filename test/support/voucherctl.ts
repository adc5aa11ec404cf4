import { type ChildProcess, fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect } from "vitest";
import type { Ended } from "./child-process.ts";
import { dumpRows } from "./row-dump.ts";
import type { TestServers } from "./servers.ts";

/** The arguments and the environment of a voucherctl command. One process runs many commands. */
export interface HostedCommand {
  args: readonly string[];
  env: Record<string, string>;
}

/** Runs voucherctl on the servers of a test file. */
export interface Voucherctl {
  /** Runs a command to its end, given as words or as a line like `org create --name 'Corner Shop'`. */
  run(command: string | readonly string[], env?: Record<string, string>): Promise<Ended>;
  /**
   * Runs a command with --json and returns the object that it prints. Fails unless the command succeeds and prints
   * nothing else. The first argument may contain several words. The others are passed unchanged.
   */
  // biome-ignore lint/suspicious/noExplicitAny: each command prints an object of its own shape.
  json(...lineAndArgs: string[]): Promise<any>;
}

const HOST = fileURLToPath(new URL("./voucherctl-host.ts", import.meta.url));

/** The words of a line. Words with spaces are in single quotes. */
const split = (line: string) => Array.from(line.matchAll(/'([^']*)'|\S+/g), ([word, quoted]) => quoted ?? word);

let host: ChildProcess | null = null;
let previous: Promise<unknown> = Promise.resolve();

/** Runs all commands in one process, because starting hundreds of processes takes longer than their work. */
function runHosted(command: HostedCommand): Promise<Ended> {
  host ??= fork(HOST, { stdio: ["ignore", "ignore", "inherit", "ipc"] });
  // It ends with this process.
  host.unref();
  host.channel?.unref();
  const { promise, resolve, reject } = Promise.withResolvers<Ended>();
  const onExit = (exitCode: number) =>
    reject(new Error(`the process of commands ended with ${exitCode}: ${command.args}`));
  host.once("message", resolve).once("exit", onExit).send(command);
  return promise.finally(() => host?.off("message", resolve).off("exit", onExit));
}

/** Opens voucherctl on servers. */
export function openVoucherctl(servers: Pick<TestServers, "adminUrl" | "redisUrl">): Voucherctl {
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
  };
  return voucherctl;
}

export function useVoucherctl(servers: Pick<TestServers, "adminUrl" | "redisUrl" | "db">) {
  const voucherctl = openVoucherctl(servers);
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
