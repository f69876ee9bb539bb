import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { firstProgress, type Progress } from '../../src/deliveries/progress.js';
import { readAgain } from '../../src/deliveries/reading.js';
import { entryId, type FeedDocument, type FeedEntry } from '../../src/projections/feed/feed.js';
import type { EndpointDocument } from '../../src/projections/webhookEndpoints.js';
import { memoryRecords } from '../support/engines/memoryRecords.js';

const test = suite('deliveries/reading');

const AT = '2026-05-04T12:00:00.000Z';
const at = (position: number): string => String(position).padStart(16, '0');
const ENDPOINT: EndpointDocument = {
  endpoint_id: 'a',
  url: 'https://hooks.example',
  types: null,
  description: null,
  owner: 'client:app',
  state: 'enabled',
  created_at: AT,
  secrets: [],
  from: at(20),
  enabled_at: AT,
};
const PART = { after: at(10), through: at(20), since: AT };

/** Reads a requested part of a feed that is folded up to a position, and has events at 12 and 18. */
async function read(folded: number) {
  const entries = [12, 18].map((position) => {
    const entry = {
      type: 'gift.issued',
      event_id: `e${position}`,
      at: AT,
      client: 'app',
      data: { gift_id: `g${position}` },
    } as unknown as FeedEntry;
    return { id: entryId(at(position)), position: at(position), body: entry as FeedDocument };
  });
  const feed = {
    folded: async () => at(folded),
    find: async () => entries.filter(({ position }) => position <= at(folded)),
    get: async () => undefined,
    getMany: async () => [],
  };
  const progress: Progress = { ...firstProgress(ENDPOINT, 'log'), recovering: [PART] };
  const reading = await readAgain({ feed, records: memoryRecords(Date.now) }, ENDPOINT, progress);
  return (
    reading && { positions: reading.items.map(({ position }) => position), left: reading.change(progress).recovering }
  );
}

test('reads a requested part as far as the feed has come, and keeps the rest', async () => {
  assert.equal(await read(10), undefined, 'nothing is dropped before the feed has any of it');
  assert.deepEqual(await read(15), { positions: [at(12)], left: [{ ...PART, after: at(15) }] });
  assert.deepEqual(await read(20), { positions: [at(12), at(18)], left: [] });
});

test.run();
