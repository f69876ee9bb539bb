import { existsSync, mkdirSync, mkdtempSync, readdirSync, readlinkSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { MessageChannel } from 'node:worker_threads';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { Sqlite } from '../../../src/adapters/embedded/driver.js';
import { moveNow } from '../../../src/adapters/embedded/checkpoint.js';
import { serveWriter } from '../../../src/adapters/embedded/readStore/serveWriter.js';
import { openEmbeddedReadStore } from '../../../src/adapters/embedded/readStore/readStore.js';
import { type Background, openBackground } from '../../../src/adapters/embedded/background.js';
import { threadData } from '../../../src/adapters/embedded/thread.js';
import type { ReadStore } from '../../../src/ports/readStore.js';
import { UnavailableError } from '../../../src/ports/unavailable.js';
import { until } from '../../support/assertions/until.js';
import { failureOf } from '../../support/engines/eventStoreEvents.js';

interface Context {
  dir: string;
  background: Background;
  opened: (name: string) => Promise<ReadStore>;
}

const test = suite<Context>('the thread for what no request waits for');

const onLinux = existsSync('/proc/self/fd') ? test : test.skip;

/** Requests of which one transaction takes only some. */
const MANY = 60_000;

test.before.each((context) => {
  context.dir = mkdtempSync(join(tmpdir(), 'gift-scratch-'));
  context.background = openBackground({ onDeath: () => undefined, atOnce: true });
  context.opened = async (name) => {
    const dir = join(context.dir, name);
    mkdirSync(dir);
    return openEmbeddedReadStore({ dir, scratchWriter: context.background });
  };
});
test.after.each(async ({ dir, background }) => {
  await background.close();
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

test('does other work between two transactions of a store', async ({ dir, opened }) => {
  const store = await opened('a');
  const file = join(dir, 'a', 'read.db');
  const { port1, port2 } = new MessageChannel();
  serveWriter(threadData(file), port2, (database) => ({ move: () => void moveNow(database), close: async () => {} }));
  port1.postMessage(
    Array.from({ length: MANY }, (_, n) => ({
      id: n + 1,
      request: { kind: 'put', key: `${n}`, value: '{}', expected: undefined, expiresAt: undefined },
    })),
  );
  const reader = new Sqlite(file, { readonly: true });
  const stored = reader.prepare<[], number>('SELECT count(*) FROM record').pluck();
  let first: number | undefined;
  // This thread is the writer's: it hears of the first transaction before the next one.
  port1.on('message', (message) => Array.isArray(message) && (first ??= stored.get()));
  await until(() => stored.get() === MANY);
  assert.ok((first ?? 0) > 0 && (first ?? 0) < MANY, `${first} records`);
  reader.close();
  port1.postMessage('close');
  await new Promise((resolve) => port1.once('close', resolve));
  await store.close();
});

test('goes on with the other stores when one can not be opened', async ({ dir, background, opened }) => {
  const store = await opened('a');
  const port = background.writerOf({ ...threadData(join(dir, 'a', 'read.db')), file: join(dir, 'none', 'read.db') });
  await new Promise((resolve) => port.once('close', resolve));
  await store.records.put('key', { n: 1 });
  await store.close();
});

test('writes no store for a process of another release', async ({ dir, background, opened }) => {
  const store = await opened('a');
  const port = background.writerOf({ ...threadData(join(dir, 'a', 'read.db')), version: '99.0.0' });
  await new Promise((resolve) => port.once('close', resolve));
  await store.records.put('key', { n: 1 });
  await store.close();
});

onLinux(
  'closes the files of a thread that died, which closes nothing by itself',
  async ({ dir, background, opened }) => {
    await (await opened('a')).close();
    const file = join(dir, 'a', 'read.db');
    for (const open of [() => background.writerOf(threadData(file)), () => background.checkpointsOf(file)]) {
      const port = open();
      await new Promise((resolve) => port.once('message', resolve));
      assert.ok(isOpen(file));
      port.close();
      await until(() => !isOpen(file));
    }
  },
);

test('is replaced for a thread that gets the way to it when it has died', async ({ dir }) => {
  const { port1, port2 } = new MessageChannel();
  port2.close();
  await new Promise((resolve) => setTimeout(resolve, 10));
  const replaced = openBackground({ onDeath: () => undefined, shared: port1, atOnce: true });
  await replaced.loaded;
  const store = await openEmbeddedReadStore({ dir, scratchWriter: replaced });
  await store.records.put('key', { n: 1 });
  await store.close();
  await replaced.close();
});

function isOpen(file: string): boolean {
  return readdirSync('/proc/self/fd').some((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`).startsWith(file);
    } catch {
      return false;
    }
  });
}

test.run();
