import { spawn } from "node:child_process";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { z } from "zod";
import { installDebianPackages, onPath } from "../../../src/local/debian-packages.ts";

const LUA = fileURLToPath(new URL("./wrk-load.lua", import.meta.url));
const AUTOCANNON = fileURLToPath(new URL("./autocannon-load.ts", import.meta.url));
/** Far above any answer: an answer that is late counts as one all the same. Seconds. */
const TIMEOUT_SECONDS = 30;

/** The program that makes the load. */
export type LoadClient = { name: "wrk"; program: string } | { name: "autocannon" };

/**
 * Finds wrk, installing it where that can be done. Without it, or when it is wanted, takes autocannon, which is slower and takes more of
 * the processor.
 */
export function chooseClient(wanted: LoadClient["name"], say: (line: string) => void): LoadClient {
  if (wanted === "wrk" && onPath("wrk") === null) installDebianPackages("wrk", ["wrk"], say);
  const program = wanted === "wrk" ? onPath("wrk") : null;
  return program === null ? { name: "autocannon" } : { name: "wrk", program };
}

/** One prepared request. */
export interface PreparedRequest {
  method: "GET" | "POST";
  path: string;
  /** Whole header line that only this request has. */
  header?: string;
  body?: string;
}

/** Load on one contender. */
export interface Load {
  ports: readonly number[];
  connections: number;
  seconds: number;
  /** `once`: each request is sent once. `again`: from the beginning when all were sent. `checkout`: see {@link CheckoutLine}. */
  mode: "once" | "again" | "checkout";
  /** A line each, from {@link requestLine} or {@link checkoutLine}. */
  lines: readonly string[];
  /** Header line of every request. */
  header: string;
  /** Files of requests are written here, under this name. */
  directory: string;
  name: string;
  /** Ends the load when aborted. */
  signal: AbortSignal;
}

const outcome = z.object({
  requests: z.number(),
  checkouts: z.number(),
  micros: z.number(),
  p50Micros: z.number(),
  p99Micros: z.number(),
  /** Answers of status 400 and above. */
  refused: z.number(),
  /** Connections that failed and answers that never came. */
  broken: z.number(),
  /** Whether requests ran out, which spoils the run. */
  exhausted: z.boolean(),
  /** Requests taken from each API's file, for those that may be sent once only. */
  used: z.array(z.number()),
});
export interface LoadOutcome extends Omit<z.infer<typeof outcome>, "used"> {
  /** Which lines were not taken. */
  unused: number[];
}

/** A line of a file of requests. */
export function requestLine({ method, path, header = "", body = "" }: PreparedRequest): string {
  return `${method} ${path}\t${header}\t${body}`;
}

/** A line of a file of checkouts: a voucher to look up, hold and burn under this reference. */
export function checkoutLine(code: string, externalRef: string): string {
  return `${code}\t${externalRef}`;
}

/** Puts load on a contender from a process of its own, as many requests under way at any time as there are connections. */
export async function runLoad(client: LoadClient, load: Load): Promise<LoadOutcome> {
  const { ports, lines, directory, name } = load;
  const files = join(directory, `${name}-`);
  const dealt = ports.map((_, api) => [...lines.keys()].filter((index) => index % ports.length === api));
  for (const [api, own] of dealt.entries()) {
    writeFileSync(`${files}${api + 1}`, own.map((index) => `${lines[index]}\n`).join(""));
  }
  const { used, ...result } = await spawnClient(client, load, files);
  for (const api of dealt.keys()) rmSync(`${files}${api + 1}`);
  return { ...result, unused: dealt.flatMap((own, api) => own.slice(used[api])) };
}

function spawnClient(client: LoadClient, load: Load, files: string): Promise<z.infer<typeof outcome>> {
  const { ports, connections, seconds, mode, header } = load;
  const [program, args] =
    client.name === "wrk"
      ? [
          client.program,
          [
            `-t${ports.length}`,
            `-c${connections}`,
            // wrk takes whole seconds or milliseconds only as an integer of seconds.
            `-d${Math.max(1, Math.round(seconds))}s`,
            `--timeout=${TIMEOUT_SECONDS}s`,
            `--script=${LUA}`,
            `http://127.0.0.1:${ports[0]}`,
            "--",
            mode,
            files,
            header,
          ],
        ]
      : [process.execPath, [AUTOCANNON, String(connections), String(seconds), mode, files, header]];
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, {
      signal: load.signal,
      env: { PATH: process.env.PATH ?? "", BENCH_PORTS: ports.join(",") },
      stdio: ["ignore", "pipe", "pipe"],
    });
    let output = "";
    let complaints = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      output += text;
    });
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      complaints += text;
    });
    child.once("error", reject);
    child.once("close", () => {
      const line = output.split("\n").findLast((candidate) => candidate.startsWith("{"));
      if (line === undefined) return reject(new Error(`${client.name} failed:\n${output}${complaints}`));
      resolve(outcome.parse(JSON.parse(line)));
    });
  });
}
