import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { openEmbeddedReadStore } from '../../../src/adapters/embedded/readStore/readStore.js';
import { type Background, openBackground } from '../../../src/adapters/embedded/background.js';
import { threadData } from '../../../src/adapters/embedded/thread.js';
import type { ReadStore } from '../../../src/ports/readStore.js';
import { UnavailableError } from '../../../src/ports/unavailable.js';
import { failureOf } from '../../support/engines/eventStoreEvents.js';

interface Context {
  dir: string;
  writer: Background;
  opened: (name: string) => Promise<ReadStore>;
}

const test = suite<Context>('the thread of scratch stores');

test.before.each((context) => {
  context.dir = mkdtempSync(join(tmpdir(), 'gift-scratch-'));
  context.writer = openBackground({ onDeath: () => undefined, atOnce: true });
  context.opened = async (name) => {
    const dir = join(context.dir, name);
    mkdirSync(dir);
    return openEmbeddedReadStore({ dir, scratchWriter: context.writer });
  };
});
test.after.each(async ({ dir, writer }) => {
  await writer.close();
  rmSync(dir, { recursive: true, force: true });
});

test('writes several stores at once, and others after these', async ({ opened }) => {
  for (const round of [1, 2]) {
    const stores = await Promise.all(['a', 'b', 'c'].map(async (name) => opened(`${name}${round}`)));
    await Promise.all(
      stores.flatMap((store, n) =>
        Array.from({ length: 50 }, async (_, key) => store.records.put(`${key}`, { n, round })),
      ),
    );
    for (const [n, store] of stores.entries()) assert.equal((await store.records.get('49'))?.value, { n, round });
    await Promise.all(stores.map(async (store) => store.close()));
    assert.instance(await failureOf(stores[0]!.records.put('late', {})), UnavailableError);
  }
});

test('goes on with the other stores when one can not be opened', async ({ dir, writer, opened }) => {
  const store = await opened('a');
  const port = writer.writerOf({ ...threadData(join(dir, 'a', 'read.db')), file: join(dir, 'none', 'read.db') });
  await new Promise((resolve) => port.once('close', resolve));
  await store.records.put('key', { n: 1 });
  await store.close();
});

test('writes no store for a process of another release', async ({ dir, writer, opened }) => {
  const store = await opened('a');
  const port = writer.writerOf({ ...threadData(join(dir, 'a', 'read.db')), version: '99.0.0' });
  await new Promise((resolve) => port.once('close', resolve));
  await store.records.put('key', { n: 1 });
  await store.close();
});

test.run();
