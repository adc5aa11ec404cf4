import { type Agent, type IncomingHttpHeaders, request } from "node:http";

export interface Answer {
  status: number;
  headers: IncomingHttpHeaders;
  // biome-ignore lint/suspicious/noExplicitAny: tests read answers of every shape; undefined when it is not JSON.
  body: any;
}

/** Why a request has no answer. */
export type Failure =
  /** The port was closed: the request was never accepted. */
  | "refused"
  /** The connection broke before the answer began. */
  | "reset"
  /** The connection broke during the answer. */
  | "cut"
  | "timeout";

export type Outcome =
  | { kind: "answer"; requestId: string; answer: Answer }
  | { kind: "failure"; requestId: string; failure: Failure };

export interface Call {
  method: "GET" | "POST";
  url: string;
  /** A partner's key or a user's token. */
  key?: string;
  token?: string;
  body?: unknown;
  timeoutMs: number;
  /** Connections to reuse. By default each request opens its own, so that no failure comes from an old connection. */
  agent?: Agent;
}

/** Sends one request with an id that the API logs. Never rejects and never retries. */
export function sendCall(call: Call): Promise<Outcome> {
  const requestId = crypto.randomUUID();
  return new Promise((resolve) => {
    const body = call.body === undefined ? undefined : JSON.stringify(call.body);
    let failure: Failure = "reset";
    const sent = request(call.url, {
      method: call.method,
      agent: call.agent ?? false,
      headers: {
        ...(call.key !== undefined && { "x-api-key": call.key }),
        ...(call.token !== undefined && { authorization: `Bearer ${call.token}` }),
        "x-request-id": requestId,
        ...(body !== undefined && { "content-type": "application/json", "content-length": Buffer.byteLength(body) }),
      },
    });
    const timer = setTimeout(() => {
      failure = "timeout";
      sent.destroy(new Error("no answer in time"));
    }, call.timeoutMs);
    const fail = (error?: NodeJS.ErrnoException) => {
      clearTimeout(timer);
      resolve({ kind: "failure", requestId, failure: error?.code === "ECONNREFUSED" ? "refused" : failure });
    };
    sent.on("error", fail);
    sent.on("response", (response) => {
      if (failure !== "timeout") failure = "cut";
      const chunks: Buffer[] = [];
      response.on("data", (chunk: Buffer) => chunks.push(chunk));
      response.on("error", fail);
      response.on("end", () => {
        clearTimeout(timer);
        const answer = { status: response.statusCode ?? 0, headers: response.headers, body: parse(chunks) };
        resolve({ kind: "answer", requestId, answer });
      });
    });
    sent.end(body);
  });
}

function parse(chunks: Buffer[]): unknown {
  try {
    return JSON.parse(Buffer.concat(chunks).toString("utf8"));
  } catch {
    return undefined;
  }
}
