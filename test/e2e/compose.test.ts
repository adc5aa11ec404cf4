import { spawnSync } from "node:child_process";
import {
  appendFileSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parseRedisUrl } from "../../src/redis/addresses.ts";
import { type ComposedService, type ComposeTool, findComposeTool, readComposeFile } from "../support/compose-file.ts";
import { readDockerfile } from "../support/image.ts";

// What docker-compose.yml says, as docker compose resolves it. test/containers runs it.

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const SECRETS = [
  "POSTGRES_PASSWORD",
  "REDIS_PASSWORD",
  "PVA_API_PASSWORD",
  "PVA_LOG_PASSWORD",
  "PVA_ADMIN_PASSWORD",
  "RESERVATION_TOKEN_SECRET",
  "WEBHOOK_SECRET",
  "OPS_TOKEN",
  "GRAFANA_PASSWORD",
];
/** Services that run the image of this project. */
const OWN = [
  ...["migrate", "api", "worker", "log-init", "log", "voucherctl", "demo"],
  ...["ha-migrate", "ha-api-1", "ha-api-2", "ha-worker", "ha-log-init", "ha-log", "ha-voucherctl"],
];
const RUNS_ONCE = [
  ...["migrate", "log-init", "voucherctl", "demo", "test"],
  ...["ha-redis-create", "ha-database", "ha-migrate", "ha-log-init", "ha-voucherctl"],
];
const HA_REDIS = [1, 2, 3, 4, 5, 6].map((n) => `ha-redis-${n}`);
const HA_POSTGRES = [1, 2, 3].map((n) => `ha-pg-${n}`);
/** Time to start a server or a dozen processes on a machine that is busy with other tests. Milliseconds. */
const ALL_MS = 240_000;

const tool = findComposeTool();

type Networks = Record<string, { ipv4_address?: string }>;

function setUp(directory: string): { status: number | null; stdout: string; stderr: string } {
  return spawnSync(join(directory, "setup"), { env: { PATH: process.env.PATH ?? "" }, encoding: "utf8" });
}

/** docker compose doubles each dollar sign, so that its output can be read again. */
function unescapeDollars(words: readonly string[] | null | undefined): string[] {
  return (words ?? []).map((word) => word.replaceAll("$$", "$"));
}

/** The volumes of a service, in the short syntax. */
function volumesOf({ volumes = [] }: ComposedService): string[] {
  return volumes.map((volume) =>
    typeof volume === "string"
      ? volume.replace(/:rw$/, "")
      : `${volume.source}:${volume.target}${volume.read_only ? ":ro" : ""}`,
  );
}

/** A folder with the files that docker compose reads, with or without .env. */
function makeProject(parent: string, name: string, withEnv: boolean): string {
  const directory = join(parent, name);
  mkdirSync(directory);
  for (const file of ["docker-compose.yml", ".env.example", "setup"])
    copyFileSync(join(ROOT, file), join(directory, file));
  if (withEnv) expect(setUp(directory)).toMatchObject({ status: 0, stderr: "" });
  return directory;
}

function readEnv(directory: string): Record<string, string> {
  const lines = readFileSync(join(directory, ".env"), "utf8").split("\n");
  return Object.fromEntries(lines.filter((line) => /^[A-Z]/.test(line)).map((line) => line.split("=", 2)));
}

