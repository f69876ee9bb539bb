import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { pino } from 'pino';
import { suite } from 'uvu';
import { treeAppender } from '../../../../src/ops/history/treeAppender.js';
import { startTreeKeeper } from '../../../../src/ops/evidence/keeper/treeKeeper.js';
import type { EventStore } from '../../../../src/ports/eventStore.js';
import { UnavailableError } from '../../../../src/ports/unavailable.js';
import { LEASE_MS } from '../../../../src/runtime/coordination/lease.js';
import { type FollowerHealth, followers } from '../../../../src/runtime/supervision/followers.js';
import { eventually } from '../../../support/assertions/until.js';
import { memoryRecords } from '../../../support/engines/memoryRecords.js';
import { EVERY_MS, type StoredLog, KEYS, storedLog } from '../../../support/fixtures/storedTree.js';

const test = suite<{ log: StoredLog }>('shares the keeping of the tree');

test.before.each(async (context) => {
  context.log = await storedLog();
  await context.log.fill(600);
  await context.log.keepUntilSigned();
});
test.after.each(({ log }) => log.close());

interface Keeper {
  health(): FollowerHealth | undefined;
  /** Of the log, from its start. */
  readings(): number;
  fail(error: Error): void;
  failures(): number;
  close(): Promise<void>;
}

function keeper({ events, folder }: StoredLog, records = memoryRecords(Date.now), holder = 'one'): Keeper {
  const all = followers({ logger: pino({ level: 'silent' }) });
  let readings = 0;
  let failure: Error | undefined;
  let failed = 0;
  const stored: EventStore = {
    ...events,
    async read(...requested) {
      if (failure !== undefined) {
        failed += 1;
        throw failure;
      }
      return events.read(...requested);
    },
    readAll(after, ...requested) {
      if (after === undefined) readings += 1;
      return events.readAll(after, ...requested);
    },
  };
  const running = startTreeKeeper({
    events: stored,
    stored,
    folder,
    records,
    holder,
    keys: KEYS,
    host: 'test',
    everyMs: EVERY_MS,
    witnesses: [],
    append: treeAppender(events),
    logger: pino({ level: 'silent' }),
    followers: all,
  });
  return {
    health: () => all.health()[0],
    readings: () => readings,
    fail: (error) => void (failure = error),
    failures: () => failed,
    close: running.close,
  };
}

const says = (one: Keeper): boolean => {
  const health = one.health();
  return health?.failing === true && health.error === 'LogAlteredError';
};

const altered = async (log: StoredLog): Promise<void> =>
  log.tamper((database) => database.prepare(`UPDATE events SET data = '{"n":1}' WHERE position = 599`).run());

test('of two, one finds out that the log was altered, and says so until both are closed', async ({ log }) => {
  await altered(log);
  const records = memoryRecords(Date.now);
  const one = keeper(log, records, 'one');
  await eventually(() => says(one));
  const other = keeper(log, records, 'other');
  for (const end = performance.now() + 2 * LEASE_MS; performance.now() < end; await sleep(20)) {
    assert.ok(says(one));
    assert.equal(other.readings(), 0);
  }
  assert.ok(one.readings() <= 8, `${one.readings()}`);
  await one.close();
  await eventually(() => says(other));
  await other.close();
});

test('says that the log was altered also while engines fail', async ({ log }) => {
  await altered(log);
  const one = keeper(log);
  await eventually(() => says(one));
  one.fail(new UnavailableError('away'));
  for (const end = performance.now() + 3_000; performance.now() < end; await sleep(20)) assert.ok(says(one));
  assert.ok(one.failures() > 0);
  await one.close();
});

test('says that it works once the published head can be read again', async ({ log }) => {
  const file = join(log.folder.path, 'checkpoint');
  const head = await log.folder.head();
  writeFileSync(file, 'spoilt');
  const one = keeper(log);
  await eventually(() => says(one));
  assert.match(one.health()?.why ?? '', /^the published head, the file checkpoint in SEAL_DIR, is not a signed head$/);
  writeFileSync(file, head ?? '');
  await eventually(() => one.health()?.failing === false);
  await one.close();
});

test.run();
