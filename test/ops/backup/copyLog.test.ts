import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { type CopyProgress, CopyInterruptedError, CopyRefusedError, copyLog } from '../../../src/ops/backup/copyLog.js';
import { canonicalText, logHash } from '../../../src/ops/backup/logHash.js';
import { type EventStore, type RecordedEvent, MAX_APPEND_BYTES } from '../../../src/ports/eventStore.js';
import { UnavailableError } from '../../../src/ports/unavailable.js';
import { event, events, eventsOf, failureOf, idsOf, newStream } from '../../support/engines/eventStoreEvents.js';
import { type Folder, newFolder } from '../../support/engines/eventStoreFolder.js';

interface Context {
  source: Folder;
  target: Folder;
}

const test = suite<Context>('commands/copyLog');

test.before.each((context) => {
  context.source = newFolder();
  context.target = newFolder();
});

test.after.each(async ({ source, target }) => {
  await source.remove();
  await target.remove();
});

/** `count` events in `streams` streams, interleaved, in appends of one to three. */
async function fill(store: EventStore, count: number, streams = 7): Promise<void> {
  const revisions = new Map<string, number>();
  for (let n = 0; n < count;) {
    const stream = `s-${(n * 5) % streams}`;
    const batch = events(Math.min(count - n, (n % 3) + 1));
    const revision = revisions.get(stream) ?? -1;
    await store.append(stream, batch, revision === -1 ? 'none' : revision);
    revisions.set(stream, revision + batch.length);
    n += batch.length;
  }
}

async function textsOf(store: EventStore): Promise<string[]> {
  return (await eventsOf(store.readAll(undefined))).map(canonicalText);
}

/** A port as wrapped: an engine that does something else now and then. */
function but(store: EventStore, changes: Partial<EventStore>): EventStore {
  return { ...store, ...changes };
}

/** Without the fast way: as an engine that lacks it. */
function plain(store: EventStore): EventStore {
  const { appendInOrder, ...rest } = store;
  assert.type(appendInOrder, 'function');
  return rest;
}

test('a log is copied whole, in order, and sealed', async ({ source, target }) => {
  const [from, to] = [await source.open(), await target.open()];
  await from.append('räre-😀', [event('Rich', { ä: [null, { z: 1, a: -1.5e-7 }], __proto__: 'own' })], 'none');
  await fill(from, 500);
  const report = await copyLog({ source: from, target: to }, { seal: true });
  assert.equal(await textsOf(to), await textsOf(from));
  const hash = logHash();
  for (const text of await textsOf(from)) hash.add(text);
  assert.equal(report, { events: 501, copied: 501, hash: hash.digest(), sealed: true });
  assert.is(await from.sealed(), true);
  assert.is(await to.sealed(), false);
  assert.is.not(to.logId, from.logId);
  await to.append('new', [event()], 'none');
});

test('an empty log, and a drill that leaves the source open', async ({ source, target }) => {
  const [from, to] = [await source.open(), await target.open()];
  const empty = await copyLog({ source: from, target: to }, { seal: false });
  assert.equal({ ...empty, hash: '' }, { events: 0, copied: 0, hash: '', sealed: false });
  await fill(from, 20);
  assert.is((await copyLog({ source: from, target: to }, { seal: false })).copied, 20);
  await fill(from, 0);
  await from.append('later', events(3), 'none');
  const again = await copyLog({ source: from, target: to }, { seal: true });
  assert.equal({ ...again, hash: '' }, { events: 23, copied: 3, hash: '', sealed: true });
  assert.equal(
    await copyLog({ source: from, target: to }, { seal: false }),
    { ...again, copied: 0 },
    'a sealed source can be compared again',
  );
});

