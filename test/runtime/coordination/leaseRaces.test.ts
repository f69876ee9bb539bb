/** What a lease's record decides between processes, and what its holder and standbys tell their operator. */
import { setTimeout as sleep } from 'node:timers/promises';
import pino from 'pino';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { Records } from '../../../src/ports/readStore.js';
import { UnavailableError } from '../../../src/ports/unavailable.js';
import {
  acquireLease,
  type Lease,
  LEASE_MS,
  LeaseHeldError,
  type LeaseOptions,
  leaseState,
  NotOursError,
  seizeLease,
  whileHeld,
} from '../../../src/runtime/coordination/lease.js';
import { processLife } from '../../../src/runtime/coordination/processLife.js';
import { workByLease } from '../../../src/runtime/coordination/workByLease.js';
import { inVirtualTime } from '../../simulation/world/virtualTime.js';
import { rejects } from '../../support/assertions/rejects.js';
import { memoryRecords } from '../../support/engines/memoryRecords.js';
import { leaseOptions, TTL } from '../../support/fixtures/leaseOptions.js';

/** Longest lease here: it is renewed once a second. */
const LONG = 4 * LEASE_MS;
const KEY = 'lease/work';
/** Read before virtual time begins, as the lease does. */
const life = processLife();
const test = suite('lease: races and records');
const timed = inVirtualTime(test);

async function acquire(records: Records, holder: string, more: Partial<LeaseOptions> = {}): Promise<Lease> {
  const lease = await acquireLease(records, 'work', leaseOptions(holder, more));
  if (lease === undefined) throw new Error('not acquired');
  return lease;
}
const valueIn = async (records: Records): Promise<object | undefined> => (await records.get<object>(KEY))?.value;

/** Records whose calls fail while `down`, and a count of the changes that were tried. */
function breakable(records: Records): Records & { down: boolean; puts: number } {
  const self = { ...records, down: false, puts: 0 };
  const reach = async <T>(call: () => Promise<T>): Promise<T> => {
    if (self.down) throw new UnavailableError('cut off');
    return call();
  };
  return Object.assign(self, {
    get: <V>(key: string) => reach(() => records.get<V>(key)),
    put: (...args: Parameters<Records['put']>) => {
      self.puts += 1;
      return reach(() => records.put(...args));
    },
  });
}

/** A logger, and its lines. */
function logging(): { readonly logger: LeaseOptions['logger']; readonly lines: { readonly msg: string }[] } {
  const lines: { readonly msg: string }[] = [];
  return { lines, logger: pino({ base: null }, { write: (line) => void lines.push(JSON.parse(line)) }) };
}

timed('of two standbys that read the same record, one takes the lease', async () => {
  const records = memoryRecords(Date.now);
  await records.put(KEY, { holder: null, fence: 4 });
  const leases: Lease[] = [];
  const both = ['a', 'b'].map(async (holder) => void leases.push(await acquire(records, holder)));
  await sleep(TTL * 3);
  assert.equal(
    leases.map(({ fence, held }) => [fence, held]),
    [[5, true]],
  );
  await leases[0]?.release();
  await Promise.all(both);
  assert.equal(
    leases.map(({ fence, held }) => [fence, held]),
    [
      [5, false],
      [6, true],
    ],
  );
  await leases[1]?.release();
});

timed('a release changes nothing where another process has the lease, and tries nothing once it was lost', async () => {
  const records = breakable(memoryRecords(Date.now));
  const lease = await acquire(records, 'a', { ttlMs: LONG });
  const other = { holder: 'b', fence: lease.fence + 1 };
  await records.put(KEY, other);
  assert.ok(lease.held, 'it does not know yet');
  await lease.release();
  assert.equal(await valueIn(records), other);

  const late = await acquire(records, 'b');
  records.down = true;
  await sleep(TTL + 1);
  assert.not(late.held);
  records.down = false;
  const { puts } = records;
  await late.release();
  assert.is(records.puts, puts);
});

timed('a renewal takes no record for its own that another holder or an earlier lease has written', async () => {
  for (const value of [{ holder: 'a', fence: 9 }, { holder: 'b', fence: 1 }, undefined]) {
    const records = memoryRecords(Date.now);
    const { logger, lines } = logging();
    const lease = await acquire(records, 'a', { ttlMs: LONG, logger });
    if (value === undefined) await records.delete(KEY);
    else await records.put(KEY, value);
    await sleep(LEASE_MS / 2);
    assert.ok(lease.lost.aborted, 'long before its time is over');
    assert.equal(await valueIn(records), value);
    for (let n = 0; n < 3; n++) assert.not(lease.held);
    assert.equal(
      lines.map(({ msg }) => msg),
      ['lease lost'],
    );
    assert.equal(lines[0], { ...lines[0], lease: KEY, fence: 1 });
    await lease.release();
  }
});

