import type { IncomingMessage, RequestListener, ServerResponse } from "node:http";
import { expect, it } from "vitest";
import type { KeyAuthenticator } from "../../../src/core/keys/authenticate-key.ts";
import { startInTurns } from "../../../src/core/keys/routes/start-in-turns.ts";
import { nextPiece } from "../../../src/platform/batching/fair-slots.ts";
import { until } from "../../support/until.ts";

type Headers = Record<string, string>;

const nextTurn = () => new Promise<void>((resolve) => setImmediate(resolve));

it("a partner's request starts at once, however many users' requests and unknown keys wait", async () => {
  const { started, waited, send } = record();
  for (let n = 0; n < 3_000; n++) send("user", { authorization: `Bearer token-${n}` });
  for (let n = 0; n < 3_000; n++) send("made-up", { "x-api-key": `key-${n}` });
  expect(started).toHaveLength(64);
  send("partner", { "x-api-key": "known" });
  send("operator", { authorization: "Basic b3BzOg==" });
  await Promise.resolve();
  // Half of the started requests are of users, and half of the rest have unknown keys.
  const starts = Object.entries(Object.groupBy(started, (name) => name)).map(([name, all]) => [name, all?.length]);
  expect(starts).toEqual([
    ["user", 128],
    ["made-up", 32],
    ["partner", 1],
    ["operator", 1],
  ]);
  // Each request that waited for its start keeps the time of its arrival.
  expect(waited).toHaveLength(98);
  await nextTurn();
  await nextTurn();
  const later = Object.groupBy(started.slice(162), (name) => name);
  expect(later.user?.length).toBeGreaterThan(30);
  expect(later["made-up"]?.length).toBeGreaterThan(30);
});

it("a waiting request does not start if its caller has disconnected", async () => {
  const { started, send } = record();
  for (let n = 0; n < 128; n++) send("user", {});
  send("gone", {}, true);
  send("here", {});
  await until(() => started.length > 128);
  expect(started.slice(128)).toEqual(["here"]);
});

it("nextPiece lets at most one piece of long work run in each turn of the event loop", async () => {
  let pieces = 0;
  for (let n = 0; n < 5; n++) void nextPiece().then(() => (pieces += 1));
  const seen: number[] = [];
  for (let turn = 0; turn < 5; turn++) {
    await nextTurn();
    seen.push(pieces);
  }
  // At most one piece of work has run in each turn of the event loop, or two in the first.
  for (const [turn, count] of seen.entries())
    expect(count - (seen[turn - 1] ?? 0)).toBeLessThanOrEqual(turn === 0 ? 2 : 1);
  await until(() => pieces === 5);
});

/** Makes a listener that records which requests started. Keys that begin with `known` belong to an organization. */
function record() {
  const started: string[] = [];
  const waited: string[] = [];
  const known = (secret: string) => (secret.startsWith("known") ? { id: "key_1", organizationId: secret } : null);
  const app: RequestListener = (request) => {
    const name = String(request.headers["x-name"]);
    started.push(name);
    if (request.arrivedAtMs !== undefined) waited.push(name);
  };
  const listener = startInTurns({ keys: { known } as unknown as KeyAuthenticator }, app);
  const send = (name: string, headers: Headers, destroyed = false) =>
    listener(
      { headers: { ...headers, "x-name": name }, socket: { destroyed } } as unknown as IncomingMessage,
      {} as ServerResponse,
    );
  return { started, waited, send };
}
