import { randomUUID } from 'node:crypto';
import * as assert from 'uvu/assert';
import type { CollectionSpec, Condition, Query, Scalar, StoredDocument } from '../../src/ports/readStore.js';
import type { ReadStorePromised } from '../support/engines/readStoreDocuments.js';
import { found } from '../support/engines/plainQuery.js';
import { at, batch, doc, filled, idsOf, newCollection, rejectionOf } from '../support/engines/readStoreDocuments.js';

type Fields = Readonly<Record<string, unknown>>;

/**
 * Of every type, with neighbours that a careless comparison mistakes for each other; `undefined`: the field is absent.
 */
const VALUES: readonly (Scalar | undefined)[] = [
  undefined,
  null,
  false,
  true,
  -2.5,
  -1,
  0,
  1,
  1.5,
  10,
  9_007_199_254_740_991,
  '',
  '0',
  '1',
  '10',
  'A',
  'B',
  'a',
  'a%',
  'a%b',
  'a_',
  'a\\',
  'ab',
  'b',
  'é',
  'e\u0301',
  'z',
  '~',
  '😀',
  '😀a',
  'true',
  'null',
  "o'brien",
  '"',
  'a\u0000b',
];

function bytes(text: string): Buffer {
  return Buffer.from(text, 'utf8');
}

function fieldOf(document: StoredDocument<Fields>, field: string): Scalar {
  return field === 'id' ? document.id : ((document.body[field] ?? null) as Scalar);
}

/** The ids of a query's expected answer. */
const expected = (documents: readonly StoredDocument<Fields>[], query: Query): string[] =>
  found(documents, query, fieldOf).map(({ id }) => id);

const range = (from: number, to: number): number[] => Array.from({ length: to - from }, (_, n) => from + n);

/** Strings with another order by UTF-16 units than by bytes. */
const BEYOND: readonly string[] = [
  'z',
  '\u{d7ff}',
  '\u{e000}',
  '\u{ffff}',
  '\u{ffff}a',
  '\u{10000}',
  '😀',
  '😀a',
  '😁',
  '\u{10ffff}',
];

/** Every condition that the values make; ranges between every third of them, or nearly so. */
function conditions(values: readonly Scalar[]): Condition[] {
  const made: Condition[] = [
    ...values,
    { in: [] },
    { in: values },
    { in: values.filter((_, n) => n % 3 === 0) },
    { in: [1, 1, 'missing'] },
  ];
  for (const value of values) {
    made.push({ gte: value }, { gt: value }, { lte: value }, { lt: value }, { in: [value] });
    if (typeof value === 'string') made.push({ prefix: value });
  }
  const bounds = values.length < 12 ? values : values.filter((value, n) => n % 3 === 0 || typeof value === 'boolean');
  for (const low of bounds) for (const high of bounds) made.push({ gte: low, lt: high }, { gt: low, lte: high });
  return made;
}