timed('a loss by the clock is logged once', async () => {
  const records = breakable(memoryRecords(Date.now));
  const { logger, lines } = logging();
  const lease = await acquire(records, 'a', { logger });
  records.down = true;
  await sleep(TTL);
  for (let n = 0; n < 3; n++) assert.not(lease.held);
  assert.is(lines.length, 1);
  await lease.release();
});

timed('renews three times in its lifetime, and more often after a failure', async () => {
  const records = breakable(memoryRecords(Date.now));
  const lease = await acquire(records, 'a');
  await sleep(TTL * 10 - 1);
  assert.is(records.puts, 30);
  records.down = true;
  await sleep(TTL / 3);
  assert.is(records.puts, 34, 'each quarter of the pause');
  records.down = false;
  await sleep(TTL);
  assert.ok(lease.held);
  await lease.release();
});

timed('an error that is no outage ends the lease at once', async () => {
  const records = memoryRecords(Date.now);
  const { logger, lines } = logging();
  let broken = false;
  const put: Records['put'] = async (...args) => {
    if (broken) throw new TypeError('a fault');
    return records.put(...args);
  };
  const lease = await acquire({ ...records, put }, 'a', { ttlMs: LONG, logger });
  broken = true;
  await sleep(LEASE_MS / 2);
  assert.ok(lease.lost.aborted);
  const [line] = lines as [{ readonly msg: string }];
  assert.equal(line, { ...line, msg: 'lease given up', lease: KEY, fence: 1 });
  await lease.release();
});

timed('work goes on at once while renewals come in time', async () => {
  const lease = await acquire(memoryRecords(Date.now), 'a', { ttlMs: LONG });
  await sleep(LEASE_MS / 6);
  const from = Date.now();
  await lease.renewed();
  assert.is(Date.now(), from);
  await lease.release();
});

timed('a failed release is logged', async () => {
  const records = breakable(memoryRecords(Date.now));
  const { logger, lines } = logging();
  const lease = await acquire(records, 'a', { logger });
  records.down = true;
  await lease.release();
  const [line] = lines as [{ readonly msg: string }];
  assert.match(line.msg, 'lease not released');
  assert.equal(line, { ...line, lease: KEY });
});

timed('a standby takes over once the record has not changed for the lease’s time', async () => {
  for (const ttlMs of [TTL, LONG]) {
    const records = memoryRecords(Date.now);
    await records.put(KEY, { holder: 'other', fence: 1 });
    const taken = acquire(records, 'b', { ttlMs });
    const renewAfterMs = ttlMs / 8;
    await sleep(renewAfterMs);
    await records.put(KEY, { holder: 'other', fence: 1 });
    const from = Date.now();
    const lease = await taken;
    const afterMs = Date.now() - from;
    assert.ok(afterMs >= ttlMs, `after ${afterMs} ms`);
    assert.ok(afterMs <= ttlMs + Math.min(ttlMs / 6, 500), `after ${afterMs} ms`);
    await lease.release();
  }
});

timed('a standby tells of each renewal by another process, and of each outage once', async () => {
  const shared = memoryRecords(Date.now);
  const records = breakable(shared);
  const first = await acquire(shared, 'a');
  const { logger, lines } = logging();
  const [holders, troubles]: [string[], (string | undefined)[]] = [[], []];
  const stop = new AbortController();
  const waiting = acquireLease(
    records,
    'work',
    leaseOptions('b', {
      signal: stop.signal,
      logger,
      onHeld: (holder) => holders.push(holder),
      onTrouble: (error) => troubles.push(error?.message),
    }),
  );
  await sleep(TTL / 4);
  assert.equal([holders, new Set(troubles)], [[], new Set([undefined])], 'the first read shows no renewal');
  await sleep(TTL - TTL / 4 - 5);
  assert.equal(holders, ['a', 'a']);
  for (const outages of [1, 2]) {
    records.down = true;
    await sleep(TTL / 2);
    assert.is(troubles.at(-1), 'cut off');
    assert.is(lines.length, outages);
    records.down = false;
    await sleep(TTL / 2);
    assert.is(troubles.at(-1), undefined);
  }
  assert.equal(lines[0], { ...lines[0], lease: 'work' });
  stop.abort();
  assert.is(await waiting, undefined);
  await first.release();
});

