// biome-ignore-all lint/suspicious/noTemplateCurlyInString: these are parts of the client that the tests replace.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { runNode } from "../../../test/support/child-process.ts";
import { issueTestBatch, makeKey, makePartner } from "../../../test/support/supply.ts";
import { useService } from "../../../test/support/use-service.ts";
import { ISSUER_CHECKS, listAll } from "../src/check-issuer.ts";
import { makeServiceCall } from "../src/service.ts";

const SAMPLE = readFileSync("docs/sandbox-issuer.mjs", "utf8");

/** The line of the sample client that runs a step. */
const RUNS = "await steps[step]()";

const { api, db } = useService({ workers: [], env: { ISSUER_API: "true" } });
const directory = mkdtempSync(join(tmpdir(), "voucher-sandbox-issuer-"));
afterAll(() => rmSync(directory, { recursive: true }));

let clients = 0;

/** Checks a client, and returns the names of the failed checks. */
async function check(client: string) {
  const file = join(directory, `client-${++clients}.mjs`);
  writeFileSync(file, client);
  const { organizationId, productId } = await makePartner(db, { sandbox: true });
  const { key } = await makeKey(db, organizationId, { scopes: ["voucher.issue"] });
  const command = `"${process.execPath}" "${file}"`;
  const options = ["--url", api.url, "--key", key, "--product", productId, "--client", command, "--json"];
  const { exitCode, stdout, stderr } = await runNode(["packages/conformance/src/main.ts", ...options], {});
  expect(stderr).toBe("");
  const checks: { name: string; result: string }[] = JSON.parse(stdout).checks;
  return {
    exitCode,
    tried: checks.length,
    wrong: checks.filter(({ result }) => result === "wrong").map(({ name }) => name),
  };
}

it("the conformance kit lists the batches on all pages", async () => {
  const { organizationId, productId } = await makePartner(db, { sandbox: true });
  const { key } = await makeKey(db, organizationId, { scopes: ["voucher.issue"] });
  const issued: string[] = [];
  for (let count = 1; count <= 5; count += 1) {
    const { batchId } = await issueTestBatch(db, { productId }, count);
    issued.push(batchId);
  }
  const call = makeServiceCall(api.url, key, new AbortController().signal);
  for (const limit of [1, 2, 5, 6]) {
    const listed = await listAll(call, `/issuer/batches?product=${productId}`, limit);
    expect(listed.map(({ id }) => id)).toEqual(issued);
  }
  const vouchers = await listAll(call, `/issuer/batches/${issued.at(-1)}/vouchers?`, 2);
  expect(vouchers.map(({ serial }) => serial)).toEqual([1, 2, 3, 4, 5]);
});

// These tests run at once, because each waits for processes and for the seconds of Retry-After.
it.concurrent("the conformance kit passes the sample back office", async () => {
  expect(await check(SAMPLE)).toEqual({ exitCode: 0, tried: ISSUER_CHECKS.length, wrong: [] });
});

it.concurrent.each([
  ["`order-${order}`", "`order-${order}-${Math.random()}`", ["repeat", "reused reference"]],
  [" || answer.otherBatch", "", ["reused reference"]],
  ["voucher.code", "voucher.id", ["issue", "repeat", "lost answer", "busy service"]],
  ['await call("/vouchers/void"', '{ ok: true } || await call("/vouchers/void"', ["void"]],
  ["await call(`/vouchers/${verb}`", "{ ok: true } || await call(`/vouchers/${verb}`", ["suspend", "extend"]],
  [RUNS, `order.endsWith("-3") ? { outcome: "refused" } : ${RUNS}`, ["busy service"]],
  [RUNS, `order.endsWith("-2") ? { outcome: "issued", codes: [] } : ${RUNS}`, ["lost answer"]],
  [
    'return { outcome: "issued", codes };',
    'if (order.endsWith("-2")) process.exit(3); return { outcome: "issued", codes };',
    ["lost answer"],
  ],
])("the conformance kit rejects a back office with %s replaced by %s", async (right, other, wrong) => {
  expect(SAMPLE).toContain(right);
  expect(await check(SAMPLE.replace(right, other))).toMatchObject({ exitCode: 1, wrong });
});

it.each([
  "refused",
  "issued",
])("the conformance kit stops if the first order is reported as %s but no batch was issued", async (outcome) => {
  expect(await check(`console.log('{"outcome":"${outcome}"}')`)).toEqual({ exitCode: 1, tried: 1, wrong: ["issue"] });
});
