import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, existsSync, globSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseEnv } from "node:util";
import { afterAll, beforeAll, expect, it } from "vitest";
import { parseAllDocuments } from "yaml";
import packageJson from "../../../package.json" with { type: "json" };
import { API_CONNECTIONS_MAX } from "../../../src/core/callers/caller-kinds.ts";
import { METRICS, type MetricDefinition } from "../../../src/core/metrics/metric-definitions.ts";
import { onPath } from "../../../src/local/debian-packages.ts";
import { buildVoucherctl } from "../../../src/local/voucherctl.ts";
import { CONFIG_PARTS } from "../../../src/open/config-parts.ts";
import { ENDPOINTS } from "../../../src/open/endpoints.ts";
import { WORKER_CONNECTIONS_MAX } from "../../../src/open/open-worker-service.ts";
import {
  type Config,
  readAddress,
  readApiConfig,
  readDatabaseUrl,
  readGivenServers,
  readGranteePasswords,
  readWingConfig,
  readWorkerConfig,
} from "../../../src/platform/config.ts";
import { CLOSE_MAX_MS } from "../../../src/platform/process.ts";
import { tlogVariables } from "../../../src/transparency/declared.ts";
import { readTlogSettings } from "../../../src/transparency/log-settings.ts";
import { webhookVariables } from "../../../src/webhooks/declared.ts";
import { readDockerfile } from "../../support/image.ts";
import { selectorsOf } from "../../support/promql.ts";
import { KNOWN_NAMES } from "../../support/variable-names.ts";

const ROOT = fileURLToPath(new URL("../../../", import.meta.url));
const read = (file: string) => readFileSync(join(ROOT, file), "utf8");
const BASE = "docs/kubernetes/base";
const OVERLAY = "docs/kubernetes/overlays/production";
const GUIDE = read("docs/kubernetes/README.md");

// biome-ignore lint/suspicious/noExplicitAny: the tests compare the fields that they read.
type Yaml = any;

const FILES = globSync("docs/kubernetes/**/*.{yaml,yml}", { cwd: ROOT });
const [base] = parseFile(join(BASE, "kustomization.yaml"));
const [overlay] = parseFile(join(OVERLAY, "kustomization.yaml"));
const OBJECTS = (base.resources as string[]).flatMap((file) => parseFile(join(BASE, file)));
const POD_OWNERS = OBJECTS.filter(({ kind }) => ["Deployment", "Job"].includes(kind));
const PODS = POD_OWNERS.map((object) => ({ name: object.metadata.name as string, ...object.spec.template }));
const CONTAINERS = PODS.flatMap(({ name, spec }) =>
  [...(spec.initContainers ?? []), ...spec.containers].map((container: Yaml) => ({ pod: name, spec, ...container })),
);

let directory: string;
const secrets: Record<string, Record<string, string>> = {};
let keyFile: string;

beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), "voucher-kubernetes-"));
  cpSync(join(ROOT, "docs/kubernetes"), join(directory, "docs/kubernetes"), { recursive: true });
  const [, commands = ""] = /^3\.[\s\S]*?```sh\n([\s\S]*?)```/m.exec(GUIDE) ?? [];
  const script = commands.replace("npm run -s voucherctl --", `${process.execPath} ${join(ROOT, "src/cli/main.ts")}`);
  execFileSync("bash", ["-euc", script], { cwd: directory, stdio: "pipe" });
  for (const { name, envs = [] } of overlay.secretGenerator) {
    secrets[name] = toObject(envs.map((file: string) => readFileSync(join(directory, OVERLAY, file), "utf8")));
  }
  keyFile = join(directory, OVERLAY, "secrets/log.key");
});

afterAll(() => rmSync(directory, { recursive: true, force: true }));

/** Finds the container of a pod that serves. Init containers come before it. */
const container = (pod: string): Yaml => CONTAINERS.findLast((each) => each.pod === pod);
const SERVING = ["vouchers-api", "vouchers-worker", "vouchers-log"];

it("every Kubernetes file but prometheus.yaml is used, and all are YAML without repeated keys", () => {
  for (const file of FILES) expect(parseFile(file).length, file).toBeGreaterThan(0);
  const used = [
    ...base.resources.map((file: string) => join(BASE, file)),
    ...overlay.resources.map((file: string) => join(OVERLAY, file)),
  ];
  for (const file of used) expect(existsSync(join(ROOT, file)), file).toBe(true);
  const unused = FILES.filter((file) => !used.includes(file) && basename(file) !== "kustomization.yaml");
  expect(unused).toEqual(["docs/kubernetes/prometheus.yaml"]);
  expect(used).toContain(BASE);
});

