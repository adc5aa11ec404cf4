import fc from "fast-check";
import { expect, it } from "vitest";
import {
  judgeServer,
  keepAfter,
  type Memory,
  type Recollection,
  remember,
  type Shared,
  share,
  startsToHave,
} from "../../src/platform/marks.ts";

const at = (position: number, id = `mark ${position}`) => ({ position, id });

const MEMORY: Memory = {
  deploymentId: "d",
  timeline: "00000002",
  started: "1",
  newest: at(1_000),
  lasting: at(700),
  acceptedLosses: ["old"],
};
/** A server with everything, which has accepted a loss before. */
const WHOLE: Recollection = {
  timeline: "00000002",
  started: "1",
  newestId: "mark 1000",
  lastingId: "mark 700",
  oldestPosition: 1,
  acceptedLosses: ["old"],
};

it.each<[string, string, Partial<Memory>, Partial<Recollection>]>([
  ["with the newest mark", "known", {}, {}],
  ["with the newest mark on a later timeline", "known", {}, { timeline: "00000003" }],
  ["that has deleted the newest mark, a day later", "known", {}, { newestId: null, oldestPosition: 1_001 }],
  ["without the newest mark", "setBack", {}, { newestId: null }],
  ["with another mark at its position", "setBack", {}, { newestId: "another" }],
  ["without any mark", "setBack", {}, { newestId: null, lastingId: null, oldestPosition: null }],
  ["without the newest mark on an earlier timeline", "setBack", {}, { newestId: null, timeline: "00000001" }],
  ["without the newest mark on a later timeline", "promoted", {}, { newestId: null, timeline: "00000003" }],
  [
    "without the lasting mark on a later timeline",
    "setBack",
    {},
    { newestId: null, lastingId: null, timeline: "00000003" },
  ],
  [
    "on a later timeline, when no mark is lasting yet",
    "promoted",
    { lasting: null },
    { newestId: null, lastingId: null, timeline: "00000003" },
  ],
  ["that lacks the mark and an accepted loss", "setBack", {}, { newestId: null, acceptedLosses: [] }],
  ["that lacks the mark and has a new accepted loss", "accepted", {}, { newestId: null, acceptedLosses: ["new"] }],
])("a server %s is %s", (_, verdict, memory, found) => {
  expect(judgeServer({ ...MEMORY, ...memory }, { ...WHOLE, ...found })).toBe(verdict);
});

it("a process that is led to a promoted standby goes on with the mark that the standby had to have", () => {
  const server = { timeline: "00000003", started: "2" };
  const found = { ...WHOLE, ...server };
  expect(keepAfter("promoted", MEMORY, found)).toEqual({ ...MEMORY, ...server, newest: at(700) });
  expect(keepAfter("promoted", { ...MEMORY, lasting: null }, found)).toBeNull();
  expect([keepAfter("accepted", MEMORY, found), keepAfter("known", MEMORY, found)]).toEqual([null, MEMORY]);
});

it("a mark is lasting once a synchronous standby has confirmed it or 300 newer marks exist, and stays lasting", () => {
  const { deploymentId, timeline, started } = MEMORY;
  const look = {
    deploymentId,
    timeline,
    started: started ?? "",
    newest: at(1_001),
    older: at(701),
    acceptedLosses: ["new"],
  };
  const acceptedLosses = ["old", "new"];
  const next = { ...MEMORY, newest: at(1_001), acceptedLosses };
  expect(remember(MEMORY, { ...look, isReplicated: false })).toEqual({ ...next, lasting: at(701) });
  const replicated = remember(MEMORY, { ...look, isReplicated: true });
  expect(replicated).toEqual({ ...next, lasting: at(1_001) });
  expect(remember(replicated, { ...look, newest: at(1_002), older: at(702), isReplicated: false }).lasting).toEqual(
    at(1_001),
  );
  expect(remember(null, { ...look, older: null, isReplicated: false }).lasting).toBeNull();
});

/** The memory of a start of a server. */
const seenBy = (started: string | null, position: number, timeline = MEMORY.timeline): Memory => {
  return { ...MEMORY, started, timeline, newest: at(position, `mark ${position} of ${started}`) };
};
/** Starts, each with the number of its marks. */
const starts = (...seen: [Memory, number][]): Shared => seen.map(([memory, marks]) => ({ memory, marks }));
const [first, second, third] = [seenBy("1", 10), seenBy("2", 20), seenBy("3", 30)];
const promoted = seenBy("3", 31, "00000003");

