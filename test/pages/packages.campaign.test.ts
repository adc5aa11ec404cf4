import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, it } from "vitest";
import { useService } from "../support/use-service.ts";

// Installs and uses the packages in an empty folder, as a partner who has only the service's address does.

const { api } = useService({ workers: [] });
const NAMES = ["partner-voucher-client", "partner-voucher-conformance", "partner-voucher-tlog"];
const TSC = resolve("packages/client/node_modules/typescript/lib/tsc.js");
/** The project's own compiler, and an older one that partners may have. */
const COMPILERS = [resolve("node_modules/typescript/bin/tsc"), TSC];
const folder = mkdtempSync(join(tmpdir(), "voucher-packages-"));

const addressOf = (name: string) => `${api.url}/docs/packages/${name}.tgz`;

beforeAll(async () => {
  writeFileSync(join(folder, "package.json"), '{"private": true, "type": "module"}');
  await run("npm", "install", "--no-audit", "--no-fund", ...NAMES.map(addressOf));
});

afterAll(() => rmSync(folder, { recursive: true }));

it("the page of packages lists each package with the commands to install and run it", async () => {
  const page = await (await fetch(`${api.url}/docs/packages/`)).text();
  for (const name of NAMES) {
    expect(page).toContain(`/docs/packages/${name}.tgz`);
    const served = Buffer.from(await (await fetch(addressOf(name))).arrayBuffer());
    expect(page).toContain(`SHA-256: <code>${createHash("sha256").update(served).digest("hex")}</code>`);
  }
  for (const name of ["other.tgz", "partner-voucher-client", "..%2fpackage.json"])
    expect((await fetch(`${api.url}/docs/packages/${name}`)).status, name).toBe(404);
});

it("the service serves the Bruno collection as a ZIP file", async () => {
  const zip = Buffer.from(await (await fetch(`${api.url}/docs/packages/bruno.zip`)).arrayBuffer());
  writeFileSync(join(folder, "bruno.zip"), zip);
  const { stdout } = await run("python3", "-m", "zipfile", "-l", "bruno.zip");
  expect(stdout).toMatch(/bruno\/.*\.bru /);
});

it("each package that the project publishes can be installed and run, and contains its licence", async () => {
  const code = `
    const { verifyReceipt } = await import("partner-voucher-client");
    const { parsePolicy } = await import("partner-voucher-tlog/verify");
    console.log(typeof verifyReceipt, typeof parsePolicy);`;
  expect((await run(process.execPath, "-e", code)).stdout).toBe("function function\n");
  for (const name of NAMES) await run("test", "-f", `node_modules/${name}/LICENSE`);
  expect((await run("npx", addressOf("partner-voucher-tlog"), "--help")).stdout).toContain("tlog receipt verify");
  expect((await run("npx", addressOf("partner-voucher-conformance"), "--help")).stdout).toContain("--client");
});

it.each([
  ["nodenext", "nodenext"],
  ["node16", "node16"],
  ["esnext", "bundler"],
  ["esnext", "node10"],
])("installed packages have types under module %s and moduleResolution %s", async (module, moduleResolution) => {
  const uses = `
    import { type VoucherClient, voucherClient } from "partner-voucher-client";
    import { parsePolicy, verifyProof } from "partner-voucher-tlog/verify";
    const client: VoucherClient = voucherClient({ baseUrl: "https://vouchers.example.com", apiKey: "pvk_" });
    // @ts-expect-error a code is a text
    client.redeemOnce({ code: 7, externalRef: "order-1" });
    export const policy: Promise<object> = parsePolicy("");
    export { verifyProof };`;
  writeFileSync(join(folder, "uses.ts"), uses);
  const options = ["--noEmit", "--strict", "--target", "es2022", "--lib", "es2024,dom"];
  await run(process.execPath, TSC, ...options, "--module", module, "--moduleResolution", moduleResolution, "uses.ts");
});

it("CommonJS can require the installed client, with its types under module node16", async () => {
  writeFileSync(
    join(folder, "uses.cts"),
    `import { type VoucherClient, VoucherRefused, voucherClient } from "partner-voucher-client";
    const client: VoucherClient = voucherClient({ baseUrl: "https://vouchers.example.com", apiKey: "pvk_" });
    // @ts-expect-error a code is a text
    const redeem = () => client.redeemOnce({ code: 7, externalRef: "order-1" });
    console.log(typeof redeem, typeof client.lookUp, VoucherRefused.name);`,
  );
  const options = ["--strict", "--target", "es2022", "--lib", "es2024,dom", "--module", "node16", "uses.cts"];
  await run(process.execPath, TSC, ...options);
  expect((await run(process.execPath, "uses.cjs")).stdout).toBe("function function VoucherRefused\n");
});

it.each(COMPILERS)("the client compiles under strict rules without Node's types, with %s", async (compiler) => {
  const settings = JSON.parse(readFileSync("packages/client/tsconfig.json", "utf8")).compilerOptions;
  expect(settings).toMatchObject({ strict: true, types: [] });
  await run(process.execPath, compiler, "-p", resolve("packages/client"), "--noEmit");
});

const run = async (command: string, ...args: string[]) =>
  promisify(execFile)(command, args, { cwd: folder, env: { ...process.env, NO_UPDATE_NOTIFIER: "1" } }).catch(
    (error: { stdout: string; stderr: string }) => expect.fail(`${error.stdout}\n${error.stderr}`),
  );
