import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

/** A span as it was sent, with what the tests ask of it. */
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

/** Takes what processes send as OTLP over HTTP. */
export interface TraceCollector {
  url: string;
  /** Every body that came, as it came. */
  bodies: { contentType: string; bytes: Buffer }[];
  /** What came as JSON. */
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

/** Opens a collector on a port of its own. */
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
