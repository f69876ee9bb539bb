import { setTimeout as sleep } from 'node:timers/promises';
import pino from 'pino';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { Bus } from '../../src/ports/bus.js';
import type { Engines } from '../../src/ports/engines.js';
import type { RecordedEvent } from '../../src/ports/eventStore.js';
import { inBatchSpan } from '../../src/tracing/batches.js';
import { tracedEngines } from '../../src/service/tracedEngines.js';
import { currentTrace, inSpan, tracingOn } from '../../src/tracing/spans.js';
import { requestedExporters, unknownExporters } from '../../src/tracing/exporters.js';
import { telemetryFaults } from '../../src/tracing/settings.js';
import { startTelemetry } from '../../src/tracing/telemetry.js';
import { openCollector, type SentSpan } from '../support/providers/collector.js';
import { event, failureOf } from '../support/engines/eventStoreEvents.js';
import { memoryEvents } from '../support/engines/memoryEvents.js';

const test = suite('telemetry');
const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const SPAN = '00f067aa0ba902b7';
const OTHER = '11111111111111111111111111111111';

test.after.each(() => {
  for (const name of Object.keys(process.env).filter((one) => one.startsWith('OTEL_'))) delete process.env[name];
});

/** Runs with traces sent to a collector; gives the traces and the log. */
async function sent(
  use: () => Promise<void>,
  env: Record<string, string> = {},
): Promise<{ spans: readonly SentSpan[]; lines: string[] }> {
  const collector = await openCollector();
  const lines: string[] = [];
  Object.assign(process.env, {
    OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${collector.url}/v1/traces`,
    OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
    ...env,
  });
  const telemetry = await startTelemetry({
    version: '9.9.9',
    logger: pino({}, { write: (line: string) => void lines.push(line) }),
  });
  try {
    await use();
  } finally {
    await telemetry?.close();
    await collector.close();
  }
  assert.not(tracingOn());
  return { spans: collector.spans, lines };
}

test('is switched on and off by the usual variables', () => {
  for (const env of [
    {},
    { OTEL_SERVICE_NAME: 'x' },
    { OTEL_TRACES_EXPORTER: ' ' },
    { OTEL_TRACES_EXPORTER: 'none', OTEL_EXPORTER_OTLP_ENDPOINT: 'http://x' },
    { OTEL_SDK_DISABLED: 'TRUE', OTEL_TRACES_EXPORTER: 'otlp' },
  ]) {
    assert.equal(requestedExporters(env), [], JSON.stringify(env));
  }
  for (const env of [
    { OTEL_TRACES_EXPORTER: 'otlp' },
    { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://x' },
    { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'http://x' },
    { OTEL_SDK_DISABLED: 'false', OTEL_TRACES_EXPORTER: 'otlp' },
  ]) {
    assert.equal(requestedExporters(env), ['otlp'], JSON.stringify(env));
  }
  assert.equal(
    requestedExporters({ OTEL_TRACES_EXPORTER: ' console, zipkin ', OTEL_EXPORTER_OTLP_ENDPOINT: 'http://x' }),
    ['console', 'zipkin'],
  );
  assert.equal(unknownExporters({ OTEL_TRACES_EXPORTER: 'otlp,otpl,jaeger,none' }), ['otpl', 'jaeger']);
  assert.equal(
    unknownExporters({ OTEL_TRACES_EXPORTER: 'otpl', OTEL_SDK_DISABLED: 'true' }),
    [],
    'nothing is sent anyway',
  );
});

test("names every fault in the SDK's variables at the start, and shows no secret", () => {
  const on = { OTEL_TRACES_EXPORTER: 'otlp' };
  for (const [name, value, reportedAt] of [
    ['OTEL_EXPORTER_OTLP_ENDPOINT', 'collector:4318', 'must be an address that begins with http:// or https://'],
    ['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', 'collector', 'must be an address that begins with http:// or https://'],
    ['OTEL_EXPORTER_ZIPKIN_ENDPOINT', 'zipkin:9411', 'must be an address that begins with http:// or https://'],
    ['OTEL_EXPORTER_OTLP_PROTOCOL', 'http', 'must be one of grpc, http/protobuf, http/json, not "http"'],
    ['OTEL_EXPORTER_OTLP_TIMEOUT', '10s', 'must be a whole number, not "10s"'],
    ['OTEL_EXPORTER_OTLP_COMPRESSION', 'zip', 'must be one of none, gzip, not "zip"'],
    ['OTEL_EXPORTER_OTLP_HEADERS', 'secret', 'must be a list of key=value, comma-separated'],
    ['OTEL_EXPORTER_OTLP_CERTIFICATE', '/nowhere/ca.pem', 'names "/nowhere/ca.pem", which can\'t be read (ENOENT)'],
    [
      'OTEL_TRACES_SAMPLER',
      'ratio',
      'must be one of always_on, always_off, traceidratio, parentbased_always_on, parentbased_always_off, parentbased_traceidratio, not "ratio"',
    ],
    ['OTEL_TRACES_SAMPLER_ARG', '10%', 'must be a number from 0 to 1, not "10%"'],
    [
      'OTEL_PROPAGATORS',
      'tracecontext,w3c',
      'must be a list of tracecontext, baggage, b3, b3multi, jaeger, none; "w3c" is none of them',
    ],
    ['OTEL_BSP_SCHEDULE_DELAY', '-1', 'must be a whole number, not "-1"'],
    ['OTEL_LOG_LEVEL', 'loud', 'must be one of none, error, warn, info, debug, verbose, all, not "loud"'],
  ] as const) {
    assert.equal(telemetryFaults({ ...on, [name]: value }), [`${name} ${reportedAt}`]);
    assert.equal(
      telemetryFaults({ [name]: value }).length,
      requestedExporters({ [name]: value }).length,
      'nothing is sent without an exporter',
    );
  }
  assert.equal(telemetryFaults({ OTEL_SDK_DISABLED: 'yes' }), ['OTEL_SDK_DISABLED must be true or false, not "yes"']);
  const good = {
    OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318',
    OTEL_EXPORTER_OTLP_HEADERS: 'x-key=a%20b, y = c',
    OTEL_TRACES_SAMPLER: 'traceidratio',
    OTEL_TRACES_SAMPLER_ARG: '0.25',
    OTEL_LOG_LEVEL: 'INFO',
    OTEL_BSP_MAX_QUEUE_SIZE: ' ',
  };
  assert.equal(telemetryFaults(good), []);
});

test('just runs the work of spans when switched off', async () => {
  assert.is(await startTelemetry({ version: '1', logger: pino({ level: 'silent' }) }), undefined);
  assert.is(
    await inSpan(
      () => assert.unreachable() as never,
      async (span) => {
        span.rename('x');
        span.set({ a: 1 });
        span.fail('x');
        return 7;
      },
    ),
    7,
  );
  assert.is(currentTrace(), undefined);
  const engines = { events: memoryEvents() } as unknown as Engines;
  assert.is(tracedEngines(engines), engines);
});

test('has spans follow their parents, fail by the kind of error, and name the service', async () => {
  const { spans } = await sent(
    async () => {
      assert.is(currentTrace(), undefined);
      await inSpan(
        () => ({ name: 'outer', parent: `00-${TRACE}-${SPAN}-01`, links: [`00-${OTHER}-${SPAN}-01`, 'senseless'] }),
        async (span) => {
          assert.match(currentTrace() ?? '', new RegExp(`^00-${TRACE}-[0-9a-f]{16}-01$`));
          span.set({ colour: 'red' });
          await inSpan(
            () => ({ name: 'inner' }),
            async () => sleep(1),
          );
        },
      );
      for (const parent of ['', 'senseless', `00-${'0'.repeat(32)}-${SPAN}-01`])
        await inSpan(
          () => ({ name: 'fresh', parent }),
          async () => undefined,
        );
      await inSpan(
        () => ({ name: 'by headers', headers: { traceparent: `00-${TRACE}-${SPAN}-01` } }),
        async () => undefined,
      );
      await failureOf(
        inSpan(
          () => ({ name: 'failing' }),
          async () => Promise.reject(new TypeError('of 07700 900001')),
        ),
      );
      await failureOf(
        inSpan(
          () => ({ name: 'odd' }),
          async () => Promise.reject('a text' as unknown as Error),
        ),
      );
    },
    { OTEL_SERVICE_NAME: 'gifts of ours' },
  );
  const named = (name: string): SentSpan =>
    spans.find((span) => span.name === name) ?? (assert.unreachable(name) as never);
  const outer = named('outer');
  assert.equal([outer.traceId, outer.parentSpanId, outer.attributes['colour']], [TRACE, SPAN, 'red']);
  assert.equal(
    outer.links.map(({ traceId }) => traceId),
    [OTHER],
  );
  assert.equal([named('inner').traceId, named('inner').parentSpanId], [TRACE, outer.spanId]);
  const fresh = spans.filter(({ name }) => name === 'fresh');
  assert.is(new Set(fresh.map(({ traceId }) => traceId)).size, 3);
  assert.ok(fresh.every(({ traceId, parentSpanId }) => traceId !== TRACE && (parentSpanId ?? '') === ''));
  assert.is(named('by headers').traceId, TRACE);
  assert.equal(
    [named('failing').status, named('failing').attributes['error.type'], named('odd').attributes['error.type']],
    [2, 'TypeError', 'string'],
  );
  assert.not(JSON.stringify(spans).includes('900001'));
  assert.equal([outer.resource['service.name'], outer.resource['service.version']], ['gifts of ours', '9.9.9']);
});

test('samples neither a caller who refuses it nor what follows', async () => {
  const { spans } = await sent(async () => {
    await inSpan(
      () => ({ name: 'x', parent: `00-${TRACE}-${SPAN}-00` }),
      async () => {
        assert.match(currentTrace() ?? '', /-00$/);
      },
    );
  });
  assert.equal(spans, []);
});

test("carries the trace beside a message's payload, which workers never see, nor miss", async () => {
  const seen: object[] = [];
  let handler: (payload: object) => Promise<object> = async () => ({});
  const bus = {
    request: async (_subject: string, payload: object) => handler(payload),
    async serve(_subject: string, _queue: string, given: typeof handler) {
      handler = given;
      return async () => undefined;
    },
  } as unknown as Bus;
  const { spans } = await sent(async () => {
    const traced = tracedEngines({ events: memoryEvents(), bus } as unknown as Engines);
    await traced.bus.serve('payments.charge', 'payments', async (payload: object) => {
      seen.push(payload);
      return { outcome: 'charged' };
    });
    await traced.bus.request('payments.charge', { amount: 1 }, { timeoutMs: 1 });
    await handler({ amount: 2 });
    await handler({ amount: 3, traceparent: 7 });
  });
  assert.equal(seen, [{ amount: 1 }, { amount: 2 }, { amount: 3 }]);
  const [answer, ask] = spans;
  assert.equal(
    [answer?.name, answer?.parentSpanId, answer?.attributes['gift.outcome'], ask?.name],
    ['payments.charge answer', ask?.spanId, 'charged', 'payments.charge ask'],
  );
  assert.is(spans.length, 4);
});

test('makes a batch of one trace part of it, links one of several, and leaves out a large one', async () => {
  const of = (...traces: readonly (string | undefined)[]): RecordedEvent[] =>
    traces.map((trace, n): RecordedEvent => {
      const one = event();
      const metadata = {
        ...one.metadata,
        ...(trace === undefined ? {} : { traceparent: `00-${trace}-${String(n + 1).padStart(16, '0')}-01` }),
      };
      return { ...one, metadata, stream: 's', revision: n, position: String(n) };
    });
  let runs = 0;
  const work = async (): Promise<void> => void (runs += 1);
  const { spans } = await sent(async () => {
    await inBatchSpan(['gifts@1'], [], work);
    await inBatchSpan(['gifts@1'], of(TRACE, undefined, TRACE), work);
    await inBatchSpan(['gifts@1', 'accounts@1'], of(TRACE, OTHER), work);
    await inBatchSpan(['gifts@1'], of(...Array.from({ length: 65 }, () => TRACE)), work);
  });
  assert.is(runs, 4);
  const [one, several, large] = spans;
  assert.equal(
    [one?.traceId, one?.parentSpanId, one?.links.length, one?.attributes['gift.event.count']],
    [TRACE, '0000000000000001', 1, 3],
  );
  assert.equal(
    [several?.links.map(({ traceId }) => traceId), several?.attributes['gift.projections']],
    [[TRACE, OTHER], 'gifts@1 accounts@1'],
  );
  assert.is.not(several?.traceId, TRACE);
  assert.equal([large?.links.length, large?.traceId === TRACE, spans.length], [0, false, 3]);
});

test('reports a missing collector once, and holds up neither work nor the end', async () => {
  const lines: string[] = [];
  Object.assign(process.env, {
    OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1',
    OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
    OTEL_BSP_SCHEDULE_DELAY: '20',
    OTEL_EXPORTER_OTLP_TIMEOUT: '200',
  });
  const telemetry = await startTelemetry({
    version: '1',
    logger: pino({}, { write: (line: string) => void lines.push(line) }),
  });
  for (let n = 0; n < 5; n++) {
    await inSpan(
      () => ({ name: 'x' }),
      async () => undefined,
    );
    await sleep(100);
  }
  await telemetry?.close();
  assert.is(lines.filter((line) => line.includes('trouble with sending traces')).length, 1, lines.join(''));
});

test.run();
