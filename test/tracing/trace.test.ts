import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { suite } from 'uvu';
import { giftStream } from '../../src/domain/gift/events.js';
import { notificationStream } from '../../src/domain/notification.js';
import { transactionStream } from '../../src/domain/purchase/events.js';
import type { RecordedEvent } from '../../src/ports/eventStore.js';
import { type Collector, openCollector, type SentSpan } from '../support/providers/collector.js';
import { buyOne, purchaseOf, redeem } from '../support/service/giftFlow.js';
import { openRealProviders } from '../support/providers/realProviders.js';
import { type Service, startService } from '../support/service/service.js';
import { eventually } from '../support/assertions/until.js';

const test = suite('one trace');
const TRACE = '0af7651916cd43dd8448eb211c80319c';
const CALLER = 'b7ad6b7169203331';

/** The service, a process per role, with traces and stand-ins for all providers. */
async function traced(use: (service: Service, collector: Collector) => Promise<void>): Promise<void> {
  const collector = await openCollector();
  const providers = await openRealProviders();
  const service = await startService({
    split: true,
    env: {
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
      OTEL_BSP_SCHEDULE_DELAY: '100',
      ...providers.settings,
    },
  });
  try {
    await use(service, collector);
  } finally {
    await service.close();
    await Promise.all([providers, collector].map((one) => one.close()));
  }
}

test('makes one trace of a purchase over four processes, from request to notification', async () => {
  await traced(async (service, collector) => {
    const token = await service.userToken('ann');
    const bought = await service.ask('POST', '/api/v2/transactions', {
      token,
      body: purchaseOf('latte', [{ phone_number: '07700 900002' }], { message: 'A quiet surprise' }),
      headers: { traceparent: `00-${TRACE}-${CALLER}-01` },
    });
    assert.equal(bought.status, 201, bought.text);
    const [gift = ''] = bought.json.data.gifts as string[];
    const inTrace = (): SentSpan[] => collector.spans.filter(({ traceId }) => traceId === TRACE);
    const named = (name: string): SentSpan[] => inTrace().filter((span) => span.name === name);
    // A span ends, and may be sent, before its parent does; each process sends its own.
    const isWhole = (): boolean => {
      const sent = new Set(inTrace().map(({ spanId }) => spanId));
      return inTrace().every(({ parentSpanId = '' }) => parentSpanId === CALLER || sent.has(parentSpanId));
    };
    const wanted = [
      'POST /api/v2/transactions',
      'command transaction',
      'append transaction',
      'step charge',
      'payments.charge ask',
      'payments.charge answer',
      'provider stripe',
      'step issue',
      'append gift',
      'step notify',
      'append notification',
      'notifications.send ask',
      'notifications.send answer',
      'provider twilio',
      'projection batch',
    ];
    await eventually(
      () => wanted.every((name) => named(name).length > 0) && named('append notification').length === 2 && isWhole(),
      'all spans of the trace, each with its parent',
    );

    const spans = inTrace();
    const byId = new Map(spans.map((span) => [span.spanId, span]));
    const rootOf = (span: SentSpan): string =>
      span.parentSpanId === CALLER
        ? span.name
        : rootOf(byId.get(span.parentSpanId ?? '') ?? assert.fail(`${span.name} has no parent`));
    for (const span of spans) assert.equal(rootOf(span), 'POST /api/v2/transactions', span.name);
    const lineOf = (span: SentSpan): string[] => [
      span.name,
      ...(span.parentSpanId === CALLER ? [] : lineOf(byId.get(span.parentSpanId ?? '') as SentSpan)),
    ];
    assert.deepEqual(lineOf(named('provider twilio')[0] as SentSpan), [
      'provider twilio',
      'notifications.send answer',
      'notifications.send ask',
      'step notify',
      'append gift',
      'step issue',
      'append transaction',
      'step charge',
      'append transaction',
      'command transaction',
      'POST /api/v2/transactions',
    ]);
    const [request] = named('POST /api/v2/transactions');
    assert.deepEqual(
      [
        request?.kind,
        request?.status,
        request?.attributes['http.response.status_code'],
        request?.attributes['http.route'],
      ],
      [2, 0, 201, '/api/v2/transactions'],
    );
    assert.equal(request?.attributes['gift.request_id'], bought.headers.get('x-request-id'));
    assert.deepEqual(
      [request?.resource['service.name'], typeof request?.resource['service.version']],
      ['gift-commerce', 'string'],
    );
    assert.equal(named('command transaction')[0]?.attributes['gift.event.types'], 'GiftsPurchased');

    const redeemed = await redeem(service, gift, 'bob');
    assert.equal(redeemed.status, 201);
    const refused = await redeem(service, gift, 'bob');
    assert.equal(refused.status, 405);
    await eventually(async () => collector.spans.filter(({ name }) => name === 'command gift').length === 2);
    assert.deepEqual(
      collector.spans
        .filter(({ name }) => name === 'command gift')
        .map(({ status, attributes }) => [status, attributes['error.type']]),
      [
        [0, undefined],
        [2, 'Refusal'],
      ],
    );

    // Everything that was appended carries the trace, in whatever process.
    const events = (
      await Promise.all(
        [transactionStream(bought.json.data.id as string), giftStream(gift), notificationStream(gift)].map((stream) =>
          service.events.read(stream),
        ),
      )
    ).flat();
    const isTraced = ({ metadata }: RecordedEvent): boolean =>
      metadata.traceparent?.startsWith(`00-${TRACE}-`) === true;
    assert.deepEqual(
      events.filter((event) => !isTraced(event)).map(({ type }) => type),
      ['GiftRedeemed'],
    );

    assert.deepEqual([...collector.paths], ['/v1/traces'], 'traces alone are sent');
    for (const secret of [
      gift,
      gift.slice(0, 7),
      '900002',
      'quiet surprise',
      token,
      'whsec',
      'ann@',
      'process.command',
      'host.name',
    ])
      assert.ok(!collector.text.includes(secret), secret);
  });
});

test('traces nothing without the variables, and does not load the SDK', async () => {
  const service = await startService({ split: false });
  try {
    const gift = await buyOne(service);
    for (const { metadata } of await service.events.read(giftStream(gift)))
      assert.equal(metadata.traceparent, undefined);
    const loaded = Object.keys(createRequire(import.meta.url).cache).filter((file) =>
      file.includes('@opentelemetry/sdk'),
    );
    assert.deepEqual(loaded, []);
  } finally {
    await service.close();
  }
});

test.run();
