#!/usr/bin/env node
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { parseArgs } from "node:util";
import { auditServedTree } from "./audit.ts";
import { DamagedState, FileLocked } from "./durable-file.ts";
import { KeyNotMade, writeKeyFile } from "./key-file.ts";
import { COSIGNATURE_MAX_AGE, openLogSource, SourceUnavailable } from "./log-source.ts";
import { monitorLog } from "./monitor.ts";
import { parseSecretKey, parseVerifierKey } from "./note.ts";
import { NotAccepted, type Policy, PolicyNotRead, parsePolicy } from "./policy.ts";
import { describeAge, reportReceipt } from "./report.ts";
import { serveWitness, WitnessServer } from "./witness-server.ts";

const HELP = `Usage:
  tlog receipt verify FILE --policy FILE
  tlog monitor URL --policy FILE --state DIRECTORY [--keep] [--receipt FILE]… [--retired ORIGIN] [--max-age SECONDS]
  tlog audit --url URL --policy FILE [--max-age SECONDS]
  tlog witness keygen --name NAME --out FILE
  tlog witness serve --key FILE --state FILE --log VKEY --port PORT [--host ADDRESS]

URL is the log's address, such as https://vouchers.example.com/log. The policy is your own copy. --max-age refuses a
checkpoint whose newest cosignature is older, by default than a day. --json prints one JSON object.

Exit status: 0 all right, 1 the log or the receipt is refused, 2 wrong usage or a file that cannot be read, 69 the log
does not answer, 78 the state of a monitor or a witness cannot be used.
`;

class UsageError extends Error {}

function readArguments() {
  const text = { type: "string" } as const;
  return parseArgs({
    allowPositionals: true,
    options: {
      policy: text,
      state: text,
      retired: text,
      "max-age": text,
      url: text,
      name: text,
      out: text,
      key: text,
      log: text,
      port: text,
      host: text,
      keep: { type: "boolean" },
      receipt: { type: "string", multiple: true },
      json: { type: "boolean" },
      help: { type: "boolean" },
    },
  } as const);
}

interface Invocation {
  values: ReturnType<typeof readArguments>["values"];
  /** The argument after the command, such as the file of a receipt. */
  operand: string;
  /** @throws UsageError when the option is missing. */
  given: (option: "policy" | "state" | "url" | "name" | "out" | "key" | "log" | "port") => string;
  maxAge: number;
  /** Prints the result as JSON, or the sentence. */
  print: (result: object, sentence: string) => void;
}

async function main(): Promise<number> {
  const { values, positionals } = readArguments();
  const [noun = "", ...rest] = positionals;
  const verb = noun === "witness" || noun === "receipt" ? `${noun} ${rest.shift()}` : noun;
  const given: Invocation["given"] = (option) => {
    const value = values[option];
    if (value === undefined) throw new UsageError(`--${option} is missing. --help lists the options.`);
    return value;
  };
  const print = (result: object, sentence: string) =>
    void process.stdout.write(`${values.json ? JSON.stringify(result) : sentence}\n`);
  const maxAge = parseWhole("max-age", values["max-age"] ?? String(COSIGNATURE_MAX_AGE));
  if (values.help) {
    process.stdout.write(HELP);
    return 0;
  }
  const command = COMMANDS[verb];
  const [operand] = rest;
  if (command === undefined || (OF_AN_OPERAND.includes(verb) && operand === undefined))
    throw new UsageError(`Unknown command: tlog ${positionals.join(" ")}. --help lists the commands.`);
  return command({ values, operand: operand ?? "", given, maxAge, print });
}

const OF_AN_OPERAND = ["receipt verify", "monitor"];

/** The commands. Each returns its exit status. */
const COMMANDS: Record<string, (invocation: Invocation) => Promise<number>> = {
  "receipt verify": async ({ operand, given, print }) => {
    print(...(await reportReceipt(await readFile(operand, "utf8"), await readFile(given("policy"), "utf8"))));
    return 0;
  },
  monitor,
  audit,
  "witness keygen": async ({ given, print }) => {
    const vkey = await writeKeyFile("witness", given("name"), given("out"));
    print({ vkey }, vkey);
    return 0;
  },
  "witness serve": serve,
};

async function monitor({ values, operand, given, maxAge, print }: Invocation): Promise<number> {
  const monitored = await monitorLog({
    source: openLogSource(operand),
    policy: await readPolicy(given("policy")),
    state: given("state"),
    keep: values.keep ?? false,
    retired: values.retired,
    maxAge,
    receipts: await Promise.all((values.receipt ?? []).map((file) => readFile(file, "utf8"))),
  });
  const { origin, size, before, receipts, cosignedAge } = monitored;
  const seen = `${origin} has ${size} leaves and continues the ${before} seen before.`;
  print(monitored, `${seen} ${receipts} receipts checked. ${describeAge(cosignedAge)}`);
  return 0;
}

async function audit({ given, maxAge, print }: Invocation): Promise<number> {
  const policy = await readPolicy(given("policy"));
  const result = await auditServedTree({ log: openLogSource(given("url")), policy, maxAge });
  const { origin, leaves, tiles, problems, problemCount, cosignedAge } = result;
  const lines = problems.map((problem) => `WRONG ${problem}\n`).join("");
  const counts = `${leaves} leaves, ${tiles} tiles, ${problemCount} problems`;
  print(result, `${lines}${origin}: ${counts}. ${describeAge(cosignedAge)}`);
  return problemCount === 0 ? 0 : 1;
}

/** Serves a witness until a signal ends the process. */
async function serve({ values, given, print }: Invocation): Promise<number> {
  const key = await parseSecretKey("witness", await readFile(given("key"), "utf8"));
  const log = await parseVerifierKey("log", given("log"));
  if (key === null) throw new UsageError(`${values.key} does not hold the key of a witness.`);
  if (log === null) throw new UsageError("--log is not the vkey of a log.");
  const port = parseWhole("port", given("port"));
  const witness = await WitnessServer.open(key, [log], given("state"));
  const { url, close } = await serveWitness(witness, { port, host: values.host ?? "127.0.0.1" });
  print({ url, vkey: key.text }, `The witness ${key.text} listens at ${url}.`);
  await Promise.race([once(process, "SIGINT"), once(process, "SIGTERM")]);
  await close();
  witness.close();
  return 0;
}

function parseWhole(option: string, text: string): number {
  if (!/^\d{1,15}$/.test(text)) throw new UsageError(`--${option} is not a whole number.`);
  return Number(text);
}

function readPolicy(file: string): Promise<Policy> {
  return readFile(file, "utf8").then(parsePolicy);
}

function exitStatusOf(error: unknown): number {
  if (error instanceof SourceUnavailable) return 69;
  if (error instanceof DamagedState || error instanceof FileLocked) return 78;
  if (error instanceof PolicyNotRead) return 2;
  return error instanceof NotAccepted || error instanceof KeyNotMade ? 1 : 2;
}

try {
  process.exitCode = await main();
} catch (error) {
  process.stderr.write(`${(error as Error).message}\n`);
  process.exitCode = exitStatusOf(error);
}
