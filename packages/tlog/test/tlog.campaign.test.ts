import { execFileSync, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, it } from "vitest";
import { runNode } from "../../../test/support/child-process.ts";
import { signCheckpoint } from "../../../test/support/sign-checkpoint.ts";
import { LOG_VECTORS_FILE, type LogVectors } from "../../../test/support/write-log-vectors.ts";
import { writeKeyFile } from "../src/key-file.ts";
import { parseSecretKey, type SignerKey } from "../src/note.ts";
import { formatBundle, formatTilePath } from "../src/tiles.ts";
import { hashLeaves, TreeAppender } from "../src/tree.ts";

const vectors: LogVectors = JSON.parse(readFileSync(LOG_VECTORS_FILE, "utf8"));

let directory: string;
let key: SignerKey;
const at = (name: string) => join(directory, name);

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), "tlog-"));
  await writeKeyFile("log", "log.test", at("log.key"));
  key = (await parseSecretKey("log", readFileSync(at("log.key"), "utf8"))) as SignerKey;
  writeFileSync(at("policy"), `log ${key.text}\nquorum none\n`);
  const pack = ["pack", "--silent", "--pack-destination", directory];
  execFileSync("npm", pack, { cwd: "packages/tlog", stdio: "pipe" });
  writeFileSync(at("package.json"), "{}\n");
  const install = ["install", "--offline", "--no-audit", "--no-fund", "./partner-voucher-tlog-0.1.0.tgz"];
  execFileSync("npm", install, { cwd: directory, stdio: "pipe" });
  rmSync("packages/tlog/dist", { recursive: true });
});

afterAll(() => rmSync(directory, { recursive: true }));

const tlog = (...args: string[]) => spawnSync(at("node_modules/.bin/tlog"), args, { encoding: "utf8", cwd: directory });

it("the tlog command verifies a receipt, exits with 1 for a refusal and with 2 for wrong usage", () => {
  const receipt = String(vectors.receipts[2]?.receipt);
  write("receipt", receipt);
  write("vectors-policy", vectors.policy);
  const verify = (file: string, policy = "vectors-policy") => tlog("receipt", "verify", file, "--policy", policy);
  expect(verify("receipt")).toMatchObject({
    status: 0,
    stdout: expect.stringMatching(/^Leaf 2 of the log vouchers\.example\.com\/log.*\nSeen by witness.*\n\{"actor/),
  });
  write("crlf", receipt.replaceAll("\n", "\r\n"));
  expect(verify("crlf")).toMatchObject({ status: 1, stderr: expect.stringMatching(/CR and LF/) });
  expect(verify("receipt", "policy")).toMatchObject({ status: 1, stderr: expect.stringMatching(/has no log/) });
  expect(verify("receipt", "receipt")).toMatchObject({ status: 2 });
  expect(verify("missing")).toMatchObject({ status: 2 });
  expect(tlog("receipt", "verify", "receipt")).toMatchObject({ status: 2, stderr: expect.stringMatching(/--policy/) });
});

it.each([
  ["../src/main.ts", 2],
  ["../../../src/cli/main.ts", 1],
] as const)("%s exits with 78 for a damaged state, and names a folder that is missing", async (program, ofUsage) => {
  await writeKeyFile("witness", "witness.test", at("witness.key"));
  const serve = (state: string) => {
    const given = ["--key", at("witness.key"), "--state", state, "--log", key.text, "--port", "0"];
    return runNode([fileURLToPath(new URL(program, import.meta.url)), "witness", "serve", ...given], {});
  };
  write("damaged.json", "[1]");
  const sentence = `${at("damaged.json")} is damaged. Restore it, or make a witness with a new key.\n`;
  expect(await serve(at("damaged.json"))).toEqual({ exitCode: 78, stdout: "", stderr: sentence });
  const { exitCode, stderr } = await serve(at("missing/seen.json"));
  expect({ exitCode, stderr }).toEqual({ exitCode: ofUsage, stderr: expect.stringContaining(at("missing")) });
  expect(stderr).not.toContain("bug");
  rmSync(at("witness.key"));
});

it("the tlog command monitors and audits a log, with one exit status for each kind of failure", async () => {
  await serve("small", 300);
  await serve("large", 700);
  const monitor = (from: string) => tlog("monitor", from, "--policy", "policy", "--state", "seen", "--keep");
  expect(monitor("small")).toMatchObject({ status: 0, stdout: expect.stringMatching(/has 300 leaves/) });
  expect(monitor("large")).toMatchObject({ status: 0, stdout: expect.stringMatching(/continues the 300 seen/) });
  expect(tlog("audit", "--url", "large", "--policy", "policy")).toMatchObject({
    status: 0,
    stdout: "log.test: 700 leaves, 4 tiles, 0 problems. No witness has cosigned it.\n",
  });
  write("large/checkpoint", await signCheckpoint(key, { size: 700, root: Buffer.alloc(32, 7) }));
  expect(tlog("audit", "--url", "large", "--policy", "policy")).toMatchObject({ status: 1 });
  expect(monitor("large")).toMatchObject({ status: 1, stderr: expect.stringMatching(/another root for 700 leaves/) });
  expect(monitor("http://127.0.0.1:1")).toMatchObject({ status: 69 });
  write("seen/checkpoint", "damaged\n");
  expect(monitor("small")).toMatchObject({ status: 78, stderr: expect.stringMatching(/is damaged/) });
});

it("the tlog command serves a witness with a new key, and refuses a second witness with the same state", async () => {
  const made = tlog("witness", "keygen", "--name", "w.test", "--out", "w.key");
  expect(made).toMatchObject({ status: 0, stdout: expect.stringMatching(/^w\.test\+/) });
  expect(tlog("witness", "keygen", "--name", "w.test", "--out", "w.key")).toMatchObject({ status: 1 });
  const serving = ["witness", "serve", "--key", "w.key", "--state", "w.json", "--log", key.text, "--port", "0"];
  const witness = spawn(at("node_modules/.bin/tlog"), [...serving, "--json"], { cwd: directory });
  const [line] = await once(witness.stdout, "data");
  expect(tlog(...serving)).toMatchObject({ status: 78, stderr: expect.stringMatching(/Another process uses w\.json/) });
  const note = await signCheckpoint(key, { size: 0, root: new TreeAppender(0, []).root() });
  const cosign = () =>
    fetch(`${JSON.parse(String(line)).url}/add-checkpoint`, { method: "POST", body: `old 0\n\n${note}` });
  expect((await cosign()).status).toBe(200);
  witness.kill("SIGTERM");
  expect(await once(witness, "exit")).toEqual([0, null]);
});

function write(path: string, content: string | Uint8Array): void {
  mkdirSync(dirname(at(path)), { recursive: true });
  writeFileSync(at(path), content);
}

/** Writes the files of a log with this number of leaves, as a server serves them. */
async function serve(name: string, count: number): Promise<void> {
  const leaves = Buffer.concat(Array.from({ length: count }, (_, leaf) => Buffer.alloc(32, leaf)));
  const tree = new TreeAppender(0, []);
  tree.append(leaves);
  for (const { level, index, hashes } of tree.grown()) {
    const width = hashes.length / 32;
    write(`${name}/${formatTilePath({ level, index, width })}`, level === 0 ? hashLeaves(hashes) : hashes);
    if (level === 0) write(`${name}/${formatTilePath({ level: null, index, width })}`, formatBundle(hashes));
  }
  write(`${name}/checkpoint`, await signCheckpoint(key, { size: count, root: tree.root() }));
}