it("the configuration knows all variables in the Kubernetes files", () => {
  expect(KNOWN_NAMES.length).toBeGreaterThan(30);
  for (const each of CONTAINERS)
    expect(KNOWN_NAMES).toEqual(expect.arrayContaining(Object.keys(environmentOf(each, true))));
});

it.each([
  false,
  true,
])("the variables in the Kubernetes files are valid configurations (with the overlay: %s)", (withOverlay) => {
  const api = readApiConfig(environmentOf(container("vouchers-api"), withOverlay), CONFIG_PARTS);
  const worker = readWorkerConfig(environmentOf(container("vouchers-worker"), withOverlay), CONFIG_PARTS);
  const log = readWorkerConfig(environmentOf(container("vouchers-log"), withOverlay), CONFIG_PARTS);
  const loginOf = ({ databaseUrl }: Pick<Config, "databaseUrl">) => new URL(databaseUrl).username;
  expect([api, worker, log].map(loginOf)).toEqual(["pva_api", "pva_api", "pva_log"]);
  for (const config of [api, worker, log]) {
    expect(config.production).toBe(true);
    expect([config.redisUrl, config.queueShards]).toEqual([api.redisUrl, api.queueShards]);
  }
  expect(worker.reservationTokenSecrets).toEqual(api.reservationTokenSecrets);
  expect(new Set([...worker.workerQueues, ...log.workerQueues])).toEqual(
    new Set(CONFIG_PARTS.queues.map(({ name }) => name)),
  );
  expect(tlogVariables.of(log).anchors).toHaveLength(1);
  for (const each of CONTAINERS.filter(({ pod }) => pod === "vouchers-migration")) {
    const env = environmentOf(each, withOverlay);
    expect(new URL(readDatabaseUrl(env)).username).toBe("owner");
    const passwords = Object.values(secrets).flatMap(({ DATABASE_URL = "" }) => {
      const url = URL.canParse(DATABASE_URL) ? new URL(DATABASE_URL) : null;
      return url?.username.startsWith("pva_") ? [[url.username.slice("pva_".length), url.password]] : [];
    });
    expect(Object.fromEntries(passwords)).toEqual(readGranteePasswords(env));
  }
  const admin = environmentOf(container("vouchers-admin"), withOverlay);
  expect(readGivenServers(admin).redisUrl).toBe(api.redisUrl);
  expect([readAddress(admin).baseUrl, webhookVariables.of(readWingConfig(admin, webhookVariables))]).toEqual([
    api.baseUrl,
    webhookVariables.of(api),
  ]);
});

