import { EventEmitter } from "node:events";
import type pg from "pg";
import { pino } from "pino";
import { expect, it } from "vitest";
import { DatabaseFence } from "../../src/platform/db/database-fence.ts";
import type { Mark, Memory, Shared, SharedMemory } from "../../src/platform/marks.ts";
import { until } from "../support/until.ts";

const log = pino({ level: "silent" });
const setBack = { state: "copied", message: expect.stringContaining("set back") };

it("a process that reached a promoted standby leaves the former primary and refuses it from then on", async () => {
  const deployment = new DatabaseFence(log);
  const [former, promoted, again] = [
    new Connection(new Server("00000001")),
    new Connection(new Server("00000002")),
    new Connection(new Server("00000001")),
  ];
  await deployment.admit(former.client);
  const before = deployment.origin;
  await deployment.admit(promoted.client);
  expect([former.closed, promoted.closed]).toEqual([true, false]);
  expect(deployment.origin).not.toBe(before);
  await expect(deployment.admit(again.client)).rejects.toThrow("was the primary before a standby was promoted");
  expect(deployment.origin).toBe("d/db/00000002/1");
});

it("a server that was started again is another origin, to which no open connection belongs", async () => {
  const deployment = new DatabaseFence(log);
  const [before, after] = [new Connection(new Server("00000001")), new Connection(new Server("00000001", "2"))];
  await deployment.admit(before.client);
  const origin = deployment.originOf(before.client);
  expect(origin).toBe(deployment.origin);
  await deployment.admit(after.client);
  expect(before.closed).toBe(true);
  expect([deployment.originOf(before.client), deployment.originOf(after.client)]).toEqual([
    undefined,
    "d/db/00000001/2",
  ]);
});

it("a connection of another login must have reached the server in use, and closes with the others", async () => {
  const deployment = new DatabaseFence(log);
  const server = new Server("00000001");
  await expect(deployment.admitLogin(new Connection(server).client)).rejects.toThrow("not been reached yet");
  await deployment.admit(new Connection(server).client);
  const login = new Connection(server);
  await deployment.admitLogin(login.client);
  for (const elsewhere of [new Server("00000001", "2"), new Server("00000002")]) {
    const stray = deployment.admitLogin(new Connection(elsewhere).client);
    await expect(stray).rejects.toThrow("OPS_DATABASE_URL leads to another server");
  }
  expect([deployment.origin, login.closed]).toEqual(["d/db/00000001/1", false]);
  await deployment.admit(new Connection(new Server("00000002")).client);
  expect(login.closed).toBe(true);
});

it("a starting process compares each of its first connections with what other processes remember", async () => {
  const shared = shareOf({ position: 2, id: "b" });
  const deployment = new DatabaseFence(log, shared.store);
  const copy = new Server("00000001", "1", ["a", "c", "d"]);
  const admitted = [1, 2, 3].map(() => deployment.admit(new Connection(copy).client));
  for (const each of admitted) await expect(each).rejects.toMatchObject(setBack);
  await deployment.admit(new Connection(new Server("00000001", "2", ["a", "b"])).client);
  expect(deployment.origin).toBe("d/db/00000001/2");
});

it("a process that starts waits a bounded time for what other processes remember, and learns it later", async () => {
  const shared = shareOf({ position: 2, id: "b" });
  const answer = Promise.withResolvers<null>();
  let read: SharedMemory["read"] = () => answer.promise;
  const deployment = new DatabaseFence(log, { ...shared.store, read: (id) => read(id) });
  const server = new Server("00000001", "1", ["a"]);
  const connection = new Connection(server);
  await deployment.admit(connection.client);
  read = shared.store.read;
  void deployment.watchShared(connection.pool);
  await until(() => connection.closed);
  await expect(deployment.admit(new Connection(server).client)).rejects.toMatchObject(setBack);
  // The process shares the lacking mark with the others, and no mark of this server.
  await until(() => shared.lacked?.newest.id === "b");
  deployment.close();
  expect(shared.written).toEqual([]);
});

