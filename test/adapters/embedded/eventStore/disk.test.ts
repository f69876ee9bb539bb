import { execFileSync, spawnSync } from 'node:child_process';
import { rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { openEmbeddedEventStore } from '../../../../src/adapters/embedded/eventStore/eventStore.js';
import type { NewEvent } from '../../../../src/ports/eventStore.js';
import { UnavailableError } from '../../../../src/ports/unavailable.js';
import { event, eventsOf, failureOf, idsOf } from '../../../support/engines/eventStoreEvents.js';
import { inFolder } from '../../../support/engines/eventStoreFolder.js';
import { startEventStore } from '../../../support/engines/eventStoreProcess.js';
import { NO_MOUNT, smallDisk } from '../../../support/faults/smallDisk.js';
import { testWhere } from '../../../support/assertions/testWhere.js';

const test = suite('Embedded event store: a disk that takes no more');

const large = (): NewEvent => event('Large', { text: 'x'.repeat(50_000) });

const disk = smallDisk(4);
disk?.remove();
const mountable = disk !== undefined;
const [limitable, noLimit] = [spawnSync('prlimit', ['--version']).status === 0, 'no prlimit here'];

testWhere(test, mountable, NO_MOUNT, 'a full disk fails appends, loses nothing and is got over', async () => {
  const { dir, remove } = smallDisk(4)!;
  const ballast = join(dir, 'ballast');
  writeFileSync(ballast, Buffer.alloc(1_500_000));
  const store = await openEmbeddedEventStore({ dir: join(dir, 'data') });
  try {
    const stored: NewEvent[] = [];
    let refused: { error: unknown; event: NewEvent } | undefined;
    while (refused === undefined) {
      const batch = [large(), large(), large()];
      const outcomes = await Promise.allSettled(batch.map((one) => store.append(`stream-${one.id}`, [one], 'none')));
      for (const [index, outcome] of outcomes.entries()) {
        if (outcome.status === 'fulfilled') stored.push(batch[index]!);
        else refused = { error: outcome.reason, event: batch[index]! };
      }
    }
    assert.instance(refused.error, UnavailableError);
    assert.is((refused.error as UnavailableError).outcomeUnknown, false);
    assert.ok(stored.length > 3);
    assert.instance(
      await failureOf(store.append('more', [large(), large()], 'none')),
      UnavailableError,
      'it stays full',
    );
    const held = async (): Promise<string[]> => idsOf(await eventsOf(store.readAll(undefined)));
    assert.equal((await held()).toSorted(), idsOf(stored).toSorted(), 'reading goes on');

    rmSync(ballast);
    await store.append(`stream-${refused.event.id}`, [refused.event], 'none');
    stored.push(refused.event);
    assert.equal((await held()).toSorted(), idsOf(stored).toSorted());
    const log = await eventsOf(store.readAll(undefined));
    assert.equal(
      log.map(({ position }) => Number(position)),
      log.map((_, index) => index + 1),
    );
  } finally {
    await store.close();
    remove();
  }
});

testWhere(test, mountable, NO_MOUNT, 'a log that can not be begun for lack of space says so', async () => {
  const { dir, remove } = smallDisk(1)!;
  try {
    writeFileSync(join(dir, 'ballast'), Buffer.alloc(1_048_576 - 8_192));
    assert.instance(await failureOf(openEmbeddedEventStore({ dir })), UnavailableError);
    rmSync(join(dir, 'ballast'));
    await (await openEmbeddedEventStore({ dir })).close();
  } finally {
    remove();
  }
});

testWhere(test, limitable, noLimit, 'a write that fails leaves the outcome open, and the repeat settles it', () =>
  inFolder(async ({ dir, open }) => {
    const store = await open();
    const other = await startEventStore(dir);
    try {
      const first = await other.append('stream', [event()], 'none');
      const limit = (bytes: string): void =>
        void execFileSync('prlimit', ['--pid', String(other.pid), `--fsize=${bytes}:unlimited`]);
      limit(String(statSync(join(dir, 'events.db-wal')).size + 5_000));
      const batch = [large()];
      const failure = (await failureOf(other.append('stream', batch, first.revision))) as UnavailableError;
      assert.is(failure.name, 'UnavailableError');
      assert.is(failure.outcomeUnknown, true);
      assert.is((await store.read('stream')).length, 1);

      limit('unlimited');
      const repeated = await other.append('stream', batch, first.revision);
      assert.is(repeated.revision, 1);
      assert.equal(idsOf(await store.read('stream', { from: 1 })), idsOf(batch));
      assert.is(Number(await store.end()), 2);
    } finally {
      await other.kill();
    }
  }),
);

test.run();
