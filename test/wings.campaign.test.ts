import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { copyProject, turnsRed } from "./proof/guards/broken-copy.ts";
import { startNode } from "./support/child-process.ts";

const WINGS = ["marketplace", "transparency", "webhooks"];
const LIST = "src/open/wings.ts";
const CORE_TESTS = ["test/core/redeem/redeem.test.ts", "test/core/look-up/look-up.test.ts"];

/** For each wing (an optional part of the service), a pattern of the names of its routes, metrics and other parts. */
const WORDS: Record<string, RegExp> = {
  marketplace:
    /marketplace|listing|contract|referr|links?\b|link_|^\/r\/|\/(buy|claim)$|stock_l|^product_not|sold_out|w_closed/i,
  transparency:
    /[Rr]eceipt|[Pp]roof|\/log\b|^log$|^LOG_(?!LEVEL)|_log_(?!lines)|^log_t|sLog(?!Li)|not_logged|load_e|ctl (log|wit)/,
  webhooks: /webhook/i,
};
/**
 * Names that contain a word of `WORDS` but belong to no wing, such as the links of a chain and the audience of a batch.
 */
const NO_PART = new RegExp(
  [
    "^WEBHOOK_ALLOW_PRIVATE$|^INSERT ON webhook_outbox$|^/docs/versioning ",
    "^voucherctl (chain\\b|batch issue|key create)|^voucherctl: ",
  ].join("|"),
);

const read = (file: string) => readFileSync(file, "utf8");

/** Removes a wing from a copy of the project: its folder, and its name in the list of wings. */
function takeAway(directory: string, wing: string): void {
  rmSync(join(directory, "src", wing), { recursive: true });
  const file = join(directory, LIST);
  const kept = read(file)
    .split("\n")
    .filter((line) => !line.includes(`/${wing}/`));
  writeFileSync(file, kept.join("\n").replace(new RegExp(`\\bwing\\(${wing}\\),? ?`), ""));
}

async function expectCompiled(directory: string): Promise<void> {
  const project = join(directory, "tsconfig.service.json");
  writeFileSync(project, JSON.stringify({ extends: "./tsconfig.json", include: ["src", "workers"] }));
  const compiler = join(directory, "node_modules/typescript/bin/tsc");
  const { exitCode, stdout } = await startNode([compiler, "-p", project], {}, directory).ended;
  expect({ exitCode, stdout }).toEqual({ exitCode: 0, stdout: "" });
}

/** Lists the parts of the service in a copy of the project, such as routes and metrics, by kind. */
async function takeInventory(directory: string): Promise<Record<string, string[]>> {
  const { stdout, stderr } = await startNode([join(directory, "test/support/inventory.ts")], {}, directory).ended;
  expect(stderr).toBe("");
  return JSON.parse(stdout);
}

/** The kinds of parts of which an inventory has at least one that belongs to the wing. */
const kindsWith = (inventory: Record<string, string[]>, wing: string) =>
  Object.keys(inventory).filter((kind) =>
    inventory[kind]?.some((name) => WORDS[wing]?.test(name) && !NO_PART.test(name)),
  );

it("the running service has each kind of part that a wing (removable feature) adds", async () => {
  const inventory = await takeInventory(join(import.meta.dirname, ".."));
  expect(kindsWith(inventory, "marketplace")).toEqual([
    "routes",
    "operators",
    "operations",
    "documents",
    "headings",
    "errors",
    "metrics",
    "acts",
    "grants",
    "help",
  ]);
  const pages = ["routes", "operators"];
  const described = ["operations", "documents", "runbook", "headings"];
  const declared = [...described, "errors", "variables", "queues", "metrics", "faults"];
  expect(kindsWith(inventory, "transparency")).toEqual([...pages, ...declared, "grants", "help"]);
  expect(kindsWith(inventory, "webhooks")).toEqual([...pages, "portal", ...declared, "acts", "grants", "help"]);
});

it.each([
  ...WINGS.map((wing) => ({ wings: [wing], tests: [] })),
  { wings: WINGS, tests: CORE_TESTS },
])("the service without $wings compiles and keeps no trace of these wings, and $tests pass", async ({
  wings,
  tests,
}) => {
  const { directory, remove } = copyProject();
  try {
    for (const wing of wings) takeAway(directory, wing);
    await expectCompiled(directory);
    const inventory = await takeInventory(directory);
    expect(wings.flatMap((wing) => kindsWith(inventory, wing))).toEqual([]);
    if (tests.length > 0) expect(await turnsRed(tests, { cwd: directory })).toBe(false);
  } finally {
    remove();
  }
});