it("a process asks others again what they remember when its server has started again", async () => {
  const shared = shareOf(null);
  const deployment = new DatabaseFence(log, shared.store);
  await deployment.admit(new Connection(new Server("00000001", "1", ["a", "b"])).client);
  shared.remember({ position: 2, id: "b" });
  const copies = [new Server("00000001", "2", ["a"]), new Server("00000001", "2", ["a", "c"])];
  for (const copy of copies) {
    await expect(deployment.admit(new Connection(copy).client)).rejects.toMatchObject(setBack);
  }
});

it("a process on a copy leaves the newest mark of others in Redis, and a starting one compares with both", async () => {
  const shared = shareOf({ position: 2, id: "b" });
  const copy = new Server("00000001", "2", ["a"]);
  const onCopy = new DatabaseFence(log, shared.store);
  await expect(onCopy.admit(new Connection(copy).client)).rejects.toMatchObject(setBack);
  shared.remember({ position: 3, id: "c" });
  void onCopy.watchShared(new Connection(copy).pool);
  await until(() => shared.lacked?.newest.id === "b");
  onCopy.close();
  expect(shared.newest()).toEqual(["c"]);
  const starts = (marks: string[]) =>
    new DatabaseFence(log, shared.store).admit(new Connection(new Server("00000001", "3", marks)).client);
  await starts(["a", "b", "c"]);
  await expect(starts(["a", "b"])).rejects.toMatchObject(setBack);
  // The state of Redis after it was emptied and a process that knew nothing has used the copy.
  shared.remember({ position: 1, id: "a" });
  await expect(starts(["a"])).rejects.toMatchObject(setBack);
});

it("a mark counts once Redis has it or is away, and an older memory never replaces a newer one there", async () => {
  const shared = shareOf({ position: 1, id: "a" });
  const written = Promise.withResolvers<void>();
  const replace: SharedMemory["replace"] = async (next, before) => {
    const done = await shared.store.replace(next, before);
    await written.promise;
    return done;
  };
  const deployment = new DatabaseFence(log, { ...shared.store, replace });
  const connection = new Connection(new Server("00000001", "1", ["a", "b"]));
  await deployment.admit(connection.client);
  void deployment.watchMarks(connection.pool);
  await until(() => shared.written.length === 1);
  expect(deployment.memory?.newest.id).toBe("a");
  written.resolve();
  await until(() => deployment.memory?.newest.id === "b");
  shared.remember({ position: 2, id: "b" });
  const looks = shared.looks;
  await until(() => shared.looks > looks + 1);
  deployment.close();
  expect(shared.written.map((starts) => shared.newest(starts))).toEqual([["a", "b"]]);
});

/** A process that uses a server, and makes and shares marks on it until it is closed. */
async function startOn(server: Server, store: SharedMemory) {
  const deployment = new DatabaseFence(log, store);
  const connection = new Connection(server);
  await deployment.admit(connection.client);
  const marks = () => void deployment.watchMarks(connection.pool);
  return { deployment, connection, marks, admit: () => deployment.admit(new Connection(server).client) };
}

it("a server's processes go on beside a copy with all of its marks, and the copy's processes refuse it", async () => {
  const shared = shareOf({ position: 1, id: "a" });
  const [original, copy] = [new Server("00000001", "1", ["a", "b"]), new Server("00000001", "2", ["a", "b"])];
  const onOriginal = await startOn(original, shared.store);
  onOriginal.marks();
  await until(() => shared.newest().join() === "a,b");
  onOriginal.deployment.close();
  const onCopy = await startOn(copy, shared.store);
  copy.marks.push("copy's");
  onCopy.marks();
  await until(() => shared.newest().join() === "a,b,copy's");
  const { looks } = shared;
  const goesOn = await startOn(original, shared.store);
  void goesOn.deployment.watchShared(goesOn.connection.pool);
  await until(() => shared.looks > looks + 3);
  await goesOn.admit();
  original.marks.push("c");
  goesOn.marks();
  await until(() => onCopy.connection.closed);
  await expect(onCopy.admit()).rejects.toMatchObject(setBack);
  await goesOn.admit();
  expect([goesOn.connection.closed, shared.newest()]).toEqual([false, ["a", "c"]]);
  await until(() => shared.lacked?.newest.id === "c");
  for (const { deployment } of [onCopy, goesOn]) deployment.close();
});

