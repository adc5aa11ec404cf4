import { readFileSync } from "node:fs";
import { ACTS } from "../../src/acts/acts.ts";
import { nameOf } from "../../src/cli/command.ts";
import { operatorRoutes } from "../../src/console/mount-operator-pages.ts";
import { buildVoucherctl } from "../../src/local/voucherctl.ts";
import { each } from "../../src/open/api-parts.ts";
import { createApp } from "../../src/open/app.ts";
import { CONFIG_PARTS } from "../../src/open/config-parts.ts";
import { REFERENCE } from "../../src/open/endpoints.ts";
import { openApi } from "../../src/open/open-api.ts";
import { openWorkerService } from "../../src/open/open-worker-service.ts";
import { WING_ACTS } from "../../src/open/wing-acts.ts";
import { WING_GRANTS, WINGS } from "../../src/open/wings.ts";
import { allDocuments, runbookEntries } from "../../src/pages/documents.ts";
import { describeApi } from "../../src/pages/openapi/describe-api.ts";
import { readConfig } from "../../src/platform/config.ts";
import { allFaults } from "../../src/watch/faults.ts";
import { VARIABLE_NAMES } from "./variable-names.ts";

// Prints the service's parts as JSON. It needs no running servers, because the parts do not depend on them.

const config = readConfig(
  {
    DATABASE_URL: "postgres://nobody@127.0.0.1:1/none",
    REDIS_URL: "redis://127.0.0.1:1",
    LOG_LEVEL: "silent",
    METRICS_PORT: "0",
    OPS_TOKEN: "a token of operators",
    OPS_WRITABLE: "true",
  },
  CONFIG_PARTS,
);
const api = openApi(config);
const worker = openWorkerService(config, WINGS);
const { tags = [], components } = describeApi(REFERENCE, config);
const documents = allDocuments(REFERENCE.documents);
const runbook = runbookEntries(documents);
const CORE_GRANTS = new URL("../../src/acts/roles/grants.sql", import.meta.url);
/** The changes that the roles may make, such as `INSERT ON listings`. */
const changesIn = (file: URL) =>
  Array.from(
    readFileSync(file, "utf8").matchAll(/(?<=GRANT |, )(INSERT|UPDATE|DELETE)\b[^;]* ON (.*?)(?=\s+TO )/g),
    ([, right, on]) => `${right} ON ${on}`,
  );
const namesOf = async (metrics: { scrape(): Promise<string> } | null) =>
  Array.from((await metrics?.scrape())?.matchAll(/^# TYPE (\S+)/gm) ?? [], ([, name]) => name);

console.log(
  JSON.stringify({
    routes: createApp(api).router.stack.flatMap(({ route }) => route?.path ?? []),
    operators: operatorRoutes({ ...api, runbook }, each("operatorPages"), WING_ACTS).map(({ path }) => path),
    portal: each("portal").flatMap(({ pages = [] }) => pages.map(({ path }) => path)),
    operations: REFERENCE.endpoints.map(({ operationId }) => operationId),
    documents: documents.map(({ path }) => path),
    runbook: [...runbook.keys()],
    headings: [
      ...tags.map(({ name }) => name),
      ...documents.flatMap(({ path, text }) => Array.from(text.matchAll(/^##+ .*$/gm), ([line]) => `${path} ${line}`)),
    ],
    errors: Object(components?.schemas?.KnownErrorCode).enum,
    variables: VARIABLE_NAMES,
    queues: CONFIG_PARTS.queues.map(({ name }) => name),
    metrics: [...(await namesOf(api.metrics)), ...(await namesOf(worker.metrics))],
    faults: allFaults(each("faults")).map(({ name }) => name),
    acts: [...ACTS, ...WING_ACTS].map(({ name }) => name),
    grants: [
      ...WING_GRANTS.flatMap((file) => readFileSync(file, "utf8").match(/(?<= ON )\w.*(?= TO )/g) ?? []),
      ...[CORE_GRANTS, ...WING_GRANTS].flatMap(changesIn),
    ],
    help: buildVoucherctl()
      .commands.flatMap((noun) => [noun, ...noun.commands])
      .map((command) => `${nameOf(command)}: ${command.helpInformation()}`),
  }),
);
process.exit(0);
