import { readdirSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, expect, it } from "vitest";
import { problemsOf } from "../../../src/platform/checks.ts";
import { readDivisions } from "../../../src/platform/queues/read-shards.ts";
import { COMMAND_NAMES } from "../../../src/platform/redis/commands.ts";
import { checkRedis } from "../../../src/platform/redis/requirements.ts";
import { type PartnerClient, partnerClient, send } from "../../support/client.ts";
import { type OwnRedis, startOwnRedis } from "../../support/own-redis.ts";
import { ACL_RULES } from "../../support/redis-tls.ts";
import { scrape } from "../../support/scrape.ts";
import { startWorkers, type TestApi } from "../../support/service.ts";
import { until, untilStarted } from "../../support/until.ts";
import { useService } from "../../support/use-service.ts";

const service = useService();
const { servers, keys, issue } = service;
let redis: OwnRedis;
let api: TestApi;
let till: PartnerClient;

beforeAll(async () => {
  redis = await startOwnRedis("--enable-protected-configs", "yes");
  api = await service.startApi({ REDIS_URL: redis.url, METRICS_PORT: "0" });
  till = partnerClient(api.url, keys.till.key);
});

afterAll(() => redis.close());

/** Servers that answer but accept no writes. */
const REFUSALS: [kind: string, words: RegExp, begin: () => Promise<unknown>, end: () => Promise<unknown>][] = [
  [
    "too few replicas",
    /Redis refuses writes: NOREPLICAS Not enough good replicas to write/,
    () => set("min-replicas-to-write", "1"),
    () => set("min-replicas-to-write", "0"),
  ],
  [
    "no memory left",
    /Redis refuses writes: OOM command not allowed when used memory > 'maxmemory'/,
    () => set("maxmemory", "1"),
    () => set("maxmemory", "0"),
  ],
  [
    "a failed snapshot",
    /Redis refuses writes: MISCONF .*unable to persist to disk/,
    async () => {
      await set("dir", "/proc");
      await set("save", "3600 1");
      await redis.client.bgsave().catch(() => undefined);
      await until(async () => (await redis.client.info("persistence")).includes("rdb_last_bgsave_status:err"));
    },
    async () => {
      await set("dir", redis.directory);
      await redis.client.bgsave();
      await until(async () => (await redis.client.info("persistence")).includes("rdb_last_bgsave_status:ok"));
      await set("save", "");
    },
  ],
  [
    "the role of a replica",
    /Redis refuses writes: READONLY |REDIS_URL leads to a replica, 127\.0\.0\.1:\d+\. It must lead to the primary/,
    () => redis.client.replicaof("127.0.0.1", 1),
    () => redis.client.replicaof("NO", "ONE"),
  ],
  [
    "a user who lacks a right",
    /can't run this command|The user default of Redis at .* lacks rights\. Run: ACL SETUSER default \+set$/,
    () => redis.client.call("ACL", "SETUSER", "default", "-set"),
    () => redis.client.call("ACL", "SETUSER", "default", "+@all"),
  ],
];

it.each(
  REFUSALS,
)("while Redis has %s, /readyz and a gauge report the problem, and later its end", async (_, words, begin, end) => {
  const readiness = async () => (await send("GET", `${api.url}/readyz`)).body;
  const gauge = async () => (await scrape(api.metricsUrl)).value("voucher_server_up", { server: "redis" });
  const untilWell = async () => {
    const body = await until(async () => {
      const found = await readiness();
      return found.status === "ok" ? found : null;
    });
    expect(body).toEqual({ status: "ok", postgres: "ok", redis: "ok" });
    await until(async () => (await gauge()) === 1);
  };
  await untilWell();
  await begin();
  try {
    // A replica closes the connection when it refuses a write, so the next probe may fail with another error.
    const { error } = await until(async () => {
      const body = await readiness();
      return words.test(body.error) ? body : null;
    });
    expect(error).toMatch(words);
    expect(await gauge()).toBe(0);
    expect((await till.reserve((await issue()).code)).status).toBe(503);
  } finally {
    await end();
  }
  await untilWell();
  expect(await redis.client.keys("*probe*")).toEqual([]);
});

it("a process that reconnects to a Redis replica that accepts and loses writes becomes unready", async () => {
  await set("replica-read-only", "no");
  await redis.client.replicaof("127.0.0.1", 1);
  try {
    expect(await codesOf(redis.url)).toEqual(["redis_replica"]);
    await redis.client.call("CLIENT", "KILL", "TYPE", "normal");
    await until(async () => {
      const { status, body } = await send("GET", `${api.url}/readyz`);
      return status === 503 && /^REDIS_URL leads to a replica/.test(body.error);
    });
  } finally {
    await redis.client.replicaof("NO", "ONE");
    await set("replica-read-only", "yes");
  }
  await until(async () => (await send("GET", `${api.url}/readyz`)).status === 200);
});

