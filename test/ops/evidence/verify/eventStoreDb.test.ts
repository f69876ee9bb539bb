import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { openEventStoreDb } from '../../../../src/adapters/eventstoredb/eventStore.js';
import { type EventStoreDouble, startEventStoreDouble } from '../../../support/engines/eventStoreDouble.js';
import type { RawRecord } from '../../../support/engines/eventStoreDoubleLog.js';
import { type StoredLog, storedLog } from '../../../support/fixtures/storedTree.js';

const test = suite<{ log: StoredLog; double: EventStoreDouble }>('a log in EventStoreDB that was tampered with');
const STREAM = 'gift-erased';

test.before.each(async (context) => {
  context.double = await startEventStoreDouble();
  const { url } = context.double;
  context.log = await storedLog(() => openEventStoreDb({ url, timeoutMs: 20_000 }));
  await context.log.fill(300);
  await context.log.fill(2, STREAM);
  await context.log.fill(10);
  await context.log.keepUntilSigned();
});
test.after.each(async ({ log, double }) => {
  await log.close();
  await double.close();
});

/** What the server gives of its log from now on. */
function give({ log }: EventStoreDouble, change: (records: readonly RawRecord[]) => readonly RawRecord[]): void {
  const { follow } = log;
  log.follow = async function* (after, signal) {
    for await (const { records, caughtUp } of follow(after, signal)) yield { records: [...change(records)], caughtUp };
  };
}

/** The server's first events are its own. */
const nth = (records: readonly RawRecord[], n: number): RawRecord | undefined =>
  records.find(({ stream, revision }) => !stream.startsWith('$') && stream.startsWith('gift-') && revision === n);

test('that nobody has tampered with agrees, though its positions have gaps', async ({ log }) => {
  const { agrees, gaps, heads } = await log.verify();
  assert.deepEqual([agrees, gaps.found, heads], [true, 0, 2]);
});

for (const [what, changed] of [
  ['data', (record: RawRecord) => ({ ...record, data: Buffer.from('{"n":1}') })],
  [
    'metadata',
    (record: RawRecord) => ({
      ...record,
      metadata: Buffer.from(record.metadata.toString().replace('till-4', 'till-5')),
    }),
  ],
] as const)
  test(`names the event of which ${what} was altered`, async ({ log, double }) => {
    give(double, (records) => records.map((record) => (record === nth(records, 7) ? changed(record) : record)));
    const { difference } = await log.verify();
    assert.deepEqual([difference?.change, difference?.number, difference?.count], ['altered', 8, 1]);
    assert.equal(difference?.event?.revision, 7);
  });

test('names the first of the events of a stream that was deleted', async ({ log, double }) => {
  give(double, (records) => records.filter(({ stream }) => stream !== STREAM));
  const { difference } = await log.verify();
  assert.deepEqual([difference?.change, difference?.number, difference?.count], ['removed', 301, 2]);
});

test('names two events that were exchanged', async ({ log, double }) => {
  give(double, (records) => {
    const [one, other] = [nth(records, 3), nth(records, 5)];
    return records.map((record) => (record === one ? other! : record === other ? one! : record));
  });
  const { difference } = await log.verify();
  assert.deepEqual([difference?.change, difference?.number, difference?.count], ['exchanged', 4, 2]);
});

test('names the first event that was cut off at the end', async ({ log, double }) => {
  let kept = 0;
  give(double, (records) => records.filter(({ stream }) => stream.startsWith('$') || ++kept <= 306));
  const { difference } = await log.verify();
  assert.equal(difference?.change, 'cut off');
});

test.run();
