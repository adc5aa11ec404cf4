import { expect, it } from "vitest";
import { refusalFor, waitsFor } from "../../src/platform/db/marks.ts";
import {
  judgeServer,
  keepAfter,
  LACKING_SERVER_GONE_MS,
  type Memory,
  mayUse,
  type Recollection,
  remember,
  SERVER_GONE_MS,
  type ServerStart,
  type ServerVerdict,
} from "../../src/platform/marks.ts";

const at = (position: number, id = `mark ${position}`) => ({ position, id });

const SERVER: ServerStart = { deploymentId: "d", timeline: "00000002", started: "1", host: "10.0.0.1:5432" };
const MEMORY: Memory = { ...SERVER, newest: at(1_000), lasting: at(700), acceptedLosses: ["old"] };
/** A server that has all marks of `MEMORY`, and a loss that operators accepted earlier. */
const WHOLE: ServerStart & Recollection = {
  ...SERVER,
  newestId: "mark 1000",
  lastingId: "mark 700",
  oldestPosition: 1,
  acceptedLosses: ["old"],
};
const [EARLIER, LATER] = ["00000001", "00000003"];
const LACKS_NEWEST = { newestId: null };
const LACKS_BOTH = { newestId: null, lastingId: null };

it.each<[string, ServerVerdict, Partial<Memory>, Partial<Recollection>]>([
  ["with the newest mark", "known", {}, {}],
  ["with the newest mark on a later timeline", "known", {}, { timeline: LATER }],
  ["that has deleted the newest mark, a day later", "known", {}, { newestId: null, oldestPosition: 1_001 }],
  ["without the newest mark", "setBack", {}, LACKS_NEWEST],
  ["with another mark at its position", "setBack", {}, { newestId: "another" }],
  ["without any mark", "setBack", {}, { ...LACKS_BOTH, oldestPosition: null }],
  ["with the newest mark on an earlier timeline", "former", {}, { timeline: EARLIER }],
  ["without the newest mark on an earlier timeline", "former", {}, { ...LACKS_NEWEST, timeline: EARLIER }],
  ["without the newest mark on a later timeline", "promoted", {}, { ...LACKS_NEWEST, timeline: LATER }],
  ["without the lasting mark on a later timeline", "setBack", {}, { ...LACKS_BOTH, timeline: LATER }],
  [
    "on a later timeline, when no mark is lasting yet",
    "promoted",
    { lasting: null },
    { ...LACKS_BOTH, timeline: LATER },
  ],
  ["without marks, when none was confirmed yet", "known", { newest: null, lasting: null }, LACKS_BOTH],
  ["that lacks the mark and an accepted loss", "setBack", {}, { ...LACKS_NEWEST, acceptedLosses: [] }],
  ["that lacks the mark and has a new accepted loss", "accepted", {}, { ...LACKS_NEWEST, acceptedLosses: ["new"] }],
  ["of an earlier timeline with a new accepted loss", "accepted", {}, { timeline: EARLIER, acceptedLosses: ["new"] }],
])("judgeServer judges a server %s as %s", (_, verdict, memory, found) => {
  expect(judgeServer({ ...MEMORY, ...memory }, { ...WHOLE, ...found })).toBe(verdict);
});

it("after an admission, a process remembers the server and the mark rows that the server must keep", () => {
  const server = { timeline: LATER, started: "2", host: "10.0.0.2:5432" };
  const found = { ...WHOLE, ...server };
  const nothing = { newest: null, lasting: null };
  expect(keepAfter("known", MEMORY, WHOLE)).toBe(MEMORY);
  expect(keepAfter("known", MEMORY, found)).toEqual({ ...MEMORY, ...server });
  expect(keepAfter("promoted", MEMORY, found)).toEqual({ ...MEMORY, ...server, newest: at(700) });
  expect(keepAfter("known", null, found)).toEqual({ ...MEMORY, ...server, ...nothing });
  const acceptedLosses = ["old", "new"];
  const accepted = keepAfter("accepted", MEMORY, { ...found, acceptedLosses: ["new"] });
  expect(accepted).toEqual({ ...MEMORY, ...server, ...nothing, acceptedLosses });
});

it("a mark row counts as lasting once a synchronous standby confirms it or 300 newer mark rows exist", () => {
  const look = { timeline: SERVER.timeline, started: "1", newest: at(1_001), older: at(701), acceptedLosses: ["new"] };
  const next = { ...MEMORY, newest: at(1_001), acceptedLosses: ["old", "new"] };
  expect(remember(MEMORY, { ...look, isReplicated: false })).toEqual({ ...next, lasting: at(701) });
  const replicated = remember(MEMORY, { ...look, isReplicated: true });
  expect(replicated).toEqual({ ...next, lasting: at(1_001) });
  const later = { ...look, newest: at(1_002), older: at(702), isReplicated: false };
  expect(remember(replicated, later).lasting).toEqual(at(1_001));
  expect(remember({ ...MEMORY, lasting: null }, { ...look, older: null, isReplicated: false }).lasting).toBeNull();
});

const TOLD = { text: "shared", memory: MEMORY };
const EMPTY = { text: "", memory: null };
const UNREADABLE = { text: "unreadable", memory: null };
const ANOTHER = { ...WHOLE, started: "2" };

it.each<[string, typeof TOLD | typeof EMPTY, ServerVerdict, Partial<typeof WHOLE>, number]>([
  ["that shared the last mark", TOLD, "known", {}, 0],
  ["that was started again", TOLD, "known", ANOTHER, SERVER_GONE_MS],
  ["that was promoted and runs on", TOLD, "known", { timeline: LATER }, SERVER_GONE_MS],
  ["of a later timeline with all marks", TOLD, "known", { ...ANOTHER, timeline: LATER }, SERVER_GONE_MS],
  ["of a later timeline that lacks marks", TOLD, "promoted", { ...ANOTHER, timeline: LATER }, LACKING_SERVER_GONE_MS],
  ["whose loss was accepted", TOLD, "accepted", ANOTHER, SERVER_GONE_MS],
  ["without any mark where nothing is shared", EMPTY, "known", { oldestPosition: null }, 0],
  ["with marks where nothing is shared", EMPTY, "known", {}, SERVER_GONE_MS],
  ["without any mark beside an unreadable text", UNREADABLE, "known", { oldestPosition: null }, SERVER_GONE_MS],
])("mayUse admits a server %s, once other servers have been silent long enough", (_, told, verdict, found, afterMs) => {
  const may = (silentMs: number) => mayUse(told, verdict, silentMs, { ...WHOLE, ...found });
  expect(may(afterMs)).toBe(true);
  if (afterMs > 0) expect(may(afterMs - 1)).toBe(false);
});

it("a refusal names the server with newer mark rows, and advises db adopt only if files were set back", () => {
  const place = "10.0.0.1:5432 on timeline 2";
  expect(waitsFor(MEMORY).message).toContain(`Another server of this deployment makes marks: ${place}.`);
  expect(waitsFor(null).message).toContain("may make marks");
  const former = refusalFor("former", MEMORY);
  expect(former?.message).toContain(
    `was the primary before a standby was promoted. The last mark was seen at ${place}`,
  );
  for (const refusal of [waitsFor(MEMORY), waitsFor(null), former]) expect(refusal?.message).not.toContain("adopt");
  expect(refusalFor("setBack", MEMORY)?.message).toMatch(new RegExp(`set back.*${place}.*db adopt$`));
  for (const verdict of ["known", "promoted", "accepted"] as const) expect(refusalFor(verdict, MEMORY)).toBeNull();
});
