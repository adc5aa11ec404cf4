import { closeSync, existsSync, openSync, readFileSync, statSync } from "node:fs";
import { expect, it, onTestFinished } from "vitest";
import { useLog } from "../support/use-log.ts";

const { at, issue, begin, run, exportTo, monitor } = useLog();

const FULL = ["tile/0/000", "tile/entries/000"];
const REPLACED = ["checkpoint"];

it("a log export into a served directory replaces each changed file in one step, and no other file", async () => {
  await issue(300);
  await begin();
  await run();
  const size = await exportTo("served");
  expect(size).toBeGreaterThanOrEqual(300);
  const path = (name: string) => at(`served/${name}`);
  const before = new Map(
    [...FULL, ...REPLACED, "policy"].map((name) => {
      // The reader opens the file now, and reads it during the next export.
      const handle = openSync(path(name), "r");
      onTestFinished(() => closeSync(handle));
      return [name, { handle, text: readFileSync(path(name)), stat: statSync(path(name), { bigint: true }) }];
    }),
  );
  expect(before.get("checkpoint")?.stat.mode).toBe(before.get("policy")?.stat.mode);
  expect(Number(before.get("checkpoint")?.stat.mode) & 0o777).toBe(0o666 & ~process.umask());

  await issue(10);
  await run();
  expect(await exportTo("served")).toBeGreaterThan(size);
  for (const [name, { handle, text, stat }] of before) {
    const { ino, mtimeNs } = statSync(path(name), { bigint: true });
    const isReplaced = REPLACED.includes(name);
    expect(ino !== stat.ino || mtimeNs !== stat.mtimeNs, name).toBe(isReplaced);
    expect(readFileSync(path(name)).equals(text), name).toBe(!isReplaced);
    expect(readFileSync(handle).equals(text), name).toBe(true);
  }
  expect(await monitor("served")).toMatchObject({ receipts: 0 });
  expect(existsSync(path("checkpoint"))).toBe(true);
});
