import { expect, it } from "vitest";
import { startsPerTurn } from "../../src/batching/starts-per-turn.ts";

const nextTurn = () => new Promise<void>((resolve) => setImmediate(resolve));

it("a gate with two starts per turn lets a lone caller through at once", async () => {
  const mayStart = startsPerTurn(2);
  let started = false;
  void mayStart().then(() => {
    started = true;
  });
  await Promise.resolve();
  expect(started).toBe(true);
});

it("a gate with two starts per turn lets a crowd through two at a time, in order, with other work in between", async () => {
  const mayStart = startsPerTurn(2);
  const started: number[] = [];
  for (let n = 1; n <= 5; n++) void mayStart().then(() => started.push(n));
  const seen: number[][] = [];
  for (let turn = 0; turn < 4; turn++) {
    await Promise.resolve();
    seen.push([...started]);
    await nextTurn();
  }
  expect(seen[0]).toEqual([1, 2]);
  expect(seen.map((all) => all.length).every((count, turn) => count <= 2 * (turn + 1))).toBe(true);
  expect(started).toEqual([1, 2, 3, 4, 5]);
});

it("a gate with two starts per turn lets no newcomer pass those that wait", async () => {
  const mayStart = startsPerTurn(1);
  const started: string[] = [];
  for (const name of ["first", "second", "third"]) void mayStart().then(() => started.push(name));
  await nextTurn();
  void mayStart().then(() => started.push("newcomer"));
  while (started.length < 4) await nextTurn();
  expect(started).toEqual(["first", "second", "third", "newcomer"]);
});
