import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { openEmbeddedEventStore } from '../../../src/adapters/embedded/eventStore/eventStore.js';
import { openEmbeddedReadStore } from '../../../src/adapters/embedded/readStore/readStore.js';
import { openSignals } from '../../../src/adapters/embedded/signals.js';
import { event, within } from '../../support/engines/eventStoreEvents.js';
import { at, doc, newCollection } from '../../support/engines/readStoreDocuments.js';
import { until } from '../../support/assertions/until.js';

const test = suite<{ dir: string; setInterval: typeof globalThis.setInterval }>('Signals between threads');

test.before.each((context) => {
  context.dir = mkdtempSync(join(tmpdir(), 'gift-signals-'));
  // Without any look at the files in between only signals wake.
  context.setInterval = globalThis.setInterval;
  globalThis.setInterval = ((work: () => void) =>
    context.setInterval(work, 1_000_000)) as typeof globalThis.setInterval;
});
test.after.each((context) => {
  globalThis.setInterval = context.setInterval;
  rmSync(context.dir, { recursive: true });
});

test('reaches all others of the folder, none of another folder, and none once closed', async ({ dir }) => {
  const heard: string[] = [];
  const one = openSignals(dir, ({ kind }) => heard.push(`one ${kind}`));
  const two = openSignals(join(dir, '.'), ({ kind }) => heard.push(`two ${kind}`));
  const three = openSignals(join(dir, 'other'), ({ kind }) => heard.push(`three ${kind}`));
  one.send({ kind: 'wanted' });
  two.send({ kind: 'stored', checkpoints: [] });
  await until(() => heard.length === 2, 'both signals');
  one.close();
  one.send({ kind: 'wanted' });
  two.send({ kind: 'wanted' });
  await sleep(50);
  assert.equal(heard.sort(), ['one stored', 'two wanted']);
  two.close();
  three.close();
});

test('has a follower on another thread look at the log once a reader waits for a read model', async ({ dir }) => {
  const log = await openEmbeddedEventStore({ dir });
  const elsewhere = await openEmbeddedEventStore({ dir, openElsewhere: true });
  const store = await openEmbeddedReadStore({ dir });
  const ending = new AbortController();
  const batches = elsewhere.follow(undefined, {}, { signal: ending.signal })[Symbol.asyncIterator]();
  const first = batches.next();
  // It has come to the log's end by then, and waits.
  await sleep(50);
  await log.append('stream', [event()], 'none');
  assert.is(await Promise.race([first.then(() => 'seen'), sleep(100).then(() => 'not seen')]), 'not seen');
  const waiting = store.reached('a@1', at(1), 5_000);
  assert.is((await within(20_000, first)).value?.events.length, 1);
  ending.abort();
  await store.close();
  assert.is(await waiting, false);
  await batches.return?.();
  await elsewhere.close();
  await log.close();
});

test('wakes a waiter for a read model that another thread stores, and lets it find the model', async ({ dir }) => {
  const store = await openEmbeddedReadStore({ dir });
  const elsewhere = await openEmbeddedReadStore({ dir, openElsewhere: true });
  const collection = newCollection();
  await elsewhere.ensure(collection);
  assert.is(await store.get(collection, 'a'), undefined);
  const waiting = store.reached('a@1', at(2), 20_000);
  await elsewhere.write([
    { collection, documents: [doc('a', 1, {})], checkpoint: { projection: 'a@1', position: at(1) } },
  ]);
  await elsewhere.write([{ collection, documents: [], checkpoint: { projection: 'a@1', position: at(2) } }]);
  assert.is(await within(5_000, waiting), true);
  assert.is((await store.get(collection, 'a'))?.id, 'a');
  await elsewhere.close();
  await store.close();
});

test.run();
