import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { deferred } from '../../../src/lib/async/deferred.js';
import type { Records } from '../../../src/ports/readStore.js';
import { UnavailableError } from '../../../src/ports/unavailable.js';
import { acquireLease, type Lease, LEASE_MS } from '../../../src/runtime/coordination/lease.js';
import { processLife } from '../../../src/runtime/coordination/processLife.js';
import { memoryRecords } from '../../support/engines/memoryRecords.js';
import { leaseOptions, TTL } from '../../support/fixtures/leaseOptions.js';
import { FOR_EVER_MS, until } from '../../support/assertions/until.js';
import { inVirtualTime } from '../../simulation/world/virtualTime.js';

/** Time of a lease that runs out in no test, in ms. */
const LONG = FOR_EVER_MS;
const test = suite('lease');
const timed = inVirtualTime(test);

async function acquire(records: Records, holder: string, ttlMs = TTL): Promise<Lease> {
  const lease = await acquireLease(records, 'work', leaseOptions(holder, { ttlMs }));
  if (lease === undefined) throw new Error('not acquired');
  return lease;
}

/** Records that can be cut off from one process. */
function cuttable(records: Records): {
  readonly records: Records;
  cut: 'no' | 'fails' | 'silent' | 'answers are lost';
} {
  const self = { cut: 'no' as 'no' | 'fails' | 'silent' | 'answers are lost', records: {} as Records };
  const reach = async <T>(call: () => Promise<T>): Promise<T> => {
    if (self.cut === 'fails') throw new UnavailableError('cut off');
    if (self.cut === 'silent') return new Promise<T>(() => undefined);
    const answer = await call();
    if (self.cut === 'answers are lost') throw new UnavailableError('cut off', { outcomeUnknown: true });
    return answer;
  };
  self.records = {
    ...records,
    get: (key) => reach(() => records.get(key)),
    put: (key, value, more) => reach(() => records.put(key, value, more)),
  };
  return self;
}

timed('a released lease is acquired by the next process at once, with a higher fence', async () => {
  const records = memoryRecords(Date.now);
  const first = await acquire(records, 'a');
  assert.ok(first.held);
  let second: Lease | undefined;
  const waiting = acquire(records, 'b').then((lease) => (second = lease));
  await sleep(TTL * 2);
  assert.is(second, undefined, 'renewed all the while');
  assert.ok(first.held);
  await first.release();
  assert.not(first.held);
  assert.ok(first.lost.aborted);
  await waiting;
  assert.ok((second?.fence ?? 0) > first.fence);
  await second?.release();
});

timed('a released lease is acquired without waiting for its time', async () => {
  const records = memoryRecords(Date.now);
  const first = await acquire(records, 'a', LONG);
  const waiting = acquire(records, 'b', LONG);
  await first.release();
  const second = await waiting;
  await second.release();
});

timed('a holder cut off from the store loses the lease, and another takes it', async () => {
  const shared = memoryRecords(Date.now);
  for (const cut of ['fails', 'silent'] as const) {
    const link = cuttable(shared);
    const first = await acquire(link.records, `a ${cut}`);
    link.cut = cut;
    const second = await acquire(shared, `b ${cut}`);
    assert.not(first.held, 'before the other has it');
    if (cut === 'fails') await until(() => first.lost.aborted, 'the loss to be told');
    assert.ok(second.held);
    assert.ok(second.fence > first.fence);
    link.cut = 'no';
    if (cut === 'fails') await first.release();
    assert.ok(second.held, 'the late release of the previous holder changes nothing');
    await second.release();
  }
});

test('a frozen process that wakes up knows at once that it holds no lease', async () => {
  const records = memoryRecords(Date.now);
  const lease = await acquire(records, 'a');
  // No timer runs meanwhile, as in a stopped process.
  const wake = performance.now() + TTL + 20;
  while (performance.now() < wake);
  assert.not(lease.held);
  assert.ok(lease.lost.aborted, 'told though the timers have not run yet');
  await lease.release();
});

/** Whose renewals wait for `gate`, then are stored. */
function gated(records: Records): { readonly records: Records; gate: Promise<void>; waiting: number } {
  const self = { records: {} as Records, gate: Promise.resolve(), waiting: 0 };
  self.records = {
    ...records,
    async put(key, value, more) {
      self.waiting += 1;
      await self.gate;
      self.waiting -= 1;
      return records.put(key, value, more);
    },
  };
  return self;
}

timed('a lease that was seen to be over stays so, though its renewal is stored later', async () => {
  const link = gated(memoryRecords(Date.now));
  const lease = await acquire(link.records, 'a');
  const { promise, resolve } = deferred<void>();
  link.gate = promise;
  const told: boolean[] = [];
  lease.lost.addEventListener('abort', () => told.push(lease.held));
  await until(() => !lease.held, 'the lease to be over');
  assert.equal(told, [false]);
  const before = await link.records.get('lease/work');
  resolve();
  await until(async () => (await link.records.get('lease/work'))?.version !== before?.version, 'the renewal');
  for (let n = 0; n < 10; n++) {
    assert.not(lease.held);
    await sleep(TTL / 10);
  }
  await lease.release();
  const again = await acquire(link.records, 'a');
  assert.ok(again.held && again.fence > lease.fence, 'a return is another lease');
  await again.release();
});

