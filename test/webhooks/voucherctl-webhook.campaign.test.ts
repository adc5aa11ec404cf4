import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Webhook } from "standardwebhooks";
import { expect, it, onTestFinished } from "vitest";
import { runNode } from "../support/child-process.ts";
import { SELF_SIGNED, startPartnerServer } from "../support/partner-server.ts";
import { useDatabase } from "../support/use-service.ts";
import { useVoucherctl } from "../support/voucherctl.ts";

const ENV = { WEBHOOK_SECRET: "a root secret of the test of voucherctl", WEBHOOK_ALLOW_PRIVATE: "true" };

const { servers, partner } = useDatabase();
const voucherctl = useVoucherctl(servers);

it("voucherctl webhook creates an endpoint, tests it with a signed request and lists it", async () => {
  let status = 204;
  const receiver = await startPartnerServer({ answer: (response) => response.writeHead(status).end() });
  onTestFinished(() => receiver.close());
  const created = await run(`webhook create --org ${partner.organizationId} --url ${receiver.url}`);
  const { id, secret } = created.result;
  expect(await run(`webhook test ${id}`)).toMatchObject({ exitCode: 0, result: { delivered: true, status: 204 } });
  const [{ headers, body } = { headers: {}, body: "" }] = receiver.received;
  expect(new Webhook(secret).verify(body, headers as Record<string, string>)).toMatchObject({
    data: { webhookId: id },
  });
  status = 500;
  expect(await run(`webhook test ${id}`)).toMatchObject({ exitCode: 1, result: { delivered: false, status: 500 } });
  expect((await run(`webhook list --org ${partner.organizationId}`)).result.webhooks).toMatchObject([
    { id, url: receiver.url },
  ]);
  await run(`webhook disable ${id}`);
  expect(await run(`webhook test ${id}`)).toMatchObject({
    exitCode: 1,
    result: null,
    stderr: expect.stringContaining("The operator has disabled this webhook endpoint"),
  });
  expect(receiver.received).toHaveLength(2);
});

it("voucherctl webhook test trusts the authorities of NODE_EXTRA_CA_CERTS, and no others", async () => {
  const receiver = await startPartnerServer({ tls: true });
  onTestFinished(() => receiver.close());
  const directory = mkdtempSync(join(tmpdir(), "voucher-webhook-tls-"));
  const caFile = join(directory, "ca.pem");
  writeFileSync(caFile, SELF_SIGNED.cert);
  onTestFinished(() => rmSync(directory, { recursive: true }));
  const url = `https://localhost:${receiver.port}/hooks`;
  const { id } = (await run(`webhook create --org ${partner.organizationId} --url ${url}`)).result;
  // The command needs a process of its own, which reads NODE_EXTRA_CA_CERTS when it starts.
  const test = async (env: Record<string, string>) => {
    const command = ["src/cli/main.ts", "webhook", "test", id, "--json"];
    const { stdout } = await runNode(command, { DATABASE_URL: servers.adminUrl, ...ENV, ...env });
    return JSON.parse(stdout);
  };
  expect(await test({ NODE_EXTRA_CA_CERTS: caFile })).toMatchObject({ delivered: true, status: 204 });
  expect(await test({})).toMatchObject({ delivered: false, status: null, failure: "tls" });
  expect(receiver.received).toHaveLength(1);
});

it("voucherctl alert test sends a signed message to ALERT_URL and says whether it was accepted", async () => {
  let status = 200;
  const receiver = await startPartnerServer({ answer: (response) => response.writeHead(status).end("ok") });
  onTestFinished(() => receiver.close());
  const secret = `whsec_${Buffer.from("a secret of 32 bytes for alerts.").toString("base64")}`;
  const env = {
    ALERT_URL: receiver.url,
    ALERT_SECRET: secret,
    WEBHOOK_ALLOW_PRIVATE: "true",
    BASE_URL: "https://v.test",
  };
  const test = async (more: Record<string, string> = {}) => {
    const { exitCode, stdout, stderr } = await voucherctl.run("alert test --json", { ...env, ...more });
    return { exitCode, result: stdout === "" ? null : JSON.parse(stdout), stderr };
  };
  expect(await test()).toMatchObject({ exitCode: 0, result: { accepted: true, status: 200 } });
  const [{ headers, body } = { headers: {}, body: "" }] = receiver.received;
  expect(new Webhook(secret).verify(body, headers as Record<string, string>)).toMatchObject({
    text: expect.stringMatching(/^ENDED: This is a test \(Alerts\), .* https:\/\/v\.test\/ops$/),
    severity: "grey",
  });
  status = 403;
  expect(await test()).toMatchObject({ exitCode: 1, result: { accepted: false, status: 403 } });
  expect(await test({ ALERT_URL: "" })).toMatchObject({ exitCode: 78, stderr: expect.stringContaining("ALERT_URL") });
});

async function run(line: string) {
  const { exitCode, stdout, stderr } = await voucherctl.run(`${line} --json`, ENV);
  return { exitCode, stderr, result: stdout === "" ? null : JSON.parse(stdout) };
}
