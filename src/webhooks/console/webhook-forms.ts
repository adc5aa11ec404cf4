import { insertVisit } from "../../acts/db/audit-entries.ts";
import { readLineage } from "../../acts/read-lineage.ts";
import { formOf } from "../../console/actions/act-form.ts";
import type { Acting } from "../../console/actions/action.ts";
import { AppError } from "../../platform/api/errors.ts";
import type { FairSlots } from "../../platform/batching/fair-slots.ts";
import type { DepsOf } from "../../platform/http/endpoint.ts";
import { createAnyWebhook, rotateAnyWebhook, testAnyWebhook } from "../acts.ts";
import { testWebhook } from "../endpoints.ts";

/** What the act that tests an endpoint needs. */
export type WebhookActionDeps = DepsOf<typeof testWebhook> & { webhookTests: Pick<FairSlots, "hasRoom" | "run"> };

type Deps = Acting<WebhookActionDeps>;
const settingsOf = ({ api }: Deps) => ({ config: api.config });

/** The forms of acts that need settings or the sender of this process. */
export const WEBHOOK_FORMS = [
  formOf(createAnyWebhook, settingsOf),
  formOf(testAnyWebhook, (ctx: Deps) => ({ testEndpoint: (id: string) => test(ctx, id) })),
  formOf(rotateAnyWebhook, settingsOf),
];

/** Sends the test event from this process, if the process has room for another test of the organization. */
async function test({ api, audited }: Deps, id: string) {
  const { organizationId } = await api.operatorReads({}, () => readLineage(api, "webhooks", id));
  if (!api.webhookTests.hasRoom(organizationId)) throw new AppError("overloaded");
  const acting = { osUser: audited.osUser, host: audited.host, by: audited.by, arguments: {} };
  const look = { ...acting, command: "page webhook test", entity: { type: "WebhookEndpoint", id } } as const;
  await api.operatorReads({}, () => insertVisit(api.pool, look));
  const read = <T>(query: (db: typeof api.pool) => Promise<T>) => api.operatorReads({}, () => query(api.pool));
  return api.webhookTests.run(organizationId, () => testWebhook(api, read, organizationId, id));
}
