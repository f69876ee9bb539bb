import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { dueGifts } from '../../src/projections/dueGifts.js';
import type { RecordedEvent } from '../../src/ports/eventStore.js';
import { extendedGift, type ScheduleDocument, scheduleProjection } from '../../src/projections/schedule.js';
import { timeKey } from '../../src/projections/timeKey.js';
import { foldDocument } from '../../src/runtime/readmodels/foldDocument.js';
import { collectionOf } from '../../src/runtime/readmodels/projection.js';
import { openReadModel } from '../../src/runtime/readmodels/readModel.js';
import { installed } from '../support/fixtures/projecting.js';

const test = suite('projections/schedule');
const [NOON, ONE] = ['2027-03-01T12:00:00.000Z', '2027-03-01T13:00:00.000Z'];

const event = (type: string, data: object = {}): RecordedEvent =>
  ({ type, stream: 'transaction-t1', data }) as RecordedEvent;
const bought = event('GiftsPurchased', { send_at: NOON });
const charged = event('PaymentCharged');
const dueOf = (...history: readonly RecordedEvent[]): string | undefined =>
  foldDocument<ScheduleDocument>(scheduleProjection, history, 't1')?.send_due;

test('a purchase is due once it is paid for, at the last time named, until all of it is sent', () => {
  assert.is(dueOf(bought), undefined);
  assert.is(dueOf(bought, charged), timeKey(NOON));
  assert.is(dueOf(bought, event('SendRescheduled', { send_at: ONE }), charged), timeKey(ONE));
  assert.is(dueOf(bought, charged, event('SendRescheduled', { send_at: null })), undefined);
  const started = [bought, charged, event('SendStarted', { send_at: NOON })];
  assert.is(dueOf(...started), timeKey(NOON), 'a restart goes on from here');
  assert.is(dueOf(...started, event('SendFinished')), undefined);
  assert.is(dueOf(event('GiftsPurchased'), charged), undefined, 'sent at once');
});

test('a purchase is found by the last valid day of its gifts, and an extended gift by its own', () => {
  const day = { expires_on: '2027-03-01' };
  const sent = [event('GiftsPurchased', { ...day, send_at: NOON }), charged, event('SendFinished')];
  assert.equal(foldDocument(scheduleProjection, sent, 't1'), { ...day, charged: true });
  const extended = { ...event('GiftExtended', { expires_on: '2028-03-01' }), stream: 'gift-g1' };
  const [id = ''] = scheduleProjection.documentIds(extended);
  assert.equal([extendedGift(id), extendedGift('t1')], ['g1', undefined]);
  assert.equal(foldDocument(scheduleProjection, [extended], id), { expires_on: '2028-03-01' });
});

test(
  'what is due is found page by page, each once, also where many are due at one moment',
  installed(async ({ store }) => {
    const collection = collectionOf(scheduleProjection);
    await store.ensure(collection);
    const keys = Array.from({ length: 360 }, (_, n) =>
      timeKey(n < 80 ? NOON : n < 330 ? ONE : '2027-03-01T14:00:00.000Z'),
    );
    const documents = keys.map((send_due, n) => ({
      id: String((n * 7) % 360).padStart(3, '0'),
      position: '1',
      body: { charged: true, send_due },
    }));
    await store.write([{ collection, documents }]);
    await store.activate(collection.name, collection.version);
    const schedule = openReadModel(store, scheduleProjection);
    const pages: string[][] = [];
    for await (const page of dueGifts(store, schedule).toSend(ONE)) pages.push(page.map(({ id }) => id));
    const due = documents.filter(({ body }) => body.send_due <= timeKey(ONE)).map(({ id }) => id);
    assert.equal(pages.flat().sort(), due.sort());
    assert.ok(pages.length > 3 && pages.every(({ length }) => length <= 100));
  }),
);

test.run();