test('copies in single appends, runs of a stream together, without a fast way of the engine', async ({
  source,
  target,
}) => {
  const [from, to] = [await source.open(), await target.open()];
  await from.append('a', events(3), 'none');
  await from.append('b', events(2), 'none');
  await from.append('a', events(1), 2);
  await from.append('a', events(1), 3);
  for (let n = 0; n < 4; n++)
    await from.append('large', [event('Large', { text: 'é'.repeat(200_000) })], n === 0 ? 'none' : n - 1);
  const appends: string[] = [];
  const target2 = plain(
    but(to, {
      async append(stream, batch, expected) {
        appends.push(`${stream} ${batch.length} after ${expected}`);
        return to.append(stream, batch, expected);
      },
    }),
  );
  await copyLog({ source: from, target: target2 }, { seal: true });
  assert.equal(appends, ['a 3 after none', 'b 2 after none', 'a 2 after 2', 'large 2 after none', 'large 2 after 1']);
  assert.equal(await textsOf(to), await textsOf(from));
  assert.ok(MAX_APPEND_BYTES > 800_000);
});

test('a target that holds something else is refused, and left as it is', async ({ source, target }) => {
  const [from, to] = [await source.open(), await target.open()];
  await fill(from, 10);
  await to.append('other', [event()], 'none');
  const before = await textsOf(to);
  const refused = (await failureOf(copyLog({ source: from, target: to }, { seal: true }))) as Error;
  assert.instance(refused, CopyRefusedError);
  assert.match(refused.message, /its event 1 \(other, revision 0\) is not the source's\. Name an empty target/);
  assert.equal([await textsOf(to), await from.sealed()], [before, false]);
});

test('a target with an altered event, or with more than the source, is refused', async ({ source, target }) => {
  const [from, to] = [await source.open(), await target.open()];
  await fill(from, 10);
  await copyLog({ source: from, target: to }, { seal: false });
  const altered = but(to, {
    async *readAll(...args) {
      for await (const batch of to.readAll(...args))
        yield {
          ...batch,
          events: batch.events.map((one, n): RecordedEvent =>
            n === 6 ? { ...one, at: '2020-01-01T00:00:00.000Z' } : one,
          ),
        };
    },
  });
  const refused = (await failureOf(copyLog({ source: from, target: altered }, { seal: true }))) as Error;
  assert.match(refused.message, /its event 7 /);
  await to.append('more', [event()], 'none');
  const longer = (await failureOf(copyLog({ source: from, target: to }, { seal: true }))) as Error;
  assert.match(longer.message, /its event 11 \(more, revision 0\)/);
  assert.is(await from.sealed(), false);
});

test('itself and a sealed target are refused', async ({ source, target }) => {
  const [from, to] = [await source.open(), await target.open()];
  assert.match(
    ((await failureOf(copyLog({ source: from, target: await source.open() }, { seal: true }))) as Error).message,
    /the same log/,
  );
  await to.seal();
  assert.match(
    ((await failureOf(copyLog({ source: from, target: to }, { seal: true }))) as Error).message,
    /target is sealed/,
  );
});

test('notices another writer of the target before, during and after the copy', async ({ source, target }) => {
  const [from, to] = [await source.open(), await target.open()];
  await fill(from, 10);
  let meddle = true;
  const meddled = but(to, {
    async appendInOrder(appends) {
      if (meddle) await to.append('s-0', [event()], 'none');
      meddle = false;
      await to.appendInOrder!(appends);
    },
  });
  const refused = (await failureOf(copyLog({ source: from, target: meddled }, { seal: true }))) as Error;
  assert.instance(refused, CopyRefusedError);
  assert.match(refused.message, /somebody else writes to the target \(stream s-0\)/);
  const third = newFolder();
  try {
    const clean = await third.open();
    const late = but(clean, {
      async appendInOrder(appends) {
        await clean.appendInOrder!(appends);
        await clean.append('other', [event()], 'none');
      },
    });
    const differs = (await failureOf(copyLog({ source: from, target: late }, { seal: true }))) as Error;
    assert.match(
      differs.message,
      /10 events with hash \w+ were copied, 11 with hash \w+ are there.*the source is not sealed/,
    );
  } finally {
    await third.remove();
  }
  assert.is(await from.sealed(), false);
});

test('refuses a source that has lost the beginning of a stream', async ({ source, target }) => {
  const [from, to] = [await source.open(), await target.open()];
  await from.append('a', events(3), 'none');
  const damaged = but(from, {
    async *readAll(...args) {
      for await (const batch of from.readAll(...args)) yield { ...batch, events: batch.events.slice(1) };
    },
  });
  assert.match(
    ((await failureOf(copyLog({ source: damaged, target: to }, { seal: true }))) as Error).message,
    /lost events of stream a before revision 1/,
  );
});

test('copies what comes between the copy and the seal, and refuses a difference found then', async ({
  source,
  target,
}) => {
  const [from, to] = [await source.open(), await target.open()];
  await fill(from, 10);
  const busy = but(from, {
    async seal() {
      await from.append('last', events(2), 'none');
      await from.seal();
    },
  });
  const report = await copyLog({ source: busy, target: to }, { seal: true });
  assert.equal([report.events, report.copied, report.sealed], [12, 12, true]);
  assert.equal(await textsOf(to), await textsOf(from));
});

test('waits for a target that is away for a moment, and can resume after a longer absence', async ({
  source,
  target,
}) => {
  const [from, to] = [await source.open(), await target.open()];
  await fill(from, 3_000);
  let calls = 0;
  const shaky = but(to, {
    async appendInOrder(appends) {
      await to.appendInOrder!(appends);
      if (++calls === 1) throw new UnavailableError('gone for a moment', { outcomeUnknown: true });
    },
  });
  const stop = new AbortController();
  const stopped = (await failureOf(
    copyLog({ source: from, target: shaky }, { seal: true, signal: stop.signal, onProgress: () => stop.abort() }),
  )) as CopyInterruptedError;
  assert.instance(stopped, CopyInterruptedError);
  assert.is(stopped.cause, undefined);
  assert.match(
    stopped.message,
    /^interrupted; the first 2000 events are in the target, the source is not sealed: repeat the copy/,
  );
  assert.is((await textsOf(to)).length, 2_000);
  const dead = but(to, { end: async () => Promise.reject(new UnavailableError('gone')) });
  const ended = (await failureOf(copyLog({ source: from, target: dead }, { seal: true }))) as CopyInterruptedError;
  assert.match(ended.message, /^gone; the first 0 events/);
  const steps: CopyProgress[] = [];
  const report = await copyLog(
    { source: from, target: to },
    { seal: true, onProgress: (progress) => steps.push(progress) },
  );
  assert.equal([report.events, report.copied], [3_000, 1_000]);
  assert.equal([...new Set(steps.map(({ step }) => step))], ['compare', 'copy', 'verify']);
  assert.is(steps.at(-1)?.share, 1);
  assert.equal(await textsOf(to), await textsOf(from));
});

test('a target that is sealed meanwhile, or fails for another reason, ends the copy at once', async ({
  source,
  target,
}) => {
  const [from, to] = [await source.open(), await target.open()];
  await fill(from, 10);
  const broken = but(to, { appendInOrder: async () => Promise.reject(new TypeError('a mistake')) });
  assert.instance(await failureOf(copyLog({ source: from, target: broken }, { seal: true })), TypeError);
  const sealing = but(to, {
    async appendInOrder(appends) {
      await to.seal();
      await to.appendInOrder!(appends);
    },
  });
  assert.match(
    ((await failureOf(copyLog({ source: from, target: sealing }, { seal: true }))) as Error).message,
    /is sealed/,
  );
});

test('the canonical text depends on nothing but the event', () => {
  const one: RecordedEvent = {
    ...event('T', { b: 1, a: { d: [{ y: 1, x: 2 }], c: 'é' } }, 'i'),
    stream: newStream(),
    revision: 3,
    position: '1',
  };
  const two: RecordedEvent = {
    ...one,
    position: '2',
    data: JSON.parse(JSON.stringify(one.data)) as object,
  };
  assert.is(canonicalText(one), canonicalText(two));
  assert.is.not(canonicalText(one), canonicalText({ ...one, revision: 4 }));
  // A leaf of the tree rests on the order of fields.
  assert.is.not(canonicalText(one), canonicalText({ ...one, data: { a: 1, b: 1 } }));
  assert.is.not(canonicalText({ ...one, data: { b: 1, a: 1 } }), canonicalText({ ...one, data: { a: 1, b: 1 } }));
  assert.equal((JSON.parse(canonicalText(one)) as unknown[]).slice(1, 6), [3, 'i', 'T', one.at, one.data]);
  assert.is(idsOf([one])[0], 'i');
  assert.is(logHash().digest(), 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855');
});

test.run();
