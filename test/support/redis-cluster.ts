import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Redis } from "ioredis";
import { onPath } from "../../src/local/debian-packages.ts";
import { makeDataDirectory } from "./data-directory.ts";
import { makeRedisTls, type RedisTls } from "./redis-tls.ts";
import { findSteadyPort, isFree } from "./steady-port.ts";
import { until, untilStarted } from "./until.ts";

/** A loopback Redis Cluster of three masters with one replica each. */
export type TestCluster = Awaited<ReturnType<typeof startRedisCluster>>;

const MASTERS = 3;
/** Time after which a silent master is replaced by its replica. Milliseconds. */
const NODE_TIMEOUT_MS = 2_000;

const SETTINGS = [
  ...["--cluster-enabled", "yes", "--cluster-node-timeout", String(NODE_TIMEOUT_MS)],
  // The loss of one master must not stop the others.
  ...["--cluster-require-full-coverage", "no"],
  ...["--appendonly", "yes", "--save", "", "--maxmemory-policy", "noeviction"],
  // Starts the replicas' first copies at once, because the tests' clusters are small.
  ...["--repl-diskless-sync-delay", "0"],
];

/** A master with its replica, or a replica with its master. */
const HAS_PARTNER = /role:master[\s\S]*connected_slaves:1|master_link_status:up/;

/** Joins running nodes to a cluster, like an operator, and waits until each knows it. */
async function joinNodes(nodes: readonly ClusterNode[], tls: RedisTls | null, replicas: boolean): Promise<void> {
  const create = ["--cluster", "create", ...nodes.map(({ port }) => `127.0.0.1:${port}`)];
  const login =
    tls === null ? [] : ["--tls", "--cacert", tls.caFile, "--user", tls.admin.username, "--pass", tls.admin.password];
  execFileSync("redis-cli", [...login, ...create, "--cluster-replicas", replicas ? "1" : "0", "--cluster-yes"], {
    stdio: "pipe",
  });
  for (const node of nodes) {
    node.id = await node.client.cluster("MYID");
    await untilStarted(async () => (await node.client.cluster("INFO")).includes("cluster_state:ok"));
    await untilStarted(async () => !/master_link_status:down/.test(await node.client.info("replication")));
  }
}

