import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { type DailyLimit, dailyLimits, type TakeDaily } from '../../../src/api/limits/dailyLimits.js';
import { HttpError } from '../../../src/api/pipeline/errors.js';
import { memoryRecords } from '../../support/engines/memoryRecords.js';

const test = suite('limits/daily');

const DAY_MS = 86_400_000;
let now = Date.UTC(2026, 4, 4);
let limited: string[];
let processes: readonly TakeDaily[];

/** Two processes of an installation. */
test.before.each(() => {
  limited = [];
  const records = memoryRecords(() => now);
  const settings = {
    erasuresPerDay: 3,
    personExportsPerDay: 1,
    personalReadsPerDay: 0,
    replacementsPerDay: 0,
    reversalsPerDay: 0,
  };
  const start = (): TakeDaily =>
    dailyLimits(
      records,
      settings,
      (limit) => limited.push(limit),
      () => now,
    );
  processes = [start(), start()];
});

const outcome = async (index: number, limit: DailyLimit, user: string): Promise<string> => {
  try {
    await processes[index]?.(limit, user);
    return 'done';
  } catch (error) {
    assert.instance(error, HttpError);
    return `${(error as HttpError).code} ${(error as HttpError).headers?.['Retry-After'] ?? ''}`;
  }
};

test('lets through exactly as many, however many are sent at once to whichever process', async () => {
  const all = await Promise.all(Array.from({ length: 20 }, async (_, n) => outcome(n % 2, 'erasures', 'sue')));
  assert.is(all.filter((one) => one === 'done').length, 3);
  assert.equal([...new Set(all)].sort(), ['done', 'too_many_requests 86400']);
  assert.equal(
    limited,
    Array.from({ length: 17 }, () => 'erasures'),
  );
});

test('counts users and limits apart, and none where the limit is 0', async () => {
  assert.is(await outcome(0, 'person-exports', 'sue'), 'done');
  assert.is(await outcome(1, 'person-exports', 'sue'), 'too_many_requests 86400');
  assert.is(await outcome(1, 'person-exports', 'sid'), 'done');
  assert.is(await outcome(1, 'erasures', 'sue'), 'done');
  for (let n = 0; n < 100; n++) assert.is(await outcome(n % 2, 'personal-reads', 'sue'), 'done');
});

test('lets through again a day after the first one', async () => {
  assert.is(await outcome(0, 'person-exports', 'sue'), 'done');
  now += DAY_MS - 1_000;
  assert.is(await outcome(0, 'person-exports', 'sue'), 'too_many_requests 1');
  now += 1_000;
  assert.is(await outcome(0, 'person-exports', 'sue'), 'done');
});

test.run();
