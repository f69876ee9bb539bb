import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { accessRecorder } from '../../../src/commands/recordAccess.js';
import { type AccessFilter, readAccess } from '../../../src/ops/history/accessRecords.js';
import { type MemoryEvents, memoryEvents } from '../../support/engines/memoryEvents.js';
import { eventOf } from '../../support/service/testLog.js';

const test = suite('access records');

const GIFT = '5f2c9d6a1b7e4c80d3a1';
let events: MemoryEvents;
let now: string;

async function seen(day: string, user: string, what: string, asked: object): Promise<void> {
  now = `${day}T12:00:00.000Z`;
  const recorder = accessRecorder(events, () => now);
  await recorder.shown(
    { by: { user } },
    { what, asked: asked as Record<string, unknown>, personal: false, reason: null },
    1,
  );
}

test.before.each(async () => {
  events = memoryEvents();
  await seen('2026-05-01', 'sue', 'person', { personId: 'u42' });
  await seen('2026-05-01', 'sue', 'gift', { giftId: GIFT });
  await seen('2026-05-03', 'aud', 'gift by shortcode', { gift: GIFT });
  await seen('2026-05-03', 'sue', 'search', { by: 'phone', found: ['u41', 'u42'] });
  await seen('2026-05-04', 'cli:root@host', 'shown', { person: 'u42' });
  now = '2026-05-04T12:00:00.000Z';
  const started = await accessRecorder(events, () => now).start(
    { by: { user: 'aud' } },
    { what: 'export', asked: { gift: GIFT }, personal: false, reason: null },
  );
  now = '2026-05-05T00:01:00.000Z';
  await started.end(7, null, true);
});

async function found(from: string, to: string, filter: AccessFilter): Promise<unknown[]> {
  const all: unknown[] = [];
  for await (const { records } of readAccess(events, { day: from, revision: -1 }, to, filter))
    all.push(...records.map(({ data }) => (data as { what?: string }).what ?? 'its end'));
  return all;
}

test('reads the days from one to another, in order', async () => {
  assert.equal(await found('2026-05-01', '2026-05-01', {}), ['person', 'gift']);
  assert.equal(await found('2026-05-02', '2026-05-03', {}), ['gift by shortcode', 'search']);
  assert.equal((await found('2026-04-01', '2026-06-01', {})).length, 7);
  assert.equal(await found('9999-12-30', '9999-12-31', {}), [], 'the last day of the calendar');
});

test('finds calls by person, gift and who, with the ends of operations', async () => {
  const within = ['2026-05-01', '2026-05-31'] as const;
  assert.equal(await found(...within, { person: 'u42' }), ['person', 'search', 'shown']);
  assert.equal(await found(...within, { person: 'u4' }), []);
  assert.equal(await found(...within, { gift: GIFT }), ['gift', 'gift by shortcode', 'export', 'its end']);
  assert.equal(await found(...within, { who: 'aud' }), ['gift by shortcode', 'export', 'its end']);
  assert.equal(await found(...within, { who: 'cli:root@host' }), ['shown']);
  assert.equal(await found(...within, { person: 'u42', who: 'sue' }), ['person', 'search']);
});

test('finds the end of an operation that started before the first record, on its day or the day before', async () => {
  assert.equal(await found('2026-05-05', '2026-05-05', { gift: GIFT }), ['its end']);
  assert.equal(await found('2026-05-05', '2026-05-05', { person: 'u42' }), []);
  now = '2026-05-08T12:00:00.000Z';
  const started = await accessRecorder(events, () => now).start(
    { by: { user: 'aud' } },
    { what: 'export', asked: { person: 'u42' }, personal: false, reason: null },
  );
  await started.end(1, null, true);
  const pages: number[] = [];
  for await (const { records } of readAccess(events, { day: '2026-05-08', revision: 0 }, '2026-05-08', {
    person: 'u42',
  }))
    pages.push(records.length);
  assert.equal(pages, [1]);
});

test('finds calls that name a gift by a redemption, its purchase or a list', async () => {
  const redeemed = { redemption_id: '1a22c6e9d5f94d4e427845c5d71385e' };
  await events.append(
    `gift-${GIFT}`,
    [eventOf('GiftIssued', { transaction_id: 't1' }), eventOf('GiftRedeemed', redeemed)],
    'none',
  );
  const day = '2026-05-07';
  const { redemption_id: redemption } = redeemed;
  await seen(day, 'aud', 'history by redemption', { giftId: redemption, transactionId: 't1' });
  await seen(day, 'aud', 'history of the purchase', { gift: 't1', transactionId: 't1' });
  await seen(day, 'sue', 'search by redemption', { by: 'redemption', redemption, transactionId: 't1' });
  await seen(day, 'sue', 'search by charge', { by: 'charge', transactionId: 't1' });
  await seen(day, 'sue', 'many', { action: 'block', ids: ['0c4f1a9e7b2d8c6f5a30', GIFT] });
  await seen(day, 'sue', 'refund of it', { transactionId: 't1', gift_ids: [GIFT] });
  await seen(day, 'sue', 'parked work of the purchase', { parkedId: 't1' });
  for (const other of [
    { giftId: '0c4f1a9e7b2d8c6f5a30', transactionId: 't1' },
    { transactionId: 't1', gift_ids: ['0c4f1a9e7b2d8c6f5a30'] },
    { transactionId: 't2' },
    { ids: [] },
  ])
    await seen(day, 'sue', 'another', other);
  assert.equal(await found(day, day, { gift: GIFT }), [
    'history by redemption',
    'history of the purchase',
    'search by redemption',
    'search by charge',
    'many',
    'refund of it',
    'parked work of the purchase',
  ]);
});

test('reads on from a place, in pages', async () => {
  for (let n = 0; n < 2_400; n++) await seen('2026-05-06', 'sue', `call ${n}`, {});
  const pages: number[] = [];
  for await (const { records } of readAccess(events, { day: '2026-05-06', revision: 99 }, '2026-05-07', {}))
    pages.push(records.length);
  assert.equal(pages, [1_000, 1_000, 300, 0]);
});

test.run();
