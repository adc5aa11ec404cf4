import { expect, it } from "vitest";
import { startsPerTurn } from "../../../src/platform/batching/starts-per-turn.ts";

const nextTurn = () => new Promise<void>((resolve) => setImmediate(resolve));

it("a starter starts a lone caller at once, and does not ask for its owner", () => {
  const started: string[] = [];
  startsPerTurn(2)(
    () => started.push("lone"),
    () => {
      throw new Error("the owner is not needed");
    },
  );
  expect(started).toEqual(["lone"]);
});

it("a starter with two starts per turn starts callers two at a time in order, with other work between", async () => {
  const { started, start } = record(2);
  for (const name of ["a", "b", "c", "d", "e"]) start(name);
  const seen: string[] = [];
  for (let turn = 0; turn < 4; turn++) {
    seen.push(started.join(""));
    await nextTurn();
  }
  expect(seen).toEqual(["ab", "abcd", "abcde", "abcde"]);
});

it("a starter starts an owner's new caller after those of its callers that already wait", async () => {
  const { started, start } = record(1);
  for (const name of ["first", "second", "third"]) start(name);
  await nextTurn();
  start("newcomer");
  while (started.length < 4) await nextTurn();
  expect(started).toEqual(["first", "second", "third", "newcomer"]);
});

it("a starter lets owners take turns, so that the length of one owner's line delays no other", async () => {
  const { started, start } = record(2);
  for (let n = 1; n <= 1_000; n++) start(`crowd ${n}`, "crowd");
  start("partner 1", "partner");
  start("partner 2", "partner");
  start("visitor 1", "visitor");
  await nextTurn();
  expect(started.slice(2)).toEqual(["crowd 3", "partner 1"]);
  await nextTurn();
  expect(started.slice(4)).toEqual(["visitor 1", "crowd 4"]);
  await nextTurn();
  expect(started.slice(6)).toEqual(["partner 2", "crowd 5"]);
});

/** A starter that records what has started. */
function record(startsMax: number) {
  const startInTurn = startsPerTurn(startsMax);
  const started: string[] = [];
  const start = (name: string, owner = "") =>
    startInTurn(
      () => started.push(name),
      () => owner,
    );
  return { started, start };
}
