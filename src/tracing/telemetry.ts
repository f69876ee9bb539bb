/**
 * OpenTelemetry, loaded only where `OTEL_TRACES_EXPORTER`, `OTEL_EXPORTER_OTLP_ENDPOINT` or
 * `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT` requests traces. Its SDK reads all other variables.
 */
import type * as Api from '@opentelemetry/api';
import type { Context, DiagLogger, Link, Span as OtelSpan, SpanContext } from '@opentelemetry/api';
import type { Logger } from 'pino';
import { within } from '../lib/async/within.js';
import { ticks } from '../lib/world.js';
import { requestedExporters } from './exporters.js';
import { type Span, type SpanDescription, switchTracing, type Tracing } from './spans.js';

const FLUSH_MS = 1_000;
const COMPLAIN_EVERY_MS = 60_000;

interface TelemetryOptions {
  readonly version: string;
  readonly logger: Logger;
}

/**
 * Starts tracing. To be called once per thread, before anything traced is opened.
 * @returns a handle whose `close` sends the remaining spans within 1 s; `undefined` where no traces are requested
 */
export async function startTelemetry({
  version,
  logger,
}: TelemetryOptions): Promise<{ close(): Promise<void> } | undefined> {
  const exporters = requestedExporters(process.env);
  if (exporters.length === 0) return undefined;
  // A closed console must not end the service.
  if (exporters.includes('console')) process.stdout.on('error', () => undefined);
  const [api, { NodeSDK, resources }] = await Promise.all([
    import('@opentelemetry/api'),
    import('@opentelemetry/sdk-node'),
  ]);
  if (process.env['OTEL_LOG_LEVEL'] === undefined) api.diag.setLogger(complaints(logger), api.DiagLogLevel.WARN);
  const sdk = new NodeSDK({
    resource: resources
      .defaultResource()
      .merge(resources.resourceFromAttributes({ 'service.name': 'gift-commerce', 'service.version': version })),
    // OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES win. Command line, user and host are not exported.
    resourceDetectors: [resources.envDetector],
    metricReaders: [],
    logRecordProcessors: [],
    instrumentations: [],
  });
  sdk.start();
  switchTracing(openTracing(api, version));
  logger.info({ exporters }, 'traces are sent');
  return {
    async close() {
      switchTracing(undefined);
      const sent = sdk
        .shutdown()
        .catch((error: unknown) => logger.warn({ err: error }, 'the last traces could not be sent'));
      await within(sent, FLUSH_MS, () => undefined);
      for (const part of [api.trace, api.context, api.propagation, api.diag]) part.disable();
    },
  };
}

/** Logs the SDK's complaints, at intervals: an absent collector must not fill the log. */
function complaints(logger: Logger): DiagLogger {
  let reportedAt = -Infinity;
  const warn = (detail: string): void => {
    if (ticks() - reportedAt < COMPLAIN_EVERY_MS) return;
    reportedAt = ticks();
    logger.warn({ detail }, 'trouble with sending traces');
  };
  const silent = (): void => undefined;
  return { error: warn, warn, info: silent, debug: silent, verbose: silent };
}

const VERSION = '00';

function openTracing(api: typeof Api, version: string): Tracing {
  const { context, trace, propagation, SpanKind, SpanStatusCode, ROOT_CONTEXT } = api;
  const tracer = trace.getTracer('gift-commerce', version);
  const kinds = {
    internal: SpanKind.INTERNAL,
    server: SpanKind.SERVER,
    client: SpanKind.CLIENT,
    consumer: SpanKind.CONSUMER,
  };

  const parse = (traceparent: string): SpanContext | undefined => {
    const [, traceId = '', spanId = '', flags = ''] =
      /^[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/.exec(traceparent) ?? [];
    const found: SpanContext = { traceId, spanId, traceFlags: Number.parseInt(flags, 16), isRemote: true };
    return api.isSpanContextValid(found) ? found : undefined;
  };
  const parentOf = ({ parent, headers }: SpanDescription): Context => {
    if (headers !== undefined) return propagation.extract(ROOT_CONTEXT, headers);
    if (parent === undefined) return context.active();
    const remote = parse(parent);
    return remote === undefined ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, remote);
  };
  const linksOf = (links: readonly string[]): Link[] =>
    links.flatMap((link) => parse(link) ?? []).map((linked) => ({ context: linked }));
  const handle = (span: OtelSpan): Span => ({
    rename: (name) => void span.updateName(name),
    set: (attributes) => void span.setAttributes({ ...attributes }),
    fail: (kind) => void span.setStatus({ code: SpanStatusCode.ERROR }).setAttribute('error.type', kind),
  });

  return {
    async run(description, work) {
      const { name, kind = 'internal', attributes = {}, links = [] } = description;
      const parent = parentOf(description);
      const span = tracer.startSpan(
        name,
        { kind: kinds[kind], attributes: { ...attributes }, links: linksOf(links) },
        parent,
      );
      const handled = handle(span);
      try {
        return await context.with(trace.setSpan(parent, span), () => work(handled));
      } catch (error) {
        handled.fail(error instanceof Error ? error.name : typeof error);
        throw error;
      } finally {
        span.end();
      }
    },
    current() {
      const now = trace.getSpanContext(context.active());
      if (now === undefined || !api.isSpanContextValid(now)) return undefined;
      return `${VERSION}-${now.traceId}-${now.spanId}-${now.traceFlags.toString(16).padStart(2, '0')}`;
    },
  };
}
