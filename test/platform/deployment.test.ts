import { EventEmitter } from "node:events";
import type pg from "pg";
import { pino } from "pino";
import { expect, it } from "vitest";
import { DatabaseClock } from "../../src/platform/db/database-clock.ts";
import { DatabaseFence } from "../../src/platform/db/database-fence.ts";
import {
  LACKING_SERVER_GONE_MS,
  type Mark,
  type Memory,
  SERVER_GONE_MS,
  type SharedMemory,
} from "../../src/platform/marks.ts";
import { until } from "../support/until.ts";

const log = pino({ level: "silent" });
const setBack = { state: "copied", message: expect.stringContaining("set back") };
const waits = {
  state: "unavailable",
  message: expect.stringContaining("Another server of this deployment makes marks"),
};

/** Makes a process that has not reached a database yet, with a clock that the test moves. */
function openFence(store: SharedMemory) {
  let nowMs = 0;
  const deployment = new DatabaseFence(log, store, new DatabaseClock(() => nowMs));
  const passMs = (ms: number) => {
    nowMs += ms;
  };
  return { deployment, clock: { passMs } };
}

it("DatabaseFence refuses the former primary once it has admitted a promoted standby", async () => {
  const deployment = new DatabaseFence(log);
  const [former, promoted, again] = [
    new Connection(new Server("00000001")),
    new Connection(new Server("00000002")),
    new Connection(new Server("00000001")),
  ];
  await deployment.admit(former.client);
  const before = deployment.serverId;
  await deployment.admit(promoted.client);
  expect([former.closed, promoted.closed]).toEqual([true, false]);
  expect(deployment.serverId).not.toBe(before);
  await expect(deployment.admit(again.client)).rejects.toThrow("was the primary before a standby was promoted");
  expect(deployment.serverId).toBe("d/db/00000002/1");
});

it("DatabaseFence treats a restarted server as another server, and closes all earlier connections", async () => {
  const deployment = new DatabaseFence(log);
  const [before, after] = [new Connection(new Server("00000001")), new Connection(new Server("00000001", "2"))];
  await deployment.admit(before.client);
  const origin = deployment.serverIdOf(before.client);
  expect(origin).toBe(deployment.serverId);
  await deployment.admit(after.client);
  expect(before.closed).toBe(true);
  expect([deployment.serverIdOf(before.client), deployment.serverIdOf(after.client)]).toEqual([
    undefined,
    "d/db/00000001/2",
  ]);
});

it("DatabaseFence admits a second login only to the server in use, and closes both together", async () => {
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
  expect([deployment.serverId, login.closed]).toEqual(["d/db/00000001/1", false]);
  await deployment.admit(new Connection(new Server("00000002")).client);
  expect(login.closed).toBe(true);
});

it("a starting process waits for other processes' silence, then refuses a server that lost commits", async () => {
  const shared = shareOf({ position: 2, id: "b" });
  const { deployment, clock } = openFence(shared.store);
  const copy = new Server("00000001", "1", ["a", "c", "d"]);
  const admit = (server: Server) => deployment.admit(new Connection(server).client);
  for (const _ of [1, 2, 3]) await expect(admit(copy)).rejects.toMatchObject(waits);
  clock.passMs(SERVER_GONE_MS);
  for (const each of [1, 2, 3].map(() => admit(copy))) await expect(each).rejects.toMatchObject(setBack);
  expect(shared.written).toEqual([]);
  await admit(new Server("00000001", "2", ["a", "b"]));
  expect([deployment.serverId, shared.memory?.started]).toEqual(["d/db/00000001/2", "2"]);
});

