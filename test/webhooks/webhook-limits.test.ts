import { afterAll, beforeAll, expect, it } from "vitest";
import { newId } from "../../src/core/voucher/ids.ts";
import { ENDPOINTS_MAX, FAILURES_SHOWN, PREVIOUS_SECRETS_MAX } from "../../src/webhooks/webhook-limits.ts";
import { openTestServers, type TestServers } from "../support/servers.ts";
import { endService } from "../support/service.ts";
import { makePartner } from "../support/supply.ts";

let servers: TestServers;
let organizationId: string;

beforeAll(async () => {
  servers = await openTestServers();
  organizationId = (await makePartner(servers.db)).organizationId;
});

afterAll(() => endService(servers));

it.each([
  ["place", "$2::int", ENDPOINTS_MAX],
  ["failures", "$2::int", FAILURES_SHOWN],
  ["previous_secrets_until", "array_fill(now(), ARRAY[$2::int])", PREVIOUS_SECRETS_MAX],
])("the table webhook_endpoints and the service have the same maximum of %s", async (column, value, limit) => {
  const id = newId("whk");
  await servers.db.query(
    "INSERT INTO webhook_endpoints (id, organization_id, place, url) VALUES ($1, $2, 1, 'https://partner.test')",
    [id, organizationId],
  );
  const set = (number: number) =>
    servers.db.query(`UPDATE webhook_endpoints SET ${column} = ${value} WHERE id = $1`, [id, number]);
  await expect(set(limit)).resolves.toMatchObject({ rowCount: 1 });
  await expect(set(limit + 1)).rejects.toMatchObject({ constraint: `webhook_endpoints_${column}_check` });
  await servers.db.query("DELETE FROM webhook_endpoints WHERE id = $1", [id]);
});
