import { once } from "node:events";
import { type AddressInfo, connect, createServer } from "node:net";
import { expect, it } from "vitest";
import { findShard } from "../../../src/platform/queues/shards.ts";
import { itOnOneRedis } from "../../support/servers.ts";
import { startApi, startWorkers } from "../../support/service.ts";
import { until } from "../../support/until.ts";
import { useDatabase } from "../../support/use-service.ts";
import { useVoucherctl } from "../../support/voucherctl.ts";

const { servers } = useDatabase();
const voucherctl = useVoucherctl(servers);

it("voucherctl queue drop-shards deletes only Redis keys of queues that no process uses", async () => {
  const current = await startApi(servers);
  const former = await startApi(servers, { QUEUE_SHARDS: "4" });
  const { prefix } = findShard(servers.deploymentId, 3, 4);
  // Writes a key as a failed job leaves it, and a key that belongs to no queue.
  await servers.redis.hset(`${prefix}:redeem:vch_1`, "data", "{}");
  await servers.redis.set(`${prefix}:other`, "");
  const refused = await voucherctl.run(["queue", "drop-shards", "4"]);
  const stderr = expect.stringContaining("4 shards: no worker serves");
  expect(refused).toEqual({ exitCode: 1, stdout: "", stderr });

  await former.close();
  // A worker with only an optional queue also counts as a user of the shards.
  const sender = await startWorkers(servers, {
    QUEUE_SHARDS: "4",
    WORKER_QUEUES: "webhook",
    WEBHOOK_SECRET: "0".repeat(64),
  });
  await until(async () => {
    const { apis, served } = await divisionOf(4);
    return apis === 0 && served;
  });
  expect((await voucherctl.run(["queue", "drop-shards", "4"])).exitCode).toBe(1);
  await sender.close();
  const left = await keysOf(4);
  expect(left.length).toBeGreaterThan(2);
  // Makes the keys permanent, because some of them would expire within seconds.
  for (const key of left) await servers.redis.persist(key);
  const kept = await keysOf(servers.shards.length);
  expect(kept.length).toBeGreaterThan(0);
  // Redis notices closed connections a moment later.
  await until(async () => (await divisionOf(4)).state === "unused");
  expect(await voucherctl.json("queue", "drop-shards", "4")).toEqual({ shards: 4, keys: left.length - 1 });
  expect(await keysOf(4)).toEqual([`${prefix}:other`]);
  expect(await keysOf(servers.shards.length)).toEqual(kept);
  expect(await voucherctl.json("queue", "drop-shards", "4")).toEqual({ shards: 4, keys: 0 });
  const { rows } = await servers.db.query(
    "SELECT arguments, entity_id FROM audit_entries WHERE command = 'queue drop-shards'",
  );
  expect(rows).toEqual([{ arguments: expect.anything(), entity_id: servers.deploymentId }]);
  await current.close();
});

itOnOneRedis("voucherctl queue shards exits with 69 if Redis stops responding during the command", async () => {
  const { hostname, port } = new URL(servers.redisUrl);
  const dying = createServer((client) => {
    const redis = connect(Number(port), hostname);
    client.on("data", (bytes) => (bytes.includes("LIST") ? client.destroy() : redis.write(bytes)));
    redis.on("data", (bytes) => client.write(bytes));
    for (const socket of [client, redis]) {
      socket.on("error", () => undefined);
      socket.on("close", () => [client, redis].forEach((each) => void each.destroy()));
    }
  }).listen(0, "127.0.0.1");
  try {
    await once(dying, "listening");
    const url = new URL(servers.redisUrl);
    url.host = `127.0.0.1:${(dying.address() as AddressInfo).port}`;
    expect(await voucherctl.run(["queue", "shards"], { REDIS_URL: url.href })).toEqual({
      exitCode: 69,
      stdout: "",
      stderr: expect.stringMatching(/^Redis does not answer \(.+\)\. Check REDIS_URL\.\n$/),
    });
  } finally {
    dying.close();
  }
});

async function keysOf(shards: number): Promise<string[]> {
  const keys = await Promise.all(
    Array.from({ length: shards }, (_, index) =>
      servers.redis.keys(`${findShard(servers.deploymentId, index, shards).prefix}:*`),
    ),
  );
  return keys.flat();
}

async function divisionOf(count: number): Promise<{ apis: number; served: boolean; state: string }> {
  const { divisions } = await voucherctl.json("queue", "shards");
  return divisions.find(({ shards }: { shards: number }) => shards === count);
}
