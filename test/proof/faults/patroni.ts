import { type ChildProcess, execFileSync, type SpawnOptions, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, chownSync, closeSync, existsSync, mkdirSync, openSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { installDebianPackages, onPath } from "../../../src/local/debian-packages.ts";
import { findSteadyPort } from "../../support/steady-port.ts";
import { openTcpProxy, type TcpProxy } from "../../support/tcp-proxy.ts";
import { until, untilStarted } from "../../support/until.ts";
import { type FaultyDatabase, withClient } from "./fault-postgres.ts";
import { freezePostgres, killOneOf, killPostgres, signal } from "./processes.ts";
import type { SeededRandom } from "./seeded-random.ts";
import { SteppedClock } from "./stepped-clock.ts";

const HAPROXY_CONFIG = fileURLToPath(new URL("../../../docs/ha/haproxy.cfg", import.meta.url));
const DEBIAN_POSTGRES = "/usr/lib/postgresql";
const USER = "postgres";
const PASSWORD = "faults";
const DATABASE = "vouchers";
/**
 * Seconds: how long a dead leader's lock lasts, the pause between checks, and how long etcd may be silent. Production
 * needs longer times. Patroni 3.2 and later raises the first to 20 s.
 */
export const PATRONI_TIMES = { ttl: 5, loop_wait: 1, retry_timeout: 2 };

/**
 * Tries to install Patroni, etcd, HAProxy and Postgres from Debian's packages. Returns whether all are present, and
 * prints the missing ones.
 */
export function hasPatroni(say = (line: string): void => void process.stderr.write(`${line}\n`)): boolean {
  const missing = () => [
    ...["patroni", "etcd", "haproxy"].filter((program) => onPath(program) === null),
    ...(findPrograms() === null ? ["postgresql"] : []),
  ];
  if (missing().length > 0) {
    installDebianPackages("Patroni", ["patroni", "python3-etcd", "etcd-server", "haproxy", "postgresql"], say);
  }
  const left = missing();
  if (left.length > 0)
    say(`SKIPPED: ${left.join(", ")} cannot be installed; tests of a Postgres that fails over are skipped.`);
  return left.length === 0;
}

/** Finds the folder of Debian's newest Postgres with all programs for Patroni. The embedded one lacks pg_basebackup. */
function findPrograms(): string | null {
  const versions = existsSync(DEBIAN_POSTGRES) ? readdirSync(DEBIAN_POSTGRES).map(Number) : [];
  return versions.length === 0 ? null : join(DEBIAN_POSTGRES, String(Math.max(...versions)), "bin");
}

/** Three Postgres nodes under Patroni, one of them a synchronous standby, and HAProxy in front. */
export class PatroniPostgres implements FaultyDatabase {
  readonly clock = new SteppedClock();
  readonly nodes: readonly PatroniNode[];
  readonly #port: number;
  readonly #others: readonly ChildProcess[];
  #frozen: PatroniNode | null = null;
  #synchronous = true;

  private constructor(nodes: readonly PatroniNode[], port: number, others: readonly ChildProcess[]) {
    this.nodes = nodes;
    this.#port = port;
    this.#others = others;
  }

  /** Starts everything in a new folder, with the logs in `logs`. Resolves once two standbys follow the primary. */
  static async open(directory: string, logs: string): Promise<PatroniPostgres> {
    mkdirSync(directory);
    chmodSync(directory, 0o755);
    const [client, peer] = [await findSteadyPort(), await findSteadyPort()];
    const [port, health] = [await findSteadyPort(), await findSteadyPort()];
    const others = [startEtcd(directory, logs, client, peer)];
    const nodes: PatroniNode[] = [];
    const opened = new PatroniPostgres(nodes, port, others);
    try {
      await untilStarted(async () => (await fetchStatus(`http://127.0.0.1:${client}/health`)) === 200);
      for (const name of ["pg1", "pg2", "pg3"]) nodes.push(await PatroniNode.make(directory, logs, name, client));
      others.push(startHaproxy(logs, port, health, nodes));
      // The first node creates the cluster, and the others copy it.
      nodes[0]?.start();
      await untilStarted(() => opened.findPrimary());
      await opened.untilFollowedBy(2);
      await withClient((await opened.primary()).url("postgres"), (db) => db.query(`CREATE DATABASE ${DATABASE}`));
      // HAProxy finds the primary.
      await untilStarted(async () => (await fetchStatus(`http://127.0.0.1:${health}/health`)) === 200);
      return opened;
    } catch (error) {
      await opened.close();
      throw error;
    }
  }

  get url(): string {
    return this.urlOf(DATABASE);
  }

  /** HAProxy's address. */
  urlOf(database: string): string {
    return urlAt(this.#port, database);
  }

  /** Finds the node that holds the leader's lock and accepts writes, or null. */
  async findPrimary(): Promise<PatroniNode | null> {
    const statuses = await Promise.all(this.nodes.map((node) => node.status("primary")));
    return this.nodes.find((_, index) => statuses[index] === 200) ?? null;
  }

  primary(): Promise<PatroniNode> {
    return untilStarted(() => this.findPrimary());
  }

  async standbys(): Promise<PatroniNode[]> {
    const primary = await this.primary();
    return this.nodes.filter((node) => node !== primary);
  }

  /** Starts dead nodes. Resolves once one standby may take over, even if another one still copies. */
  start(): Promise<void> {
    return this.untilFollowedBy(1);
  }

  /** Starts dead nodes and waits until this many standbys stream from the primary. */
  async untilFollowedBy(standbys: number): Promise<void> {
    for (const node of this.nodes) node.start();
    await until(async () => {
      const primary = await this.findPrimary();
      return (await primary?.isFollowedBy(standbys, this.#synchronous).catch(() => false)) ?? false;
    });
  }

  /** Makes COMMIT wait for no standby, as in asynchronous mode. */
  async makeAsynchronous(): Promise<void> {
    this.#synchronous = false;
    await this.configure({ synchronous_mode: false, synchronous_mode_strict: false });
    await this.untilFollowedBy(2);
  }

  /** Changes Patroni's dynamic configuration, like `patronictl edit-config`. */
  async configure(settings: Record<string, unknown>): Promise<void> {
    const { patroniPort } = await this.primary();
    const body = JSON.stringify(settings);
    const changed = await fetch(`http://127.0.0.1:${patroniPort}/config`, { method: "PATCH", body });
    if (!changed.ok) throw new Error(`Patroni refused: ${await changed.text()}`);
  }

  async kill(): Promise<void> {
    await (await this.primary()).kill();
  }

  async killOne(random: SeededRandom): Promise<void> {
    (await this.primary()).killOne(random);
  }

  async freeze(): Promise<void> {
    this.#frozen = await this.primary();
    this.#frozen.freeze();
  }

  thaw(): void {
    this.#frozen?.thaw();
    this.#frozen = null;
  }

  async close(): Promise<void> {
    this.thaw();
    await Promise.all(this.nodes.map((node) => node.close()));
    await Promise.all(this.#others.map(end));
  }
}

/** A Postgres with its Patroni. Both start and end together, like on one host. */
export class PatroniNode {
  /** The port of Postgres itself. */
  readonly port: number;
  readonly patroniPort: number;
  readonly replication: TcpProxy;
  readonly #directory: string;
  readonly #logFile: string;
  #process: ChildProcess | null = null;
  #frozen: number[] | null = null;

  private constructor(directory: string, logFile: string, ports: Ports, replication: TcpProxy) {
    this.#directory = directory;
    this.#logFile = logFile;
    this.port = ports.postgres;
    this.patroniPort = ports.patroni;
    this.replication = replication;
  }

  static async make(parent: string, logs: string, name: string, etcdPort: number): Promise<PatroniNode> {
    const ports = { postgres: await findSteadyPort(), patroni: await findSteadyPort() };
    const replication = await openTcpProxy(`postgres://127.0.0.1:${ports.postgres}`);
    const directory = join(parent, name);
    mkdirSync(directory, { mode: 0o755 });
    const { uid, gid } = owner();
    if (uid !== undefined) chownSync(directory, uid, gid ?? uid);
    const settings = settingsOf(name, directory, ports, replication, etcdPort);
    // YAML includes JSON.
    writeFileSync(join(directory, "patroni.yml"), JSON.stringify(settings, null, 2));
    return new PatroniNode(directory, join(logs, `${name}.log`), ports, replication);
  }

  get #data(): string {
    return join(this.#directory, "data");
  }

  /** Starts Patroni, which starts Postgres, unless Patroni runs. */
  start(): void {
    if (this.#process !== null) return;
    const env = { HOME: this.#directory, LC_ALL: "C.UTF-8" };
    const options = { cwd: this.#directory, ...owner() };
    this.#process = startProgram(this.#logFile, "patroni", [join(this.#directory, "patroni.yml")], env, options);
  }

  /** Returns the status with which Patroni answers at a path, where 200 means yes. Null if it does not respond. */
  status(path: "primary" | "replica"): Promise<number | null> {
    return fetchStatus(`http://127.0.0.1:${this.patroniPort}/${path}`);
  }

  url(database = DATABASE): string {
    return urlAt(this.port, database);
  }

  /** Whether at least this many standbys stream. With `synchronous`, one must be synchronous, otherwise none. */
  async isFollowedBy(standbys: number, synchronous: boolean): Promise<boolean> {
    const query = "SELECT state, sync_state AS sync FROM pg_stat_replication WHERE application_name LIKE 'pg_'";
    const limits = { connectionTimeoutMillis: 3_000, query_timeout: 10_000 };
    const { rows } = await withClient(this.url("postgres"), (db) => db.query(query), limits);
    const waitsForOne = rows.some(({ sync }) => sync === "sync" || sync === "quorum");
    return rows.filter(({ state }) => state === "streaming").length >= standbys && waitsForOne === synchronous;
  }

  /** Kills Patroni and all processes of Postgres, like a crash of the host. */
  async kill(): Promise<void> {
    const patroni = this.#process;
    this.#process = null;
    patroni?.kill("SIGSTOP");
    await killPostgres(this.#data);
    if (patroni !== null) await end(patroni);
    this.#frozen = null;
  }

  /** Kills all processes of Postgres. Patroni stays, and may give up the leader's lock. */
  killPostgresOnly(): Promise<void> {
    return killPostgres(this.#data);
  }

  killOne(random: SeededRandom): void {
    killOneOf(this.#data, random);
  }

  freeze(): void {
    const patroni = this.#process?.pid;
    if (patroni !== undefined) signal(patroni, "SIGSTOP");
    this.#frozen = freezePostgres(this.#data);
  }

  /**
   * Resumes Postgres without its Patroni. A resumed Patroni 3.0 of Debian would take the leader's lock back from its
   * successor, which a watchdog prevents in production. `start` starts Patroni again.
   */
  thaw(): void {
    if (this.#frozen === null) return;
    this.#process?.kill("SIGKILL");
    this.#process = null;
    for (const pid of this.#frozen.reverse()) signal(pid, "SIGCONT");
    this.#frozen = null;
  }

  async close(): Promise<void> {
    await this.kill();
    await this.replication.close();
  }
}

const urlAt = (port: number, database: string) => `postgresql://${USER}:${PASSWORD}@127.0.0.1:${port}/${database}`;

interface Ports {
  postgres: number;
  patroni: number;
}

function settingsOf(name: string, directory: string, ports: Ports, replication: TcpProxy, etcdPort: number) {
  const login = (username: string) => ({ username, password: PASSWORD });
  return {
    scope: "vouchers",
    name,
    restapi: { listen: `127.0.0.1:${ports.patroni}`, connect_address: `127.0.0.1:${ports.patroni}` },
    etcd3: { host: `127.0.0.1:${etcdPort}` },
    bootstrap: {
      dcs: {
        ...PATRONI_TIMES,
        // A crashed primary is replaced at once.
        primary_start_timeout: 0,
        // Limits how much an asynchronous failover may lose. The tests' failover loses less.
        maximum_lag_on_failover: 64 * 1_048_576,
        synchronous_mode: true,
        synchronous_mode_strict: true,
        postgresql: {
          use_pg_rewind: true,
          parameters: {
            max_connections: 200,
            restart_after_crash: "off",
            wal_retrieve_retry_interval: "1s",
            max_wal_size: "256MB",
            shared_buffers: "32MB",
            wal_keep_size: "256MB",
          },
        },
      },
      initdb: [{ encoding: "UTF8" }, { locale: "C" }, "data-checksums"],
    },
    postgresql: {
      listen: `127.0.0.1:${ports.postgres}`,
      connect_address: `127.0.0.1:${new URL(replication.url).port}`,
      data_dir: join(directory, "data"),
      bin_dir: findPrograms(),
      pgpass: join(directory, "pgpass"),
      parameters: { unix_socket_directories: "" },
      pg_hba: ["host all all 127.0.0.1/32 scram-sha-256", "host replication all 127.0.0.1/32 scram-sha-256"],
      authentication: { superuser: login(USER), replication: login("replicator"), rewind: login("rewinder") },
    },
  };
}

function startEtcd(directory: string, logs: string, client: number, peer: number): ChildProcess {
  const [clientUrl, peerUrl] = [`http://127.0.0.1:${client}`, `http://127.0.0.1:${peer}`];
  return startProgram(join(logs, "etcd.log"), "etcd", [
    ...["--data-dir", join(directory, "etcd"), "--initial-cluster", `default=${peerUrl}`],
    ...["--listen-client-urls", clientUrl, "--advertise-client-urls", clientUrl],
    ...["--listen-peer-urls", peerUrl, "--initial-advertise-peer-urls", peerUrl],
  ]);
}

function startHaproxy(logs: string, port: number, health: number, nodes: readonly PatroniNode[]): ChildProcess {
  const addresses = nodes.flatMap((node, index) => [
    [`PG${index + 1}`, `127.0.0.1:${node.port}`],
    [`PG${index + 1}_PATRONI`, String(node.patroniPort)],
  ]);
  const listen = { PG_LISTEN: `127.0.0.1:${port}`, HEALTH_LISTEN: `127.0.0.1:${health}` };
  const env = { ...listen, ...Object.fromEntries(addresses) };
  return startProgram(join(logs, "haproxy.log"), "haproxy", ["-db", "-f", HAPROXY_CONFIG], env);
}

function startProgram(logFile: string, program: string, args: string[], env = {}, options: SpawnOptions = {}) {
  const log = openSync(logFile, "a");
  // Debian has HAProxy in /usr/sbin.
  const own = { PATH: `${process.env.PATH ?? ""}:/usr/sbin`, ...env };
  const child = spawn(program, args, { stdio: ["ignore", log, log], env: own, ...options });
  closeSync(log);
  return child;
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, "exit");
  child.kill("SIGKILL");
  await exited;
}

/** Returns the user that runs Postgres if root runs the tests: Debian's, because Postgres refuses to run as root. */
function owner(): { uid?: number; gid?: number } {
  if (process.getuid?.() !== 0) return {};
  const id = (flag: string) => Number(execFileSync("id", [flag, USER], { encoding: "utf8" }));
  return { uid: id("-u"), gid: id("-g") };
}

async function fetchStatus(url: string): Promise<number | null> {
  const response = await fetch(url, { signal: AbortSignal.timeout(1_000) }).catch(() => null);
  await response?.body?.cancel();
  return response?.status ?? null;
}
