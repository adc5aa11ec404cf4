import { execFileSync, spawnSync } from "node:child_process";
import { globSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { fileURLToPath } from "node:url";
import type { Command } from "commander";
import { expect, it } from "vitest";
import packageJson from "../../package.json" with { type: "json" };

import { InvalidValues, problemWith } from "../../src/acts/act.ts";
import { ACTS } from "../../src/acts/acts.ts";
import type { Field } from "../../src/acts/fields.ts";
import { explainProblems } from "../../src/cli/act-verb.ts";
import { nameOf } from "../../src/cli/command.ts";
import { EXIT, EXIT_HELP } from "../../src/cli/exit-code.ts";
import { explain } from "../../src/cli/explain.ts";
import { writeCompletion } from "../../src/cli/program.ts";
import { buildVoucherctl } from "../../src/local/voucherctl.ts";
import { WING_ACTS } from "../../src/open/wing-acts.ts";
import { problemIn } from "../../src/platform/api/problems.ts";

const read = (file: string) => readFileSync(new URL(`../../${file}`, import.meta.url), "utf8");
const MANUAL = read("docs/voucherctl.md");

it("the --help of every voucherctl command fits in 80 columns, and its examples are valid", async () => {
  const program = buildVoucherctl();
  for (const command of [program, ...program.commands, ...leavesOf(program)]) {
    const help = await helpOf(command);
    expect(help.split("\n").filter((line) => line.length > 80)).toEqual([]);
    for (const inner of command.commands) expect(help).toContain(inner.name());
    if (command.commands.length > 0) continue;
    const lines = joined(help.split("Examples:\n")[1] ?? "").filter((line) => line.trim() !== "");
    expect(lines.length, nameOf(command)).toBeGreaterThan(0);
    for (const line of lines) {
      const [first, ...words] = split(line.trim());
      expect([first, await parse(words)]).toEqual(["voucherctl", nameOf(command)]);
    }
  }
});

it("voucherctl --help and docs/voucherctl.md list every exit code", () => {
  const codes = [0, ...Object.values(EXIT), 130];
  expect(Array.from(EXIT_HELP.matchAll(/^ {2}(\d+) /gm), ([, code]) => Number(code))).toEqual(codes);
  expect(Array.from(MANUAL.matchAll(/^\| `(\d+)` \|/gm), ([, code]) => Number(code))).toEqual(codes);
});

it("docs/voucherctl.md lists the acts for the role operator, and the acts without a console form", () => {
  const acts = [...ACTS, ...WING_ACTS].filter(({ only }) => only !== "console");
  const [, operators = "", commands = ""] =
    /^- These forms need the role `operator`: ([^.]+)\.[\s\S]*?^- These commands have no form: ([^.]+)\./m.exec(
      MANUAL,
    ) ?? [];
  const namesIn = (list: string) => Array.from(list.matchAll(/`([^`]+)`/g), ([, name]) => name).toSorted();
  const namesOf = (chosen: typeof acts) => chosen.map(({ name }) => name).toSorted();
  expect(namesIn(operators)).toEqual(namesOf(acts.filter(({ role }) => role === "operator")));
  expect(namesIn(commands)).toEqual(namesOf(acts.filter(({ only }) => only === "command")));
});

it("docs/voucherctl.md has the exit status of each command for an expiry time in the past", () => {
  const acts = [...ACTS, ...WING_ACTS].filter(({ only }) => only !== "console");
  const refusing = acts.flatMap(({ name, fields }) => {
    const ends = Object.entries<Field>(fields).filter(([, { future }]) => future);
    const statuses = ends.map(([field]) => {
      const problem = { ...problemWith(field, problemIn("isPast", { time: "2020-01-01" })), isPast: true };
      return explain(explainProblems(new InvalidValues([problem]), fields)).exitCode;
    });
    return [...new Set(statuses)].map((status) => [status, name] as const);
  });
  const line = MANUAL.split("\n- ").find((one) => one.startsWith("An expiry time in the past")) ?? "";
  const told = line.split(/\bwith (?:exit status )?(?=\d)/).flatMap((part) => {
    return Array.from(part.matchAll(/`([a-z]+ [a-z]+)`/g), ([, name]) => [Number.parseInt(part, 10), String(name)]);
  });
  expect(told.toSorted()).toEqual(refusing.toSorted());
  expect(refusing.length).toBeGreaterThan(3);
});

/** Documents that show commands. */
const DOCUMENTS = ["README.md", ...globSync("docs/**/*.md")].map(read);

it("voucherctl names all missing and wrong options of a command at once, with the broken rules", async () => {
  const said: string[] = [];
  const program = buildVoucherctl();
  const issue = leavesOf(program).find((leaf) => nameOf(leaf) === "voucherctl batch issue");
  issue?.configureOutput({ writeErr: (text) => void said.push(text) });
  const words = "batch issue --count 0 --valid-until soon --audience All --opens-at 2027-01-01".split(" ");
  await expect(program.parseAsync(words, { from: "user" })).rejects.toMatchObject({ code: "commander.error" });
  expect(said.join("").split("\n")).toEqual([
    "Required option '--product <id>' not specified.",
    expect.stringMatching(/^Option '--count <n>' argument '0' is invalid. It must be a whole number/),
    expect.stringMatching(/^Option '--valid-until <time>' argument 'soon' is invalid. It must be a date/),
    expect.stringMatching(/^Option '--audience <audience>' argument 'All' is invalid. Allowed choices/),
    "--opens-at and --closes-at need a window: add --claim or --buy.",
    "See voucherctl batch issue --help",
    "",
  ]);
});

it("every document shows only valid voucherctl commands", async () => {
  const lines = DOCUMENTS.flatMap(joined)
    .flatMap((line) => line.split(" && "))
    .flatMap((line) => /^(?:npm run (?:-s )?voucherctl --|voucherctl) (.+)/.exec(line)?.[1] ?? [])
    .filter((line) => !line.endsWith("--help"))
    .map((line) => line.replace(/ +(?:#|>) .*/, ""));
  expect(lines.length).toBeGreaterThan(40);
  for (const line of lines) {
    const words = split(line);
    expect(await parse(words), line).toBe(`voucherctl ${words[0]} ${words[1]}`);
  }
});

it("voucherctl completion completes nouns, verbs, options and their values in bash", () => {
  const cases = {
    "voucherctl re": "redemption receipt",
    "voucherctl key r": "revoke rotate",
    "voucherctl key revoke --y": "--yes",
    "voucherctl batch issue --audience R": "ReferrerOnly",
    "voucherctl batch issue --count 5 --o": "--opens-at --out",
  };
  const completions = Object.keys(cases).map(
    (line) => `COMP_WORDS=(${line}); COMP_CWORD=${line.split(" ").length - 1}; _voucherctl; echo "\${COMPREPLY[*]}"`,
  );
  const script = [writeCompletion(buildVoucherctl()), ...completions].join("\n");
  expect(execFileSync("bash", ["-c", script], { encoding: "utf8" }).trim().split("\n")).toEqual(Object.values(cases));
});

it("src/cli/voucherctl, the package's executable, runs from any folder", () => {
  const bin = fileURLToPath(new URL(`../../${packageJson.bin.voucherctl}`, import.meta.url));
  expect(execFileSync(bin, ["--version"], { cwd: tmpdir(), encoding: "utf8" })).toBe(`${packageJson.version}\n`);
});

it("every npm script that runs TypeScript prints a one-sentence remedy if Node cannot run it", () => {
  const scripts = [...Object.values(packageJson.scripts), read("src/cli/voucherctl")];
  const lines = scripts.filter((script) => /exec node .*(src|workers)\/.*\.ts/.test(script));
  expect(lines.length).toBeGreaterThan(5);
  for (const line of lines) expect(line).toMatch(/--import \S*src\/local\/check-node\.js\b/);
  const old = ["--no-experimental-strip-types", "--import", "./src/local/check-node.js", "src/local/start.ts"];
  expect(spawnSync(process.execPath, old, { encoding: "utf8" })).toMatchObject({
    status: 1,
    stdout: "",
    stderr: expect.stringMatching(/^The project's own Node 24 is missing, .* Run: npm rebuild\n$/),
  });
});

it.each([
  "--csv --json",
  "--json --csv",
])("redemption list refuses %s, because each of its options asks for another format", async (both) => {
  await expect(parse(`redemption list --org org_1 ${both}`.split(" "))).rejects.toMatchObject({
    code: "commander.conflictingOption",
    message: expect.stringContaining("option '--csv' cannot be used with option '--json'"),
  });
});

function leavesOf(command: Command): Command[] {
  return command.commands.length === 0 ? [command] : command.commands.flatMap(leavesOf);
}

/** One program's output, 80 columns wide. A program for each command would take most of the test's time. */
let said = "";
const helpful = buildVoucherctl();
for (const each of [helpful, ...helpful.commands, ...leavesOf(helpful)]) {
  each.configureOutput({
    writeOut: (more) => {
      said += more;
    },
    getOutHelpWidth: () => 80,
    getOutHasColors: () => false,
  });
}

/** The output of `--help`. */
async function helpOf(command: Command): Promise<string> {
  said = "";
  await helpful
    .parseAsync([...nameOf(command).split(" ").slice(1), "--help"], { from: "user" })
    .catch((error) => expect(error).toMatchObject({ code: "commander.helpDisplayed", exitCode: 0 }));
  return said;
}

/** Returns the words into which a shell would split a line. */
function split(line: string): string[] {
  return Array.from(line.matchAll(/"([^"]*)"|(\S+)/g), ([, quoted, bare]) => quoted ?? bare ?? "");
}

/** Makes the program parse a command without running it. Returns the command's name, or rejects wrong usage. */
async function parse(words: string[]): Promise<string> {
  const program = buildVoucherctl();
  let ran = "";
  for (const leaf of leavesOf(program)) {
    leaf.configureOutput({ writeErr: () => undefined }).action(() => {
      ran = nameOf(leaf);
    });
  }
  // The program reads this file before the command runs, so the file must exist.
  const files = words.map((word) => (word === "logo.png" ? "docs/images/portal.png" : word));
  await program.parseAsync(files, { from: "user" });
  return ran;
}

/** Joins each line that ends in a backslash with the next line. */
function joined(text: string): string[] {
  return text.replace(/ \\\n\s*/g, " ").split("\n");
}
