import { type Agent, type IncomingHttpHeaders, request } from "node:http";

export interface Answer {
  status: number;
  headers: IncomingHttpHeaders;
  // biome-ignore lint/suspicious/noExplicitAny: answers of every shape are looked into; undefined when it was not JSON.
  body: any;
}

/** Why a request has no answer. */
export type Failure =
  /** Nobody listened: the request was never accepted. */
  | "refused"
  /** The connection broke before any byte of an answer. */
  | "reset"
  /** The answer began and broke off. */
  | "cut"
  | "timeout";

export type Outcome =
  | { kind: "answer"; requestId: string; answer: Answer }
  | { kind: "failure"; requestId: string; failure: Failure };

export interface Call {
  method: "GET" | "POST";
  url: string;
  key: string;
  body?: unknown;
  timeoutMs: number;
  /** Connections to reuse. Without one the request has a connection of its own, so that no failure is an old connection's. */
  agent?: Agent;
}

/** Sends one request, under an id that the API's log shows, and tells what came of it. Never rejects and never retries. */
export function sendCall(call: Call): Promise<Outcome> {
  const requestId = crypto.randomUUID();
  return new Promise((resolve) => {
    const body = call.body === undefined ? undefined : JSON.stringify(call.body);
    let failure: Failure = "reset";
    const sent = request(call.url, {
      method: call.method,
      agent: call.agent ?? false,
      headers: {
        "x-api-key": call.key,
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
