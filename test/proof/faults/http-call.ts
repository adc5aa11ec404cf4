import { once } from "node:events";
import { type Agent, type IncomingHttpHeaders, type IncomingMessage, request } from "node:http";
import { text } from "node:stream/consumers";

/** The reason why a request has no answer. */
export type Failure =
  /** The port was closed, so the request was never accepted. */
  | "refused"
  /** The connection broke before the answer began. */
  | "reset"
  /** The connection broke during the answer. */
  | "cut"
  | "timeout";

/** An answer, or the reason why there is none. Then status, body and headers are missing. */
export interface Answer {
  requestId: string;
  status: number | null;
  failure: Failure | null;
  headers: IncomingHttpHeaders;
  // biome-ignore lint/suspicious/noExplicitAny: tests read answers of every shape; undefined when it is not JSON.
  body: any;
  text: string;
}

export interface Call {
  method: "GET" | "POST";
  url: string;
  key?: string;
  token?: string;
  headers?: Record<string, string>;
  body?: unknown;
  timeoutMs: number;
  /** Connections for reuse. By default, each request opens one, so that no failure comes from an old connection. */
  agent?: Agent;
  localAddress?: string;
}

/** Sends one request with an id that the API logs. Never rejects and never retries. */
export async function sendCall(call: Call): Promise<Answer> {
  const { method, url, key, token, headers, body, timeoutMs, agent, localAddress } = call;
  const requestId = crypto.randomUUID();
  const signal = AbortSignal.timeout(timeoutMs);
  const json = body === undefined ? undefined : JSON.stringify(body);
  let response: IncomingMessage | undefined;
  try {
    const sent = request(url, {
      method,
      signal,
      agent: agent ?? false,
      localAddress,
      headers: {
        ...headers,
        ...(key !== undefined && { "x-api-key": key }),
        ...(token !== undefined && { authorization: `Bearer ${token}` }),
        "x-request-id": requestId,
        ...(json !== undefined && { "content-type": "application/json", "content-length": Buffer.byteLength(json) }),
      },
    });
    sent.on("error", () => undefined).end(json);
    [response] = (await once(sent, "response")) as [IncomingMessage];
    const received = await text(response);
    const { statusCode: status = 0, headers: got } = response;
    return { requestId, status, failure: null, headers: got, body: parse(received), text: received };
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const broken = code === "ECONNREFUSED" ? "refused" : response === undefined ? "reset" : "cut";
    return {
      requestId,
      status: null,
      failure: signal.aborted ? "timeout" : broken,
      headers: {},
      body: undefined,
      text: "",
    };
  }
}

function parse(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return undefined;
  }
}
