import { setTimeout as sleep } from 'node:timers/promises';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { createCheckpoints } from '../../../src/adapters/mongodb/readStore.js';
import { ensureCollection } from '../../../src/adapters/mongodb/collections.js';
import { keyOf, layoutOf } from '../../../src/adapters/mongodb/layout.js';
import type { Connection } from '../../../src/adapters/mongodb/connection.js';
import { filterOf, sortOf } from '../../../src/adapters/mongodb/query.js';
import { commandsOf } from '../../../src/adapters/mongodb/writer.js';
import { UnavailableError } from '../../../src/ports/unavailable.js';
import { at, doc, newCollection, rejectionOf } from '../../support/engines/readStoreDocuments.js';

const test = suite('MongoDB: parts');

test('gives no two fields one key, and no key a meaning to the server', () => {
  const fields = [
    'a',
    'A',
    'a.b',
    'a~b',
    'a~2e~b',
    '$a',
    '',
    '.',
    '€',
    '😀',
    'a b',
    '__proto__',
    'f_a',
    '\u0000',
    '~',
    '~7e~',
  ];
  const keys = fields.map(keyOf);
  assert.is(new Set(keys).size, fields.length);
  for (const key of keys) assert.match(key, /^f_[\w~]*$/);
});

test('keeps commands below 2 MB, with ids and queried fields', () => {
  const collection = newCollection([['text']]);
  const layout = layoutOf(collection);
  const documents = Array.from({ length: 1_000 }, (_, n) =>
    doc(`${'i'.repeat(100)}${n}`, 1, { text: 'x'.repeat(1_900) }),
  );
  const commands = commandsOf(layout, documents);
  assert.is(commands.length, 3);
  assert.is(commands.flat().length, 1_000);
  assert.is(new Set(commands.flat().map(({ _id }) => _id)).size, 1_000);
  for (const command of commands) assert.ok(JSON.stringify(command).length < 2_000_000);
  assert.is(commandsOf(layout, documents.slice(0, 100)).length, 1);
  assert.is(commandsOf(layout, [doc('large', 1, { other: 'x'.repeat(1_999_980) })]).length, 1);
  assert.equal(commandsOf(layout, []), [[]]);
});

test('makes queries that an index answers', () => {
  const layout = layoutOf(newCollection([['a', 'b']]));
  const filters = {
    prefix: filterOf(layout, { where: { a: { prefix: 'x' } } }),
    every: filterOf(layout, { where: { a: { prefix: '\u{10ffff}' } } }),
    range: filterOf(layout, { where: { a: { gte: 1, lt: 2 }, id: 'x' } }),
    none: filterOf(layout, { where: { a: { gte: null } } }),
    all: filterOf(layout, {}),
  };
  assert.equal(filters, {
    prefix: { f_a: { $gte: 'x', $lt: 'y' } },
    every: { f_a: { $gte: '\u{10ffff}' } },
    range: { f_a: { $gte: 1, $lt: 2 }, _id: { $eq: 'x' } },
    none: { f_a: { $eq: null } },
    all: {},
  });
  for (const a of [{ gt: null }, { lt: null }, { in: [] }]) assert.is(filterOf(layout, { where: { a } }), undefined);
  assert.equal(filterOf(layout, { where: { a: { gt: 1, lt: undefined as unknown as number } } }), { f_a: { $gt: 1 } });
  assert.equal(
    sortOf({
      sort: [
        ['a', -1],
        ['id', -1],
        ['a', 1],
      ],
    }),
    new Map([
      ['f_a', -1],
      ['_id', -1],
    ]),
  );
});

