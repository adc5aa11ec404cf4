import type { IncomingMessage, RequestListener, ServerResponse } from "node:http";
import { expect, it } from "vitest";
import type { KeyAuthenticator } from "../../../src/core/keys/authenticate-key.ts";
import { startInTurns } from "../../../src/core/keys/routes/start-in-turns.ts";

type Headers = Record<string, string>;

const nextTurn = () => new Promise<void>((resolve) => setImmediate(resolve));

it("a partner's request starts in the next turn, however many users' requests and made-up keys wait", async () => {
  const { started, waited, send } = record();
  for (let n = 0; n < 3_000; n++) send("user", { authorization: `Bearer token-${n}` });
  for (let n = 0; n < 3_000; n++) send("made-up", { "x-api-key": `key-${n}` });
  expect(started).toHaveLength(64);
  send("partner", { "x-api-key": "known" });
  send("operator", { authorization: "Basic b3BzOg==" });
  await nextTurn();
  expect(started.slice(64, 68)).toEqual(["user", "made-up", "partner", "operator"]);
  expect(started).toHaveLength(128);
  // A request that waited knows when it arrived.
  expect(waited).toHaveLength(64);
});

it("a request whose caller has left while it waited does not start", async () => {
  const { started, send } = record();
  for (let n = 0; n < 64; n++) send("user", {});
  send("gone", {}, true);
  send("here", {});
  await nextTurn();
  expect(started.slice(64)).toEqual(["here"]);
});

/**
 * A listener that records the names of the requests that it starts. Keys that begin with `known` have an organization.
 */
function record() {
  const started: string[] = [];
  const waited: string[] = [];
  const knownOrganization = (secret: string) => (secret.startsWith("known") ? secret : null);
  const app: RequestListener = (request) => {
    const name = String(request.headers["x-name"]);
    started.push(name);
    if (request.arrivedAtMs !== undefined) waited.push(name);
  };
  const listener = startInTurns({ keys: { knownOrganization } as unknown as KeyAuthenticator }, app);
  const send = (name: string, headers: Headers, destroyed = false) =>
    listener(
      { headers: { ...headers, "x-name": name }, socket: { destroyed } } as unknown as IncomingMessage,
      {} as ServerResponse,
    );
  return { started, waited, send };
}