it.each([
  ["a command", `${ACL_RULES} -xadd`, "+xadd"],
  ["a command of BullMQ's worker", `${ACL_RULES} -bzpopmin`, "+bzpopmin"],
  ["a subcommand", `${ACL_RULES} -client|setname`, "+client|setname"],
  ["the channels", ACL_RULES.replace("&*", "resetchannels"), "&*"],
  ["the keys of leases", ACL_RULES.replace("~*", "~{pva* ~pva* ~limit*"), "~*"],
  ["transactions", `${ACL_RULES} -multi`, "+multi"],
])("a process refuses to start as a Redis user without %s, and names a sufficient rule", async (_, rules, rule) => {
  await redis.client.call("ACL", "SETUSER", "limited", "reset", "on", ">secret", ...rules.split(" "));
  const url = `redis://limited:secret@127.0.0.1:${redis.port}`;
  const [problem, ...others] = problemsOf((await checkRedis(url, 1)).rows);
  expect(problem).toMatchObject({ code: "redis_rights", effect: "refused" });
  expect(problem?.message).toMatch(/^The user limited of Redis at .* lacks rights\. Run: ACL SETUSER limited /);
  expect(problem?.message).toContain(` ${rule}`);
  expect(others).toEqual([]);
});

it("a Redis user with the documented rights passes the service's check, which writes nothing", async () => {
  await redis.client.call("ACL", "SETUSER", "limited", "reset", "on", ">secret", ...ACL_RULES.split(" "));
  const before = await redis.client.dbsize();
  expect(await codesOf(`redis://limited:secret@127.0.0.1:${redis.port}`)).toEqual([]);
  expect(await redis.client.dbsize()).toBe(before);
});

it("with a Redis user without CLIENT LIST, redeems work and only the list of processes is missing", async () => {
  const rules = `${ACL_RULES} -client|list`;
  await redis.client.call("ACL", "SETUSER", "limited", "reset", "on", ">secret", ...rules.split(" "));
  const REDIS_URL = `redis://limited:secret@127.0.0.1:${redis.port}`;
  const limited = await service.startApi({ REDIS_URL });
  const workers = await startWorkers(servers, { REDIS_URL });
  const { code } = await issue();
  const redeemed = await partnerClient(limited.url, keys.till.key).redeem({ code, externalRef: "without-list" });
  expect(redeemed.status).toBe(200);
  const shown = readDivisions(limited.ctx.redis, limited.ctx.deployment.id, []);
  await expect(shown).rejects.toThrow(/^The user of REDIS_URL may not run CLIENT LIST, .* Nothing else needs it\./);
  await Promise.all([limited.close(), workers.close()]);
});

it("the checked Redis rights include every command in the scripts of the service and of BullMQ", () => {
  const directories = [
    "node_modules/bullmq/dist/cjs/commands",
    "node_modules/bullmq/dist/cjs/commands/includes",
    "src",
  ];
  const files = directories.flatMap((directory) =>
    readdirSync(directory, { recursive: directory === "src" })
      .map((name) => `${directory}/${name}`)
      .filter((name) => name.endsWith(".lua") && !/\/relay|Relay/.test(name)),
  );
  const called = files.flatMap((file) =>
    Array.from(readFileSync(file, "utf8").matchAll(/\b(?:rcall|redis\.p?call)\(\s*["'](\w+)["']/g), ([, name = ""]) =>
      name.toLowerCase(),
    ),
  );
  expect(new Set(called).size).toBeGreaterThan(40);
  expect([...new Set(called)].filter((name) => !COMMAND_NAMES.includes(name))).toEqual([]);
});

it("the check of REDIS_URL refuses another kind of server or one without TLS, and names the address", async () => {
  const web = createServer((_, response) => response.end());
  await new Promise<void>((resolve) => web.listen(0, "127.0.0.1", resolve));
  const { port } = web.address() as AddressInfo;
  const names = `REDIS_URL names 127.0.0.1:${port}`;
  for (const [scheme, message] of [
    ["redis", `${names}, where a server of another kind answers. Name a Redis server.`],
    ["rediss", `${names}, which does not use TLS. Write redis: instead of rediss:.`],
  ])
    expect(problemsOf((await checkRedis(`${scheme}://127.0.0.1:${port}`, 1)).rows)[0]).toMatchObject({
      effect: "refused",
      message,
    });
  web.close();
});

it.each([
  ["refuses the user or the password", (port: number) => `redis://nobody:wrong@127.0.0.1:${port}`, "redis_unusable"],
  ["database 16", (port: number) => `redis://127.0.0.1:${port}/16`, "redis_unusable"],
  [
    "REDIS_URL names several servers",
    (port: number) => `redis://127.0.0.1:${port},localhost:${port}`,
    "redis_no_cluster",
  ],
])("the check of REDIS_URL refuses an address that does not fit the server: %s", async (words, urlOf, code) => {
  const problems = problemsOf((await checkRedis(urlOf(redis.port), 1)).rows);
  expect(problems[0]).toMatchObject({ code, effect: "refused", message: expect.stringContaining(words) });
});

it("a Redis server without room for a connection makes a process unready, with the server's message", async () => {
  await set("maxclients", "1");
  const other = await service.startApiUnready({ REDIS_URL: redis.url });
  const words =
    `Redis at 127.0.0.1:${redis.port} cannot be used: ERR max number of clients reached. Allow more connections ` +
    "(max_connections of Postgres or its pooler, maxclients of Redis), or end processes.";
  await untilStarted(async () => (await send("GET", `${other.url}/readyz`)).body.error === words);
  await set("maxclients", "10000");
  await untilStarted(async () => (await send("GET", `${other.url}/readyz`)).status === 200);
});

const codesOf = async (url: string) => problemsOf((await checkRedis(url, 1)).rows).map(({ code }) => code);
const set = (name: string, value: string) => redis.client.config("SET", name, value);
