import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import pino from 'pino';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { UnavailableError } from '../../../src/ports/unavailable.js';
import type { Records } from '../../../src/ports/readStore.js';
import { openPresence } from '../../../src/runtime/coordination/presence.js';
import { processLife } from '../../../src/runtime/coordination/processLife.js';
import { memoryRecords } from '../../support/engines/memoryRecords.js';
import { eventually } from '../../support/assertions/until.js';
import { inVirtualTime } from '../../simulation/world/virtualTime.js';

const test = suite('the presence of processes');
const MINUTE = 60_000;
const timed = inVirtualTime(test);
const timedForHours = inVirtualTime(test, 180 * MINUTE);
const logger = pino({ level: 'silent' });

/** Records that a process writes no more while `frozen`. */
function freezable(records: Records, frozen: () => boolean): Records {
  return { ...records, put: async (...args) => (frozen() ? new Promise(() => undefined) : records.put(...args)) };
}

timed('a process of another machine is taken for gone after its last renewal', async () => {
  const records = memoryRecords(Date.now);
  let frozen = false;
  const other = openPresence({ records: freezable(records, () => frozen), logger, life: 'boot-2/pid:[1]/7/100' });
  const living = openPresence({ records, logger, life: null });
  const here = openPresence({ records, logger, life: 'boot-1/pid:[1]/7/100' });
  try {
    // What they hold names them.
    void [other.self, living.self, here.self];
    await sleep(1_500);
    assert.not.ok(here.isGone(other.self));
    assert.not.ok(here.isGone(living.self));
    frozen = true;
    // A process that starts only now need not ask how long the record has been so.
    const late = openPresence({ records, logger, life: null });
    await eventually(() => here.isGone(other.self) && late.isGone(other.self));
    assert.not.ok(here.isGone(living.self));
    assert.not.ok(here.isGone(here.self));
    await late.close();
  } finally {
    await Promise.all([living.close(), here.close()]);
  }
  assert.equal((await records.list('present/')).length, 1, 'those that were closed left nothing');
});

timed('no unknown process counts as gone, nor any while the store does not answer', async () => {
  const stored = memoryRecords(Date.now);
  let down = false;
  const records: Records = {
    ...stored,
    list: async (prefix) => {
      if (down) throw new UnavailableError('down');
      return stored.list(prefix);
    },
  };
  const here = openPresence({ records, logger, life: null });
  const never = { process: 'never-seen' };
  try {
    assert.not.ok(here.isGone(never));
    await eventually(() => here.isGone(never));
    down = true;
    await eventually(() => !here.isGone(never));
    await sleep(1_500);
    assert.not.ok(here.isGone(never), 'what was not looked at for so long tells of nothing');
  } finally {
    await here.close();
  }
});

timed('a process that long held nothing leaves no record, and takes another identity', async () => {
  const records = memoryRecords(Date.now);
  const here = openPresence({ records, logger, life: 'boot-1/pid:[1]/7/100' });
  const present = async (): Promise<number> => (await records.list('present/')).length;
  await sleep(5_000);
  assert.is(await present(), 0, 'it holds nothing yet');
  const first = here.self;
  assert.equal(first, { process: first.process, life: 'boot-1/pid:[1]/7/100' });
  assert.is(here.self.process, first.process);
  await sleep(500);
  assert.is(await present(), 1, 'it says so within half a second');
  await sleep(118_000);
  assert.is(await present(), 1);
  await sleep(3_000);
  assert.is(await present(), 0);
  const next = here.self;
  assert.is.not(next.process, first.process);
  await sleep(1_000);
  assert.is(await present(), 1);
  assert.not(here.isGone(next));
  await here.close();
  assert.is(await present(), 0);
});

timed('a process that does not know its life says none', async () => {
  const here = openPresence({ records: memoryRecords(Date.now), logger, life: null });
  assert.equal(Object.keys(here.self), ['process']);
  await here.close();
});

timed('renews its record every 300 ms, and polls once a second at rest', async () => {
  const records = memoryRecords(Date.now);
  let polls = 0;
  const counted = { ...records, list: async <V>(prefix: string) => ((polls += 1), records.list<V>(prefix)) };
  const here = openPresence({ records: counted, logger });
  await sleep(10_100);
  assert.ok(polls >= 10 && polls <= 12, `${polls} at rest`);
  void here.self;
  polls = 0;
  await sleep(3_000);
  assert.ok(polls >= 10 && polls <= 11, `${polls} while it holds something`);
  await here.close();
});

timed('renews its record at once when it takes an identity at rest', async () => {
  // Scans at rest are at whole seconds, so at most one of these moments is that of a scan.
  for (const moment of [100, 350, 600, 850]) {
    const records = memoryRecords(Date.now);
    const here = openPresence({ records, logger });
    await sleep(3_000 + moment);
    void here.self;
    await sleep(10);
    assert.is((await records.list('present/')).length, 1, `after ${moment} ms`);
    await here.close();
  }
});

timed('takes another identity after two minutes, though the store does not answer', async () => {
  const here = openPresence({ records: freezable(memoryRecords(Date.now), () => true), logger, life: null });
  const first = here.self;
  await sleep(119_000);
  assert.is(here.self.process, first.process);
  await sleep(121_000);
  assert.is.not(here.self.process, first.process);
});

timedForHours('the record of a process that ended without a word expires after an hour', async () => {
  const records = memoryRecords(Date.now);
  let ended = false;
  const other = openPresence({ records: freezable(records, () => ended), logger, life: null });
  void other.self;
  await sleep(1_000);
  ended = true;
  const present = async (): Promise<number> => (await records.list('present/')).length;
  await sleep(59 * MINUTE);
  assert.is(await present(), 1);
  await sleep(2 * MINUTE);
  assert.is(await present(), 0);
});

timedForHours('forgets a process without a record after an hour, and not before', async () => {
  const here = openPresence({ records: memoryRecords(Date.now), logger, life: null });
  const never = { process: 'never-seen' };
  await sleep(40 * MINUTE);
  assert.not.ok(here.isGone(never));
  await sleep(50 * MINUTE);
  assert.ok(here.isGone(never));
  await sleep(15 * MINUTE);
  assert.not.ok(here.isGone(never), 'it was forgotten');
  await eventually(() => here.isGone(never));
  await here.close();
});

timed('a store that fails while a process ends does not fail its end', async () => {
  const down = async (): Promise<never> => Promise.reject(new UnavailableError('down'));
  const here = openPresence({ records: { ...memoryRecords(Date.now), delete: down }, logger });
  void here.self;
  await sleep(1_000);
  await here.close();
});

if (processLife() === undefined) {
  console.log('skipped: processes of this machine: this system does not tell');
} else {
  test('a process killed on this machine is gone at once, a frozen one never', async () => {
    const child = spawn('sleep', ['60']);
    await once(child, 'spawn');
    const here = openPresence({ records: memoryRecords(Date.now), logger });
    try {
      const its = { process: 'child', life: processLife(child.pid) ?? '' };
      child.kill('SIGSTOP');
      await sleep(1_600);
      assert.not.ok(here.isGone(its));
      child.kill('SIGKILL');
      await once(child, 'exit');
      assert.ok(here.isGone(its));
      const itself = openPresence({ records: memoryRecords(Date.now), logger, life: its.life });
      assert.not.ok(itself.isGone(itself.self), 'no process counts itself as gone');
      await itself.close();
    } finally {
      await here.close();
    }
  });
}

test.run();
