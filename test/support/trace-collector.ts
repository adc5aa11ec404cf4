import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";

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

// biome-ignore lint/suspicious/noExplicitAny: the JSON form of OTLP; ReceivedSpan has the fields that tests read.
type Otlp = any;

export async function openTraceCollector(): Promise<TraceCollector> {
  const bodies: TraceCollector["bodies"] = [];
  const server = createServer(async (request, response) => {
    const bytes = await buffer(request);
    const isTraces = request.url === "/v1/traces";
    if (isTraces) bodies.push({ contentType: request.headers["content-type"] ?? "", bytes });
    response.writeHead(isTraces ? 200 : 404, { "Content-Type": "application/json" }).end("{}");
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

function spansOf({ resourceSpans }: Otlp): ReceivedSpan[] {
  return resourceSpans.flatMap(({ resource, scopeSpans }: Otlp) =>
    scopeSpans.flatMap(({ spans }: Otlp) =>
      spans.map(({ traceId, spanId, name, kind, ...span }: Otlp) => ({
        service: String(valuesOf(resource.attributes)["service.name"]),
        traceId,
        spanId,
        name,
        kind,
        parentSpanId: span.parentSpanId || undefined,
        attributes: valuesOf(span.attributes),
        links: (span.links ?? []).map((link: Otlp) => link.spanId),
        failed: span.status?.code === 2,
      })),
    ),
  );
}

function valuesOf(attributes: Otlp[]): Record<string, unknown> {
  return Object.fromEntries(
    attributes.map(({ key, value }) => [key, value.stringValue ?? value.boolValue ?? Number(value.intValue)]),
  );
}
