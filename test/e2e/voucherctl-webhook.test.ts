import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Webhook } from "standardwebhooks";
import { afterAll, beforeAll, expect, it } from "vitest";
import { runNode } from "../support/child-process.ts";
import { SELF_SIGNED, startPartnerServer } from "../support/partner-server.ts";
import { openTestServers, type TestServers } from "../support/servers.ts";
import { makePartner } from "../support/supply.ts";
import { openVoucherctl, type Voucherctl } from "../support/voucherctl.ts";

let servers: TestServers;
let voucherctl: Voucherctl;
let organizationId: string;

const ENV = { WEBHOOK_SECRET: "a root secret of the test of voucherctl", WEBHOOK_ALLOW_PRIVATE: "true" };

beforeAll(async () => {
  servers = await openTestServers();
  voucherctl = openVoucherctl(servers);
  ({ organizationId } = await makePartner(servers.db));
});

afterAll(async () => {
  voucherctl.close();
  await servers.close();
});

async function run(...args: string[]) {
  const { exitCode, stdout, stderr } = await voucherctl.run([...args, "--json"], ENV);
  return { exitCode, stderr, result: stdout === "" ? null : JSON.parse(stdout) };
}

it("creates an endpoint, tests it with a signature of its secret, and lists it", async () => {
  let status = 204;
  const receiver = await startPartnerServer({ answer: (response) => response.writeHead(status).end() });
  servers.onClose(() => receiver.close());
  const created = await run("webhook", "create", "--org", organizationId, "--url", receiver.url);
  const { id, secret } = created.result;
  expect(await run("webhook", "test", id)).toMatchObject({ exitCode: 0, result: { delivered: true, status: 204 } });
  const [{ headers, body } = { headers: {}, body: "" }] = receiver.received;
  expect(new Webhook(secret).verify(body, headers as Record<string, string>)).toMatchObject({
    data: { webhookId: id },
  });
  status = 500;
  expect(await run("webhook", "test", id)).toMatchObject({ exitCode: 1, result: { delivered: false, status: 500 } });
  expect((await run("webhook", "list", "--org", organizationId)).result.webhooks).toMatchObject([
    { id, url: receiver.url },
  ]);
  await run("webhook", "disable", id);
  expect(await run("webhook", "test", id)).toMatchObject({
    exitCode: 1,
    result: null,
    stderr: expect.stringContaining("The operator has disabled this webhook endpoint"),
  });
  expect(receiver.received).toHaveLength(2);
});

it("sends to a server whose certificate is from an authority in NODE_EXTRA_CA_CERTS, and to none whose authority is unknown", async () => {
  const receiver = await startPartnerServer({ tls: true });
  servers.onClose(() => receiver.close());
  const directory = mkdtempSync(join(tmpdir(), "voucher-webhook-tls-"));
  const caFile = join(directory, "ca.pem");
  writeFileSync(caFile, SELF_SIGNED.cert);
  servers.onClose(async () => rmSync(directory, { recursive: true }));
  const url = `https://localhost:${receiver.port}/hooks`;
  const { id } = (await run("webhook", "create", "--org", organizationId, "--url", url)).result;
  // A process reads NODE_EXTRA_CA_CERTS when it starts.
  const test = async (env: Record<string, string>) => {
    const command = ["src/cli/main.ts", "webhook", "test", id, "--json"];
    const { stdout } = await runNode(command, { DATABASE_URL: servers.adminUrl, ...ENV, ...env });
    return JSON.parse(stdout);
  };
  expect(await test({ NODE_EXTRA_CA_CERTS: caFile })).toMatchObject({ delivered: true, status: 204 });
  expect(await test({})).toMatchObject({ delivered: false, status: null, failure: "tls" });
  expect(receiver.received).toHaveLength(1);
});

it("says in a sentence what is missing or wrong", async () => {
  const cases = [
    [
      ["create", "--org", organizationId, "--url", "https://user:pw@x.example/"],
      ENV,
      1,
      /^url must not have a user name/,
    ],
    [["create", "--org", "org_none", "--url", "https://x.example/"], ENV, 1, /There is no organization org_none\./],
    [
      ["create", "--org", organizationId, "--url", "https://x.example/"],
      { WEBHOOK_SECRET: "" },
      78,
      /WEBHOOK_SECRET is not set/,
    ],
    [["create", "--org", organizationId, "--url", "https://x.example/", "--event-type", "all"], ENV, 2, /Unknown type/],
    [["rotate", "whk_none"], ENV, 1, /There is no webhook endpoint whk_none\./],
    [["replay", "whk_none"], ENV, 2, /--from and a later --to/],
    [["replay", "whk_none", "--from", "2026-11-22", "--to", "2026-11-21"], ENV, 2, /--from and a later --to/],
    [["deliveries", "whk_none"], ENV, 1, /There is no webhook endpoint whk_none\./],
  ] as const;
  for (const [args, env, exitCode, stderr] of cases) {
    const ended = await voucherctl.run(["webhook", ...args], { ...ENV, ...env });
    expect(ended, args.join(" ")).toEqual({ exitCode, stdout: "", stderr: expect.stringMatching(stderr) });
  }
});
