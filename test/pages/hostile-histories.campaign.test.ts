import { readFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { resolve } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { startProgram } from "../support/child-process.ts";
import { type HostileVector, VECTORS_FILE, type Vectors } from "../support/write-vectors.ts";
import { HAS, PROGRAM_OF, VERIFIERS } from "./guide-programs.ts";

const { chains, broken, hostile }: Vectors = JSON.parse(readFileSync(VECTORS_FILE, "utf8"));
const HISTORIES: HostileVector[] = [
  ...hostile,
  ...chains.map((chain) => ({ name: chain.name, history: JSON.stringify(chain), verdict: { intact: true as const } })),
  ...broken.map(({ expected: { sequence }, ...chain }) => ({
    name: chain.name,
    history: JSON.stringify(chain),
    verdict: { intact: false as const, sequence },
  })),
];

/** Runs a script of the guide for each history, in one process. After each history, one line begins with `==`. */
const DRIVERS = {
  js: `const [script, count] = process.argv.slice(1);
process.exit = () => { throw "BROKEN"; };
for (let at = 0; at < count; at++) {
  process.env.CODE = at;
  await import(script + "?" + at).catch((error) => error === "BROKEN" || console.log(error));
  console.log("==");
}`,
  python: `import os, runpy, sys
for at in range(int(sys.argv[2])):
    os.environ["CODE"] = str(at)
    try:
        runpy.run_path(sys.argv[1])
    except SystemExit as ended:
        print(ended)
    except BaseException as error:
        print(repr(error))
    print("==")`,
  php: `$run = fn() => eval(str_replace(["<?php", "exit(1)"], ["", "return"], file_get_contents($argv[1])));
for ($at = 0; $at < $argv[2]; $at++) {
    putenv("CODE=$at");
    try { $run(); } catch (Throwable $error) { echo $error; }
    echo "==\\n";
}`,
  bash: `for ((at = 0; at < $2; at++)); do
  (CODE=$at; . "$1") 2>&1 || true
  echo "=="
done`,
};
const FLAGS = { js: ["--input-type=module", "-e"], python: ["-c"], php: ["-r"], bash: ["-c"] };

let server: Server;

beforeAll(async () => {
  server = createServer((request, response) => {
    response.end(HISTORIES[Number(request.url?.split("/")[3])]?.history);
  });
  await new Promise<void>((started) => server.listen(0, "127.0.0.1", started));
});

afterAll(() => void server.close());

it.each(
  Object.keys(DRIVERS) as (keyof typeof DRIVERS)[],
)("the verifier in %s gives the published result for every history of the test vectors", async (language) => {
  if (!HAS[language]) return;
  const API = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const script = resolve("docs", VERIFIERS[language]);
  const name = language === "bash" ? ["bash"] : language === "php" ? ["--"] : [];
  const options = [...FLAGS[language], DRIVERS[language], ...name, script, String(HISTORIES.length)];
  const { stdout, stderr } = await startProgram(PROGRAM_OF[language] ?? "", options, { API, KEY: "key" }).ended;
  const runs = stdout.split(/^==\n/m);
  const wrong = HISTORIES.flatMap(({ name, history, verdict }, at) => {
    const lines = (runs[at] ?? "").split("\n").slice(0, -1);
    const { events } = JSON.parse(history);
    const bad = verdict.intact ? [] : [expect.stringMatching(new RegExp(`^${verdict.sequence} .*BROKEN$`, "s"))];
    const good = Array(verdict.intact ? events.length : verdict.sequence - 1);
    const expected = [...good.fill(expect.stringMatching(/ (ok|ok, erased|pending)$/)), ...bad];
    return isEqual(lines, expected) ? [] : [{ name, verdict, lines }];
  });
  expect({ wrong, stderr }).toEqual({ wrong: [], stderr: "" });
  // The test takes long, because the shell starts five programs for each history.
});

function isEqual(lines: unknown[], expected: unknown[]): boolean {
  try {
    expect(lines).toEqual(expected);
    return true;
  } catch {
    return false;
  }
}
