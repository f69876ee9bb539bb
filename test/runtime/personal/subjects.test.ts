import { randomBytes } from 'node:crypto';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { masterKeys } from '../../../src/runtime/personal/masterKeys.js';
import { openSubjects, type Subjects } from '../../../src/runtime/personal/subjects.js';
import { memoryKeys } from '../../support/engines/memoryKeys.js';

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
  assert.is(await one.keep(proposed), false);
  assert.is((await one.ids([phone('1')]))[0], first);
});

test('proposes without adding anything, and keeps what it proposed', async () => {
  const store = memoryKeys();
  const subjects = open(store);
  const proposed = await subjects.propose([phone('1')]);
  assert.is(store.rows.size, 0);
  assert.is(await subjects.keep(proposed), true);
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

test('lets no secret be moved to another row', async () => {
  const store = memoryKeys();
  const [a = '', b = ''] = await open(store).ids([phone('1'), phone('2')]);
  const moved = store.rows.get(b)?.secret ?? '';
  store.rows.set(a, { id: a, lookup: 'phone:1', secret: moved });
  try {
    await open(store).secrets([a]);
    assert.unreachable();
  } catch (error) {
    assert.match((error as Error).message, 'unable to authenticate data');
  }
});

test.run();
