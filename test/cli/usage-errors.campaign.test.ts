import type { Command, Option } from "commander";
import { expect, it } from "vitest";
import { nameOf } from "../../src/cli/command.ts";
import { EXIT } from "../../src/cli/exit-code.ts";
import { buildVoucherctl } from "../../src/local/voucherctl.ts";
import { openVoucherctl } from "../support/voucherctl.ts";

/** Addresses at which no server listens. A command that contacts one of them exits with 69. */
const ABSENT = { adminUrl: "postgresql://127.0.0.1:1/none", redisUrl: "redis://127.0.0.1:1/0" };

/** Arguments that break a rule for several options, by command. */
const BROKEN_RULES: Record<string, string[]> = {
  "voucherctl person erase": ["", "--user u --ref r --org o", "--voucher v --user u", "--ref r", "--user u --org o"],
  "voucherctl person show": ["", "--user u --ref r --org o", "--ref r"],
  "voucherctl webhook replay": ["whk_1", "whk_1 --event-id vch_1-2 --from 2026-11-21 --to 2026-11-22"],
  "voucherctl operator create": ["--name a:b --role viewer"],
  "voucherctl batch issue": ["--product p --count 1 --valid-until 2099-12-31 --opens-at 2099-01-01"],
  "voucherctl webhook create": ["--org o --url https://a:b@shop.example.com", "--org o --url shop.example.com"],
  "voucherctl key create": ["--org o --scope voucher.read --allow-ip 10.1.2.3/8"],
};

it("every voucherctl command with wrong options exits with 2 before it contacts a server", async () => {
  const voucherctl = openVoucherctl(ABSENT);
  const leaves = buildVoucherctl().commands.flatMap((noun) => (noun.commands.length === 0 ? [noun] : noun.commands));
  expect(Object.keys(BROKEN_RULES).filter((name) => !leaves.some((leaf) => nameOf(leaf) === name))).toEqual([]);
  const wrong: unknown[] = [];
  let tried = 0;
  for (const leaf of leaves) {
    const command = nameOf(leaf).split(" ").slice(1);
    const perhapsWrong = perhapsWrongUsesOf(leaf).map((words) => [...command, ...words]);
    const refused = await Promise.all(perhapsWrong.map(isRefused));
    const uses = wrongUsesOf(leaf).map((words) => [...command, ...words]);
    for (const words of [...uses, ...perhapsWrong.filter((_, place) => refused[place])]) {
      tried += 1;
      const { exitCode, stderr } = await voucherctl.run(words);
      if (exitCode !== EXIT.usage) wrong.push([words.join(" "), exitCode, stderr]);
    }
  }
  expect(wrong).toEqual([]);
  expect(tried).toBeGreaterThan(8 * leaves.length);
});

/** Returns wrong uses of a command. Each breaks one rule. */
function wrongUsesOf(leaf: Command): string[][] {
  const right = exampleOf(leaf);
  const { registeredArguments } = leaf;
  const uses = [
    [...right, "--no-such-option"],
    [...right, ...registeredArguments.map(() => "more"), "more"],
  ];
  // An example's first word is always its argument, if the command has one.
  for (const { required } of registeredArguments) uses.push(["", ...right.slice(1)], ...(required ? [[]] : []));
  for (const option of leaf.options) uses.push(...wrongValuesOf(option, right), ...conflictsOf(leaf, option, right));
  return [...uses, ...(BROKEN_RULES[nameOf(leaf)] ?? []).map((words) => words.split(" ").filter(Boolean))];
}

/** Arguments that are wrong only if an option is required, or if its values have a format. */
function perhapsWrongUsesOf(leaf: Command): string[][] {
  const right = exampleOf(leaf);
  return leaf.options.flatMap(({ long, required: takesValue }) => {
    const place = right.indexOf(String(long));
    const without = place < 0 ? [] : [right.toSpliced(place, takesValue ? 2 : 1)];
    return takesValue ? [...without, [...right, String(long), "§"]] : without;
  });
}

/** Returns correct usage: the example in the command's help. */
function exampleOf(leaf: Command): string[] {
  let help = "";
  const writeOut = (text: string) => {
    help += text;
  };
  leaf.configureOutput({ writeOut, getOutHasColors: () => false }).outputHelp();
  const [line = ""] = (help.split("Examples:\n")[1] ?? "").replaceAll(/ \\\n\s*/g, " ").split("\n");
  const words = Array.from(line.matchAll(/"([^"]*)"|(\S+)/g), ([, quoted, bare]) => quoted ?? bare ?? "");
  return words.slice(nameOf(leaf).split(" ").length);
}

function wrongValuesOf({ long, required: takesValue, argChoices }: Option, right: readonly string[]): string[][] {
  const name = String(long);
  if (!takesValue) return [];
  const uses = [
    [...right, name],
    [...right, name, ""],
  ];
  return argChoices === undefined ? uses : [...uses, [...right, name, "no-such-choice"]];
}

function conflictsOf({ options }: Command, option: Option, right: readonly string[]): string[][] {
  const { conflictsWith } = option as unknown as { conflictsWith: readonly string[] };
  const given = ({ long, required: takesValue }: Option) => [String(long), ...(takesValue ? ["value"] : [])];
  return conflictsWith.flatMap((name) => {
    const other = options.find((one) => one.attributeName() === name);
    return other === undefined ? [] : [[...right, ...given(option), ...given(other)]];
  });
}

/** Whether the program refuses the arguments before it runs a command. */
async function isRefused(words: string[]): Promise<boolean> {
  const program = buildVoucherctl();
  const leaves = program.commands.flatMap((noun) => (noun.commands.length === 0 ? [noun] : noun.commands));
  for (const leaf of leaves) leaf.configureOutput({ writeErr: () => undefined }).action(() => undefined);
  return program.parseAsync(words, { from: "user" }).then(
    () => false,
    () => true,
  );
}