/** Starts a cluster and waits until each master has its replica. */
export async function startRedisCluster({ replicas = true, secure = false } = {}) {
  if (onPath("redis-server") === null) throw new Error("a Redis Cluster needs redis-server on PATH");
  const directory = makeDataDirectory("voucher-cluster-");
  const tls = secure ? makeRedisTls(directory) : null;
  const nodes: ClusterNode[] = [];
  while (nodes.length < MASTERS * (replicas ? 2 : 1)) nodes.push(new ClusterNode(directory, await findNodePort(), tls));
  await Promise.all(nodes.map((node) => node.start()));
  await joinNodes(nodes, tls, replicas);
  const owners = async () => {
    const slots = await anyAnswer(nodes, (client) => client.cluster("SLOTS"));
    return slots.map(([from, to, master]) => ({
      from: Number(from),
      to: Number(to),
      node: nodes.find(({ port }) => port === Number(master?.[1])) as ClusterNode,
    }));
  };
  const masters = async () => [...new Set((await owners()).map(({ node }) => node))];
  const masterOf = async (slot: number) =>
    (await owners()).find(({ from, to }) => from <= slot && slot <= to)?.node as ClusterNode;
  const scheme = tls === null ? "redis://" : `rediss://${tls.login}`;
  return {
    /** Value for REDIS_URL. */
    url: `${scheme}${nodes.map(({ port }) => `127.0.0.1:${port}`).join(",")}`,
    nodes,
    tls,
    masters,
    masterOf,
    /** Moves slots with all their keys to another master, like an operator with `redis-cli --cluster reshard`. */
    async moveSlots(slots: readonly number[], to: ClusterNode): Promise<void> {
      for (const slot of slots) await moveSlot(slot, await masterOf(slot), to, nodes);
    },
    /** The replica of a master. */
    async replicaOf(master: ClusterNode): Promise<ClusterNode> {
      return until(async () => {
        const infos = await readReplication(nodes);
        return nodes.find((_, index) => infos[index]?.includes(`master_port:${master.port}`));
      });
    },
    /** Resumes and starts every node, and waits until each master has its replica again. */
    async heal(): Promise<void> {
      for (const node of nodes) node.thaw();
      await Promise.all(nodes.map((node) => node.start()));
      await untilStarted(async () => (await masters()).length === MASTERS);
      await untilStarted(async () => (await readReplication(nodes)).every((info) => HAS_PARTNER.test(info)));
    },
    async close(): Promise<void> {
      await Promise.all(nodes.map((node) => node.close()));
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

/** Each node's report about its master or replica, or an empty text without an answer. */
function readReplication(nodes: readonly ClusterNode[]): Promise<string[]> {
  return Promise.all(
    nodes.map(({ client }) => Promise.race([client.info("replication").catch(() => ""), sleep(500, "")])),
  );
}

async function moveSlot(slot: number, from: ClusterNode, to: ClusterNode, nodes: readonly ClusterNode[]) {
  await to.client.cluster("SETSLOT", slot, "IMPORTING", from.id);
  await from.client.cluster("SETSLOT", slot, "MIGRATING", to.id);
  for (;;) {
    const keys = await from.client.cluster("GETKEYSINSLOT", slot, 100);
    if (keys.length === 0) break;
    await from.client.call("MIGRATE", "127.0.0.1", String(to.port), "", "0", "5000", "KEYS", ...(keys as string[]));
  }
  // Tells the new owner of a slot first, because the old owner redirects clients to it once it knows.
  for (const node of [to, from]) await node.client.cluster("SETSLOT", slot, "NODE", to.id);
  const others = nodes.filter((node) => node !== to && node !== from);
  await Promise.all(others.map((node) => node.client.cluster("SETSLOT", slot, "NODE", to.id).catch(() => undefined)));
}

/** One server of the cluster. */
export class ClusterNode {
  id = "";
  readonly port: number;
  /** A connection to this server alone. It reconnects. */
  readonly client: Redis;
  readonly #directory: string;
  readonly #settings: readonly string[];
  #process: ChildProcess | null = null;

  constructor(directory: string, port: number, tls: RedisTls | null) {
    this.port = port;
    this.#directory = join(directory, String(port));
    mkdirSync(this.#directory);
    this.#settings = tls === null ? ["--port", String(port)] : secureSettings(port, tls);
    this.client = new Redis({
      port,
      lazyConnect: true,
      retryStrategy: () => 100,
      maxRetriesPerRequest: 5,
      ...(tls !== null && { ...tls.admin, tls: { ca: readFileSync(tls.caFile) } }),
    });
    this.client.on("error", () => undefined);
  }

  /** Starts the server on the data in its file, unless it is running. */
  async start(): Promise<void> {
    if (this.#process !== null) return;
    const place = ["--bind", "127.0.0.1", "--dir", this.#directory, ...this.#settings];
    this.#process = spawn("redis-server", [...place, ...SETTINGS], { stdio: "ignore" });
    await untilStarted(async () => (await this.client.ping().catch(() => "")) === "PONG");
  }

  async kill(): Promise<void> {
    const running = this.#process;
    this.#process = null;
    if (running === null) return;
    const exited = once(running, "exit");
    running.kill("SIGKILL");
    await exited;
  }

  freeze(): void {
    this.#process?.kill("SIGSTOP");
  }

  thaw(): void {
    this.#process?.kill("SIGCONT");
  }

  async close(): Promise<void> {
    this.client.disconnect();
    await this.kill();
  }
}

/** TLS for clients, replicas and the nodes' own connections. */
function secureSettings(port: number, { settings, admin }: RedisTls): string[] {
  const between = ["--tls-cluster", "yes", "--tls-replication", "yes"];
  const replication = ["--masteruser", admin.username, "--masterauth", admin.password];
  return ["--tls-port", String(port), ...settings, ...between, ...replication];
}

/** Asks the nodes in turn until one that runs answers. */
async function anyAnswer<T>(nodes: readonly ClusterNode[], ask: (client: Redis) => Promise<T>): Promise<T> {
  return until(async () => {
    for (const { client } of nodes) {
      if (client.status !== "ready") continue;
      const answer = await Promise.race([ask(client).catch(() => null), sleep(500, null)]);
      if (answer !== null) return answer;
    }
    return null;
  });
}

/** A node's port plus this number is the port for the nodes' own traffic. */
const BUS_OFFSET = 10_000;

/** Finds a free port whose number plus BUS_OFFSET is a port of `findSteadyPort`. */
async function findNodePort(): Promise<number> {
  for (;;) {
    const port = (await findSteadyPort()) - BUS_OFFSET;
    if (await isFree(port)) return port;
  }
}