describe.skipIf(tool === null)("docker-compose.yml", { timeout: ALL_MS }, () => {
  const compose = tool as ComposeTool;
  let directory: string;
  let project: string;
  let secrets: Record<string, string>;
  let services: Record<string, ComposedService>;

  beforeAll(() => {
    directory = mkdtempSync(join(tmpdir(), "voucher-compose-"));
    project = makeProject(directory, "project", true);
    secrets = readEnv(project);
    services = readComposeFile(compose, project);
  });

  afterAll(() => {
    rmSync(directory, { recursive: true, force: true });
  });

  const service = (name: string): ComposedService => {
    const found = services[name];
    if (found === undefined) throw new Error(`there is no service ${name}`);
    return found;
  };

  describe(".env, created by ./setup", () => {
    it(".env, created by ./setup has a distinct long secret for each name, is readable by its owner alone and is never replaced", () => {
      expect(Object.keys(secrets)).toEqual(SECRETS);
      for (const secret of Object.values(secrets)) expect(secret).toMatch(/^[0-9a-f]{48}$/);
      expect(new Set(Object.values(secrets)).size).toBe(SECRETS.length);
      expect(statSync(join(project, ".env")).mode & 0o777).toBe(0o600);
      expect(setUp(project)).toMatchObject({ status: 1, stderr: expect.stringMatching(/There is a \.env already/) });
      expect(readEnv(project)).toEqual(secrets);
    });

    it(".env, created by ./setup keeps the comments and optional settings of .env.example, so that they need only be uncommented", () => {
      const settings = readFileSync(join(ROOT, ".env.example"), "utf8").split("\n");
      const made = readFileSync(join(project, ".env"), "utf8").split("\n");
      expect(made.map((line) => line.replace(/=[0-9a-f]{48}$/, "="))).toEqual(settings);
    });

    it(".env, created by ./setup is required, with each of its secrets but the log's: none has a default", () => {
      const bare = makeProject(directory, "bare", false);
      expect(() => readComposeFile(compose, bare)).toThrow(/run \.\/setup first/);
      const file = readFileSync(join(ROOT, "docker-compose.yml"), "utf8");
      const uses = Array.from(file.matchAll(/\$\{(\w+)([^}]*)\}/g), ([, name = "", rest = ""]) => ({ name, rest }));
      const demanded = uses.filter(({ rest }) => rest.startsWith(":?run ./setup first")).map(({ name }) => name);
      expect(demanded.toSorted()).toEqual(SECRETS.filter((name) => name !== "PVA_LOG_PASSWORD").toSorted());
      expect(uses.filter(({ name, rest }) => SECRETS.includes(name) && /^:?-./.test(rest))).toEqual([]);
    });

    it(".env, created by ./setup of an earlier release, without PVA_LOG_PASSWORD, still works without the log", () => {
      const old = makeProject(directory, "old", true);
      const file = join(old, ".env");
      writeFileSync(file, readFileSync(file, "utf8").replace(/^PVA_LOG_PASSWORD=.*\n/m, ""));
      const composed = readComposeFile(compose, old);
      expect(composed.migrate?.environment?.PVA_LOG_PASSWORD).toBe("");
      const { command, environment } = composed["log-init"] ?? {};
      const [program = "", ...args] = unescapeDollars(command);
      const { status, stderr } = spawnSync(program, args, { env: environment as NodeJS.ProcessEnv, encoding: "utf8" });
      expect([status, stderr]).toEqual([2, expect.stringMatching(/PVA_LOG_PASSWORD: is not in \.env/)]);
    });

    it(".env, created by ./setup gives each container the secrets that it needs and no others", () => {
      const given = Object.entries(services).map(([name, { environment, command }]) => {
        const text = JSON.stringify([environment, command]);
        return [name, SECRETS.filter((secret) => text.includes(secrets[secret] ?? secret))];
      });
      expect(Object.fromEntries(given)).toEqual({
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
        proxy: [],
        prometheus: [],
        grafana: ["GRAFANA_PASSWORD"],
        ...Object.fromEntries(HA_REDIS.map((name) => [name, ["REDIS_PASSWORD"]])),
        "ha-redis-create": ["REDIS_PASSWORD"],
        ...Object.fromEntries(HA_POSTGRES.map((name) => [name, ["POSTGRES_PASSWORD"]])),
        "ha-etcd": [],
        "ha-postgres": [],
        "ha-database": ["POSTGRES_PASSWORD"],
        "ha-migrate": ["POSTGRES_PASSWORD", "PVA_API_PASSWORD", "PVA_LOG_PASSWORD", "PVA_ADMIN_PASSWORD"],
        "ha-api-1": ["REDIS_PASSWORD", "PVA_API_PASSWORD", "RESERVATION_TOKEN_SECRET", "WEBHOOK_SECRET", "OPS_TOKEN"],
        "ha-api-2": ["REDIS_PASSWORD", "PVA_API_PASSWORD", "RESERVATION_TOKEN_SECRET", "WEBHOOK_SECRET", "OPS_TOKEN"],
        "ha-worker": ["REDIS_PASSWORD", "PVA_API_PASSWORD", "RESERVATION_TOKEN_SECRET", "WEBHOOK_SECRET"],
        "ha-log-init": ["PVA_LOG_PASSWORD", "PVA_ADMIN_PASSWORD"],
        "ha-log": ["REDIS_PASSWORD", "PVA_LOG_PASSWORD"],
        "ha-voucherctl": ["REDIS_PASSWORD", "PVA_ADMIN_PASSWORD", "WEBHOOK_SECRET"],
      });
    });
  });

  it("docker-compose.yml runs the service unprivileged, on a read-only file system, within limits, with time to drain", () => {
    expect(readDockerfile().user).toBe("node");
    for (const name of OWN) {
      const { read_only, cap_drop, security_opt, stop_grace_period, mem_limit, pids_limit, logging } = service(name);
      expect({ read_only, cap_drop, security_opt }, name).toEqual({
        read_only: true,
        cap_drop: ["ALL"],
        security_opt: ["no-new-privileges:true"],
      });
      // A process drains for 15 seconds.
      expect(Number.parseInt(String(stop_grace_period), 10), name).toBeGreaterThan(15);
      expect([mem_limit, pids_limit], name).not.toContain(undefined);
      expect(logging, name).toMatchObject({
        options: { "max-size": expect.any(String), "max-file": expect.any(String) },
      });
    }
  });

  it("docker-compose.yml pins every foreign image by tag and digest, the base of its own image too, and three of the profile ha by tag", () => {
    const pinned = /^[\w./-]+:[\w.-]+@sha256:[0-9a-f]{64}$/;
    const foreign = Object.entries(services).filter(([, { image }]) => !image.startsWith("partner-voucher-api"));
    expect(foreign.map(([name]) => name).toSorted()).toEqual(
      [
        ...["grafana", "postgres", "prometheus", "proxy", "redis"],
        ...[...HA_REDIS, "ha-redis-create", ...HA_POSTGRES, "ha-database", "ha-etcd", "ha-postgres"],
      ].toSorted(),
    );
    const byTag = [...HA_POSTGRES, "ha-etcd", "ha-postgres"];
    for (const [name, { image }] of foreign) {
      expect(image, name).toMatch(byTag.includes(name) ? /^[\w./-]+:v?\d[\w.-]+$/ : pinned);
    }
    const dockerfile = readFileSync(join(ROOT, "Dockerfile"), "utf8");
    expect(/^ARG NODE_IMAGE=(.*)$/m.exec(dockerfile)?.[1]).toMatch(pinned);
    expect(dockerfile.match(/^FROM (?!\$\{NODE_IMAGE\})/gm)).toBeNull();
  });

  it("docker-compose.yml shows the log's key to its workers alone, and keeps the anchor on a volume apart from the key's and the database's", () => {
    const { LOG_KEY_FILE, LOG_ANCHOR } = service("log").environment ?? {};
    const [key, anchor] = [LOG_KEY_FILE, LOG_ANCHOR].map((path) => dirname(String(path).replace("file:", "")));
    const mounts = Object.entries(services).flatMap(([name, composed]) =>
      volumesOf(composed).flatMap((mount) =>
        /^(ha-)?log-|:\/var\/lib\/vouchers/.test(mount) ? [`${name} ${mount}`] : [],
      ),
    );
    const expected = ["", "ha-"].flatMap((ha) => [
      ...[`${ha}log-init ${ha}log-key:${key}`, `${ha}log-init ${ha}log-anchor:${anchor}`],
      ...[`${ha}log ${ha}log-key:${key}:ro`, `${ha}log ${ha}log-anchor:${anchor}`],
    ]);
    expect(mounts.toSorted()).toEqual(expected.toSorted());
    // Docker gives a new volume the owner of the image's directory.
    expect(readDockerfile().directories).toEqual([key, anchor]);
    const withKey = Object.keys(services).filter((name) => "LOG_KEY_FILE" in (service(name).environment ?? {}));
    expect(withKey.toSorted()).toEqual(["ha-log", "ha-log-init", "log", "log-init"]);
  });

  it("docker-compose.yml lets Prometheus scrape each service that has metrics, as a job of its own", () => {
    const config = readFileSync(join(ROOT, "docs/observability/prometheus.yml"), "utf8");
    const jobs = Array.from(config.matchAll(/job_name: (\w+)\n\s+dns_sd_configs:\n\s+- names: \[(.*)\]/g));
    const measured = Object.keys(services).filter((name) => service(name).environment?.METRICS_PORT);
    expect(jobs.map(([, job, names]) => [job, names]).toSorted()).toEqual(
      measured
        .filter((name) => !name.startsWith("ha-"))
        .map((name) => [name, name])
        .toSorted(),
    );
  });

  it("docker-compose.yml runs the demo on the API's network, where it looks for the API", () => {
    expect(service("demo").network_mode).toMatch(/^service:api$/);
  });

  it("docker-compose.yml limits the memory of every container and checks the health of every one that keeps running", () => {
    for (const [name, { mem_limit, healthcheck }] of Object.entries(services)) {
      expect(mem_limit, name).toBeDefined();
      expect({ name, checked: healthcheck?.test?.[0] === "CMD" }).toEqual({ name, checked: !RUNS_ONCE.includes(name) });
    }
  });

  it("docker-compose.yml listens on this machine where variables say, and the API trusts the proxy's address", () => {
    const moved = makeProject(directory, "moved", true);
    const names = [
      ...["API", "POSTGRES", "REDIS", "PROMETHEUS", "GRAFANA", "HTTP", "HTTPS"],
      ...["HA_API_1", "HA_API_2"],
    ].map((name) => `${name}_LISTEN`);
    const lines = names.map((name, index) => `${name}=127.0.0.9:${7000 + index}`);
    appendFileSync(join(moved, ".env"), [...lines, "TLS_DOMAIN=vouchers.test", ""].join("\n"));
    const composed = readComposeFile(compose, moved);
    const published = JSON.stringify(Object.values(composed).map(({ ports }) => ports));
    for (const [index] of names.entries()) expect(published).toContain(String(7000 + index));
    expect(published.match(/127\.0\.0\.9/g)).toHaveLength(names.length);
    expect(composed.proxy?.environment?.TLS_DOMAIN).toBe("vouchers.test");
    const address = (service("proxy").networks as Networks).edge?.ipv4_address;
    expect(service("api").environment?.TRUST_PROXY).toBe(address);
  });

  it("docker-compose.yml allows any number of workers, starts processes after the migration, and publishes ports on loopback only, except the proxy's", () => {
    const { container_name, ports } = service("worker");
    expect([container_name, ports]).toEqual([undefined, undefined]);
    expect(Object.keys(service("voucherctl").depends_on ?? {}).toSorted()).toEqual(["postgres", "redis"]);
    for (const name of ["api", "worker"]) {
      expect(service(name).depends_on, name).toMatchObject({
        migrate: { condition: "service_completed_successfully" },
        redis: { condition: "service_healthy" },
      });
    }
    expect(service("log").depends_on).toMatchObject({
      "log-init": { condition: "service_completed_successfully" },
      redis: { condition: "service_healthy" },
    });
    expect(service("log-init").depends_on).toMatchObject({ migrate: { condition: "service_completed_successfully" } });
    expect(service("migrate").depends_on).toMatchObject({ postgres: { condition: "service_healthy" } });
    for (const [name, { ports = [] }] of Object.entries(services)) {
      for (const port of ports as (string | { host_ip?: string })[]) {
        const wanted = name === "proxy" ? /^0\.0\.0\.0\b/ : /^127\.0\.0\.1\b/;
        expect(typeof port === "string" ? port : port.host_ip, name).toMatch(wanted);
      }
    }
  });

  it("docker-compose.yml lets Patroni of the profile ha wait for a synchronous standby, within the times that Patroni accepts", () => {
    const [given = "", ...others] = HA_POSTGRES.map((name) => service(name).environment?.SPILO_CONFIGURATION);
    expect(new Set(others)).toEqual(new Set([given]));
    const { dcs } = JSON.parse(String(given)).bootstrap;
    expect(dcs).toMatchObject({
      synchronous_mode: "quorum",
      synchronous_mode_strict: true,
      postgresql: {
        parameters: { synchronous_commit: "on", restart_after_crash: "off", wal_retrieve_retry_interval: "1s" },
      },
    });
    expect(dcs.ttl).toBeGreaterThanOrEqual(Math.max(20, dcs.loop_wait + 2 * dcs.retry_timeout));
    expect(Math.min(dcs.loop_wait - 2, dcs.retry_timeout - 3)).toBeGreaterThanOrEqual(0);
  });

  it("docker-compose.yml gives HAProxy of the profile ha every address that its file asks for", () => {
    const config = readFileSync(join(ROOT, "docs/ha/haproxy.cfg"), "utf8");
    const wanted = new Set(Array.from(config.matchAll(/\$\{(\w+)\}/g), ([, name = ""]) => name));
    const { environment = {}, healthcheck } = service("ha-postgres");
    expect(new Set(Object.keys(environment))).toEqual(wanted);
    expect(HA_POSTGRES.map((_, index) => environment[`PG${index + 1}`])).toEqual(
      HA_POSTGRES.map((name) => `${name}:5432`),
    );
    expect(healthcheck?.test?.at(-1)).toBe(`http://${environment.HEALTH_LISTEN}/health`);
  });

  it("docker-compose.yml points the processes of the profile ha at its servers, with shards for each master", () => {
    for (const name of ["ha-api-1", "ha-api-2", "ha-worker"]) {
      const { DATABASE_URL, REDIS_URL, QUEUE_SHARDS } = service(name).environment ?? {};
      expect(new URL(String(DATABASE_URL)).host, name).toBe("ha-postgres:5432");
      expect(parseRedisUrl(String(REDIS_URL)).map(({ hostname }) => hostname)).toEqual(HA_REDIS);
      expect(Number(QUEUE_SHARDS) % 3).toBe(0);
    }
    const addresses = HA_REDIS.map((name) => (service(name).networks as Networks).ha?.ipv4_address);
    const create = unescapeDollars(service("ha-redis-create").command).join(" ");
    for (const address of addresses) expect(create).toContain(`$PREFIX.${address?.split(".").at(-1)}:6379`);
    expect(addresses[0]).toMatch(new RegExp(`^${service("ha-redis-create").environment?.PREFIX}\\.\\d+$`));
  });

  it("every file of the repository that a container mounts exists", () => {
    const mounted = Object.values(services).flatMap(({ volumes = [] }) =>
      volumes.flatMap((volume) => {
        const source =
          typeof volume === "string" ? (volume.split(":")[0] ?? "") : volume.type === "bind" ? volume.source : "";
        return source.startsWith(project) ? [source.slice(project.length + 1)] : [];
      }),
    );
    expect(mounted.length).toBeGreaterThan(0);
    expect(mounted.filter((file) => !existsSync(join(ROOT, file)))).toEqual([]);
  });
});
