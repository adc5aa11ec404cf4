import { once } from "node:events";
import { mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, it, onTestFinished } from "vitest";
import { rememberStart, save } from "../../src/local/directory.ts";
import { startNode } from "../support/child-process.ts";
import { openTestServers, type TestServers } from "../support/servers.ts";

// An operator may put the value of each secret in a file. Commands must treat both forms alike.

const pathOf = (file: string) => fileURLToPath(new URL(`../../src/${file}`, import.meta.url));
const PRINT_ENVIRONMENT = `
  import { withLastStart } from ${JSON.stringify(pathOf("local/directory.ts"))};
  const { PORT, LOG_KEY_FILE, LOG_ANCHOR, RATE_LIMIT_RPS, WEBHOOK_ALLOW_PRIVATE } = withLastStart(process.env);
  console.log(JSON.stringify({ PORT, LOG_KEY_FILE, LOG_ANCHOR, RATE_LIMIT_RPS, WEBHOOK_ALLOW_PRIVATE }));`;
const OF_EMBEDDED = { LOG_KEY_FILE: "local/key", LOG_ANCHOR: "file:local/anchor" };

let servers: TestServers;

beforeAll(async () => {
  servers = await openTestServers();
});

afterAll(() => servers.close());

/** Makes a folder in which this process is the running `npm start`, and runs programs there. */
function useFolder() {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), "voucher-secrets-")));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const data = join(folder, ".data");
  rememberStart(data, { port: 4_321, baseUrl: "http://own.test", own: [], settings: { RATE_LIMIT_RPS: "77" } });
  save(data, { log: OF_EMBEDDED });
  return {
    run: (args: string[], env: Record<string, string>) => startNode(args, env, folder).ended,
    /** Both forms of a secret: a value and a file. */
    formsOf(name: string, value: string): Record<string, string>[] {
      const file = join(folder, name);
      writeFileSync(file, `${value}\n`);
      return [{ [name]: value }, { [`${name}_FILE`]: file }];
    },
  };
}

it("a command with its own DATABASE_URL, in a variable or a file, takes only PORT from npm start", async () => {
  const { run, formsOf } = useFolder();
  const read = async (env: Record<string, string>) => {
    const { stdout, stderr } = await run(["--input-type=module", "-e", PRINT_ENVIRONMENT], env);
    expect(stderr).toBe("");
    return JSON.parse(stdout);
  };
  for (const env of formsOf("DATABASE_URL", "postgresql://db.test/v"))
    expect(await read(env)).toEqual({ PORT: "4321" });
  for (const env of [{}, { DATABASE_URL: " " }, ...formsOf("OPS_TOKEN", "own-password-of-operators")]) {
    const expected = { PORT: "4321", ...OF_EMBEDDED, RATE_LIMIT_RPS: "77", WEBHOOK_ALLOW_PRIVATE: "true" };
    expect(await read(env)).toEqual(expected);
  }
});

it("voucherctl user token creates no token with DATABASE_URL in a variable or a file", async () => {
  const { run, formsOf } = useFolder();
  const mint = (env: Record<string, string>) => run([pathOf("cli/main.ts"), "user", "token", "--user", "alice"], env);
  for (const env of formsOf("DATABASE_URL", "postgresql://db.test/v")) {
    const stderr = expect.stringContaining("Only the embedded servers accept these tokens.");
    expect(await mint(env)).toEqual({ exitCode: 2, stdout: "", stderr });
  }
  expect(await mint({})).toMatchObject({ exitCode: 0, stderr: "" });
});

it("npm run demo creates a demo if its servers' addresses are in variables or files", async () => {
  const { run, formsOf } = useFolder();
  const service = createServer((_, response) => void response.end()).listen(0, "127.0.0.1");
  onTestFinished(() => void service.close());
  await once(service, "listening");
  const PORT = String((service.address() as AddressInfo).port);
  const database = formsOf("DATABASE_URL", servers.adminUrl);
  const redis = formsOf("REDIS_URL", servers.redisUrl);
  for (const [index, env] of database.entries()) {
    const ended = await run([pathOf("local/print-demo.ts")], { PORT, ...env, ...redis[index] });
    expect(ended).toEqual({ exitCode: 0, stderr: "", stdout: expect.stringMatching(/KEY=pvk_/) });
  }
});
