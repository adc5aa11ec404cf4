import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { parseObject } from "./service.ts";

/** What an issuer does to one voucher. */
const ACTS = ["void", "suspend", "resume", "extend"] as const;
/** The purpose of a call of the client. */
export type CallKind = "lookUp" | "reserve" | "redeem" | "release" | "issue" | (typeof ACTS)[number] | "other";

/** One call of the client and its response. */
export interface ProxiedCall {
  kind: CallKind;
  /** When the call arrived, on the monotonic clock. Milliseconds. */
  at: number;
  /** The request's body. An empty object if it is not JSON. */
  request: Record<string, unknown>;
  /** The response's status. Null if the client got no response. */
  status: number | null;
  response: Record<string, unknown>;
  /** `Retry-After` of the response, in milliseconds. */
  retryAfterMs: number;
}

/** How the proxy disturbs a call. */
export type NetworkFault =
  | { kind: "lose response" }
  | { kind: "delay"; ms: number }
  | { kind: "answer"; status: number; body: Record<string, unknown>; retryAfterSeconds?: number };

/** Returns the fault for a call, or null. `before` is the number of earlier calls of this kind since `begin`. */
export type Faults = (kind: CallKind, before: number) => NetworkFault | null;

export interface FaultyProxy {
  url: string;
  /** Discards the recorded calls, and applies these faults from now on. */
  begin(faults: Faults): void;
  /** The calls since `begin`. */
  calls(): readonly ProxiedCall[];
  close(): Promise<void>;
}

/** Headers that apply to a single connection, or that are wrong after `fetch` has decoded the body. */
const NOT_FORWARDED = [
  "host",
  "connection",
  "keep-alive",
  "transfer-encoding",
  "content-length",
  "content-encoding",
  "accept-encoding",
];

/** Starts a proxy on the loopback interface between a client and the service at `target`. */
export async function openFaultyProxy(target: string): Promise<FaultyProxy> {
  let faults: Faults = () => null;
  let calls: ProxiedCall[] = [];

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = request.url ?? "/";
    const kind = kindOf(request.method ?? "", path);
    const body = await buffer(request);
    const fault = faults(kind, calls.filter((call) => call.kind === kind).length);
    const call: ProxiedCall = {
      kind,
      at: performance.now(),
      request: parseObject(body.toString()),
      status: null,
      response: {},
      retryAfterMs: 0,
    };
    calls.push(call);
    const answer = fault?.kind === "answer" ? toAnswer(fault) : await forward(target + path, request, body);
    if (fault?.kind === "lose response") {
      request.socket.destroy();
      return;
    }
    if (fault?.kind === "delay") await sleep(fault.ms);
    call.status = answer.status;
    call.response = parseObject(answer.body.toString());
    call.retryAfterMs = Number(answer.headers["retry-after"] ?? 0) * 1_000;
    response.writeHead(answer.status, answer.headers).end(answer.body);
  }

  const server = createServer((request, response) => {
    handle(request, response).catch(() => request.socket.destroy());
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    begin(next) {
      faults = next;
      calls = [];
    },
    calls: () => calls,
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

interface Answer {
  status: number;
  headers: Record<string, string>;
  body: Buffer;
}

function toAnswer({ status, body, retryAfterSeconds }: Extract<NetworkFault, { kind: "answer" }>): Answer {
  return {
    status,
    headers: {
      "content-type": "application/json; charset=utf-8",
      ...(retryAfterSeconds !== undefined && { "retry-after": String(retryAfterSeconds) }),
    },
    body: Buffer.from(JSON.stringify(body)),
  };
}

async function forward(url: string, request: IncomingMessage, body: Buffer): Promise<Answer> {
  const response = await fetch(url, {
    method: request.method ?? "GET",
    headers: forwardable(Object.entries(request.headers).map(([name, value]) => [name, String(value)])),
    ...(body.length > 0 && { body: new Uint8Array(body) }),
    redirect: "manual",
  });
  return {
    status: response.status,
    headers: forwardable([...response.headers]),
    body: Buffer.from(await response.arrayBuffer()),
  };
}

function forwardable(headers: [name: string, value: string][]): Record<string, string> {
  return Object.fromEntries(headers.filter(([name]) => !NOT_FORWARDED.includes(name)));
}

function kindOf(method: string, path: string): CallKind {
  if (method === "POST" && /^\/issuer\/products\/[^/]+\/batches$/.test(path)) return "issue";
  const act = ACTS.find((name) => path === `/issuer/vouchers/${name}`);
  if (method === "POST" && act !== undefined) return act;
  const [, name = ""] = /^\/partner\/vouchers\/([^/?]+)\/?(?:\?|$)/.exec(path) ?? [];
  if (method === "GET") return name === "" ? "other" : "lookUp";
  return name === "reserve" || name === "redeem" || name === "release" ? name : "other";
}