it("a process that started without Redis leaves a server that lost commits, once Redis shows the loss", async () => {
  const shared = shareOf({ position: 2, id: "b" });
  let read: SharedMemory["read"] = async () => null;
  const { deployment, clock } = openFence({ ...shared.store, read: (id) => read(id) });
  const server = new Server("00000001", "1", ["a"]);
  const connection = new Connection(server);
  await deployment.admit(connection.client);
  read = shared.store.read;
  void deployment.watchShared();
  await until(() => connection.closed);
  await expect(deployment.admit(new Connection(server).client)).rejects.toMatchObject(waits);
  clock.passMs(SERVER_GONE_MS);
  await expect(deployment.admit(new Connection(server).client)).rejects.toMatchObject(setBack);
  deployment.close();
  expect(shared.written).toEqual([]);
});

it("a process refuses its restarted server if other processes have seen commits that the server lacks", async () => {
  const shared = shareOf(null);
  const { deployment, clock } = openFence(shared.store);
  const server = new Server("00000001", "1", ["a", "b"]);
  await expect(deployment.admit(new Connection(server).client)).rejects.toThrow("may make marks");
  clock.passMs(SERVER_GONE_MS);
  await deployment.admit(new Connection(server).client);
  shared.remember({ position: 2, id: "b" }, "1");
  const copies = [new Server("00000001", "2", ["a"]), new Server("00000001", "2", ["a", "c"])];
  for (const copy of copies) await expect(deployment.admit(new Connection(copy).client)).rejects.toMatchObject(waits);
  clock.passMs(SERVER_GONE_MS);
  for (const copy of copies) await expect(deployment.admit(new Connection(copy).client)).rejects.toMatchObject(setBack);
});

it("a process relies on a new mark row only once Redis has the row's id, and replaces no newer id", async () => {
  const shared = shareOf({ position: 1, id: "a" }, "1");
  const written = Promise.withResolvers<void>();
  const replace: SharedMemory["replace"] = async (next, before) => {
    const done = await shared.store.replace(next, before);
    await written.promise;
    return done;
  };
  const { deployment } = openFence({ ...shared.store, replace });
  const connection = new Connection(new Server("00000001", "1", ["a", "b"]));
  await deployment.admit(connection.client);
  void deployment.watchMarks(connection.pool);
  await until(() => shared.written.length === 1);
  expect(deployment.memory?.newest?.id).toBe("a");
  written.resolve();
  await until(() => deployment.memory?.newest?.id === "b");
  shared.remember({ position: 3, id: "c" }, "1");
  const looks = shared.looks;
  await until(() => shared.looks > looks + 1);
  deployment.close();
  expect(shared.written.map(({ newest }) => newest?.id)).toEqual(["b"]);
});

/** Opens a process on a database server. It writes marks (random ids) there and shares them in `store`. */
async function startOn(server: Server, store: SharedMemory) {
  const { deployment, clock } = openFence(store);
  const connection = new Connection(server);
  await deployment.admit(connection.client);
  const watch = () => {
    void deployment.watchMarks(connection.pool);
    void deployment.watchShared();
  };
  return { deployment, clock, connection, watch, admit: () => deployment.admit(new Connection(server).client) };
}

const [SAME, LATER] = ["00000001", "00000002"];

