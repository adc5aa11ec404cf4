import { createHmac, timingSafeEqual } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import type pg from "pg";
import { newId } from "../../src/core/voucher/ids.ts";
import { deriveWebhookSecret } from "../../src/platform/outgoing/webhook-signature.ts";
import { startPartnerServer } from "./partner-server.ts";

/** The configuration of a worker that sends to receivers on this machine. */
export const WEBHOOK_ENV = {
  WEBHOOK_SECRET: "test-webhook-secret-of-32-characters",
  WEBHOOK_ALLOW_PRIVATE: "true",
  WORKER_QUEUES: "webhook",
};

export interface ReceivedWebhook {
  /** The path of the request, which distinguishes endpoints. */
  path: string;
  id: string;
  type: string;
  voucherId: string;
  sequence: number | undefined;
  body: { type: string; timestamp: string; data: Record<string, unknown> };
  text: string;
  /** Whether one of the signatures was made with the secret of the endpoint that the path names. */
  isSigned: boolean;
  atMs: number;
  /** The status of the answer, or null without an answer. */
  status: number | null;
}

/** The status of the answer, with headers, or null for no answer. */
type Answer = number | { status: number; headers: Record<string, string> } | null;

export interface WebhookReceiver {
  received: ReceivedWebhook[];
  /** Creates an enabled endpoint of an organization at this receiver. */
  addEndpoint(db: pg.Pool, organizationId: string, eventTypes?: readonly string[]): Promise<string>;
  of(endpointId: string): ReceivedWebhook[];
  close(): Promise<void>;
}

/** Starts an HTTP receiver that answers each request with the result of `answer`, 204 by default. */
export async function startReceiver(
  answer: (request: ReceivedWebhook) => Answer | Promise<Answer> = () => 204,
): Promise<WebhookReceiver> {
  const received: ReceivedWebhook[] = [];
  const { port, close } = await startPartnerServer({
    async answer(response, { path, headers, body: text }) {
      const body = JSON.parse(text);
      const one = {
        path,
        text,
        body,
        atMs: Date.now(),
        type: body.type,
        status: null,
        id: String(headers["webhook-id"]),
        voucherId: body.data.voucherId,
        sequence: body.data.sequence,
        isSigned: isSigned(path.slice(1), headers, text),
      };
      received.push(one);
      const given = await answer(one);
      if (given === null) return;
      const { status, headers: more } = typeof given === "number" ? { status: given, headers: {} } : given;
      Object.assign(one, { status });
      response.writeHead(status, more).end();
    },
  });
  return {
    received,
    async addEndpoint(db, organizationId, eventTypes = []) {
      const id = newId("whk");
      await db.query(
        `INSERT INTO webhook_endpoints (id, organization_id, place, url, event_types)
         SELECT $1, $2, 1 + count(*), $3, $4 FROM webhook_endpoints WHERE organization_id = $2`,
        [id, organizationId, `http://127.0.0.1:${port}/${id}`, eventTypes],
      );
      return id;
    },
    of: (endpointId) => received.filter(({ path }) => path === `/${endpointId}`),
    close,
  };
}

/** Verifies signatures by Standard Webhooks, without the service's own code. */
function isSigned(endpointId: string, headers: IncomingHttpHeaders, text: string): boolean {
  const secret = deriveWebhookSecret(WEBHOOK_ENV.WEBHOOK_SECRET, endpointId, 1);
  const signed = `${headers["webhook-id"]}.${headers["webhook-timestamp"]}.${text}`;
  const expected = createHmac("sha256", Buffer.from(secret.slice("whsec_".length), "base64"))
    .update(signed)
    .digest();
  const isRecent = Math.abs(Number(headers["webhook-timestamp"]) - Date.now() / 1_000) < 300;
  return (
    isRecent &&
    String(headers["webhook-signature"])
      .split(" ")
      .some((part) => {
        const given = Buffer.from(part.replace(/^v1,/, ""), "base64");
        return given.length === expected.length && timingSafeEqual(given, expected);
      })
  );
}
