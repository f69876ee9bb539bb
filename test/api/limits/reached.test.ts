import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { dailyLimits } from '../../../src/api/limits/dailyLimits.js';
import { type ReachedLimit, reachedLimits } from '../../../src/api/limits/reached.js';
import { countExchange } from '../../../src/runtime/limits/countExchange.js';
import { SharedCounter } from '../../../src/runtime/limits/sharedCounter.js';
import { memoryRecords } from '../../support/engines/memoryRecords.js';

const test = suite('limits that are reached');

const SETTINGS = {
  clientRateLimit: 0,
  userRateLimit: 100,
  opsRateLimit: 100,
  addressRateLimit: 100,
  unknownGiftsPerCaller: 4,
  unknownGiftsPerAddress: 100,
  erasuresPerDay: 2,
  personExportsPerDay: 0,
  personalReadsPerDay: 50,
  replacementsPerDay: 0,
  reversalsPerDay: 50,
};
const MINUTE_MS = 60_000;

test('are found while their windows last, and counted by callers, of all processes together', async () => {
  let now = Date.UTC(2026, 4, 4, 12);
  const clock = (): number => now;
  const records = memoryRecords(clock);
  const reached = async (): Promise<ReachedLimit[]> => reachedLimits(records, SETTINGS, now);
  const takeDaily = dailyLimits(records, SETTINGS, undefined, clock);
  const guesses = async (guesser: string, count: number): Promise<void> => {
    const counter = new SharedCounter({ name: 'unknown-gifts', limit: 4, windowSeconds: 900 }, clock);
    for (let n = 0; n < count; n++) counter.take(guesser);
    // Of an ended process, whose counts stay until their windows end.
    const end = AbortSignal.abort();
    await countExchange([counter], records)({ signal: end, well: () => undefined, onTrouble: () => undefined });
  };

  await guesses('app cat', 2);
  await takeDaily('erasures', 'sue');
  assert.deepEqual(await reached(), []);
  await guesses('app cat', 2);
  await guesses('app dog', 4);
  await takeDaily('erasures', 'sue');
  const [guessers, erasures, ...others] = await reached();
  assert.deepEqual(
    [guessers?.limit, guessers?.callers, erasures?.limit, erasures?.callers, others],
    ['unknown-gifts', 2, 'erasures', 1, []],
  );
  assert.equal(erasures?.until, '2026-05-05T12:00:00.000Z');
  now += 15 * MINUTE_MS;
  assert.deepEqual(
    (await reached()).map(({ limit }) => limit),
    ['erasures'],
  );
});

test.run();
