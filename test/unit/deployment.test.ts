import { EventEmitter } from "node:events";
import type pg from "pg";
import { pino } from "pino";
import { expect, it } from "vitest";
import { Deployment } from "../../src/db/deployment.ts";

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
  readonly #timeline: string;

  constructor(timeline: string) {
    super();
    this.#timeline = timeline;
  }

  async query() {
    const row = { deploymentId: "d", readOnly: false, isCopy: false, database: "db", timeline: this.#timeline };
    return { rows: [Object.values(row)], fields: Object.keys(row).map((name) => ({ name })) };
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
  expect(deployment.origin).toBe("d/db/00000002");
});
