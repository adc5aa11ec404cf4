import type { IncomingMessage } from "node:http";
import {
  type Attributes,
  type Context,
  context,
  DiagLogLevel,
  defaultTextMapGetter,
  defaultTextMapSetter,
  diag,
  propagation,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  trace,
} from "@opentelemetry/api";
import { W3CTraceContextPropagator } from "@opentelemetry/core";
import { NodeSDK } from "@opentelemetry/sdk-node";
import pTimeout from "p-timeout";
import type { Logger } from "pino";
import type { TracedRequest, Traces } from "./traces.ts";

/** Maximum time that a stopping process waits to send its last spans. Milliseconds. */
const CLOSE_MAX_MS = 3_000;

/** Jobs contain W3C Trace Context. OTEL_PROPAGATORS applies only to requests. */
const jobPropagator = new W3CTraceContextPropagator();

/**
 * Starts OpenTelemetry for traces, configured by the OTEL_* variables. Spans contain no paths, ids or error messages,
 * because those may contain voucher codes. Pass `undefined` as `serviceName` if the OTEL_* variables already set the
 * service name.
 */
export function startOpenTelemetry(serviceName: string | undefined, log: Logger): Traces {
  const sdk = new NodeSDK({
    ...(serviceName !== undefined && { serviceName }),
    instrumentations: [],
    // The empty lists turn off what the SDK would otherwise send. Metrics are scraped, and logs go to standard output.
    metricReaders: [],
    logRecordProcessors: [],
  });
  const warn = (message: string) => log.warn({ detail: message }, "OpenTelemetry reported a problem");
  const ignore = () => undefined;
  diag.setLogger(
    { error: warn, warn, info: ignore, debug: ignore, verbose: ignore },
    { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true },
  );
  sdk.start();
  return openTelemetryTraces(async () => {
    const sent = sdk.shutdown().catch((error) => log.warn({ err: error }, "the last traces could not be sent"));
    await pTimeout(sent, { milliseconds: CLOSE_MAX_MS, message: false });
  });
}

function openTelemetryTraces(close: () => Promise<void>): Traces {
  const tracer = trace.getTracer("partner-voucher-api");
  /** The span that was active when each item was submitted. */
  const spans = new WeakMap<object, Span>();

  const start: StartSpan = (name, kind, attributes, parent) => tracer.startSpan(name, { kind, attributes }, parent);
  const runIn = async <T>(span: Span, parent: Context, run: () => Promise<T>): Promise<T> => {
    try {
      return await context.with(trace.setSpan(parent, span), run);
    } catch (error) {
      span.setAttribute("error.type", errorType(error));
      span.setStatus({ code: SpanStatusCode.ERROR });
      throw error;
    } finally {
      span.end();
    }
  };

  return {
    request: (incoming, run) => traceRequest(start, incoming, run),

    sendJob(queue, run) {
      const parent = context.active();
      const span = start(`send ${queue}`, SpanKind.PRODUCER, messaging(queue, "send"), parent);
      return runIn(span, parent, () => {
        const carrier: { traceparent?: string } = {};
        jobPropagator.inject(context.active(), carrier, defaultTextMapSetter);
        return run(carrier.traceparent);
      });
    },

    processJob(queue, traceparent, run) {
      const parent = jobPropagator.extract(ROOT_CONTEXT, { traceparent }, defaultTextMapGetter);
      return runIn(start(`process ${queue}`, SpanKind.CONSUMER, messaging(queue, "process"), parent), parent, run);
    },

    recordSubmission(item) {
      const span = trace.getActiveSpan();
      if (span !== undefined && !spans.has(item)) spans.set(item, span);
    },

    runBatch(name, items, run) {
      // Skips spans that have ended or are not sampled, because they can have neither links nor children.
      const [first, ...others] = items.flatMap((item) => spans.get(item) ?? []).filter((span) => span.isRecording());
      if (first === undefined) return run();
      const parent = trace.setSpan(ROOT_CONTEXT, first);
      const span = start(`${name} batch`, SpanKind.INTERNAL, { "voucher.batch.items": items.length }, parent);
      for (const other of others) {
        span.addLink({ context: other.spanContext() });
        other.addLink({ context: span.spanContext() });
      }
      return runIn(span, parent, run);
    },

    close,
  };
}

type StartSpan = (name: string, kind: SpanKind, attributes: Attributes, parent: Context) => Span;

/** Runs a request in a span. The span ends with the request. */
function traceRequest(start: StartSpan, incoming: IncomingMessage, run: (traced: TracedRequest) => void): void {
  const { method = "GET", headers } = incoming;
  const parent = propagation.extract(ROOT_CONTEXT, headers);
  const span = start(method, SpanKind.SERVER, { "http.request.method": method }, parent);
  const traced: TracedRequest = {
    traceId: span.spanContext().traceId,
    end({ route, status, errorCode }) {
      if (route !== undefined) span.updateName(`${method} ${route}`).setAttribute("http.route", route);
      if (errorCode !== undefined) span.setAttribute("error.type", errorCode);
      if (status >= 500) span.setStatus({ code: SpanStatusCode.ERROR });
      span.setAttribute("http.response.status_code", status).end();
    },
  };
  const inside = trace.setSpan(parent, span);
  // Binds the request to its context, because events of the request's body are emitted outside that context.
  context.bind(inside, incoming);
  context.with(inside, () => run(traced));
}

function messaging(queue: string, operation: string): Attributes {
  return {
    "messaging.system": "bullmq",
    "messaging.destination.name": queue,
    "messaging.operation.type": operation,
  };
}

/** The kind of an error: its code or its class. Never its message. */
function errorType(error: unknown): string {
  const { code, name } = (error ?? {}) as { code?: unknown; name?: unknown };
  return typeof code === "string" ? code : typeof name === "string" ? name : "unknown";
}