it("the Kubernetes files give each pod exactly the secrets that it needs", () => {
  const secretsOf = (spec: Yaml) =>
    new Set(Array.from(JSON.stringify(spec).matchAll(/"secret(?:Ref":\{"n|N)ame":"([^"]+)"/g), ([, name]) => name));
  const given = PODS.map(({ name, spec }) => `${name}: ${[...secretsOf(spec)].join(", ")}`);
  expect(given).toEqual([
    "vouchers-migration: vouchers-migration",
    "vouchers-api: vouchers-service, vouchers-api",
    "vouchers-worker: vouchers-service",
    "vouchers-log: vouchers-log, vouchers-log-key",
    "vouchers-admin: vouchers-admin",
  ]);
});

it("Kubernetes containers use only files that the image has and commands that exist", () => {
  const { copied, user } = readDockerfile();
  expect(user).toBe("node");
  const runs = CONTAINERS.filter(({ command }) => command[0] === "node").map(({ command }) => command.slice(1));
  expect(runs.length).toBeGreaterThan(4);
  for (const [file, ...args] of runs) {
    expect(copied, file).toContain(file.split("/")[0]);
    expect(existsSync(join(ROOT, file)), file).toBe(true);
    if (args.length === 0) continue;
    const noun = buildVoucherctl().commands.find((command) => command.name() === args[0]);
    const verbs = noun?.commands.map((verb) => verb.name());
    expect(verbs, args.join(" ")).toContain(args[1]);
  }
  const rest = CONTAINERS.filter(({ command }) => command[0] !== "node").map(({ command }) => command[0]);
  expect(rest).toEqual(["install", "sleep"]);
});

it("Kubernetes containers use the image of this version", () => {
  expect(base.images).toEqual([{ name: "partner-voucher-api", newTag: packageJson.version }]);
  expect(overlay.images[0].name).toBe("partner-voucher-api");
  for (const { pod, image } of CONTAINERS) expect(image, pod).toBe("partner-voucher-api");
});

const NODE_USER = 1000;

it("Kubernetes containers run unprivileged and read-only, with limited memory and their pod's volumes", () => {
  for (const { pod, spec, securityContext, resources, volumeMounts } of CONTAINERS) {
    expect(spec.securityContext, pod).toMatchObject({
      runAsNonRoot: true,
      runAsUser: NODE_USER,
      seccompProfile: { type: "RuntimeDefault" },
    });
    expect(securityContext, pod).toEqual({
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ["ALL"] },
    });
    expect([resources.requests.cpu, resources.requests.memory, resources.limits.memory], pod).not.toContain(undefined);
    const volumes = spec.volumes.map(({ name }: Yaml) => name);
    for (const { name } of volumeMounts) expect(volumes, pod).toContain(name);
  }
});

it("Kubernetes containers have probes at paths and ports that the processes serve", () => {
  const paths = ["/metrics", ...ENDPOINTS.map(({ path }) => path)];
  for (const name of SERVING) {
    const { ports, livenessProbe, readinessProbe, startupProbe, ...rest } = container(name);
    const config = readApiConfig(
      { ...environmentOf(container("vouchers-api"), true), ...environmentOf(rest, true) },
      CONFIG_PARTS,
    );
    const served: Record<string, number | null> = { http: config.port, metrics: config.metricsPort };
    for (const port of ports) expect(port.containerPort, name).toBe(served[port.name]);
    const isApi = name === "vouchers-api";
    expect(livenessProbe.httpGet.path).toBe(isApi ? "/healthz" : "/metrics");
    if (name !== "vouchers-log") expect(readinessProbe.httpGet.path).toBe("/readyz");
    for (const { httpGet } of [livenessProbe, readinessProbe, startupProbe].filter((each) => each !== undefined)) {
      expect(paths, name).toContain(httpGet.path);
      expect(isApi ? "http" : ports.map((port: Yaml) => port.name), name).toContain(httpGet.port);
    }
  }
});

it("Kubernetes gives containers more time to stop than the service needs", () => {
  for (const name of SERVING) {
    const { spec, lifecycle } = container(name);
    const pause = Number(lifecycle?.preStop.exec.command[1] ?? 0);
    expect(spec.terminationGracePeriodSeconds, name).toBeGreaterThan(pause + CLOSE_MAX_MS / 1_000);
    expect(pause > 0, name).toBe(name === "vouchers-api");
  }
});

it("the Kubernetes files copy the transparency log's key to a file with the required permissions", async () => {
  const settings = () =>
    readTlogSettings({ keyFile: copy, origin: null, anchors: ["a"], policyFile: null, intervalMs: 1_000 });
  const { command, volumeMounts } = CONTAINERS.find(({ name }) => name === "key") as Yaml;
  const { env, volumeMounts: mounts, spec } = container("vouchers-log");
  const secret = spec.volumes.find(({ name }: Yaml) => name === "secret").secret;
  expect(overlay.secretGenerator).toContainEqual({ name: secret.secretName, files: ["key=secrets/log.key"] });
  const copy = join(directory, "key");
  // Copies the key file with the rights that the kubelet gives it in a pod with an fsGroup.
  writeFileSync(copy, readFileSync(keyFile), { mode: secret.defaultMode });
  await expect(settings()).rejects.toThrow("Other users can read LOG_KEY_FILE");
  rmSync(copy);
  const [program, option, mode, from, to] = command;
  const mountOf = (path: string, all: Yaml[]) => all.find(({ mountPath }) => mountPath === dirname(path))?.name;
  const used = [mountOf(from, volumeMounts), mountOf(to, volumeMounts), mountOf(to, mounts)];
  expect(used).toEqual(["secret", "key", "key"]);
  expect(env).toContainEqual({ name: "LOG_KEY_FILE", value: to });
  execFileSync(program, [option, mode, keyFile, copy]);
  expect((await settings()).origin).toBe("vouchers.example.com/log");
  expect(statSync(copy).mode & 0o777).toBe(0o400);
  const [anchor] = tlogVariables.of(
    readWorkerConfig(environmentOf(container("vouchers-log"), true), CONFIG_PARTS),
  ).anchors;
  expect(mountOf(anchor ?? "", mounts)).toBe("anchor");
  const { persistentVolumeClaim } = spec.volumes.find(({ name }: Yaml) => name === "anchor");
  expect(find("PersistentVolumeClaim", persistentVolumeClaim.claimName)).toBeDefined();
});

const labelsOf = (name: string) => PODS.find((pod) => pod.name === name)?.metadata.labels;

it("Kubernetes Deployments, budgets, services and policies select the intended pods", () => {
  for (const { metadata, spec } of POD_OWNERS.filter(({ kind }) => kind === "Deployment"))
    expect(spec.selector.matchLabels, metadata.name).toEqual(labelsOf(metadata.name));
  for (const name of ["vouchers-api", "vouchers-worker"]) {
    const selector = { matchLabels: labelsOf(name) };
    expect(find("PodDisruptionBudget", name).spec).toEqual({ maxUnavailable: 1, selector });
    const terms = container(name).spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution;
    for (const { podAffinityTerm } of terms) expect(podAffinityTerm.labelSelector.matchLabels).toEqual(labelsOf(name));
  }
  const { selector, ports } = find("Service", "vouchers-api").spec;
  expect(selector).toEqual(labelsOf("vouchers-api"));
  const policies = OBJECTS.filter(({ kind }) => kind === "NetworkPolicy").map(({ spec }) => spec);
  expect(policies.map(({ podSelector }) => podSelector)).toEqual([{}, { matchLabels: labelsOf("vouchers-api") }]);
  const named = policies.flatMap(({ ingress }) => ingress[0].ports.map(({ port }: Yaml) => port));
  expect([ports[0].targetPort, ...named]).toEqual(["http", "metrics", "http"]);
});

it("Kubernetes autoscalers scale only Deployments that set no number of replicas", () => {
  const targets = [find("HorizontalPodAutoscaler", "vouchers-api"), find("ScaledObject", "vouchers-worker")];
  for (const { spec } of targets) expect(find("Deployment", spec.scaleTargetRef.name).spec.replicas).toBeUndefined();
});

it("the Kubernetes overlay patches only fields of the base", () => {
  for (const { target, patch } of overlay.patches) {
    const object = find(target.kind, target.name);
    const [operations] = parseAllDocuments(patch).map((document) => document.toJS());
    for (const { op, path } of operations) {
      const keys: string[] = path.slice(1).split("/");
      const value = keys.reduce((parent: Yaml, key) => parent?.[key], object);
      expect([op, value === undefined], path).toEqual(["replace", false]);
    }
  }
  for (const { name, behavior } of overlay.configMapGenerator)
    expect([base.configMapGenerator.some((map: Yaml) => map.name === name), behavior]).toEqual([true, "merge"]);
});

it("the workers' Kubernetes autoscaler adds a pod for every WORKER_CONCURRENCY waiting jobs", () => {
  const { triggers } = find("ScaledObject", "vouchers-worker").spec;
  const { query, threshold } = triggers.find(({ type }: Yaml) => type === "prometheus").metadata;
  const { workerQueues, workerConcurrency } = readWorkerConfig(
    environmentOf(container("vouchers-worker"), true),
    CONFIG_PARTS,
  );
  expect(threshold).toBe(String(workerConcurrency));
  const [selector, ...others] = selectorsOf(query);
  expect(others).toEqual([]);
  const metric = Object.values<MetricDefinition>(METRICS).find(({ name }) => name === selector?.metric);
  expect(metric).toMatchObject({ process: "api", help: expect.stringContaining("waiting") });
  const matched = Object.fromEntries(selector?.matchers.map(({ label, value }) => [label, value]) ?? []);
  // Jobs of the sweeper do not count, because its queue has at most one waiting job.
  expect(matched).toEqual({ queue: workerQueues.filter((queue) => queue !== "sweep").join("|"), state: "waiting" });
  const [, kept = ""] = /max by \(([^)]*)\)/.exec(query) ?? [];
  expect([...kept.split(", "), "state"].sort()).toEqual(metric?.labels.toSorted());
});