it.each<[string, Shared, Memory, Parameters<typeof share>[2], Shared | null]>([
  ["the first memory is shared", [], first, "known", starts([first, 1])],
  ["a newer memory replaces that of its start", starts([seenBy("1", 9), 4]), first, "known", starts([first, 5])],
  ["an older memory changes nothing", starts([first, 1]), first, "known", null],
  ["the memory of a later start is added", starts([first, 1]), second, "known", starts([first, 1], [second, 1])],
  [
    "the memory of a third start is added",
    starts([first, 1], [second, 9]),
    third,
    "known",
    starts([first, 1], [second, 9], [third, 1]),
  ],
  [
    "a new mark of a start removes the starts after it",
    starts([first, 1], [second, 9], [third, 9]),
    seenBy("2", 21),
    "known",
    starts([seenBy("2", 21), 10]),
  ],
  [
    "a new mark of a start keeps the starts before it",
    starts([first, 1], [second, 1], [third, 9]),
    seenBy("2", 21),
    "known",
    starts([first, 1], [seenBy("2", 21), 2]),
  ],
  [
    "the tenth mark of a start removes the starts before it",
    starts([first, 1], [second, 9]),
    seenBy("2", 21),
    "known",
    starts([seenBy("2", 21), 10]),
  ],
  ["the known memory of a later start changes nothing", starts([first, 1], [second, 9]), second, "known", null],
  ["a later timeline removes all others", starts([first, 1], [second, 9]), promoted, "known", starts([promoted, 1])],
  ["the memory of an earlier release is replaced", starts([seenBy(null, 10), 1]), second, "known", starts([second, 2])],
  [
    "a promoted standby's memory removes all others, although it is older",
    starts([first, 1], [second, 1]),
    seenBy("3", 7, "00000003"),
    "promoted",
    starts([seenBy("3", 7, "00000003"), 1]),
  ],
  [
    "a memory from after an accepted loss removes all others",
    starts([first, 1], [second, 1]),
    seenBy("3", 7),
    "accepted",
    starts([seenBy("3", 7), 1]),
  ],
  [
    "the oldest of five starts is forgotten",
    starts([first, 1], [second, 1], [third, 1], [seenBy("4", 40), 1]),
    seenBy("5", 50),
    "known",
    starts([second, 1], [third, 1], [seenBy("4", 40), 1], [seenBy("5", 50), 1]),
  ],
])("sharing the memories of a server's starts: %s", (_, told, memory, verdict, next) => {
  expect(share(told, memory, verdict)).toEqual(next);
});

it("a start of a server runs alone after ten marks, and one mark of an earlier start resets the count", () => {
  let told = starts([first, 1]);
  const addMarks = (of: string, ...positions: number[]) => {
    for (const position of positions) told = share(told, seenBy(of, position), "known") ?? told;
    return told.map(({ memory }) => memory.started);
  };
  const nine = (from: number) => Array.from({ length: 9 }, (_, n) => from + n);
  expect(addMarks("2", ...nine(11))).toEqual(["1", "2"]);
  expect(addMarks("1", 11)).toEqual(["1"]);
  expect(addMarks("2", ...nine(20))).toEqual(["1", "2"]);
  expect(addMarks("2", 29)).toEqual(["2"]);
});

it("a start need not have marks of later starts on its timeline, and any other server must have all", () => {
  const told = starts([first, 1], [second, 1], [third, 1]);
  const has = (started: string, timeline = MEMORY.timeline, of = told) =>
    startsToHave(of, { started, timeline }).map(({ memory }) => memory.started);
  expect(["1", "2", "3", "4"].map((started) => has(started))).toEqual([
    ["1"],
    ["1", "2"],
    ["1", "2", "3"],
    ["1", "2", "3"],
  ]);
  expect(has("1", "00000001")).toEqual(["1", "2", "3"]);
  expect(has("1", MEMORY.timeline, starts([seenBy(null, 10), 1], [second, 1]))).toEqual([null, "2"]);
});

/** What happens to a server, one thing after another. */
type Happens = "mark" | "restart" | { setBackBy: number };

it("the shared memory refuses files that lack a mark of any start, and accepts the right files", () => {
  const happens = fc.oneof(
    { weight: 5, arbitrary: fc.constant<Happens>("mark") },
    { weight: 2, arbitrary: fc.constant<Happens>("restart") },
    { weight: 2, arbitrary: fc.record({ setBackBy: fc.integer({ min: 1, max: 30 }) }) },
  );
  fc.assert(
    fc.property(fc.array(happens, { maxLength: 80 }), (history) => {
      let told: Shared = [];
      let marks = ["the first"];
      let start = 0;
      const isRefused = (started: string, has: readonly string[]) =>
        startsToHave(told, { started, timeline: MEMORY.timeline }).some(({ memory }) => {
          const newestId = has[memory.newest.position] ?? null;
          return judgeServer(memory, { ...WHOLE, started, newestId, oldestPosition: 0 }) === "setBack";
        });
      for (const what of history) {
        if (what === "restart") start += 1;
        else if (what === "mark") {
          marks = [...marks, `${marks.length} of ${start}`];
          const newest = { position: marks.length - 1, id: marks.at(-1) ?? "" };
          told = share(told, { ...MEMORY, started: String(start), newest }, "known") ?? told;
        } else {
          const left = marks.slice(0, -what.setBackBy);
          const grown = [...left, ...Array.from({ length: 40 }, (_, n) => `${n} of the copy`)];
          for (const copy of [left, grown]) if (told.length > 0) expect(isRefused("copy", copy)).toBe(true);
          start += 1;
        }
        expect(isRefused(String(start), marks)).toBe(false);
      }
    }),
    { numRuns: 1_000 },
  );
});
