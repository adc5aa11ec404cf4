import { EventEmitter } from "node:events";
import type pg from "pg";
import { pino } from "pino";
import { expect, it } from "vitest";
import { Deployment } from "../../src/db/deployment.ts";
import { until } from "../support/until.ts";

/** The answer to a query. */
const resultOf = (row: object) => ({
  rows: [Object.values(row)],
  fields: Object.keys(row).map((name) => ({ name })),
});

/** A connection that identifies itself as given, and records whether it was closed. */
class Connection extends EventEmitter {
  closed = false;
  readonly connection = {
    stream: {
      destroy: () => {
        this.closed = true;
      },
    },
  };
  readonly #server: { timeline: string; started: string; walEnd: number };

  constructor(timeline: string, started = "1", walEnd = 100) {
    super();
    this.#server = { timeline, started, walEnd };
  }

  /** What its answer waits for. */
  held: Promise<void> | undefined;

  async query() {
    await this.held;
    const row = {
      deploymentId: "d",
      readOnly: false,
      isCopy: false,
      database: "db",
      ...this.#server,
      trustedAt: null,
      now: new Date(),
    };
    return resultOf(row);
  }

  get client(): pg.ClientBase {
    return this as unknown as pg.ClientBase;
  }
}

it("a process that reached a promoted standby closes its connections to the former primary and refuses new ones", async () => {
  const deployment = new Deployment(pino({ level: "silent" }));
  const [former, promoted, again] = [
    new Connection("00000001"),
    new Connection("00000002"),
    new Connection("00000001"),
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
  const deployment = new Deployment(pino({ level: "silent" }));
  const [before, after] = [new Connection("00000001"), new Connection("00000001", "2")];
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

it("a server whose write-ahead log ends before a known position is refused, and not on a later timeline", async () => {
  const deployment = new Deployment(pino({ level: "silent" }));
  await deployment.admit(new Connection("00000001", "1", 100).client);
  await expect(deployment.admit(new Connection("00000001", "2", 99).client)).rejects.toMatchObject({ state: "copied" });
  await deployment.admit(new Connection("00000002", "3", 99).client);
  expect(deployment.origin).toBe("d/db/00000002/3");
});

it.each<[string, (deployment: Deployment) => Promise<unknown>]>([
  ["that of a later one", (deployment) => deployment.admit(new Connection("00000001", "1", 120).client)],
  [
    "a look at the server",
    async (deployment) => {
      const query = async () => resultOf({ walEnd: 120, trustedAt: null, now: new Date() });
      void deployment.watch({ query } as unknown as pg.Pool);
      await until(() => deployment.walEnd === 120);
      deployment.close();
    },
  ],
])("a connection whose answer is overtaken by %s is not taken for a server that was set back", async (_what, overtake) => {
  const deployment = new Deployment(pino({ level: "silent" }));
  await deployment.admit(new Connection("00000001", "1", 100).client);
  const late = new Connection("00000001", "1", 110);
  const answer = Promise.withResolvers<void>();
  late.held = answer.promise;
  const admitted = deployment.admit(late.client);
  await overtake(deployment);
  answer.resolve();
  await admitted;
  expect(deployment.walEnd).toBe(120);
});