it("Prometheus in Kubernetes scrapes the jobs of docs/observability, at existing pods and ports", () => {
  const [{ scrape_configs: jobs }] = parseFile("docs/kubernetes/prometheus.yaml");
  const [{ scrape_configs: expected }] = parseFile("docs/observability/prometheus.yml");
  const namesOf = (all: Yaml[]) => all.map(({ job_name }) => job_name);
  expect(namesOf(jobs)).toEqual(namesOf(expected));
  const components = PODS.map(({ metadata }) => metadata.labels["app.kubernetes.io/component"]);
  for (const { job_name, relabel_configs } of jobs) {
    expect(components).toContain(job_name);
    // The alert for a missing worker selects a job of Prometheus, so each job must scrape only its own component.
    expect(relabel_configs[0].regex).toBe(job_name);
    expect(relabel_configs[1].regex).toBe("metrics");
  }
});

it("the Kubernetes guide's numbers of connections follow from the maximum numbers of pods", () => {
  const scalers = [find("HorizontalPodAutoscaler", "vouchers-api"), find("ScaledObject", "vouchers-worker")];
  const small = scalers.map(({ spec }): number => spec.maxReplicas ?? spec.maxReplicaCount);
  const large = overlay.patches.slice(0, 2).map(({ patch }: Yaml) => parseAllDocuments(patch)[0]?.toJS()[1].value);
  const needed = ([apis = 0, workers = 0]: number[]) =>
    (apis + 1) * API_CONNECTIONS_MAX + (workers + 1 + 1) * WORKER_CONNECTIONS_MAX + 20;
  const ofBase = `${needed(small)} with the base's limits of ${small[0]} API pods and ${small[1]} workers`;
  const ofOverlay = `${needed(large)} with the overlay's ${large[0]} and ${large[1]}`;
  expect(GUIDE.replace(/\s+/g, " ")).toContain(`That is ${ofBase}, and ${ofOverlay}.`);
});