it("a start of a server must have the marks of all shared starts, or reports the one that it lacks", async () => {
  const shared = shareOf({ position: 1, id: "a" });
  shared.starts = [...shared.starts, shared.seen({ position: 2, id: "b" }, "1")];
  const { deployment } = await startOn(new Server("00000001", "2", ["a", "b"]), shared.store);
  expect(deployment.memory?.newest.id).toBe("b");
  const setBackFiles = new Server("00000001", "2", ["a", "c"]);
  await expect(startOn(setBackFiles, shared.store)).rejects.toMatchObject(setBack);
  expect(shared.lacked?.newest.id).toBe("b");
});

it("a process that was led to a later start of its server shares no mark of the earlier start", async () => {
  const shared = shareOf({ position: 2, id: "b" });
  const { deployment } = await startOn(new Server("00000001", "0", ["a", "b"]), shared.store);
  shared.starts = [shared.seen({ position: 1, id: "a" }), shared.seen({ position: 3, id: "c" }, "1")];
  const again = new Connection(new Server("00000001", "1", ["a", "b", "c"]));
  await deployment.admit(again.client);
  expect(deployment.memory?.newest.id).toBe("b");
  const { looks } = shared;
  void deployment.watchShared(again.pool);
  await until(() => shared.looks > looks + 2);
  deployment.close();
  expect(shared.newest()).toEqual(["a", "c"]);
});

it("a mark that is shared while another process writes is shared before it counts", async () => {
  const shared = shareOf({ position: 1, id: "a" });
  let isFirst = true;
  const replace: SharedMemory["replace"] = async (next, before) => {
    if (isFirst) shared.remember({ position: 2, id: "b" });
    isFirst = false;
    deployment.close();
    return shared.store.replace(next, before);
  };
  const server = new Server("00000001", "0", ["a", "b", "c"]);
  const { deployment, marks } = await startOn(server, { ...shared.store, replace });
  marks();
  await until(() => deployment.memory?.newest.id === "c");
  expect(shared.newest()).toEqual(["c"]);
});

it("an accepted loss lifts a refusal only if it was accepted after the remembered mark", async () => {
  const shared = shareOf(null);
  const deployment = new DatabaseFence(log, shared.store);
  const server = new Server("00000001", "1", ["a", "b"]);
  server.acceptedLosses = ["old"];
  const connection = new Connection(server);
  await deployment.admit(connection.client);
  void deployment.watchMarks(connection.pool);
  await until(() => deployment.memory?.newest.id === "b");
  deployment.close();
  const copy = new Server("00000001", "2", ["a"]);
  copy.acceptedLosses = ["old"];
  await expect(deployment.admit(new Connection(copy).client)).rejects.toMatchObject(setBack);
  copy.acceptedLosses = ["old", "new"];
  await deployment.admit(new Connection(copy).client);
  expect(deployment.memory).toBeNull();
});

it("a connection whose answer is overtaken by a mark is compared with that mark", async () => {
  const deployment = new DatabaseFence(log);
  const server = new Server("00000001", "1", ["a"]);
  const first = new Connection(server);
  await deployment.admit(first.client);
  const late = [new Connection(server), new Connection(new Server("00000001", "2", ["a"]))];
  const answer = Promise.withResolvers<void>();
  for (const each of late) each.held = answer.promise;
  const admitted = late.map((each) => deployment.admit(each.client));
  server.marks.push("b");
  void deployment.watchMarks(first.pool);
  await until(() => deployment.memory?.newest.id === "b");
  deployment.close();
  answer.resolve();
  await admitted[0];
  await expect(admitted[1]).rejects.toMatchObject(setBack);
});