timed('a standby logs an outage that was there before it, and nothing where there is none', async () => {
  const records = breakable(memoryRecords(Date.now));
  const { logger, lines } = logging();
  records.down = true;
  const first = acquire(records, 'a', { logger });
  await sleep(TTL);
  assert.is(lines.length, 1);
  records.down = false;
  const lease = await first;
  const second = acquire(records, 'b', { logger });
  await sleep(TTL);
  await lease.release();
  await (await second).release();
  assert.is(lines.length, 1);
});

timed('a lease is seized, or its living holder is named', async () => {
  const records = breakable(memoryRecords(Date.now));
  const lease = await seizeLease(records, 'work', leaseOptions('a'));
  assert.is(lease?.held, true);
  const refused = await rejects(seizeLease(records, 'work', leaseOptions('b')), LeaseHeldError, /held by a/);
  assert.is(refused.holder, 'a');
  assert.is(await seizeLease(records, 'work', leaseOptions('b', { signal: AbortSignal.abort() })), undefined);
  const stop = new AbortController();
  const stopped = seizeLease(records, 'work', leaseOptions('b', { signal: stop.signal }));
  await Promise.resolve();
  stop.abort();
  assert.is(await stopped, undefined);
  records.down = true;
  await rejects(seizeLease(records, 'work', leaseOptions('b')), UnavailableError, /cut off/);
  records.down = false;
  await lease?.release();
  const next = await seizeLease(records, 'work', leaseOptions('b'));
  assert.is(next?.fence, 2);
  await next?.release();
});

timed('the record shows holder, fence and time, and whether the holder lives', async () => {
  const records = memoryRecords(Date.now);
  assert.is(await leaseState(records, 'work'), undefined);
  const lease = await acquire(records, 'a');
  const at = new Date().toISOString();
  assert.equal(await valueIn(records), { holder: 'a', fence: 1, ...(life === undefined ? {} : { life }), at });
  const lives = life === undefined ? undefined : true;
  assert.equal(await leaseState(records, 'work'), { holder: 'a', version: 1, fence: 1, at, lives });
  await lease.release();
  assert.is((await leaseState(records, 'work'))?.holder, null);
  await records.put(KEY, { holder: 'b', fence: 2 });
  assert.equal(await leaseState(records, 'work'), {
    holder: 'b',
    version: 3,
    fence: 2,
    at: undefined,
    lives: undefined,
  });
});

test('work is no longer ours once the lease is lost or the signal is aborted', () => {
  const signal = new AbortController().signal;
  whileHeld(() => true, signal)();
  assert.throws(
    whileHeld(() => false, signal),
    (error: unknown) => error instanceof NotOursError,
  );
  assert.throws(
    whileHeld(() => true, AbortSignal.abort()),
    (error: unknown) => error instanceof NotOursError,
  );
});

timed('work starts again under each new lease, until the signal', async () => {
  const records = memoryRecords(Date.now);
  const stop = new AbortController();
  const fences: number[] = [];
  const working = workByLease(records, 'work', leaseOptions('a', { signal: stop.signal }), async (lease, signal) => {
    fences.push(lease.fence);
    assert.not(signal.aborted);
    await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
  });
  await sleep(TTL);
  await records.put(KEY, { holder: null, fence: 7 });
  await sleep(TTL);
  assert.equal(fences, [1, 8]);
  stop.abort();
  await working;
  assert.equal(fences, [1, 8]);
  assert.is((await leaseState(records, 'work'))?.holder, null, 'released');
  await workByLease(records, 'work', leaseOptions('a', { signal: stop.signal }), () =>
    Promise.reject(new Error('worked')),
  );
});

timed('standing by ends with the signal, and an error of the work after the release', async () => {
  const records = memoryRecords(Date.now);
  const other = await acquire(records, 'b');
  const stop = new AbortController();
  const standingBy = workByLease(records, 'work', leaseOptions('a', { signal: stop.signal }), () =>
    Promise.reject(new Error('worked')),
  );
  await sleep(TTL);
  stop.abort();
  await standingBy;
  await other.release();
  const failing = workByLease(records, 'work', leaseOptions('a'), () => Promise.reject(new Error('a fault')));
  await rejects(failing, Error, /a fault/);
  assert.is((await leaseState(records, 'work'))?.holder, null);
});

test.run();