it("the service accepts a wing of one file and one grants.sql after one line in the list of wings", async () => {
  const { directory, remove } = copyProject();
  try {
    mkdirSync(join(directory, "src/lanterns"));
    writeFileSync(join(directory, "src/lanterns/wing.ts"), LANTERNS);
    writeFileSync(join(directory, "src/lanterns/grants.sql"), "GRANT SELECT ON lanterns TO pva_api;\n");
    writeFileSync(join(directory, "docs/lanterns.md"), "# Lanterns\n\n## Oil\n");
    writeFileSync(join(directory, "docs/runbook/lanterns.md"), "# Runbook: lanterns\n\n## LanternOut\n");
    const list = read(join(directory, LIST));
    const line = list.replace("= [wing(", "= [wing(lanterns), wing(");
    writeFileSync(join(directory, LIST), `import { lanterns } from "../lanterns/wing.ts";\n${line}`);
    await expectCompiled(directory);
    expect(await takeInventory(directory)).toMatchObject({
      routes: expect.arrayContaining(["/lanterns"]),
      operations: expect.arrayContaining(["readLanterns"]),
      documents: expect.arrayContaining(["/docs/lanterns"]),
      runbook: expect.arrayContaining(["LanternOut"]),
      headings: expect.arrayContaining(["/docs/lanterns ## Oil"]),
      operators: expect.arrayContaining(["/lanterns"]),
      portal: expect.arrayContaining(["/lanterns"]),
      errors: expect.arrayContaining(["lantern_out"]),
      variables: expect.arrayContaining(["LANTERN_COUNT"]),
      queues: expect.arrayContaining(["lantern"]),
      metrics: expect.arrayContaining(["voucher_lanterns"]),
      faults: expect.arrayContaining(["LanternOut"]),
      acts: expect.arrayContaining(["lantern light"]),
      grants: expect.arrayContaining(["lanterns"]),
      help: expect.arrayContaining([expect.stringMatching(/^voucherctl lantern: .*light .*light a lantern/s)]),
    });
  } finally {
    remove();
  }
});

it("each wing (removable feature) in the list can be removed with its folder", () => {
  const root = join(import.meta.dirname, "..");
  const named = read(join(root, LIST)).match(/(?<=\/)\w+(?=\/wing\.ts")/g) ?? [];
  expect(new Set(named)).toEqual(new Set(WINGS));
  expect(WINGS.filter((wing) => !existsSync(join(root, "src", wing)))).toEqual([]);
});

const LANTERNS = `
import { z } from "zod";
import { metric } from "../core/metrics/metric-definitions.ts";
import { wingMetrics } from "../core/metrics/metrics.ts";
import { act } from "../acts/act.ts";
import { html } from "../pages/html.ts";
import { AppError, type ErrorKind } from "../platform/api/errors.ts";
import { integer, wingVariables } from "../platform/environment.ts";
import { anyone } from "../platform/http/access.ts";
import { endpoint } from "../platform/http/endpoint.ts";
import type { Wing } from "../wing.ts";

const OUT: ErrorKind = { code: "lantern_out", status: 409, sentence: () => "The lantern is out." };
const variables = wingVariables("lanterns", { count: integer(0, 9).default(1).meta({ title: "LANTERN_COUNT" }) });
const lit = endpoint({
  path: "/lanterns", operationId: "readLanterns", summary: "Read lanterns", description: "", access: anyone,
  ownErrors: [OUT], response: z.object({ lit: z.boolean() }), responseDescription: "",
  handler: async () => { throw new AppError(OUT); },
});
const light = act({
  name: "lantern light", on: "organization", role: "admin", title: "Light a lantern", examples: ["org_…"], fields: {},
  run: async () => ({ lit: true }), said: () => "It burns.",
});
const page = { path: "/lanterns", label: () => "Lanterns", isOpenTo: () => true, render: async () => html\`lit\` };
const api = {
  endpoints: [lit],
  described: { documents: ["lanterns.md", "runbook/lanterns.md"] },
  operatorPages: { sections: ["Lanterns"], pages: { "/lanterns": ["viewer", async () => html\`lit\`] } },
  portal: { pages: [page] },
  faults: { severities: { LanternOut: "amber" }, find: async () => ({}) },
} as const;

export const lanterns = {
  variables,
  queues: [{
    name: "lantern", dataMaxBytes: 64, waitingMax: 1, withdrawOnTimeout: false, keep: { age: 60 },
    keepFailed: { age: 60, count: 1 }, shown: { data: [], reply: "all" }, whilePaused: "Lanterns stay as they are.",
  }],
  grants: new URL("./grants.sql", import.meta.url),
  acts: async () => [light],
  metrics: wingMetrics({ lanterns: { ...metric("gauge", "worker", "voucher_lanterns"), help: "Lanterns that burn." } }),
  api: async () => api,
  sweeper: async () => () => ({ lightLanterns: async () => 0 }),
  commands: async () => {
    return { key: [{ name: "lantern", description: "lanterns of the shop", verbs: {} }] };
  },
} satisfies Wing;
`;
