import { existsSync, globSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { describe, expect, it } from "vitest";
import { API_CONNECTIONS_MAX, CALLER_KINDS } from "../../src/core/callers/caller-kinds.ts";
import { SCOPES } from "../../src/core/keys/api-keys.ts";
import { ENDPOINTS } from "../../src/open/endpoints.ts";
import { WORKER_CONNECTIONS_MAX } from "../../src/open/open-worker-service.ts";
import { ALL_ERRORS } from "../support/all-errors.ts";
import { VARIABLE_NAMES } from "../support/variable-names.ts";

const read = (file: string) => readFileSync(file, "utf8");

it("docs/errors.md explains each error code, in the order of statuses", () => {
  const rows = read("docs/errors.md").matchAll(/^\| (\d+) \| `(\w+)` \| \S.* \|$/gm);
  const codes = Array.from(ALL_ERRORS.values(), ({ code, status }) => `${status} ${code}`);
  const listed = Array.from(rows, ([, status, code]) => `${status} ${code}`);
  expect(listed.toSorted()).toEqual(codes.toSorted());
  expect(listed).toEqual(listed.toSorted((a, b) => Number.parseInt(a, 10) - Number.parseInt(b, 10)));
});

it("docs/attackers.md explains what a thief can do with a stolen key of each scope", () => {
  const [, section = ""] = read("docs/attackers.md").split(/^## With (?:a stolen API key|other secrets)/m);
  expect(Array.from(section.matchAll(/^\| `(.*?)` \|/gm), ([, scope]) => scope)).toEqual(SCOPES);
});

it("docs/configuration.md and its pages describe every environment variable", () => {
  const documented = globSync("docs/{configuration,configuration/*}.md").map(read).join();
  expect(VARIABLE_NAMES.length).toBeGreaterThan(20);
  expect(VARIABLE_NAMES.filter((name) => !documented.includes(`\`${name}\``))).toEqual([]);
});

it("docs/design/final-answers.md says for every endpoint whether a standby confirms its answers", () => {
  const [, table = ""] =
    /\n## What is told as final is confirmed\n([\s\S]*?)\n## /.exec(read("docs/design/final-answers.md")) ?? [];
  const named = Array.from(table.matchAll(/^\| (.*?) \|/gm), ([, names = ""]) => names.match(/(?<=`)\w+(?=`)/g) ?? []);
  const operations = named.flat().filter((name) => name !== "voucherctl");
  expect(operations.toSorted()).toEqual(ENDPOINTS.map(({ operationId }) => operationId).toSorted());
});

it("links in the documents lead to existing files and headings", () => {
  let count = 0;
  const files = ["*.md", "docs/**/*.md", "src/**/README.md", "test/proof/*/README.md"];
  for (const file of files.flatMap((pattern) => globSync(pattern))) {
    const links = read(file).matchAll(/\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)/g);
    for (const [link, path = "", anchor] of links) {
      const target = path === "" ? file : join(dirname(file), path);
      expect(existsSync(target), `${file}: ${link}`).toBe(true);
      if (anchor !== undefined) expect(anchorsOf(target), `${file}: ${link}`).toContain(anchor);
      count += 1;
    }
  }
  expect(count).toBeGreaterThan(50);
});

it("README.md links to each document, directly or by the first page of its folder", () => {
  const readme = read("README.md");
  const isLinked = (file: string) => {
    const first = `${dirname(file)}.md`;
    return readme.includes(`](${file})`) || (existsSync(first) && read(first).includes(`](${relative("docs", file)})`));
  };
  expect(globSync("docs/**/*.md").filter((file) => !isLinked(file))).toEqual([]);
});

it("no document has more than 1 500 words", () => {
  const countWords = (file: string) => read(file).trim().split(/\s+/).length;
  expect(["SECURITY.md", ...globSync("docs/**/*.md")].filter((file) => countWords(file) > 1_500)).toEqual([]);
});

/** Returns the anchors that GitHub creates for a document's headings. */
function anchorsOf(file: string): string[] {
  return Array.from(read(file).matchAll(/^#+ (.+)$/gm), ([, heading = ""]) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\w\- ]/g, "")
      .replaceAll(" ", "-"),
  );
}

describe("connections to Postgres", () => {
  const [api, worker] = [API_CONNECTIONS_MAX, WORKER_CONNECTIONS_MAX];
  const scaling = read("docs/scaling.md");

  it.each([
    ["docs/scaling.md", `\n| API process | ${api} |`],
    ["docs/scaling.md", `\n| Worker process | ${worker} |`],
    ["docs/scaling.md", `at least ${api} × APIs + ${worker} × workers`],
    ["docker-compose.yml", `An API process uses up to ${api} connections, a worker ${worker}.`],
  ])("the number of connections in %s is the number that a process can open: %s", (file, told) => {
    expect(read(file)).toContain(told);
  });

  it("docs/design/callers.md has each kind of caller's connections, and their sum is the pool's size", () => {
    const [, table = ""] = /## Kinds of callers\n[\s\S]*?\n(\|[\s\S]*?)\n\n/.exec(read("docs/design/callers.md")) ?? [];
    const sharedBy = {
      organization: "Organization",
      visitor: "Signed-in user, or address (IPv6: /64)",
      none: "Nothing: there are few of them",
    };
    for (const { calls, connections, waitingMax, waitingMaxEach, share } of Object.values(CALLER_KINDS)) {
      const counts = [connections, waitingMax, waitingMaxEach].join(" | ");
      expect(table).toContain(`| ${calls} | ${counts} | ${sharedBy[share]} | 503 \`overloaded\` |`);
    }
    const told = Array.from(table.matchAll(/^\|[^|]+\| (\d+) \|/gm), ([, count]) => Number(count));
    expect(told.reduce((sum, count) => sum + count, 0)).toBe(api);
  });

  it("the sizing example and docker-compose.yml leave the documented reserve of Postgres connections", () => {
    const [, reserve = "", max = "", apis = "", workers = "", sum = ""] =
      /at least (\d+) more [\s\S]*with (\d+), for example (\w+) APIs\s+and (\w+) workers \((\d+)\)/.exec(scaling) ?? [];
    const numbers = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"];
    expect(numbers.indexOf(apis) * api + numbers.indexOf(workers) * worker).toBe(Number(sum));
    expect(Number(max) - Number(sum)).toBeGreaterThanOrEqual(Number(reserve));
    expect(read("docker-compose.yml")).toContain(`max_connections=${max}`);
  });
});

describe("docs/scaling.md", () => {
  const scaling = read("docs/scaling.md");
  const numbersOf = (text: string) => text.split("|").map((cell) => Number(cell.replaceAll(/[ *]/g, "")));
  /** The share of a core that a plan may use, as docs/scaling.md states it. */
  const UTILIZATION = 0.6;
  const CLUSTER_FACTOR = 1.8;
  const [, heads = "", measured = ""] =
    /### Redeem by code, 256 connections\n\n\|([^\n]*)\|\n[\s\S]*?\|( this service, [^\n]*)\|\n/.exec(
      read("docs/benchmarks.md"),
    ) ?? [];
  const columns = heads.split("|").map((cell) => cell.trim());
  const costOf = (part: string) => numbersOf(measured)[columns.indexOf(part)] ?? Number.NaN;
  const [api, worker, redis, postgres] = [costOf("API"), costOf("worker"), costOf("Redis"), costOf("Postgres")];
  const master = Math.round(redis * CLUSTER_FACTOR);

  it("docs/scaling.md repeats the costs of a redemption from docs/benchmarks.md, with the right sum", () => {
    const rowOf = (name: string) => numbersOf(new RegExp(`^\\| ${name} \\|([^|]*)\\|`, "m").exec(scaling)?.[1] ?? "");
    const parts = ["API process", "Worker process", "One Redis", "A master of a Redis Cluster", "A core of Postgres"];
    const costs = parts.map((name) => rowOf(`${name}(?= \\| \\d+ \\| [\\d ]+/s)`)[0]);
    expect(costs).toEqual([api, worker, redis, master, postgres]);
    expect(rowOf("Sum, one Redis")).toEqual([api + worker + redis + postgres]);
    expect(rowOf("Sum, Redis Cluster")).toEqual([api + worker + master + postgres]);
    for (const [, cost = "", rate = ""] of scaling.matchAll(/^\| [^|]+\| (\d+) \| ([\d ]+)\/s \|$/gm))
      expect(Number(rate.replaceAll(" ", "")), cost).toBe(Math.floor((UTILIZATION * 1_000_000) / Number(cost)));
  });

  it("docs/scaling.md multiplies the costs of a redemption correctly for each rate", () => {
    const rows = Array.from(scaling.matchAll(/^\| (\d+ 000) \|([\d |]+)\|$/gm), ([, rate = "", rest = ""]) => [
      ...numbersOf(rate),
      ...numbersOf(rest),
    ]);
    expect(rows).toHaveLength(4);
    for (const [rate = 0, ...counts] of rows) {
      const processes = (cost: number) => Math.ceil((rate * cost) / 1_000_000 / UTILIZATION);
      const inOne = processes(redis) === 1;
      const needed = [api, worker, inOne ? redis : master, postgres].map(processes);
      expect(counts, String(rate)).toEqual([...needed, needed.reduce((sum, count) => sum + count)]);
    }
  });
});