test('adds a field to the very body that it was taken from, and notes it for its collection', async () => {
  const requested: unknown[] = [];
  const collection = {
    async findOne(filter: object) {
      requested.push(filter);
      return null;
    },
    find: () => ({ toArray: async () => [{ _id: 'a', p: at(1), b: '{"n":1}' }] }),
    bulkWrite: async (operations: unknown) => void requested.push(operations),
    updateOne: async (filter: object) => void requested.push(filter),
  };
  const ask = (work: (database: never) => unknown): unknown =>
    work({ db: { createCollection: async () => undefined }, collection: () => collection } as never);
  const layout = layoutOf(newCollection([['n']]));
  await ensureCollection({ read: ask, write: ask } as unknown as Connection, layout, true);
  const noted = { _id: `fields/${layout.name}` };
  assert.equal(requested, [
    noted,
    [{ updateOne: { filter: { _id: 'a', p: at(1) }, update: { $set: { f_n: 1 } } } }],
    noted,
  ]);
});

/** A connection with scripted answers, on demand. */
function lookedAt(answer: (requested: readonly string[]) => Promise<{ _id: string; p: string }[]>): {
  readonly connection: Pick<Connection, 'read'>;
  readonly looks: (readonly string[])[];
} {
  const looks: (readonly string[])[] = [];
  const collection = {
    find: ({ _id }: { _id: { $in: readonly string[] } }) => ({
      toArray: () => {
        looks.push(_id.$in);
        return answer(_id.$in);
      },
    }),
  };
  return { looks, connection: { read: (work) => work({ collection: () => collection } as never) } };
}

test('asks once for thousands of waiters, and never without one', async () => {
  let stored = 0;
  const { connection, looks } = lookedAt(async (requested) => requested.map((_id) => ({ _id, p: at(stored) })));
  const checkpoints = createCheckpoints(connection);
  const waiting = Array.from({ length: 5_000 }, (_, n) =>
    checkpoints.reached(n % 2 === 0 ? 'a@1' : 'b@1', at(1 + (n % 50)), n % 10 === 0 ? 5 : 5_000),
  );
  await sleep(60);
  const before = looks.length;
  assert.ok(before <= 6, `${before} looks`);
  stored = 50;
  assert.is((await Promise.all(waiting)).filter(Boolean).length, 4_500);
  const after = looks.length;
  assert.ok(after <= before + 3);
  await sleep(60);
  assert.is(looks.length, after);
  assert.ok(await checkpoints.reached('a@1', at(50), 0));
  assert.is(looks.length, after, 'known already');
  checkpoints.forget('a@1');
  stored = 3;
  assert.not.ok(await checkpoints.reached('a@1', at(50), 0));
  checkpoints.close();
  assert.instance(await rejectionOf(checkpoints.reached('b@1', at(1), 0)), UnavailableError);
});

test('wakes by its own writes at once, and never goes back to an older answer', async () => {
  let answered: (found: { _id: string; p: string }[]) => void = () => undefined;
  const { connection } = lookedAt(
    () =>
      new Promise((resolve) => {
        answered = resolve;
      }),
  );
  const checkpoints = createCheckpoints(connection);
  const waiting = [2, 1].map((n) => checkpoints.reached('a@1', at(n), 10_000));
  checkpoints.advanced('a@1', at(2));
  assert.equal(await Promise.all(waiting), [true, true]);
  checkpoints.advanced('a@1', at(1));
  answered([{ _id: 'a@1', p: at(1) }]);
  await sleep(5);
  assert.ok(await checkpoints.reached('a@1', at(2), 0));
  checkpoints.close();
});

test('throws a failure to present waiters, and asks again for later ones', async () => {
  let failing = true;
  const { connection } = lookedAt(async (requested) => {
    if (failing) throw new UnavailableError('gone');
    return requested.map((_id) => ({ _id, p: at(1) }));
  });
  const checkpoints = createCheckpoints(connection);
  assert.instance(await rejectionOf(checkpoints.reached('a@1', at(1), 1_000)), UnavailableError);
  failing = false;
  assert.ok(await checkpoints.reached('a@1', at(1), 1_000));
  const waiting = checkpoints.reached('a@1', at(2), 10_000);
  checkpoints.close();
  assert.not.ok(await waiting);
});

test.run();
