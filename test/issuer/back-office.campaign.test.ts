import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { createOrganization } from "../../src/acts/org/create.ts";
import { startProgram } from "../support/child-process.ts";
import { hasProgram } from "../support/has-program.ts";
import { makeKey, provisioning } from "../support/supply.ts";
import { useService } from "../support/use-service.ts";

// Runs the example of docs/issuing.md like a reader, in an empty folder, against a running service.

const { api, db, partner, till } = useService({ env: { ISSUER_API: "true" } });
const directory = mkdtempSync(join(tmpdir(), "voucher-back-office-"));
let key: string;

beforeAll(async () => {
  ({ key } = await makeKey(db, partner.organizationId, { scopes: ["voucher.issue"] }));
});
afterAll(() => rmSync(directory, { recursive: true }));

const FILES = [
  ["back-office.mjs", process.execPath],
  ["back_office.py", "python3"],
] as const;

async function startExample(file: string, program: string, as: string) {
  if (program === "python3" && !hasProgram("python3")) throw new Error("python3 is not installed");
  writeFileSync(join(directory, file), await (await fetch(`${api.url}/docs/${file}`)).text());
  return () => startProgram(program, [file], { API: api.url, KEY: as, RUN: `run-${file}` }, directory).ended;
}

it.each(
  FILES,
)("%s tells an organization without a brand that it needs a brand, and who creates brands", async (file, program) => {
  const { id } = await createOrganization.run(provisioning(db), "", { name: "No brand", sandbox: false });
  const { key: brandless } = await makeKey(db, id, { scopes: ["voucher.issue"] });
  const run = await startExample(file, program, brandless);
  const stderr = "Your organization has no brand: ask the operator of the voucher service to create one.\n";
  expect(await run()).toMatchObject({ exitCode: 1, stdout: "", stderr });
});

it.each(
  FILES,
)("%s issues, mails, voids and replaces vouchers, and a second run issues nothing more", async (file, program) => {
  const run = await startExample(file, program, key);
  const first = await run();
  expect(first).toMatchObject({ exitCode: 0, stderr: "" });
  const codes = Array.from(first.stdout.matchAll(/^Your code: (.+)$/gm), ([, code]) => String(code));
  expect(first.stdout.match(/^To: .*$/gm)).toEqual([
    "To: ann@example.com",
    "To: bob@example.com",
    "To: bob@example.com",
  ]);
  const statuses = await Promise.all(codes.map(async (code) => (await till.lookUp(code)).body.voucher.status));
  expect(statuses).toEqual(["Active", "Voided", "Active"]);
  expect((await run()).stdout).toBe(first.stdout);
  const { rows } = await db.query(
    "SELECT b.voucher_count FROM batches AS b JOIN products AS p ON p.id = b.product_id WHERE p.key = $1 ORDER BY b.id",
    [`day-pass-run-${file}`],
  );
  expect(rows.map(({ voucher_count: count }) => count)).toEqual([500, 1]);
});