it.concurrent.each<[string, string, string[], number]>([
  ["of the same timeline with all marks", SAME, ["a", "b", "c", "d"], SERVER_GONE_MS],
  ["of a later timeline with all marks", LATER, ["a", "b", "c", "d"], SERVER_GONE_MS],
  ["of a later timeline without the last marks", LATER, ["a"], LACKING_SERVER_GONE_MS],
  ["of a later timeline without a lasting mark", LATER, [], Number.POSITIVE_INFINITY],
  ["of the same timeline without the last marks", SAME, ["a"], Number.POSITIVE_INFINITY],
])("a server %s waits while another writes mark rows, even if Redis loses data", async (_, timeline, marks, forMs) => {
  const shared = shareOf({ position: 1, id: "a" }, "1", { position: 1, id: "a" });
  const [original, copy] = [new Server(SAME, "1", ["a"]), new Server(timeline, "2", marks)];
  const onOriginal = await startOn(original, shared.store);
  onOriginal.watch();
  const { deployment, clock } = openFence(shared.store);
  const admitCopy = () => deployment.admit(new Connection(copy).client);
  for (const mark of ["b", "c", "d"]) {
    await expect(admitCopy()).rejects.toMatchObject(waits);
    original.marks.push(mark);
    await until(() => shared.memory?.newest?.id === mark);
    clock.passMs(SERVER_GONE_MS - 1);
    await expect(admitCopy()).rejects.toMatchObject(waits);
    // Redis loses its data. The processes write their known marks to Redis again before a copy can write its own.
    shared.empty();
    await expect(admitCopy()).rejects.toMatchObject(waits);
    await until(() => shared.memory?.newest?.id === mark);
  }
  expect(shared.written.every(({ started }) => started === "1")).toBe(true);
  await onOriginal.admit();
  // From now on the original's disk hangs, but its processes continue.
  onOriginal.connection.held = new Promise(() => undefined);
  if (Number.isFinite(forMs)) {
    clock.passMs(forMs - 1);
    await expect(admitCopy()).rejects.toMatchObject(waits);
    clock.passMs(1);
    await admitCopy();
    await until(() => onOriginal.connection.closed);
    await expect(onOriginal.admit()).rejects.toMatchObject(waits);
  } else {
    clock.passMs(LACKING_SERVER_GONE_MS);
    await expect(admitCopy()).rejects.toMatchObject(setBack);
    await onOriginal.admit();
  }
  onOriginal.deployment.close();
});

it("a former primary is refused while its successor is silent, unless an operator accepted the loss", async () => {
  const shared = shareOf({ position: 2, id: "b" }, "2", null, LATER);
  const { deployment, clock } = openFence(shared.store);
  const former = new Server(SAME, "1", ["a"]);
  const admit = () => deployment.admit(new Connection(former).client);
  await expect(admit()).rejects.toMatchObject(waits);
  clock.passMs(LACKING_SERVER_GONE_MS);
  const successor = "was the primary before a standby was promoted. The last mark was seen at host 2";
  await expect(admit()).rejects.toThrow(successor);
  former.acceptedLosses = ["new"];
  await admit();
  expect(shared.memory).toMatchObject({ started: "1", newest: null, acceptedLosses: ["new"] });
});

it("of two processes with different servers, the first admits its server and the other one waits", async () => {
  const shared = shareOf({ position: 1, id: "a" });
  const waiting = ["1", "2"].map((started) => ({
    ...openFence(shared.store),
    server: new Server(SAME, started, ["a"]),
  }));
  const admitAll = () =>
    Promise.allSettled(waiting.map(({ deployment, server }) => deployment.admit(new Connection(server).client)));
  await admitAll();
  for (const { clock } of waiting) clock.passMs(SERVER_GONE_MS);
  const ends = await admitAll();
  expect(ends.map(({ status }) => status)).toEqual(["fulfilled", "rejected"]);
  expect([shared.written.length, shared.memory?.started]).toEqual([1, "1"]);
});

it("a process restarts its wait for the deployment's Postgres server if Redis was unavailable meanwhile", async () => {
  const shared = shareOf({ position: 1, id: "a" });
  let read = shared.store.read;
  const { deployment, clock } = openFence({ ...shared.store, read: (id) => read(id) });
  const admit = () => deployment.admit(new Connection(new Server(SAME, "1", ["a"])).client);
  await expect(admit()).rejects.toMatchObject(waits);
  read = async (id) => {
    clock.passMs(SERVER_GONE_MS);
    return shared.store.read(id);
  };
  await expect(admit()).rejects.toMatchObject(waits);
  read = shared.store.read;
  clock.passMs(SERVER_GONE_MS - 1);
  await expect(admit()).rejects.toMatchObject(waits);
  clock.passMs(1);
  await admit();
  const other = openFence({ ...shared.store, read: (id) => read(id) });
  const admitOther = () => other.deployment.admit(new Connection(new Server(SAME, "2", ["a"])).client);
  await expect(admitOther()).rejects.toMatchObject(waits);
  other.clock.passMs(SERVER_GONE_MS);
  read = async () => null;
  await expect(admitOther()).rejects.toMatchObject(waits);
});

