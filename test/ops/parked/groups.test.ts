import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { parkedGroups } from '../../../src/ops/parked/groups.js';
import type { ParkedEntry } from '../../../src/ops/parked/parkedView.js';
import type { ParkedDocument } from '../../../src/projections/parked.js';

const test = suite('groups of parked work');

let minute = 0;
function entry(id: string, changed: Partial<ParkedDocument>): ParkedEntry {
  const at = new Date(Date.UTC(2026, 4, 4, 12, minute++)).toISOString();
  const document: ParkedDocument = {
    name: 'notification',
    entity: id,
    transaction_id: id,
    step: 'notify',
    cause: 'down',
    times: 1,
    state: 'parked',
    parked_at: at,
    changed_at: at,
    changed: '1',
    by: null,
    revisions: [0],
    ...changed,
  };
  return { id, document };
}

test('puts causes together that differ in ids, numbers and times alone', () => {
  const found = parkedGroups([
    entry('a', { cause: 'charge ch_3Pq8XyZ12345 of 6ec0bd7f11c043da975e2a8ad9ebae0b failed after 24 hours' }),
    entry('b', { cause: 'charge ch_9Kw2AbC67890 of 00c0bd7f11c043da975e2a8ad9ebae0b failed after 25 hours' }),
    entry('c', { cause: 'request 0b9b2f0c-6a0e-4d6b-9a51-2f6a6d1c7b11 failed' }),
    entry('d', { cause: 'request 1c9b2f0c-6a0e-4d6b-9a51-2f6a6d1c7b22 failed' }),
  ]);
  assert.deepEqual(
    found.map(({ count, example, cause }) => [count, example, cause.split(' ')[0]]),
    [
      [2, 'b', 'charge'],
      [2, 'd', 'request'],
    ],
  );
  assert.ok((found[0]?.first_at ?? '') < (found[0]?.last_at ?? ''));
});

test('keeps other words, steps and process managers apart, and the same id for the same cause', () => {
  const all = [
    entry('a', { cause: 'the card was refused' }),
    entry('b', { cause: 'the card was stolen' }),
    entry('c', { cause: 'the card was refused', step: 'remind' }),
    entry('d', { cause: 'the card was refused', name: 'purchase' }),
  ];
  const found = parkedGroups(all);
  assert.deepEqual(
    found.map(({ count }) => count),
    [1, 1, 1, 1],
  );
  const ids = found.map(({ id }) => id);
  assert.equal(new Set(ids).size, 4);
  assert.deepEqual(new Set(parkedGroups(all.toReversed()).map(({ id }) => id)), new Set(ids));
});

test.run();
