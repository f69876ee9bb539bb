import { setTimeout as sleep } from 'node:timers/promises';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { watchLeaders } from '../../../src/runtime/coordination/leaderWatch.js';
import { acquireLease, leaseState } from '../../../src/runtime/coordination/lease.js';
import { memoryRecords } from '../../support/engines/memoryRecords.js';
import { silent } from '../../support/fixtures/projecting.js';
import { until } from '../../support/assertions/until.js';
import { inVirtualTime } from '../../simulation/world/virtualTime.js';

const test = suite('watching whether a process leads');
const timed = inVirtualTime(test);

timed('a lease has a leader while it is renewed, and none a while after that', async () => {
  const records = memoryRecords(Date.now);
  const signal = new AbortController().signal;
  const lease = await acquireLease(records, 'led', { holder: 'a', signal, logger: silent, ttlMs: 1_500 });
  const watch = watchLeaders(records, ['led', 'never'], 2_500);
  try {
    assert.is(watch.noLeaderSince('never'), undefined, 'not known yet');
    assert.is(watch.changes('never'), 0);
    await until(() => watch.noLeaderSince('never') !== undefined);
    assert.is(watch.noLeaderSince('led'), undefined);
    await lease?.release();
    const at = (await leaseState(records, 'led'))?.at ?? '';
    await until(() => watch.noLeaderSince('led') !== undefined);
    assert.is(watch.noLeaderSince('led')?.toISOString(), at, 'since it was given up');
    const next = await acquireLease(records, 'led', { holder: 'b', signal, logger: silent, ttlMs: 1_500 });
    await until(() => watch.noLeaderSince('led') === undefined);
    assert.is(watch.changes('led'), 1, 'it has changed hands');
    assert.is(watch.changes('never'), 0);
    await next?.release();
  } finally {
    await watch.close();
  }
});

timed('a watch that is closed waits for the poll in progress, and begins no other', async () => {
  const records = memoryRecords(Date.now);
  const polls = { begun: 0, ended: 0 };
  const slow: typeof records = {
    ...records,
    get: async <V>(key: string) => {
      polls.begun += 1;
      await sleep(400);
      polls.ended += 1;
      return records.get<V>(key);
    },
  };
  const watch = watchLeaders(slow, ['led']);
  await sleep(100);
  await watch.close();
  assert.equal(polls, { begun: 1, ended: 1 });
  await sleep(5_000);
  assert.equal(polls, { begun: 1, ended: 1 });
});

test("a lease's state has its holder, and whether that process lives", async () => {
  const records = memoryRecords(Date.now);
  const lease = await acquireLease(records, 'led', {
    holder: 'a',
    signal: new AbortController().signal,
    logger: silent,
  });
  const { holder, lives } = (await leaseState(records, 'led')) ?? {};
  assert.equal([holder, lives], ['a', true]);
  await lease?.release();
  await records.put('lease/other', { holder: 'b', fence: 1, life: 'another-boot/pid:[1]/1/1' });
  assert.is((await leaseState(records, 'other'))?.lives, undefined);
});

test.run();