it("a process relies on a new mark row only once Redis has its id, even while another process writes", async () => {
  const shared = shareOf({ position: 1, id: "a" }, "1");
  let isFirst = true;
  const replace: SharedMemory["replace"] = async (next, before) => {
    expect(deployment.memory?.newest?.id).toBe("a");
    if (isFirst) shared.remember({ position: 2, id: "b" }, "1");
    isFirst = false;
    return shared.store.replace(next, before);
  };
  const server = new Server("00000001", "1", ["a", "b", "c"]);
  const { deployment, watch } = await startOn(server, { ...shared.store, replace });
  watch();
  await until(() => deployment.memory?.newest?.id === "c");
  deployment.close();
  expect(shared.memory?.newest?.id).toBe("c");
});

it("a process refuses a server that lost commits, unless an operator accepted the loss afterwards", async () => {
  const deployment = new DatabaseFence(log);
  const server = new Server("00000001", "1", ["a", "b"]);
  server.acceptedLosses = ["old"];
  const connection = new Connection(server);
  await deployment.admit(connection.client);
  void deployment.watchMarks(connection.pool);
  await until(() => deployment.memory?.newest?.id === "b");
  deployment.close();
  const copy = new Server("00000001", "2", ["a"]);
  copy.acceptedLosses = ["old"];
  await expect(deployment.admit(new Connection(copy).client)).rejects.toMatchObject(setBack);
  copy.acceptedLosses = ["old", "new"];
  await deployment.admit(new Connection(copy).client);
  expect(deployment.memory?.newest).toBeNull();
});

it("a connection is also checked for commits that the process saw during the connection's check", async () => {
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
  await until(() => deployment.memory?.newest?.id === "b");
  deployment.close();
  answer.resolve();
  await admitted[0];
  await expect(admitted[1]).rejects.toMatchObject(setBack);
});

it("DatabaseFence ignores a mark row whose COMMIT returns after another server was admitted", async () => {
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
  expect(deployment.memory?.newest).toBeNull();
});

/** The result of a query. */
const resultOf = (row: object) => ({
  rows: [Object.values(row)],
  fields: Object.keys(row).map((name) => ({ name })),
});

/** A database server with the given marks (random ids that processes write), at the positions from 1 on. */
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
    const clock = { trustedAt: null, closedUntil: new Date(0), now: new Date() };
    // The code that reads results caches the columns' positions, so these columns have the statement's order.
    if (name === "identify_database") {
      const host = `host ${started}`;
      const identity = { deploymentId: "d", readOnly: false, isCopy: false, database: "db", timeline, started, host };
      return resultOf({ ...identity, ...recalled, ...clock });
    }
    if (name === "recall_marks") return resultOf({ timeline, ...recalled, isReplicated: false });
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
  /** If set, the connection's answers wait until this promise resolves. */
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

/** A Redis in which another process has stored what it remembers of a server. `written` has all later writes. */
function shareOf(newest: Mark | null, started = "0", lasting: Mark | null = null, timeline = "00000001") {
  const seen = (mark: Mark, started: string): Memory => {
    const server = { deploymentId: "d", timeline, started, host: `host ${started}` };
    return { ...server, newest: mark, lasting, acceptedLosses: [] };
  };
  const shared = {
    memory: newest && seen(newest, started),
    written: [] as Memory[],
    looks: 0,
    remember(mark: Mark, started: string) {
      shared.memory = seen(mark, started);
    },
    empty() {
      shared.memory = null;
    },
  };
  const read = () => ({ text: shared.memory ? JSON.stringify(shared.memory) : "", memory: shared.memory });
  const store: SharedMemory = {
    read: async () => {
      shared.looks += 1;
      return read();
    },
    replace: async (next, before) => {
      if (before.text !== read().text) return false;
      shared.memory = next;
      shared.written.push(next);
      return true;
    },
  };
  return Object.assign(shared, { store });
}
