import { setTimeout as sleep } from "node:timers/promises";
import {
  type Attributes,
  type Context,
  context,
  DiagLogLevel,
  diag,
  propagation,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  trace,
} from "@opentelemetry/api";
import { NodeSDK } from "@opentelemetry/sdk-node";
import type { Logger } from "pino";
import { formatTraceparent, parseTraceparent } from "./traceparent.ts";
import type { TracedRequest, Traces } from "./traces.ts";

/** How long a process that stops waits for its last spans to be taken. Milliseconds. */
const CLOSE_MAX_MS = 3_000;

/**
 * Starts OpenTelemetry as the OTEL_* variables say, for traces alone. Spans name routes, queues, statuses and error codes. They hold
 * no path, no id of anything and no error's text, because those may hold a caller's codes.
 * @param serviceName undefined when the variables name the service.
 */
export function startOpenTelemetry(serviceName: string | undefined, log: Logger): Traces {
  const sdk = new NodeSDK({
    ...(serviceName !== undefined && { serviceName }),
    instrumentations: [],
    // Metrics are scraped and logs are lines on standard output: without these lists the SDK would send both by itself.
    metricReaders: [],
    logRecordProcessors: [],
  });
  // What goes wrong with sending, in the process's own log.
  const say = (message: string) => log.warn({ detail: message }, "OpenTelemetry");
  const quiet = () => undefined;
  diag.setLogger(
    { error: say, warn: say, info: quiet, debug: quiet, verbose: quiet },
    { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true },
  );
  sdk.start();
  return openTelemetryTraces(async () => {
    const sent = sdk.shutdown().catch((error) => log.warn({ err: error }, "traces were lost"));
    await Promise.race([sent, sleep(CLOSE_MAX_MS)]);
  });
}

function openTelemetryTraces(close: () => Promise<void>): Traces {
  const tracer = trace.getTracer("partner-voucher-api");
  /** Whose each item is. An item that is forgotten takes its span with it. */
  const spans = new WeakMap<object, Span>();

  const start = (name: string, kind: SpanKind, attributes: Attributes, parent: Context) =>
    tracer.startSpan(name, { kind, attributes }, parent);
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
    request(incoming, run) {
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
      // The body arrives on the connection, which belongs to no request.
      context.bind(inside, incoming);
      context.with(inside, () => run(traced));
    },

    ask(queue, run) {
      const parent = context.active();
      const span = start(`ask ${queue}`, SpanKind.PRODUCER, messaging(queue, "send"), parent);
      return runIn(span, parent, () => run(formatTraceparent(span.spanContext())));
    },

    job(queue, traceparent, run) {
      const remote = parseTraceparent(traceparent);
      const parent = remote === null ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, remote);
      return runIn(start(`process ${queue}`, SpanKind.CONSUMER, messaging(queue, "process"), parent), parent, run);
    },

    mark(item) {
      const span = trace.getActiveSpan();
      if (span !== undefined && !spans.has(item)) spans.set(item, span);
    },

    batch(name, items, run) {
      // A span that has ended, or is not to be sent, takes no link and no child.
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

function messaging(queue: string, operation: string): Attributes {
  return {
    "messaging.system": "bullmq",
    "messaging.destination.name": queue,
    "messaging.operation.type": operation,
  };
}

/** What kind of error it was: a code or a class, never its text. */
function errorType(error: unknown): string {
  const { code, name } = (error ?? {}) as { code?: unknown; name?: unknown };
  return typeof code === "string" ? code : typeof name === "string" ? name : "unknown";
}
