import { copyFileSync, existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { succeedEventLog, type SucceedOptions } from '../../../../src/adapters/embedded/eventStore/succeedLog.js';
import { openEmbeddedReadStore } from '../../../../src/adapters/embedded/readStore/readStore.js';
import type { RecordedEvent } from '../../../../src/ports/eventStore.js';
import { UnavailableError } from '../../../../src/ports/unavailable.js';
import { event, events, eventsOf } from '../../../support/engines/eventStoreEvents.js';
import { inFolder, withLogIn } from '../../../support/engines/eventStoreFolder.js';
import { startEventStore } from '../../../support/engines/eventStoreProcess.js';
import { RETAINED_TYPE, startSuccession } from '../../../support/engines/successionProcess.js';

const test = suite('Embedded event store: a log in the place of another');
const OPTIONS: SucceedOptions = { keeps: (_, type) => type === RETAINED_TYPE, now: '2026-01-01T00:00:00.000Z' };

const SECRET = 'what nobody may find any more'.repeat(20);

const fileText = (dir: string): string => readFileSync(join(dir, 'events.db'), 'latin1');

const placesOf = (log: readonly RecordedEvent[]): string[] =>
  log.map(({ stream, revision, position }) => `${Number(position)} ${stream} ${revision}`);

test('begins with the events that are kept, without gaps, none later than now, and takes more', () =>
  inFolder(async ({ dir }) => {
    const first = event(RETAINED_TYPE, { n: 1 });
    const old = await withLogIn(dir, async (log) => {
      await log.append('a', [event('Gone', { secret: SECRET }), first, event('Gone'), event(RETAINED_TYPE)], 'none');
      await log.append('b', [event('Gone')], 'none');
      await log.append('c', [event(RETAINED_TYPE)], 'none');
      await log.append('a', [event(RETAINED_TYPE)], 3);
      await log.seal();
      return log.logId;
    });
    await (await openEmbeddedReadStore({ dir })).close();
    const seen: string[] = [];
    assert.ok(fileText(dir).includes(SECRET));
    const { from, to, shrink, close } = succeedEventLog(dir, {
      ...OPTIONS,
      onRetained: (stream) => void seen.push(stream),
    });
    shrink();
    close();
    assert.is(from, old);
    assert.not(fileText(dir).includes(SECRET));
    assert.not(existsSync(join(dir, 'read.db')));
    await withLogIn(dir, async (log) => {
      assert.is(log.logId, to);
      assert.not.equal(to, from);
      const retained = await eventsOf(log.readAll(undefined));
      assert.equal(placesOf(retained), ['1 a 0', '2 a 1', '3 c 0', '4 a 2']);
      assert.equal(
        seen,
        retained.map(({ stream }) => stream),
      );
      assert.equal([retained[0]?.id, retained[0]?.data, retained[0]?.at], [first.id, { n: 1 }, OPTIONS.now]);
      assert.equal(await log.append('a', [event()], 2), { revision: 3, position: '0000000000000005' });
      assert.equal(placesOf(await log.read('a')), ['1 a 0', '2 a 1', '4 a 2', '5 a 3']);
    });
  }));

test('is refused while another process or connection has the log open, which stays as it was', () =>
  inFolder(async ({ dir }) => {
    const other = await startEventStore(dir);
    try {
      await other.append('a', [event('Gone')], 'none');
      assert.throws(
        () => succeedEventLog(dir, OPTIONS),
        (error: unknown) => error instanceof UnavailableError,
      );
      await other.append('a', [event('Gone')], 0);
    } finally {
      await other.kill();
    }
    await withLogIn(dir, async (log) => {
      assert.throws(
        () => succeedEventLog(dir, OPTIONS),
        (error: unknown) => error instanceof UnavailableError,
      );
      assert.is(log.logId, other.logId);
      assert.is((await log.read('a')).length, 2);
    });
  }));

test('leaves the old log or the new one, whole, whenever its process is killed', () =>
  inFolder(async ({ dir }) => {
    const [gone, retained] = [12_000, 1_200];
    const old = await withLogIn(dir, async (log) => {
      for (let n = 0; n < 30; n++) {
        await log.append(`gone-${n}`, events(gone / 30, 'Gone'), 'none');
        await log.append(`kept-${n}`, events(retained / 30, RETAINED_TYPE), 'none');
      }
      return log.logId;
    });
    const found = new Set<boolean>();
    for (const [index, afterMs] of [10, 25, 50, 90, 400].entries()) {
      const copy = join(dir, String(index));
      mkdirSync(copy);
      copyFileSync(join(dir, 'events.db'), join(copy, 'events.db'));
      await (await openEmbeddedReadStore({ dir: copy })).close();
      const killedAfter = await startSuccession(copy);
      await killedAfter(afterMs);
      await withLogIn(copy, async (log) => {
        const all = await eventsOf(log.readAll(undefined));
        const isOld = log.logId === old;
        found.add(isOld);
        assert.is(all.length, isOld ? gone + retained : retained);
        assert.is(Number(all.at(-1)?.position), all.length);
        assert.ok(isOld || all.every(({ type }) => type === RETAINED_TYPE));
        assert.ok(isOld || !existsSync(join(copy, 'read.db')));
      });
    }
    assert.is(found.size, 2);
  }));

test.run();
