import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

/** The part of a received span that tests use. */
export interface ReceivedSpan {
  service: string;
  traceId: string;
  spanId: string;
  parentSpanId: string | undefined;
  name: string;
  /** 1 internal, 2 server, 3 client, 4 producer, 5 consumer. */
  kind: number;
  attributes: Record<string, unknown>;
  links: string[];
  failed: boolean;
}

/** Receives OTLP over HTTP. */
export interface TraceCollector {
  url: string;
  /** Every received body. */
  bodies: { contentType: string; bytes: Buffer }[];
  /** The spans of all JSON bodies. */
  spans(): ReceivedSpan[];
  close(): Promise<void>;
}

interface Value {
  stringValue?: string;
  intValue?: number | string;
  boolValue?: boolean;
}
interface Attribute {
  key: string;
  value: Value;
}
interface Export {
  resourceSpans: {
    resource: { attributes: Attribute[] };
    scopeSpans: {
      spans: {
        traceId: string;
        spanId: string;
        parentSpanId?: string;
        name: string;
        kind: number;
        attributes: Attribute[];
        links?: { spanId: string }[];
        status?: { code?: number };
      }[];
    }[];
  }[];
}

/** Opens a collector on a free port. */
export async function openTraceCollector(): Promise<TraceCollector> {
  const bodies: TraceCollector["bodies"] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk) => chunks.push(chunk));
    request.on("end", () => {
      if (request.url === "/v1/traces")
        bodies.push({ contentType: request.headers["content-type"] ?? "", bytes: Buffer.concat(chunks) });
      response.writeHead(request.url === "/v1/traces" ? 200 : 404, { "Content-Type": "application/json" }).end("{}");
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    bodies,
    spans: () =>
      bodies
        .filter(({ contentType }) => contentType.includes("json"))
        .flatMap(({ bytes }) => spansOf(JSON.parse(bytes.toString("utf8")))),
    close: () => new Promise((resolve) => server.close(() => resolve())),
  };
}

function spansOf({ resourceSpans }: Export): ReceivedSpan[] {
  return resourceSpans.flatMap(({ resource, scopeSpans }) =>
    scopeSpans.flatMap(({ spans }) =>
      spans.map((span) => ({
        service: String(valuesOf(resource.attributes)["service.name"]),
        traceId: span.traceId,
        spanId: span.spanId,
        parentSpanId: span.parentSpanId === "" ? undefined : span.parentSpanId,
        name: span.name,
        kind: span.kind,
        attributes: valuesOf(span.attributes),
        links: (span.links ?? []).map((link) => link.spanId),
        failed: span.status?.code === 2,
      })),
    ),
  );
}

function valuesOf(attributes: Attribute[]): Record<string, unknown> {
  return Object.fromEntries(
    attributes.map(({ key, value }) => [key, value.stringValue ?? value.boolValue ?? Number(value.intValue)]),
  );
}
