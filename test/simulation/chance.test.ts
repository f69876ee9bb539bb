import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { seededChance } from './world/chance.js';
import { drawnFaults } from './world/faults.js';

const test = suite('simulation/chance');

const draws = (seed: number | string, count = 100): number[] => {
  const chance = seededChance(seed);
  return Array.from({ length: count }, () => chance.random());
};

test('gives the same draws for the same seed, and others for another one', () => {
  assert.deepEqual(draws(7), draws(7));
  assert.notDeepEqual(draws(7), draws(8));
});

test('spreads its draws evenly', () => {
  const counts = Array.from({ length: 10 }, () => 0);
  for (const drawn of draws('even', 100_000)) counts[Math.floor(drawn * 10)]! += 1;
  for (const count of counts) assert.ok(count > 9_500 && count < 10_500, String(counts));
  const chance = seededChance('even');
  const bits = chance.bytes(100_000).reduce((sum, byte) => sum + byte.toString(2).replaceAll('0', '').length, 0);
  assert.ok(bits > 398_000 && bits < 402_000, String(bits));
  let happened = 0;
  for (let n = 0; n < 100_000; n++) if (chance.happens(0.03)) happened += 1;
  assert.ok(happened > 2_700 && happened < 3_300, String(happened));
});

test('keeps the draws of one name when another draws more', () => {
  const [one, other] = [seededChance(3), seededChance(3)];
  other.random();
  other.stream('b').bytes(1_000);
  assert.deepEqual(one.stream('a').bytes(64), other.stream('a').bytes(64));
  assert.notDeepEqual(one.stream('a').bytes(64), one.stream('b').bytes(64));
  assert.notDeepEqual(one.stream('a').stream('b').bytes(64), one.stream('ab').bytes(64));
});

test('stays within its limits', () => {
  const chance = seededChance('limits');
  const picked = new Set<string>();
  for (let n = 0; n < 2_000; n++) {
    assert.ok(chance.integer(3) < 3);
    const between = chance.between(5, 6);
    assert.ok(between >= 5 && between < 6);
    picked.add(chance.pick(['a', 'b', 'c']));
    assert.equal(chance.happens(0), false);
    assert.equal(chance.happens(1), true);
  }
  assert.equal(picked.size, 3);
  assert.throws(() => chance.pick([]), RangeError);
  for (const size of [0, 1, 3, 4, 17]) assert.equal(chance.bytes(size).length, size);
});

test('lets faults of some calls happen far more often in some runs', () => {
  const often = (seed: number, call: string): boolean => {
    const faults = drawnFaults(seededChance(seed), { 'events loses an answer': 0.001 });
    for (let n = 0; n < 1_000; n++) faults.happens('events loses an answer', call);
    return (faults.counts().get('events loses an answer') ?? 0) > 10;
  };
  const seeds = Array.from({ length: 100 }, (_, seed) => seed);
  const focused = seeds.filter((seed) => often(seed, 'events append gift-1'));
  assert.ok(focused.length > 0 && focused.length < 40, String(focused.length));
  assert.deepEqual(
    focused.filter((seed) => often(seed, 'events append transaction-1')),
    [],
  );
  assert.deepEqual(
    seeds.filter((seed) => often(seed, 'events read gift-1')),
    [],
  );
});

test('lets an aimed fault happen once, to the call that it is aimed at, as long as faults happen', () => {
  const faults = drawnFaults(seededChance('aims'), { 'events refuses': 0, 'events is slow': 0 });
  const happens = (name: string, call: string): boolean => faults.happens(name, call);
  faults.aim('events refuses', / append gift-/);
  assert.equal(happens('events is slow', 'events append gift-1'), false);
  assert.equal(happens('events refuses', 'events append transaction-1'), false);
  assert.equal(happens('events refuses', 'events append gift-1'), true);
  assert.equal(happens('events refuses', 'events append gift-1'), false);
  assert.deepEqual([...faults.counts()], [['events refuses', 1]]);
  faults.aim('events refuses', / append gift-/);
  faults.stop();
  assert.equal(happens('events refuses', 'events append gift-1'), false);
});

test('lets the read store be slow to write in some runs, and in these often', () => {
  const seeds = Array.from({ length: 100 }, (_, seed) => seed);
  const lagging = seeds.filter((seed) => {
    const faults = drawnFaults(seededChance(`lagging ${seed}`), { 'documents is slow': 0 });
    const slow = Array.from({ length: 100 }, () => faults.happens('documents is slow', 'documents write gifts@1'));
    assert.equal(faults.happens('documents is slow', 'documents get gifts@1'), false);
    return slow.filter(Boolean).length > 20;
  });
  assert.ok(lagging.length > 3 && lagging.length < 30, String(lagging.length));
});

test('makes UUIDs of version 4, each another one', () => {
  const chance = seededChance('uuids');
  const uuids = Array.from({ length: 1_000 }, () => chance.uuid());
  for (const uuid of uuids) assert.match(uuid, /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  assert.equal(new Set(uuids).size, 1_000);
});

test.run();