it("a mark that is confirmed while another server takes over is not remembered", async () => {
  const deployment = new DatabaseFence(log);
  const server = new Server("00000001", "1", ["a"]);
  const first = new Connection(server);
  await deployment.admit(first.client);
  const answer = Promise.withResolvers<void>();
  first.held = answer.promise;
  const asked = Promise.withResolvers<void>();
  const connect = async () => {
    asked.resolve();
    return first;
  };
  void deployment.watchMarks({ ...first.pool, connect } as unknown as pg.Pool);
  await asked.promise;
  await deployment.admit(new Connection(new Server("00000002", "2", [])).client);
  answer.resolve();
  deployment.close();
  await new Promise(setImmediate);
  expect(deployment.memory).toBeNull();
});

/** The answer to a query. */
const resultOf = (row: object) => ({
  rows: [Object.values(row)],
  fields: Object.keys(row).map((name) => ({ name })),
});

/** A server with marks at the positions from 1 on. */
class Server {
  readonly timeline: string;
  readonly started: string;
  readonly marks: string[];
  acceptedLosses: string[] = [];

  constructor(timeline: string, started = "1", marks: string[] = []) {
    this.timeline = timeline;
    this.started = started;
    this.marks = marks;
  }

  answer({ name = "", values = [] }: { name?: string; values?: (number | null)[] }) {
    const idAt = (position: number | null | undefined) => this.marks[(position ?? 0) - 1] ?? null;
    const recalled = {
      newestId: idAt(values[0]),
      lastingId: idAt(values[1]),
      oldestPosition: this.marks.length > 0 ? 1 : null,
      acceptedLosses: this.acceptedLosses,
    };
    const { timeline, started } = this;
    const clock = { trustedAt: null, now: new Date() };
    // The columns have the order of the statements, in which their readers may have found them already.
    if (name === "identify_database") {
      const identity = { deploymentId: "d", readOnly: false, isCopy: false, database: "db", timeline, started };
      return resultOf({ ...identity, ...recalled, ...clock });
    }
    if (name === "recall_marks") return resultOf({ timeline, started, ...recalled, isReplicated: false });
    if (name === "observe_clock") return resultOf(clock);
    const position = this.marks.length;
    const older = { "older.position": null, "older.id": null };
    return resultOf({ position, id: idAt(position), ...older, started, isReplicated: false });
  }
}

/** A connection to a server. It records whether it was closed. */
class Connection extends EventEmitter {
  closed = false;
  readonly connection = Object.assign(new EventEmitter(), {
    stream: {
      destroy: () => {
        this.closed = true;
      },
    },
  });
  readonly #server: Server;
  /** What its answers wait for. */
  held: Promise<void> | undefined;

  constructor(server: Server) {
    super();
    this.#server = server;
  }

  async query(query: object) {
    const answer = this.#server.answer(query);
    await this.held;
    return answer;
  }

  release() {}

  /** A pool of this connection. */
  get pool(): pg.Pool {
    return { connect: async () => this, query: (query: object) => this.query(query) } as unknown as pg.Pool;
  }

  get client(): pg.ClientBase {
    return this as unknown as pg.ClientBase;
  }
}

/** Redis with what another process remembers of the start "0" of a server. It keeps what is written. */
function shareOf(newest: Mark | null) {
  const seen = (mark: Mark, started = "0") => {
    const memory = { deploymentId: "d", timeline: "00000001", started, newest: mark, lasting: null };
    return { memory: { ...memory, acceptedLosses: [] }, marks: 1 };
  };
  const shared = {
    starts: (newest === null ? [] : [seen(newest)]) as Shared,
    lacked: null as Memory | null,
    written: [] as Shared[],
    looks: 0,
    seen,
    /** The newest mark of each start. */
    newest: (starts?: Shared): string[] => (starts ?? shared.starts).map(({ memory }) => memory.newest.id),
    remember(mark: Mark) {
      shared.starts = [seen(mark)];
    },
  };
  const store: SharedMemory = {
    read: async () => {
      shared.looks += 1;
      const { starts, lacked } = shared;
      return { text: JSON.stringify(starts), starts, lacked };
    },
    replace: async (next, before) => {
      if (before.text !== JSON.stringify(shared.starts)) return false;
      shared.starts = next;
      shared.written.push(next);
      return true;
    },
    keepLacked: async (refused) => {
      shared.lacked = refused;
    },
  };
  return Object.assign(shared, { store });
}
