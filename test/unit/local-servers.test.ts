import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { expect, it, onTestFinished, vi } from "vitest";
import { assertAnswering } from "../../src/local/servers.ts";

it.each([
  ["DATABASE_URL", (address: string) => ({ databaseUrl: `postgres://${address}/x`, redisUrl: null })],
  ["REDIS_URL", (address: string) => ({ databaseUrl: null, redisUrl: `redis://${address}` })],
  ["REDIS_URL", (address: string) => ({ databaseUrl: null, redisUrl: `redis://${address},${address}` })],
])("assertAnswering gives up after 10 seconds and names %s when a server accepts a connection and says nothing", async (name, serversAt) => {
  const server = createServer().listen(0, "127.0.0.1");
  onTestFinished(() => void server.close());
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
  const reason = assertAnswering(serversAt(`127.0.0.1:${port}`)).catch(({ message }) => message);
  const [socket] = await once(server, "connection");
  onTestFinished(() => socket.destroy());
  await vi.advanceTimersByTimeAsync(10_000);
  expect(await reason).toMatch(
    new RegExp(`^${name}: \\w+ does not accept a connection: no answer within 10 seconds\\.$`),
  );
});