it.runIf(onPath("kubectl") !== null)("kubectl builds the overlay with the secrets of the Kubernetes guide", () => {
  const options = { encoding: "utf8" } as const;
  const { status, stdout, stderr } = spawnSync("kubectl", ["kustomize", join(directory, OVERLAY)], options);
  expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
  const built = parseAllDocuments(stdout).map((document) => document.toJS());
  const generated = base.configMapGenerator.length + overlay.secretGenerator.length;
  expect(built).toHaveLength(OBJECTS.length + generated + 1);
  const names = built.map(({ metadata }) => metadata.name);
  for (const [, reference] of stdout.matchAll(/(?:MapRef|secretRef):\n +name: (\S+)/g))
    expect(names).toContain(reference);
});

function parseFile(file: string): Yaml[] {
  return parseAllDocuments(read(file), { merge: true, strict: true, uniqueKeys: true }).map((document) => {
    expect([file, ...document.errors, ...document.warnings]).toEqual([file]);
    return document.toJS();
  });
}

const find = (kind: string, name: string): Yaml => {
  const found = OBJECTS.find((object) => object.kind === kind && object.metadata.name === name);
  if (found === undefined) throw new Error(`there is no ${kind} ${name}`);
  return found;
};

/** Returns the environment variables of a container, including those of the image. */
function environmentOf({ env = [], envFrom = [] }: Yaml, withOverlay: boolean): Record<string, string> {
  const generators = [...base.configMapGenerator, ...(withOverlay ? overlay.configMapGenerator : [])];
  const maps = envFrom.map(({ configMapRef, secretRef }: Yaml) => {
    if (secretRef !== undefined) {
      expect(Object.keys(secrets)).toContain(secretRef.name);
      return secrets[secretRef.name];
    }
    const lines = generators.filter(({ name }) => name === configMapRef.name).flatMap(({ literals }) => literals);
    expect(lines, configMapRef.name).not.toEqual([]);
    return toObject(lines);
  });
  const own = Object.fromEntries(env.map(({ name, value }: Yaml) => [name, value]));
  return Object.assign({ ...readDockerfile().environment }, ...maps, own);
}

const toObject = (lines: readonly string[]) => parseEnv(lines.join("\n")) as Record<string, string>;
