import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { masterKeys } from '../../../src/runtime/personal/masterKeys.js';
import { UnavailableError } from '../../../src/ports/unavailable.js';
import { openSubjects, SECRETS_CACHED_MS, type Subjects } from '../../../src/runtime/personal/subjects.js';
import { memoryKeys } from '../../support/engines/memoryKeys.js';
import { rejectionOf } from '../../support/engines/readStoreDocuments.js';

const test = suite('subjects');

const open = (store = memoryKeys(), cached?: number): Subjects =>
  openSubjects({
    store,
    master: masterKeys(['m'.repeat(43)]),
    lookupOf: ({ kind, text }) => `${kind}:${text}`,
    ...(cached === undefined ? {} : { cached }),
    secretFor: ({ kind, text }) => (kind === 'phone' ? Buffer.from(text) : randomBytes(32)),
  });
const phone = (text: string): { kind: string; text: string } => ({ kind: 'phone', text });

test('gives each name one id, of any process, in the order of the names', async () => {
  const store = memoryKeys();
  const [one, other] = [open(store), open(store)];
  const [a, b, again] = await one.ids([phone('1'), phone('2'), phone('1')]);
  assert.is(a, again);
  assert.is.not(a, b);
  assert.equal(await other.ids([phone('2'), phone('1')]), [b, a]);
  assert.match(a ?? '', /^[\w-]{22}$/);
  assert.is(store.rows.size, 2);
});

test('takes the id of the process that was first', async () => {
  const store = memoryKeys();
  const [one, other] = [open(store), open(store)];
  const proposed = await one.propose([phone('1'), phone('2')]);
  const [first] = await other.ids([phone('1')]);
  assert.is(await one.store(proposed), false);
  assert.is((await one.ids([phone('1')]))[0], first);
});

test('proposes without adding anything, and keeps what it proposed', async () => {
  const store = memoryKeys();
  const subjects = open(store);
  const proposed = await subjects.propose([phone('1')]);
  assert.is(store.rows.size, 0);
  assert.is(await subjects.store(proposed), true);
  assert.equal(
    [...store.rows.keys()],
    proposed.map(({ id }) => id),
  );
});

test('finds known names alone', async () => {
  const subjects = open();
  const [id] = await subjects.ids([phone('1')]);
  assert.equal(await subjects.find([phone('2'), phone('1')]), [undefined, id]);
});

test('tells kinds with equal texts apart', async () => {
  const subjects = open();
  const [a, b] = await subjects.ids([phone('1'), { kind: 'user', text: '1' }]);
  assert.is.not(a, b);
});

test('reads secrets of another process, each once', async () => {
  const store = memoryKeys();
  const ids = await open(store).ids([phone('1'), phone('2')]);
  const subjects = open(store);
  assert.equal(
    [...(await subjects.secrets(ids)).values()].map((secret) => secret.toString()),
    ['1', '2'],
  );
  const { count } = store.reads;
  await subjects.secrets(ids);
  assert.is(store.reads.count, count);
});

test('gives every secret that is asked for, however few are kept in memory', async () => {
  const store = memoryKeys();
  const names = Array.from({ length: 20 }, (_, n) => phone(String(n)));
  const ids = await open(store).ids(names);
  const subjects = open(store, 2);
  await subjects.secrets(ids.slice(0, 2));
  assert.equal(
    [...(await subjects.secrets(ids))].map(([, secret]) => secret.toString()).sort(),
    names.map(({ text }) => text).sort(),
  );
});

test('gives no secret of a row that is gone', async () => {
  const store = memoryKeys();
  const [id = ''] = await open(store).ids([phone('1')]);
  await store.remove([id]);
  assert.is((await open(store).secrets([id])).size, 0);
});

test('refuses ids of a subject that is being erased, and finds it no more', async () => {
  const store = memoryKeys();
  const subjects = open(store);
  const [early, unstored] = [await subjects.propose([phone('1')]), await open(store).propose([phone('1')])];
  const [id = ''] = await subjects.ids([phone('1'), phone('2')]);
  const proposed = await subjects.propose([phone('1')]);
  await store.fence([id]);
  for (const ask of [
    () => subjects.ids([phone('2'), phone('1')]),
    () => subjects.propose([phone('1')]),
    () => subjects.store(early),
    () => subjects.store(unstored),
    () => subjects.store(proposed),
  ])
    assert.instance(await rejectionOf(ask()), UnavailableError);
  assert.is((await subjects.find([phone('1')]))[0], undefined);
  assert.is((await subjects.ids([phone('2')])).length, 1, 'others go on');

  assert.instance(await rejectionOf(subjects.areStored(proposed)), UnavailableError);
  await store.remove([id]);
  assert.is(await subjects.areStored(proposed), false);
  assert.is(await subjects.store(proposed), false, 'what was proposed is void');
  assert.is.not((await subjects.ids([phone('1')]))[0], id);
});

test('adds no id again that was erased meanwhile', async () => {
  const store = memoryKeys();
  const subjects = open(store);
  const proposed = await subjects.propose([phone('1')]);
  await subjects.store(proposed);
  await store.remove(proposed.map(({ id }) => id));
  assert.is(await subjects.store(proposed), false);
  assert.is(store.rows.size, 0);
});

test('gives the secret of a subject that is being erased to the erasure alone', async () => {
  const store = memoryKeys();
  const [id = '', other = ''] = await open(store).ids([phone('1'), phone('2')]);
  await store.fence([id]);
  const subjects = open(store);
  for (let n = 0; n < 2; n++) {
    assert.equal([...(await subjects.secrets([id, other])).keys()], [other]);
    assert.equal(
      [...(await subjects.secretsForErasure([id, other, id])).values()].map((secret) => secret.toString()),
      ['1', '2'],
    );
  }
  await store.remove([id]);
  assert.is((await subjects.secretsForErasure([id])).size, 0);
});

test('knows a secret no longer after a fence than an erasure waits, however slow the read', async () => {
  const store = memoryKeys();
  const [id = ''] = await open(store).ids([phone('1')]);
  let ahead = 0;
  const subjects = open({
    ...store,
    async byId(ids) {
      const rows = await store.byId(ids);
      if (!rows.has(id) || rows.get(id)?.fenced) return rows;
      await store.fence([id]);
      ahead = SECRETS_CACHED_MS - 1_000;
      return rows;
    },
  });
  const clock = performance.now.bind(performance);
  performance.now = () => clock() + ahead;
  try {
    assert.is((await subjects.secrets([id])).size, 1);
    assert.is((await subjects.secrets([id])).size, 1, 'from memory');
    ahead = SECRETS_CACHED_MS + 50;
    // The cache looks at the clock once in a millisecond.
    await sleep(10);
    assert.is((await subjects.secrets([id])).size, 0);
  } finally {
    performance.now = clock;
  }
});

test('lets no secret be moved to another row', async () => {
  const store = memoryKeys();
  const [a = '', b = ''] = await open(store).ids([phone('1'), phone('2')]);
  const moved = store.rows.get(b)?.secret ?? '';
  store.rows.set(a, { id: a, lookup: 'phone:1', secret: moved });
  try {
    await open(store).secrets([a]);
    assert.unreachable();
  } catch (error) {
    assert.match((error as Error).message, 'it was altered');
  }
});

test.run();
