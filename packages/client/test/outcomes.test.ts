import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { redemption as endpoint } from "../../../src/core/redeem/routes/redemption.ts";
import { untilWaiting, whileLocked } from "../../../test/support/outside-transaction.ts";
import { useService } from "../../../test/support/use-service.ts";
import { type Settings, voucherClient } from "../src/index.ts";

// What proves to a client that a voucher was redeemed, or that it was not.

const { api, db, issue, keys } = useService({ env: { WORKER_QUEUES: "redeem" } });

it("a 404 of a reference is no proof: an attempt that waits redeems after it, as the client's text says", async () => {
  const { id, code } = await issue();
  const externalRef = "still in progress";
  const redeeming = await whileLocked(db, [id], async () => {
    const attempt = client().redeemOnce({ code, externalRef });
    await untilWaiting(db, 1);
    await expect(client().redemption(externalRef)).rejects.toMatchObject({ code: "redemption_not_found" });
    return { attempt };
  });
  expect(await redeeming.attempt).toMatchObject({ redeemed: true, voucherInstanceId: id });
  const [said] = /A 404 is no proof.*/.exec(String(endpoint.description)) ?? ["the reference says nothing"];
  const [, text = ""] = /\/\*\*((?:(?!\*\/).)*)\*\/\s*redemption:/s.exec(
    readFileSync("packages/client/src/client.ts", "utf8"),
  ) ?? [];
  expect(text.replaceAll(/\s*\n\s*\* ?/g, " ")).toContain(said);
});

function client(settings: Partial<Settings> = {}) {
  return voucherClient({ baseUrl: api.url, apiKey: keys.till.key, ...settings });
}
