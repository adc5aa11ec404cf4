import { spawnSync } from "node:child_process";
import { copyFileSync, existsSync, mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { parse } from "yaml";
import { readDockerfile } from "../../support/image.ts";

// Tests of docker-compose.yml without Docker. test/proof/containers runs the file.

const FILE = readFileSync("docker-compose.yml", "utf8");
const SETTINGS = readFileSync(".env.example", "utf8");
const SECRETS = Array.from(SETTINGS.matchAll(/^([A-Z_]+)=$/gm), ([, name = ""]) => name);
const RUN_ONCE = /^((ha-)?(migrate|log-init|voucherctl)|demo|test|ha-redis-create|ha-database)$/;
const HA_REDIS = [1, 2, 3, 4, 5, 6].map((n) => `ha-redis-${n}`);

const NAMED = Object.fromEntries(SECRETS.map((name) => [name, `<${name}>`]));
const SERVICES = readServices(NAMED);
const ALL = Object.entries(SERVICES);

it("./setup creates .env with long secrets that only its owner can read, and never replaces it", () => {
  const folder = mkdtempSync(join(tmpdir(), "voucher-compose-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  for (const file of [".env.example", "setup"]) copyFileSync(file, join(folder, file));
  const setUp = () => spawnSync(join(folder, "setup"), { env: { PATH: process.env.PATH }, encoding: "utf8" });
  expect(setUp()).toMatchObject({ status: 0, stderr: "" });
  const made = readFileSync(join(folder, ".env"), "utf8");
  const secrets = Array.from(made.matchAll(/^[A-Z_]+=([0-9a-f]{48})$/gm), ([, secret]) => secret);
  expect(new Set(secrets).size).toBe(SECRETS.length);
  expect(made.replace(/^([A-Z_]+=)[0-9a-f]{48}$/gm, "$1")).toBe(SETTINGS);
  expect(statSync(join(folder, ".env")).mode & 0o777).toBe(0o600);
  expect(setUp()).toMatchObject({ status: 1, stderr: expect.stringMatching(/There is a \.env already/) });
  expect(readFileSync(join(folder, ".env"), "utf8")).toBe(made);
});

it("docker-compose.yml starts two workers, or as many as WORKERS in .env says", () => {
  const replicasOf = (more: Record<string, string>) => readServices({ ...NAMED, ...more }).worker?.deploy;
  expect(replicasOf({})).toEqual({ replicas: "2" });
  expect(replicasOf({ WORKERS: "4" })).toEqual({ replicas: "4" });
  expect(SETTINGS).toContain("\n#WORKERS=4\n");
});

it("docker-compose.yml requires all secrets except the log's, without which only the log does not start", () => {
  for (const name of SECRETS.filter((one) => one !== "PVA_LOG_PASSWORD")) {
    expect(() => readServices({ ...NAMED, [name]: "" }), name).toThrow(`${name}: run ./setup first`);
  }
  const { migrate, "log-init": init } = readServices({ ...NAMED, PVA_LOG_PASSWORD: "" });
  expect(migrate?.environment?.PVA_LOG_PASSWORD).toBe("");
  const [program = "", ...args] = (init?.command ?? []).map((word) => word.replaceAll("$$", "$"));
  const ended = spawnSync(program, args, { env: init?.environment as NodeJS.ProcessEnv, encoding: "utf8" });
  expect(ended).toMatchObject({ status: 2, stderr: expect.stringMatching(/PVA_LOG_PASSWORD: is not in \.env/) });
});

it("docker-compose.yml gives each container exactly the secrets that it needs", () => {
  const needed: Record<string, string[]> = {
    postgres: ["POSTGRES_PASSWORD"],
    redis: ["REDIS_PASSWORD"],
    migrate: ["POSTGRES_PASSWORD", "PVA_API_PASSWORD", "PVA_LOG_PASSWORD", "PVA_ADMIN_PASSWORD"],
    api: ["REDIS_PASSWORD", "PVA_API_PASSWORD", "RESERVATION_TOKEN_SECRET", "WEBHOOK_SECRET", "OPS_TOKEN"],
    worker: ["REDIS_PASSWORD", "PVA_API_PASSWORD", "RESERVATION_TOKEN_SECRET", "WEBHOOK_SECRET"],
    "log-init": ["PVA_LOG_PASSWORD", "PVA_ADMIN_PASSWORD"],
    log: ["REDIS_PASSWORD", "PVA_LOG_PASSWORD"],
    voucherctl: ["REDIS_PASSWORD", "PVA_ADMIN_PASSWORD", "WEBHOOK_SECRET"],
    demo: ["REDIS_PASSWORD", "PVA_ADMIN_PASSWORD"],
    test: ["POSTGRES_PASSWORD", "REDIS_PASSWORD"],
    grafana: ["GRAFANA_PASSWORD"],
    "redis-create": ["REDIS_PASSWORD"],
    pg: ["POSTGRES_PASSWORD"],
    database: ["POSTGRES_PASSWORD"],
    // In the profile ha, HAProxy forwards connections to Postgres and needs no secret.
    proxy: [],
    prometheus: [],
    etcd: [],
    "ha-postgres": [],
  };
  for (const [name, { environment = {}, command = [] }] of ALL) {
    const text = JSON.stringify([environment, command]);
    const given = SECRETS.filter((secret) => text.includes(`<${secret}>`));
    expect({ name, given }).toEqual({ name, given: needed[name] ?? needed[name.replace(/^ha-|-\d$/g, "")] });
  }
});

it("docker-compose.yml passes each API variable from .env, except the published port", () => {
  const section = readFileSync("docs/configuration/api.md", "utf8");
  const names = Array.from(section.matchAll(/^\| (`.*?`) \|/gm), ([, cell = ""]) => cell.match(/\w+/g) ?? []).flat();
  expect(names).toContain("BASE_URL");
  for (const name of ["api", "ha-api-1", "ha-api-2"]) {
    const passed = Object.keys(SERVICES[name]?.environment ?? {});
    expect({ name, missing: names.filter((one) => !passed.includes(one)) }).toEqual({ name, missing: ["PORT"] });
  }
});

it("docker-compose.yml limits every container's memory, and checks the health of long-running containers", () => {
  for (const [name, { image, mem_limit, healthcheck }] of ALL) {
    expect(mem_limit, name).toBeDefined();
    expect({ name, checked: healthcheck.test?.[0] === "CMD" }).toEqual({ name, checked: !RUN_ONCE.test(name) });
    // A container must not count as healthy before it serves, because `up --wait` would return too early. The log's
    // worker is an exception, because a witness may be unreachable.
    if (image === "partner-voucher-api" && !RUN_ONCE.test(name)) {
      expect(healthcheck.test?.join(" "), name).toContain(/log$/.test(name) ? "/metrics'" : "/readyz'");
    }
  }
});

it("docker-compose.yml runs the service unprivileged and read-only, with limits and time to drain", () => {
  expect(readDockerfile().user).toBe("node");
  const own = ALL.filter(([, { image }]) => image === "partner-voucher-api");
  expect(own).toHaveLength(14);
  for (const [name, { read_only, cap_drop, security_opt, stop_grace_period, pids_limit, logging }] of own) {
    expect({ read_only, cap_drop, security_opt, pids_limit, logging }, name).toEqual({
      read_only: true,
      cap_drop: ["ALL"],
      security_opt: ["no-new-privileges:true"],
      pids_limit: expect.any(Number),
      logging: expect.objectContaining({ options: { "max-size": expect.any(String), "max-file": expect.any(String) } }),
    });
    // Docker must wait for longer than the 15 seconds in which a process may drain.
    expect(Number.parseInt(String(stop_grace_period), 10), name).toBeGreaterThan(15);
  }
});

it("docker-compose.yml pins every foreign image by tag, and all but three of profile ha by digest too", () => {
  const pinned = /^[\w./-]+:[\w.-]+@sha256:[0-9a-f]{64}$/;
  for (const [name, { image }] of ALL.filter(([, one]) => !one.image.startsWith("partner-voucher-api"))) {
    expect(image, name).toMatch(/^ha-(pg-\d|etcd|postgres)$/.test(name) ? /^[\w./-]+:v?\d[\w.-]+$/ : pinned);
  }
  const dockerfile = readFileSync("Dockerfile", "utf8");
  expect(/^ARG NODE_IMAGE=(.*)$/m.exec(dockerfile)?.[1]).toMatch(pinned);
  expect(dockerfile.match(/^FROM (?!\$\{NODE_IMAGE\})/gm)).toBeNull();
});

it("docker-compose.yml gives the log's key only to the log's containers, and in its own volume", () => {
  const { LOG_KEY_FILE, LOG_ANCHOR } = SERVICES.log?.environment ?? {};
  const [key, anchor] = [LOG_KEY_FILE, LOG_ANCHOR].map((path) => dirname(String(path).replace("file:", "")));
  const mounts = ALL.flatMap(([name, { volumes = [] }]) =>
    volumes.flatMap((mount) => (/^(ha-)?log-|:\/var\/lib\/vouchers/.test(mount) ? [`${name} ${mount}`] : [])),
  );
  const expected = ["", "ha-"].flatMap((ha) => [
    ...[`${ha}log-init ${ha}log-key:${key}`, `${ha}log-init ${ha}log-anchor:${anchor}`],
    ...[`${ha}log ${ha}log-key:${key}:ro`, `${ha}log ${ha}log-anchor:${anchor}`],
  ]);
  expect(mounts.toSorted()).toEqual(expected.toSorted());
  // A new volume gets the owner of the image's directory, so the image must have both directories.
  expect(readDockerfile().directories).toEqual([key, anchor]);
  const withKey = ALL.filter(([, { environment }]) => "LOG_KEY_FILE" in (environment ?? {})).map(([name]) => name);
  expect(withKey.toSorted()).toEqual(["ha-log", "ha-log-init", "log", "log-init"]);
});

it("docker-compose.yml publishes only the proxy's port beyond loopback, unless a variable changes that", () => {
  for (const [name, { ports = [] }] of ALL) {
    for (const port of ports) expect(port, name).toMatch(name === "proxy" ? /^0\.0\.0\.0:/ : /^127\.0\.0\.1:/);
  }
  const listens = Array.from(FILE.matchAll(/\b\w+_LISTEN(?=:-)/g), ([name]) => [name, "127.0.0.9:7000"]);
  const moved = Object.values(readServices({ ...NAMED, ...Object.fromEntries(listens) }));
  for (const port of moved.flatMap(({ ports = [] }) => ports)) expect(port).toMatch(/^127\.0\.0\.9:7000:\d+$/);
  expect(SERVICES.api?.environment?.TRUST_PROXY).toBe(SERVICES.proxy?.networks.edge?.ipv4_address);
});

it("docker-compose.yml makes Patroni of the profile ha wait for a synchronous standby", () => {
  const nodes = [1, 2, 3].map((n) => SERVICES[`ha-pg-${n}`]?.environment?.SPILO_CONFIGURATION);
  expect(new Set(nodes).size).toBe(1);
  const { dcs } = JSON.parse(String(nodes[0])).bootstrap;
  const parameters = { synchronous_commit: "on", restart_after_crash: "off", wal_retrieve_retry_interval: "1s" };
  expect(dcs).toMatchObject({
    synchronous_mode: "quorum",
    synchronous_mode_strict: true,
    postgresql: { parameters },
  });
  expect(dcs.ttl).toBeGreaterThanOrEqual(Math.max(20, dcs.loop_wait + 2 * dcs.retry_timeout));
  expect(Math.min(dcs.loop_wait - 2, dcs.retry_timeout - 3)).toBeGreaterThanOrEqual(0);
});

it("docker-compose.yml gives the processes of profile ha six Redis nodes with equal shards", () => {
  for (const name of ["ha-api-1", "ha-api-2", "ha-worker", "ha-log", "ha-voucherctl"]) {
    const { REDIS_URL, QUEUE_SHARDS } = SERVICES[name]?.environment ?? {};
    for (const node of HA_REDIS) expect(REDIS_URL, name).toContain(`${node}:6379`);
    expect(Number(QUEUE_SHARDS) % 3, name).toBe(0);
  }
});

it("docker-compose.yml lets only HAProxy reach etcd and Postgres in profile ha", () => {
  const networksOf = ({ networks = {} }: { networks?: object }) =>
    Array.isArray(networks) ? networks : Object.keys(networks);
  const nodes = ALL.filter(([, service]) => networksOf(service).includes("ha-nodes"));
  expect(Object.fromEntries(nodes.map(([name, service]) => [name, networksOf(service).toSorted()]))).toEqual({
    "ha-etcd": ["ha-nodes"],
    "ha-pg-1": ["ha-nodes"],
    "ha-pg-2": ["ha-nodes"],
    "ha-pg-3": ["ha-nodes"],
    "ha-postgres": ["ha", "ha-nodes"],
  });
  expect(nodes.filter(([, { network_mode }]) => network_mode !== undefined)).toEqual([]);
});

it("docker-compose.yml mounts only files that exist in the repository", () => {
  const mounted = ALL.flatMap(([, { volumes = [] }]) => volumes.filter((volume) => volume.startsWith("./")));
  expect(mounted.length).toBeGreaterThan(0);
  expect(mounted.filter((volume) => !existsSync(volume.split(":")[0] ?? ""))).toEqual([]);
});

interface Service {
  image: string;
  command: string[];
  environment?: Record<string, string | null>;
  healthcheck: { test?: string[]; disable?: boolean };
  networks: Record<string, { ipv4_address?: string }>;
  ports?: string[];
  volumes?: string[];
  [setting: string]: unknown;
}

/** Reads the services, with variables replaced as docker compose replaces them. */
function readServices(variables: Record<string, string>): Record<string, Service> {
  const replace = (text: string) =>
    text.replace(/(?<!\$)\$\{(\w+)(?::([-?])([^{}]*))?\}/g, (_, name: string, kind?: string, rest = "") => {
      const value = variables[name] || (kind === "-" ? rest : "");
      if (kind === "?" && value === "") throw new Error(`${name}: ${rest}`);
      return value;
    });
  // A default value may itself contain a variable.
  const revive = (_key: unknown, value: unknown) => (typeof value === "string" ? replace(replace(value)) : value);
  return parse(FILE, revive, { merge: true, maxAliasCount: -1 }).services;
}
