import type pg from "pg";
import { newId } from "../../../src/core/voucher/ids.ts";
import type { HostileKind } from "../../support/hostile-receiver.ts";
import { PATIENT_MS, until } from "../../support/until.ts";
import { startReceiver } from "../../support/webhook-receiver.ts";
import { violation } from "./checker.ts";
import type { Cluster } from "./cluster.ts";
import { askUntilAnswered } from "./exchange.ts";
import type { Stage } from "./fault-target.ts";
import type { History, SuppliedVoucher, Violation } from "./history.ts";
import { type Organization, supplyOrganization } from "./organizations.ts";
import type { SeededRandom } from "./seeded-random.ts";

/** How many hostile receivers of each kind one organization has. */
const HOSTILE_EACH = 2;
/** How many webhooks are timed at the end, while every hostile receiver is enabled. */
const TIMED_VOUCHERS = 100;
/**
 * Maximum of the 99th percentile of deliveries to a healthy receiver, on a slow machine that still recovers. A delivery
 * that waits for a hostile receiver takes longer, because a request lasts up to 15 seconds. Milliseconds.
 */
const DELIVERED_P99_MS = 10_000;

/**
 * Gives an organization disabled endpoints at hostile receivers. Returns a function that enables and disables the
 * endpoints of one kind.
 */
export async function addReceivers(
  db: pg.Pool,
  organizationId: string,
  receivers: readonly { kind: HostileKind; url: string }[],
): Promise<Stage["enableReceivers"]> {
  for (const { kind, url } of receivers) {
    for (let n = 0; n < HOSTILE_EACH; n++) {
      await db.query(
        `INSERT INTO webhook_endpoints (id, organization_id, place, url, enabled, disabled_reason, disabled_at)
         SELECT $1, $2, 1 + count(*), $3, false, 'partner', now() FROM webhook_endpoints WHERE organization_id = $2`,
        [newId("whk"), organizationId, `${url}/${kind}`],
      );
    }
  }
  // This commit waits for no standby, because the wait could last as long as another fault cuts the standby off.
  // Meanwhile commits of the service may keep the rows locked.
  const enable = `
    UPDATE webhook_endpoints SET enabled = $2, disabled_reason = CASE WHEN NOT $2 THEN 'partner' END,
           disabled_at = CASE WHEN NOT $2 THEN now() END, failing_since = NULL
      FROM (SELECT set_config('synchronous_commit', 'off', true)) AS local WHERE url LIKE '%/' || $1`;
  return (kind, enabled) => until(() => db.query(enable, [kind, enabled]).catch(() => null));
}

/** Gives an organization a healthy endpoint. Adds the webhooks that it receives to the history. */
export async function listenToWebhooks(db: pg.Pool, organizationId: string, history: History) {
  const receiver = await startReceiver(({ voucherId, sequence = 0, body }) => {
    const { externalRef, redeemCode, recordHash } = body.data as Record<
      "externalRef" | "redeemCode" | "recordHash",
      string
    >;
    const about = { voucherId, organizationId, externalRef, redeemCode, sequence, recordHash };
    const redeemedAt = body.timestamp;
    history.webhooks.push({ ...about, redeemedAt, returnedMs: performance.now() });
    return 204;
  });
  await receiver.addEndpoint(db, organizationId, ["voucher.instance.redeemed"]);
  return receiver;
}

/** Expects that webhooks to a healthy receiver do not wait for another organization's hostile receivers. */
export async function checkDeliveries(
  { db, apis }: Cluster,
  hostile: Organization,
  random: SeededRandom,
  history: History,
): Promise<Violation[]> {
  const healthy = await supplyOrganization(db, TIMED_VOUCHERS);
  const receiver = await startReceiver();
  await receiver.addEndpoint(db, healthy.keys[0].organizationId);
  const redeem = ({ keys: [key] }: Organization, voucher: SuppliedVoucher) => {
    const order = { externalRef: `timed-${voucher.id}`, by: { code: voucher.code }, token: null };
    const caller = { random, apis, history, signal: AbortSignal.timeout(PATIENT_MS) };
    return askUntilAnswered(caller, { operation: "redeem", key, voucher, ...order });
  };
  const redeemedAtMs = new Map<string, number>();
  for (const [n, voucher] of healthy.vouchers.entries()) {
    await Promise.all([
      redeem(hostile, hostile.vouchers.at(-1 - n) as SuppliedVoucher),
      redeem(healthy, voucher).then(() => redeemedAtMs.set(voucher.id, Date.now())),
    ]);
  }
  const all = () => new Set(receiver.received.map(({ voucherId }) => voucherId)).size === TIMED_VOUCHERS;
  await until(all).catch(() => undefined);
  await receiver.close();
  const delays = [...redeemedAtMs].map(([id, atMs]) => {
    const first = receiver.received.find(({ voucherId }) => voucherId === id);
    return first === undefined ? Number.POSITIVE_INFINITY : first.atMs - atMs;
  });
  const p99 = delays.sort((one, other) => one - other).at(-2) ?? Number.POSITIVE_INFINITY;
  if (p99 <= DELIVERED_P99_MS) return [];
  const detail = `of ${TIMED_VOUCHERS} webhooks the second slowest took ${p99} ms`;
  return [violation("hostile receivers delay no other organization's webhooks", detail)];
}
