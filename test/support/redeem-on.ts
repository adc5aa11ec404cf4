import { expect } from "vitest";
import { openPool } from "../../src/platform/db/pool.ts";
import { openLogger } from "../../src/platform/logger.ts";
import { partnerClient } from "./client.ts";
import type { TestServers } from "./servers.ts";
import { startApi, startWorkers } from "./service.ts";
import { issueVoucher, makeKey, makePartner } from "./supply.ts";
import { until } from "./until.ts";

let redeemed = 0;

/**
 * Starts an API and a worker on a database. Expects them to redeem a reserved voucher, add marks, and advance the time
 * of a sandbox.
 * @param addresses of the owner, who issues the voucher, and of the processes.
 */
export async function expectRedeems(servers: TestServers, addresses: { ownerUrl: string; databaseUrl: string }) {
  const log = openLogger("silent", "test");
  const db = openPool({
    databaseUrl: addresses.ownerUrl,
    max: 2,
    applicationName: "test",
    use: "administration",
    deployment: null,
    log,
  });
  const given = { ...servers, ...addresses, adminUrl: addresses.ownerUrl, db };
  const [api, worker] = await Promise.all([startApi(given), startWorkers(given)]);
  try {
    const partner = await makePartner(db, { sandbox: true });
    const till = partnerClient(api.url, (await makeKey(db, partner.organizationId)).key);
    const { code } = await issueVoucher(db, partner);
    redeemed += 1;
    const { status, body } = await till.reserve(code);
    expect({ status, body }).toMatchObject({ status: 200 });
    const { ticket, token } = body;
    const order = { ticket, token, externalRef: `№ ${redeemed} für Zoë` };
    expect(await till.redeem(order)).toMatchObject({ status: 200, body: { alreadyConfirmed: false } });
    expect(await till.lookUp(code)).toMatchObject({ status: 200, body: { voucher: { status: "Redeemed" } } });
    expect(await till.redemption(order.externalRef)).toMatchObject({ status: 200, body: { alreadyConfirmed: true } });
    expect(await till.advance(60)).toMatchObject({ status: 200 });
    expect((await fetch(`${api.url}/readyz`)).status).toBe(200);
    await until(() => api.ctx.deployment.memory?.newest != null);
  } finally {
    await api.close();
    await worker.close();
    await db.end();
  }
}