/** Guarantees of queries. */
export const QUERY_PROMISES: Readonly<Record<string, ReadStorePromised>> = {
  async 'every condition on every type of value'(store) {
    const bodies = VALUES.map((v, n) => (v === undefined ? { n } : { n, v }));
    const collection = await filled(store, bodies, [['v']]);
    const documents = await store.find<Fields>(collection, {});
    assert.is(documents.length, bodies.length);
    for (const v of conditions(VALUES.map((value) => value ?? null))) {
      const query = { where: { v } };
      assert.equal(idsOf(await store.find(collection, query)), expected(documents, query), JSON.stringify(v));
      assert.is(await store.count(collection, query), expected(documents, query).length, JSON.stringify(v));
    }
  },

  async 'conditions on the id'(store) {
    const collection = newCollection();
    const ids = VALUES.filter((value): value is string => typeof value === 'string' && value !== '');
    const documents = ids.map((id, n) => doc<Fields>(id, n + 1, {}));
    await store.ensure(collection);
    await store.write([batch(collection, documents)]);
    for (const id of conditions([...ids, 1, null, true])) {
      const query = { where: { id } };
      assert.equal(idsOf(await store.find(collection, query)), expected(documents, query), JSON.stringify(id));
    }
    for (const direction of [1, -1] as const)
      assert.equal(
        idsOf(await store.find(collection, { sort: [['id', direction]] })),
        expected(documents, { sort: [['id', direction]] }),
      );
  },

  async 'strings compare by bytes, whatever the characters'(store) {
    const documents = BEYOND.map((v, n) => doc<Fields>(`${v}${n}`, 1, { v }));
    const collection = newCollection([['v']]);
    await store.ensure(collection);
    await store.write([batch(collection, documents)]);
    for (const condition of conditions(BEYOND)) {
      for (const field of ['v', 'id']) {
        const query: Query = { where: { [field]: condition }, sort: [[field, 1]] };
        assert.equal(idsOf(await store.find(collection, query)), expected(documents, query), JSON.stringify(query));
      }
    }
    for (const query of [{ sort: [['v', -1]] }, { sort: [['id', -1]] }] satisfies Query[])
      assert.equal(idsOf(await store.find(collection, query)), expected(documents, query));
    const own = randomUUID();
    for (const end of BEYOND) await store.records.put(`${own}${end}`, end);
    const sorted = BEYOND.toSorted((a, b) => Buffer.compare(bytes(a), bytes(b)));
    for (const prefix of ['', ...BEYOND])
      assert.equal(
        (await store.records.list(own + prefix)).map(({ value }) => value),
        sorted.filter((end) => end.startsWith(prefix)),
        prefix,
      );
  },

  async 'sorting across types, both ways, ties by id'(store) {
    const bodies = [...VALUES, ...VALUES].map((v) => (v === undefined ? {} : { v }));
    const collection = await filled(store, bodies, [['v']]);
    const documents = await store.find<Fields>(collection, {});
    for (const direction of [1, -1] as const) {
      for (const page of [{}, { limit: 7 }, { skip: 5, limit: 10 }, { skip: 60 }, { skip: 1_000 }, { limit: 0 }]) {
        const query: Query = { sort: [['v', direction]], ...page };
        assert.equal(idsOf(await store.find(collection, query)), expected(documents, query), JSON.stringify(query));
      }
    }
    assert.is(
      await store.count(collection, { where: { v: { gte: 'a' } }, skip: 3, limit: 1 }),
      expected(documents, { where: { v: { gte: 'a' } } }).length,
      'a count knows no pages',
    );
  },

  async 'indexes of several fields'(store) {
    const bodies = Array.from({ length: 90 }, (_, n) => ({
      a: n % 3,
      b: ['x', 'y', null][(n % 5) % 3],
      c: n % 2 === 0,
      d: n,
    }));
    const collection = await filled(store, bodies, [['a', 'b', 'c'], ['d'], ['c', 'id']]);
    const documents = await store.find<Fields>(collection, {});
    const queries: Query[] = [
      { where: { a: 1 } },
      { where: { a: 1, b: 'x' } },
      { where: { b: 'x', a: { in: [0, 2] } }, sort: [['b', -1]] },
      {
        where: { a: 1 },
        sort: [
          ['b', 1],
          ['c', -1],
        ],
        skip: 2,
        limit: 9,
      },
      {
        where: { a: { gte: 1 }, b: { prefix: '' }, c: true },
        sort: [
          ['a', -1],
          ['b', 1],
        ],
      },
      { where: { a: 2, b: null, c: false, id: { gte: 'd30' } } },
      {
        where: { d: { gt: 10, lte: 40 } },
        sort: [
          ['d', -1],
          ['id', -1],
        ],
        limit: 5,
      },
      {
        where: { c: true, id: { lt: 'd50' } },
        sort: [
          ['c', 1],
          ['id', -1],
        ],
      },
      { where: { id: { in: ['d01', 'd05', 'zz'] } }, sort: [['id', -1]] },
      {
        sort: [
          ['a', 1],
          ['id', -1],
        ],
        limit: 12,
      },
    ];
    for (const query of queries) {
      assert.equal(idsOf(await store.find(collection, query)), expected(documents, query), JSON.stringify(query));
      assert.is(
        await store.count(collection, query),
        expected(documents, { where: query.where ?? {} }).length,
        JSON.stringify(query),
      );
    }
  },

  async 'a partitioned index finds what another does, by one value, in the order of ids'(store) {
    const collection: CollectionSpec = {
      ...newCollection([['kind']]),
      indexes: [{ fields: ['kind'] }, { fields: ['a', 'b'], partitioned: true }, { fields: ['c'], partitioned: true }],
    };
    await store.ensure(collection);
    const made = (n: number, a: unknown = n % 3): StoredDocument<Fields> =>
      doc(`d${String(n).padStart(2, '0')}`, n + 1, {
        a,
        b: n % 2 === 0,
        kind: 'x',
        ...(n % 4 === 0 ? { c: 'z' } : {}),
      });
    // Later ids come first, and some come twice.
    for (const [from, to] of [
      [20, 40],
      [0, 10],
      [30, 60],
      [5, 35],
    ] as const)
      await store.write([
        batch(
          collection,
          range(from, to).map((n) => made(n)),
        ),
      ]);
    await store.write([batch(collection, [made(70, null), { ...made(21, 'other'), position: at(100) }])]);
    await store.correct(collection, [
      { id: 'd11', expected: undefined, document: made(11) },
      { id: 'd30', expected: at(31), document: undefined },
      { id: 'd32', expected: at(33), document: { ...made(32, 'other'), position: at(33) } },
    ]);
    const documents = await store.find<Fields>(collection, {});
    assert.is(documents.length, 60 + 1 - 1);
    const ids: (Condition | undefined)[] = [
      undefined,
      'd21',
      { gt: 'd10', lte: 'd41' },
      { gte: 'd10', lt: 'd41' },
      { gt: 'd60' },
      { lt: 'd08' },
      { prefix: 'd2' },
      { in: ['d03', 'd33', 'none'] },
      1,
    ];
    const wheres = [{ a: 1, b: true }, { a: 0, b: false }, { a: 'other', b: true }, { a: 'none', b: true }, { c: 'z' }];
    for (const id of ids)
      for (const where of wheres)
        for (const page of [
          {},
          { sort: [['id', 1]], limit: 4 },
          { sort: [['id', -1]], skip: 2, limit: 5 },
        ] as Query[]) {
          const query = { where: id === undefined ? where : { ...where, id }, ...page };
          assert.equal(idsOf(await store.find(collection, query)), expected(documents, query), JSON.stringify(query));
          const all = expected(documents, { where: query.where }).length;
          assert.is(await store.count(collection, query), all, JSON.stringify(query));
        }
    for (const [query, named] of [
      [{ where: { a: 1 } }, 'b'],
      [{ where: { c: null } }, 'c'],
      [{ where: { c: { gt: 'a' } } }, 'c'],
      [{ where: { a: 1, b: true }, sort: [['b', 1]] }, 'b'],
      [{ sort: [['c', 1]] }, 'c'],
    ] as readonly (readonly [Query, string])[])
      assert.match(
        (await rejectionOf(store.find(collection, query))).message,
        new RegExp(`${named}\\b.*partitioned|partitioned.*\\b${named}`),
      );
    await store.drop(collection);
    assert.equal(await store.find(collection, { where: { c: 'z' } }), []);
    await store.ensure(collection, { deferIndexes: true });
    await store.write([batch(collection, [made(4)])]);
    assert.equal(idsOf(await store.find(collection, { where: { c: 'z' } })), ['d04']);
  },

  async 'a field outside the indexes is refused by name'(store) {
    const collection = await filled(store, [{ a: 1, b: 2, c: 3 }], [['a', 'b'], ['c']]);
    const refused: readonly (readonly [Query, string])[] = [
      [{ where: { other: 1 } }, 'other'],
      [{ where: { a: 1, other: 1 } }, 'other'],
      [{ where: { position: '0' } }, 'position'],
      [{ where: { body: '0' } }, 'body'],
      [{ where: { b: 2 } }, 'b'],
      [{ where: { a: 1, c: 3 } }, 'c'],
      [{ where: { a: 1 }, sort: [['c', 1]] }, 'c'],
      [{ sort: [['b', 1]] }, 'b'],
      [{ where: { 'id; DROP TABLE': 1 } }, 'id; DROP TABLE'],
      [{ where: { a: {} } }, 'a'],
      [{ where: { a: { near: 1 } as Condition } }, 'near'],
    ];
    for (const [query, named] of refused) {
      for (const requested of [store.find(collection, query), store.count(collection, query)]) {
        const error = await rejectionOf(requested);
        assert.ok(error.message.includes(named), `${JSON.stringify(query)}: ${error.message}`);
        assert.is.not(error.name, 'UnavailableError');
      }
    }
  },

  async 'a condition takes thousands of values'(store) {
    const bodies = Array.from({ length: 100 }, (_, n) => ({ n, t: `t${n}` }));
    const collection = await filled(store, bodies, [['n'], ['t']]);
    assert.is(
      await store.count(collection, { where: { n: { in: Array.from({ length: 20_000 }, (_, n) => n * 2) } } }),
      50,
    );
    assert.is(
      (await store.find(collection, { where: { t: { in: Array.from({ length: 20_000 }, (_, n) => `t${n * 3}`) } } }))
        .length,
      34,
    );
  },

  async 'fields may have any name'(store) {
    const fields = [
      'order',
      'select',
      'with space',
      "o'brien",
      'UPPER',
      'upper',
      'ä',
      '1st',
      'position',
      'body',
      '_id',
      '$where',
      'a.b',
      '.',
      '',
      '~',
      '€~',
      '__proto__',
    ];
    const body = JSON.parse(`{${fields.map((field, n) => `${JSON.stringify(field)}:${n}`).join()}}`) as object;
    const collection = await filled(
      store,
      [body, {}],
      fields.map((field) => [field]),
    );
    for (const [n, field] of fields.entries())
      assert.equal(
        idsOf(await store.find(collection, { where: Object.fromEntries([[field, n]]), sort: [[field, 1]] })),
        ['d00'],
        field,
      );
    assert.is(JSON.stringify((await store.get(collection, 'd00'))?.body), JSON.stringify(body));
  },

  async 'what a prototype holds is no field'(store) {
    const collection = await filled(store, [{}, { constructor: 'own' }], [['constructor'], ['toString']]);
    assert.equal(idsOf(await store.find(collection, { where: { constructor: 'own' } })), ['d01']);
    assert.equal(idsOf(await store.find(collection, { where: { toString: null } })), ['d00', 'd01']);
  },
};
