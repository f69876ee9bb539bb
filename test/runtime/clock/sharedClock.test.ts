import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { clockMs, clockOffset } from '../../../src/lib/clock.js';
import { moveSharedClock, openSharedClock } from '../../../src/runtime/clock/sharedClock.js';
import { memoryEvents } from '../../support/engines/memoryEvents.js';
import { memoryRecords } from '../../support/engines/memoryRecords.js';

const test = suite('the shared clock');
const DAY = 86_400_000;
const metadata = { commandId: 'c', correlationId: 'c', by: {} };
const records = () => memoryRecords(() => Date.now());

test('is that of the system where neither record nor log is ahead', async () => {
  const events = memoryEvents();
  await openSharedClock(records(), events);
  const at = new Date(Date.now() - DAY).toISOString();
  await events.append('gift-1', [{ id: crypto.randomUUID(), type: 'GiftIssued', at, data: {}, metadata }], 'none');
  await openSharedClock(records(), events);
  assert.equal(clockOffset(), 0);
});

test('starts at the latest event where its record was lost, and never goes back', async () => {
  const events = memoryEvents();
  for (const days of [40, 50, 45]) {
    const at = new Date(Date.now() + days * DAY).toISOString();
    await events.append(
      `gift-${days}`,
      [{ id: crypto.randomUUID(), type: 'GiftIssued', at, data: {}, metadata }],
      'none',
    );
  }
  const found = records();
  await openSharedClock(found, events);
  const offset = clockOffset();
  assert.ok(Math.abs(offset - 50 * DAY) < 60_000, `${offset} ms ahead`);
  await moveSharedClock(found, (ms) => ms + DAY);
  assert.equal(clockOffset(), offset + DAY);
  // Another read store, which knows of nothing.
  await openSharedClock(records(), memoryEvents());
  assert.equal(clockOffset(), offset + DAY);
  const lost = records();
  await moveSharedClock(lost, (ms) => ms + DAY);
  assert.equal(clockOffset(), offset + 2 * DAY);
  assert.ok(clockMs() - Date.now() >= 52 * DAY - 60_000);
});

test('moves once for each of several who move it at once', async () => {
  const shared = records();
  const before = clockOffset();
  await Promise.all(Array.from({ length: 10 }, () => moveSharedClock(shared, (ms) => ms + 1_000)));
  assert.equal(clockOffset(), before + 10_000);
});

test.run();