timed('new work waits for a renewal that is late, or for the loss', async () => {
  const link = gated(memoryRecords(Date.now));
  const ttlMs = LEASE_MS * 4;
  const lease = await acquire(link.records, 'a', ttlMs);
  await lease.renewed();
  const { promise, resolve } = deferred<void>();
  link.gate = promise;
  let works = 0;
  const work = async (): Promise<void> => {
    await lease.renewed();
    works += 1;
  };
  await until(async () => {
    const before = works;
    void work();
    await sleep(20);
    return works === before;
  }, 'work that waits');
  assert.ok(lease.held);
  const before = works;
  resolve();
  await until(() => works > before, 'its start');
  assert.ok(lease.held);
  await lease.release();
  await lease.renewed();
});

timed("a renewal whose answer was lost is recognised as the holder's own", async () => {
  const link = cuttable(memoryRecords(Date.now));
  const lease = await acquire(link.records, 'a');
  link.cut = 'answers are lost';
  await sleep(TTL / 2);
  link.cut = 'no';
  await sleep(TTL * 2);
  assert.ok(lease.held);
  await lease.release();
});

timed('a recognised renewal makes the lease last no longer than others take it to', async () => {
  const records = memoryRecords(Date.now);
  const ttlMs = 1_200;
  let puts = 0;
  let cut = false;
  const down = (): never => {
    throw new UnavailableError('cut off', { outcomeUnknown: true });
  };
  const first = await acquire(
    {
      ...records,
      async put(key, value, more) {
        if (cut) down();
        const version = await records.put(key, value, more);
        // The first renewal is stored, and answered late as a failure; then none gets through.
        if (++puts !== 2) return version;
        await sleep(ttlMs * 0.2);
        return down();
      },
      async get(key) {
        if (cut) down();
        const record = await records.get(key);
        cut = puts >= 3;
        return record as never;
      },
    },
    'a',
    ttlMs,
  );
  const second = await acquire(records, 'b', ttlMs);
  const { held } = first;
  await Promise.all([first.release(), second.release()]);
  assert.ok(cut, 'it looked whose it is');
  assert.not(held, 'before the other has it');
});

timed('a slow store does not take the lease away', async () => {
  const records = memoryRecords(Date.now);
  const ttlMs = 1_200;
  let renewals = 0;
  const lease = await acquire(
    {
      ...records,
      async put(key, value, more) {
        const version = await records.put(key, value, more);
        if (version !== undefined && version > 1) {
          await sleep(ttlMs * 0.7);
          renewals += 1;
        }
        return version;
      },
    },
    'a',
    ttlMs,
  );
  await until(() => renewals === 3 || lease.lost.aborted, 'three renewals');
  assert.not(lease.lost.aborted);
  await lease.release();
});

timed('a late release does not disturb the next holder', async () => {
  const records = memoryRecords(Date.now);
  const lease = await acquire(records, 'a');
  await records.put('lease/work', { holder: 'thief', fence: 77 });
  await until(() => lease.lost.aborted, 'the loss to be told');
  assert.not(lease.held);
  await lease.release();
  assert.equal((await records.get('lease/work'))?.value, { holder: 'thief', fence: 77 });
  const next = await acquire(records, 'b');
  assert.is(next.fence, 78);
  await next.release();
});

timed('a process acquires again at once a lease that it lost and none took', async () => {
  const records = memoryRecords(Date.now);
  await records.put('lease/work', { holder: 'a', fence: 5 });
  const lease = await acquire(records, 'a', LONG);
  assert.is(lease.fence, 6);
  await lease.release();
});

test('the lease of a process killed on this machine is acquired at once, any other in time', async () => {
  const child = spawn('sleep', ['60']);
  await once(child, 'spawn');
  const life = processLife(child.pid);
  const records = memoryRecords(Date.now);
  const had = async (value: object, ttlMs = TTL): Promise<number> => {
    await records.put('lease/work', { holder: 'other', fence: 3, ...value });
    const began = performance.now();
    const lease = await acquire(records, 'b', ttlMs);
    const ms = performance.now() - began;
    assert.is(lease.fence, 4);
    await lease.release();
    return ms;
  };
  child.kill('SIGSTOP');
  assert.ok((await had(life === undefined ? {} : { life })) >= TTL, 'frozen');
  assert.ok((await had({ life: `another-${life}` })) >= TTL, 'on another machine');
  child.kill('SIGKILL');
  await once(child, 'exit');
  // Where the system does not tell, the lease's time is waited for.
  if (life === undefined) assert.ok((await had({})) >= TTL);
  else await had({ life }, LONG);
});

timed('waiting ends with the signal', async () => {
  const records = memoryRecords(Date.now);
  const held = await acquire(records, 'a');
  const stop = new AbortController();
  const waiting = acquireLease(records, 'work', leaseOptions('b', { signal: stop.signal }));
  setTimeout(() => {
    stop.abort();
  }, 10);
  assert.is(await waiting, undefined);
  assert.is(await acquireLease(records, 'work', leaseOptions('b', { signal: AbortSignal.abort() })), undefined);
  await held.release();
});

timed('an unreachable store is waited for', async () => {
  const link = cuttable(memoryRecords(Date.now));
  link.cut = 'fails';
  const waiting = acquire(link.records, 'a');
  await sleep(60);
  link.cut = 'no';
  const lease = await waiting;
  assert.ok(lease.held);
  link.cut = 'fails';
  await lease.release();
});

timed('an unexpected error gives the lease up', async () => {
  const records = memoryRecords(Date.now);
  let broken = false;
  const lease = await acquire(
    { ...records, put: async (...args) => (broken ? Promise.reject(new TypeError('bug')) : records.put(...args)) },
    'a',
  );
  broken = true;
  await until(() => lease.lost.aborted, 'the loss to be told');
  await lease.release();
});

test.run();
