import assert from 'node:assert/strict';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { suite } from 'uvu';
import { reportOfTwo } from './seedReport.js';
import { simulate } from './simulate.js';
import { noFaults } from './world/faults.js';

const test = suite('simulation/simulate');

test('serves buyers and tills for minutes, in seconds', async () => {
  const { history, findings, cluster, members } = await simulate({
    seed: 'no faults',
    faults: noFaults(),
    interludes: false,
    forMs: 120_000,
  });
  assert.deepEqual(findings, []);
  const seen = new Set(history.map(({ operation, answer }) => `${operation.kind} ${answer?.status ?? 'unknown'}`));
  for (const kind of ['purchase 201', 'redeem 201', 'unredeem 200', 'getGift 200']) assert.ok(seen.has(kind), kind);
  for (const kind of seen) assert.doesNotMatch(kind, /unknown|5\d\d/);
  const types = new Set(cluster.log.stored.map(({ type }) => type));
  for (const type of ['GiftsPurchased', 'PaymentCharged', 'GiftRedeemed']) assert.ok(types.has(type), type);
  for (const member of members) assert.equal(member.starts(), 1, member.name);
});

test('does the same for the same seed, whatever fails, on every Node', async () => {
  const hashes = new Map<number, string>();
  let faults = 0;
  for (const seed of [4, 6, 104]) {
    const [first, again] = [await simulate({ seed, forMs: 15_000 }), await simulate({ seed, forMs: 15_000 })];
    assert.equal(first.simulation.hash(), again.simulation.hash(), `seed ${seed}`);
    assert.equal(first.simulation.entries(), again.simulation.entries());
    hashes.set(seed, first.simulation.hash());
    faults += [...first.simulation.faults.counts().values()].reduce((sum, count) => sum + count, 0);
  }
  assert.equal(new Set(hashes.values()).size, hashes.size);
  assert.ok(faults > 5, String(faults));
  const file = process.env['TEST_HASHES'];
  if (file === undefined) return;
  const text = [...hashes].map(([seed, hash]) => `seed ${seed}: ${hash}\n`).join('');
  if (existsSync(file)) assert.equal(text, readFileSync(file, 'utf8'), `Node ${process.version} does not do the same`);
  else writeFileSync(file, text);
});

test('finds a seed whose second run differs', async () => {
  let runs = 0;
  const { findings } = await reportOfTwo({
    seed: 'differs',
    forMs: 500,
    interludes: false,
    get faults() {
      return runs++ === 0 ? noFaults() : { ...noFaults(), happens: (name: string) => name === 'documents is slow' };
    },
  });
  assert.deepEqual(
    findings.map(({ rule }) => rule),
    ['not repeatable'],
  );
});

test.run();
