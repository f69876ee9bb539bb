import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { openEmbeddedEventStore } from '../../src/adapters/embedded/eventStore/eventStore.js';
import { recordable } from '../../src/commands/transact.js';
import { giftStream } from '../../src/domain/gift/events.js';
import type { Upcasters } from '../../src/domain/upcasters.js';
import type { EventStore, RecordedEvent } from '../../src/ports/eventStore.js';
import { upcastEvents } from '../../src/service/engines.js';

const test = suite<{ dir: string; events: EventStore }>('the log as it is read');

const STREAM = giftStream('g');
const CONTEXT = { commandId: 'c', correlationId: 'r', by: { user: 'u' }, now: '2026-01-01T00:00:00.000Z' };
const REDEEMED = { type: 'GiftRedeemed', data: { redemption_id: 'one' } };
/** As if tills were noted from the second version on. */
const SAMPLE: Upcasters = { GiftRedeemed: [(data) => ({ ...data, till_id: null })] };

test.before.each(async (context) => {
  context.dir = mkdtempSync(join(tmpdir(), 'up-to-date-'));
  context.events = await openEmbeddedEventStore({ dir: context.dir });
  const before = recordable([{ type: 'GiftClaimed', data: { user_id: 'ada' } }, REDEEMED], CONTEXT);
  const since = recordable(
    [{ type: 'GiftRedeemed', data: { redemption_id: 'two', till_id: 't' } }],
    { ...CONTEXT, commandId: randomUUID() },
    SAMPLE,
  );
  await context.events.append(STREAM, [...before, ...since], 'none');
});
test.after.each(async ({ dir, events }) => {
  await events.close();
  rmSync(dir, { recursive: true });
});

const PRESENT = [{ user_id: 'ada' }, { redemption_id: 'one', till_id: null }, { redemption_id: 'two', till_id: 't' }];
const dataOf = (events: readonly RecordedEvent[]): object[] => events.map(({ data }) => data);

test('gives old events the present shape in a stream, the log and a follower', async ({ events }) => {
  const read = upcastEvents(events, SAMPLE);
  assert.equal(dataOf(await read.read(STREAM)), PRESENT);
  assert.equal(dataOf(await read.read(STREAM, { from: 1, limit: 1 })), [PRESENT[1]]);
  const whole: RecordedEvent[] = [];
  for await (const batch of read.readAll(undefined, { types: ['GiftRedeemed', 'GiftClaimed'] }))
    whole.push(...batch.events);
  assert.equal(dataOf(whole), PRESENT);
  for await (const batch of read.follow(undefined)) {
    assert.equal([dataOf(batch.events), batch.caughtUp, batch.position], [PRESENT, true, whole.at(-1)?.position]);
    break;
  }
});

test('keeps the rest of an event, and the old shape in the log itself', async ({ events }) => {
  const read = await upcastEvents(events, SAMPLE).read(STREAM);
  const stored = await events.read(STREAM);
  assert.equal(dataOf(stored), [{ user_id: 'ada' }, { redemption_id: 'one' }, { redemption_id: 'two', till_id: 't' }]);
  for (const [index, event] of read.entries()) assert.equal({ ...event }, { ...stored[index], data: event.data });
  assert.equal(
    stored.map(({ metadata }) => metadata.schema),
    [undefined, undefined, 2],
  );
});

test('is the same store while nothing has changed', ({ events }) => {
  assert.is(upcastEvents(events, {}), events);
});

test.run();
