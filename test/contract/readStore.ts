import { setTimeout as sleep } from 'node:timers/promises';
import * as assert from 'uvu/assert';
import type { CollectionSpec, Correction, ReadStore } from '../../src/ports/readStore.js';
import { MAX_BATCH_BYTES, MAX_BATCH_DOCUMENTS } from '../../src/ports/readStore.js';
import type { ReadStoreFixture, ReadStorePromised } from '../support/engines/readStoreDocuments.js';
import {
  at,
  batch,
  doc,
  filled,
  idsOf,
  newCollection,
  projectionOf,
  rejectionOf,
} from '../support/engines/readStoreDocuments.js';
import { checkPromises } from './promises.js';
import { CORRECTION_PROMISES } from './readStoreCorrections.js';
import { QUERY_PROMISES } from './readStoreQueries.js';
import { RECORD_PROMISES } from './readStoreRecords.js';
import { SCRUB_PROMISES } from './readStoreScrub.js';
import { FOR_EVER_MS } from '../support/assertions/until.js';

/** The port's guarantees, as tests of one adapter. `deviations`: see `checkPromises`. */
export function readStoreContract(
  name: string,
  open: () => Promise<ReadStoreFixture>,
  deviations: Readonly<Record<string, string>> = {},
): void {
  checkPromises(`ReadStore: ${name}`, PROMISES, open, deviations);
}

/** How long `reached` took, in ms, and its answer. */
async function timed(reaching: Promise<boolean>): Promise<{ reached: boolean; ms: number }> {
  const started = performance.now();
  const reached = await reaching;
  return { reached, ms: performance.now() - started };
}

async function bodies(
  store: ReadStore,
  collection: ReturnType<typeof newCollection>,
  ids: readonly string[],
): Promise<unknown[]> {
  return (await store.getMany(collection, ids)).map((document) => document?.body);
}

const DOCUMENT_PROMISES: Readonly<Record<string, ReadStorePromised>> = {
  async 'a document is read as it was written'(store) {
    const collection = newCollection([['text']]);
    await store.ensure(collection);
    const body = {
      text: 'ä€😀\u0000"\\\n',
      number: -1.5e-7,
      large: 9_007_199_254_740_991,
      list: [null, true, { deep: { er: [] } }],
      nothing: null,
      '': 'empty',
      'a.b': 1,
    };
    await store.write([batch(collection, [doc('one', 7, body)])]);
    assert.equal(await store.get(collection, 'one'), { id: 'one', position: at(7), body });
    assert.is(await store.get(collection, 'two'), undefined);
  },

  async 'a damaged stored document alone is reported as unreadable, and can be repaired'(store, { damage }) {
    const collection = await filled(
      store,
      Array.from({ length: 6 }, (_, n) => ({ n })),
      [['n']],
    );
    for (const [n, body] of ['{"n":1,"name":"Ada', '"text"', 'null', '7'].entries())
      await damage(collection, `d0${n}`, body);
    const whole = await store.find(collection, { sort: [['n', 1]] });
    const texts = [
      'damaged: no JSON at position 18',
      'damaged: no JSON object',
      'damaged: no JSON object',
      'damaged: no JSON object',
    ];
    assert.equal(
      whole.map(({ body }) => body),
      [...texts.map((text) => ({ $unreadable: `what is stored is ${text}` })), { n: 4 }, { n: 5 }],
    );
    assert.equal(
      await store.getMany(
        collection,
        whole.map(({ id }) => id),
      ),
      whole,
    );
    assert.equal(await Promise.all(whole.map(({ id }) => store.get(collection, id))), whole);
    assert.equal(
      await store.correct(collection, [{ id: 'd00', expected: whole[0]?.position, document: doc('d00', 1, { n: 0 }) }]),
      [true],
    );
    assert.equal((await store.get(collection, 'd00'))?.body, { n: 0 });
  },

  async 'documents that queries miss, or find by other values, are named and can be repaired'(store, { misindex }) {
    const collection: CollectionSpec = {
      ...newCollection(),
      indexes: [{ fields: ['text', 'flag'] }, { fields: ['n'] }, { fields: ['part'], partitioned: true }],
    };
    const documents = [
      doc('cut', 1, { text: 'cut\uD800', flag: true, n: -0, part: 'a' }),
      doc('falsified', 2, { text: 'b', flag: false, n: 0.1, part: 'a' }),
      doc('lost', 3, { text: 'c', n: 9_007_199_254_740_991, part: 'a' }),
      doc('none', 4, { text: ['no scalar'], n: null }),
      doc('unparted', 5, { text: 'd', flag: true, n: 5, part: 'a' }),
      doc('whole', 6, { text: '', flag: true, n: 1e300, part: '' }),
    ];
    const ids = documents.map(({ id }) => id);
    assert.equal(await store.misindexed(collection, ids), [], 'there is no collection');
    await store.ensure(collection);
    await store.write([batch(collection, documents)]);
    assert.equal(await store.misindexed(collection, [...ids, 'missing']), []);
    await misindex(collection, 'falsified', 'text', 'other');
    await misindex(collection, 'lost', 'n', null);
    await misindex(collection, 'none', 'text', 'made up');
    await misindex(collection, 'unparted', 'part', null);
    const wrong = ['falsified', 'lost', 'none', 'unparted'];
    assert.equal((await store.misindexed(collection, ids)).toSorted(), wrong);
    assert.equal(await store.misindexed(collection, ['whole', 'lost']), ['lost']);
    assert.equal(await store.find(collection, { where: { part: 'a', id: 'unparted' } }), []);
    const corrections = documents
      .filter(({ id }) => wrong.includes(id))
      .map((document): Correction => ({
        id: document.id,
        expected: document.position,
        document,
      }));
    assert.equal(await store.correct(collection, corrections), [true, true, true, true]);
    assert.equal(await store.misindexed(collection, ids), []);
    assert.equal(idsOf(await store.find(collection, { where: { part: 'a', id: 'unparted' } })), ['unparted']);
  },

  async 'any string is an id'(store) {
    const ids = [
      'ä€😀',
      'a b',
      "o'brien",
      '"quoted"',
      '%',
      '_',
      '\\',
      'line\nbreak',
      'nul\u0000byte',
      '1',
      '01',
      'A',
      'a',
      'é',
      'e\u0301',
      '$dollar',
      'dot.ted',
      'x'.repeat(64),
    ];
    const collection = newCollection();
    await store.ensure(collection);
    await store.write([
      batch(
        collection,
        ids.map((id, n) => doc(id, n + 1, { n })),
      ),
    ]);
    for (const [n, id] of ids.entries()) assert.equal(await store.get(collection, id), doc(id, n + 1, { n }));
    assert.equal(
      await bodies(store, collection, ids),
      ids.map((_, n) => ({ n })),
    );
    assert.is(await store.count(collection, {}), ids.length);
    assert.equal(
      new Set(idsOf(await store.find(collection, { where: { id: { in: ids.slice(0, 9) } } }))),
      new Set(ids.slice(0, 9)),
    );
  },

  async 'look-ups during writes are each as new as the earlier answers'(store) {
    const collection = newCollection();
    await store.ensure(collection);
    const ids = Array.from({ length: 40 }, (_, n) => `d${n}`);
    for (let round = 1; round <= 60; round++) {
      const written = store.write([
        batch(
          collection,
          ids.map((id) => doc(id, round, { round })),
        ),
      ]);
      if (round % 3 !== 0) await written;
      // Some are asked for again and again, one isn't there.
      const found = await Promise.all(
        [...ids, 'none', ...ids.slice(0, 5)].map((id) => store.get<{ round: number }>(collection, id)),
      );
      await written;
      assert.is(found[40], undefined);
      for (const [n, document] of found.entries()) {
        if (n === 40) continue;
        assert.is(document?.id, ids[n % 41]);
        const least = round % 3 === 0 ? round - 1 : round;
        assert.ok(document!.body.round >= least, `round ${round}: ${document!.id} of round ${document!.body.round}`);
        assert.is(document?.position, at(document!.body.round));
      }
    }
  },

  async 'a write of an equal or lower position changes nothing'(store) {
    const collection = newCollection([['n']]);
    await store.ensure(collection);
    await store.write([batch(collection, [doc('one', 5, { n: 5 })])]);
    await store.write([batch(collection, [doc('one', 4, { n: 4 }), doc('two', 4, { n: 4 })])]);
    await store.write([batch(collection, [doc('one', 5, { n: -5 })])]);
    assert.equal(await bodies(store, collection, ['one', 'two']), [{ n: 5 }, { n: 4 }]);
    assert.is(await store.count(collection, { where: { n: { in: [-5, 5] } } }), 1);
    await store.write([batch(collection, [doc('one', 6, { n: 6 })])]);
    assert.equal(await bodies(store, collection, ['one', 'two']), [{ n: 6 }, { n: 4 }]);
    assert.equal(idsOf(await store.find(collection, { where: { n: 6 } })), ['one'], 'its indexes follow');
    assert.is(await store.count(collection, { where: { n: 5 } }), 0, 'and forget what it was');
  },

  async 'batches written twice, or late, change nothing'(store) {
    const collection = newCollection([['n']]);
    await store.ensure(collection);
    const first = [
      batch(collection, [doc('a', 1, { n: 1 }), doc('b', 2, { n: 2 })]),
      batch(collection, [doc('a', 3, { n: 3 })], 3),
    ];
    const second = [batch(collection, [doc('b', 4, { n: 4 }), doc('c', 5, { n: 5 })], 5)];
    await store.write(first);
    await store.write(second);
    const before = await store.find(collection, {});
    await store.write(second);
    await store.write(first);
    assert.equal(await store.find(collection, {}), before);
    assert.equal(
      before.map(({ position }) => position),
      [at(3), at(4), at(5)],
    );
    assert.is(await store.checkpoint(projectionOf(collection)), at(5));
  },

  async 'batches of one call are written in their order'(store) {
    const collection = newCollection();
    await store.ensure(collection);
    await store.write([1, 2, 3].map((n) => batch(collection, [doc('one', n, { n })])));
    assert.equal(await bodies(store, collection, ['one']), [{ n: 3 }]);
  },

  async 'one call writes to many collections'(store) {
    const [a, b] = [newCollection(), newCollection([['n']])];
    await store.ensure(a);
    await store.ensure(b);
    await store.write([batch(a, [doc('one', 1, { a: 1 })], 1), batch(b, [doc('one', 2, { n: 1 })], 2)]);
    assert.equal([await bodies(store, a, ['one']), await bodies(store, b, ['one'])], [[{ a: 1 }], [{ n: 1 }]]);
    assert.equal([await store.checkpoint(projectionOf(a)), await store.checkpoint(projectionOf(b))], [at(1), at(2)]);
  },

  async 'a checkpoint comes alone too, and never goes back'(store) {
    const collection = newCollection();
    const projection = projectionOf(collection);
    await store.ensure(collection);
    assert.is(await store.checkpoint(projection), undefined);
    await store.write([batch(collection, [], 5)]);
    assert.is(await store.checkpoint(projection), at(5));
    await store.write([batch(collection, [doc('one', 3, {})], 4)]);
    assert.is(await store.checkpoint(projection), at(5));
    assert.equal(await bodies(store, collection, ['one']), [{}]);
    await store.write([batch(collection, [], 6)]);
    assert.is(await store.checkpoint(projection), at(6));
    await store.write([]);
  },

  async 'of one id twice in a batch the newest counts, and of equals the first'(store) {
    const collection = newCollection([['n']]);
    await store.ensure(collection);
    await store.write([
      batch(collection, [
        doc('up', 1, { n: 1 }),
        doc('down', 2, { n: 2 }),
        doc('up', 2, { n: 2 }),
        doc('down', 1, { n: 1 }),
        doc('same', 1, { n: 1 }),
        doc('same', 1, { n: 2 }),
      ]),
    ]);
    assert.equal(await bodies(store, collection, ['up', 'down', 'same']), [{ n: 2 }, { n: 2 }, { n: 1 }]);
  },

  async 'any plain JSON is a body'(store) {
    const collection = newCollection([['text']]);
    await store.ensure(collection);
    const texts = [
      '{"__proto__":{"a":1},"constructor":1,"toString":null}',
      '{"$set":{"$inc":1},"a.b":{".":"","":0},"$":[{"$ref":"x","$id":1}]}',
      '{"_id":1,"p":2,"b":3,"f_text":4,"id":5}',
      '{"text":"\\u0000\\ud800","list":[[],{},[null]],"long":9007199254740993,"tiny":5e-324,"huge":1.7976931348623157e308,"minus":-0.1}',
      '{"z":1,"a":2,"10":3,"9":4}',
      '{}',
      '[]',
      '[1,{"a":[]}]',
      `{"deep":${'['.repeat(90)}${']'.repeat(90)}}`,
      '{"$numberLong":"1","$date":0,"$oid":"507f1f77bcf86cd799439011","$binary":""}',
    ];
    await store.write([
      batch(
        collection,
        texts.map((text, n) => doc(`d${n}`, 1, JSON.parse(text) as object)),
      ),
    ]);
    for (const [n, text] of texts.entries())
      assert.is(JSON.stringify((await store.get(collection, `d${n}`))?.body), JSON.stringify(JSON.parse(text)));
  },

  async 'first writes of one id at once leave the newest'(store, { second }) {
    const other = await second();
    const collection = newCollection();
    await store.ensure(collection);
    const ids = Array.from({ length: 10 }, (_, n) => `d${n}`);
    const positions = Array.from({ length: 12 }, (_, n) => ((n * 7) % 12) + 1);
    await Promise.all(
      positions.map((n) =>
        (n % 2 === 0 ? store : other).write([
          batch(
            collection,
            ids.map((id) => doc(id, n, { n })),
          ),
        ]),
      ),
    );
    assert.equal(
      await bodies(store, collection, ids),
      ids.map(() => ({ n: 12 })),
    );
  },

  async 'many writers at once leave the newest'(store, { second }) {
    const other = await second();
    const collection = newCollection([['n']]);
    await store.ensure(collection);
    const writes = Array.from({ length: 60 }, (_, n) => (n * 37) % 60).map((n) =>
      (n % 2 === 0 ? store : other).write([
        batch(collection, [doc('one', n + 1, { n }), doc(`own${n}`, n + 1, { n })], n + 1),
      ]),
    );
    await Promise.all(writes);
    assert.equal(await bodies(store, collection, ['one', 'own17']), [{ n: 59 }, { n: 17 }]);
    assert.is(await store.checkpoint(projectionOf(collection)), at(60));
    assert.is(await store.count(collection, {}), 61);
  },

  async 'batches of 1,000 documents in one call'(store, { many = 10_000 }) {
    const collection = newCollection([['group', 'n']]);
    await store.ensure(collection);
    const id = (n: number): string => `${(n * 7_919) % many}-${n}`;
    const numbers = Array.from({ length: many }, (_, n) => n);
    const inGroup = numbers.filter((n) => n % 3 === 0).length;
    const batches = Array.from({ length: many / MAX_BATCH_DOCUMENTS }, (_, k) => {
      const own = numbers.slice(k * MAX_BATCH_DOCUMENTS, (k + 1) * MAX_BATCH_DOCUMENTS);
      return batch(
        collection,
        own.map((n) => doc(id(n), n, { group: n % 3 === 0, n })),
        own.at(-1) === many - 1 ? many - 1 : undefined,
      );
    });
    await store.write(batches);
    assert.is(await store.count(collection, {}), many);
    assert.is(await store.count(collection, { where: { group: true } }), inGroup);
    const ids = numbers.map((n) => id(many - 1 - n));
    assert.equal(idsOf(await store.getMany(collection, ids)), ids);
    assert.is((await store.find(collection, { where: { group: false } })).length, many - inGroup);
    assert.is(await store.checkpoint(projectionOf(collection)), at(many - 1));
  },

  async 'a batch over its limits is refused'(store) {
    const collection = newCollection();
    await store.ensure(collection);
    const many = Array.from({ length: MAX_BATCH_DOCUMENTS + 1 }, (_, n) => doc(`${n}`, 1, {}));
    assert.match((await rejectionOf(store.write([batch(collection, many, 1)]))).message, '1001');
    const large = [1, 2].map((n) => doc(`${n}`, 1, { text: 'x'.repeat(MAX_BATCH_BYTES / 2) }));
    assert.match((await rejectionOf(store.write([batch(collection, large, 1)]))).message, String(MAX_BATCH_BYTES));
    assert.is(await store.checkpoint(projectionOf(collection)), undefined);
    await store.write([batch(collection, [doc('one', 1, { text: 'x'.repeat(900_000) })], 1)]);
    assert.is((await bodies(store, collection, ['one'])).length, 1);
  },

  async 'getMany answers in the order asked, with gaps and repeats'(store) {
    const collection = await filled(store, [{ n: 0 }, { n: 1 }, { n: 2 }]);
    assert.equal(idsOf(await store.getMany(collection, ['d02', 'none', 'd00', 'd02', '', 'd01'])), [
      'd02',
      undefined,
      'd00',
      'd02',
      undefined,
      'd01',
    ]);
    assert.equal(await store.getMany(collection, []), []);
  },

  async 'an index may be made later'(store) {
    const collection = newCollection([['n']]);
    await store.ensure(collection, { deferIndexes: true });
    await store.write([batch(collection, [doc('a', 1, { n: 1 }), doc('b', 2, { n: 2 })])]);
    assert.equal(idsOf(await store.find(collection, { where: { n: 2 } })), ['b']);
    await store.ensure(collection);
    await store.ensure(collection, { deferIndexes: true });
    await store.write([batch(collection, [doc('c', 3, { n: 2 })])]);
    assert.equal(idsOf(await store.find(collection, { where: { n: 2 } })), ['b', 'c']);
  },

  async 'a collection gets another index'(store) {
    const before = newCollection([['n']]);
    const after = { ...before, indexes: [{ fields: ['n'] }, { fields: ['t', 'N'] }] };
    await store.ensure(before);
    const texts = ['a', null, 7, true, false, { deep: 1 }, 1.5];
    await store.write([
      batch(
        before,
        texts.map((t, n) => doc(`d${n}`, 1, { n, t, N: -n })),
      ),
    ]);
    await store.ensure(after);
    for (const [n, t] of (['a', null, 7, true, false] as const).entries())
      assert.ok(idsOf(await store.find(after, { where: { t } })).includes(`d${n}`), `finds ${t}`);
    assert.equal(idsOf(await store.find(after, { where: { t: 1.5, N: -6 } })), ['d6']);
    await store.write([batch(after, [doc('d0', 2, { n: 0, t: 'b', N: 0 })])]);
    assert.equal(
      [await store.count(after, { where: { t: 'a' } }), await store.count(after, { where: { t: 'b' } })],
      [0, 1],
    );
  },

  async 'a collection that was never made is empty, and dropping it is no error'(store) {
    const collection = newCollection([['n']]);
    assert.is(await store.get(collection, 'one'), undefined);
    assert.equal(await store.getMany(collection, ['one']), [undefined]);
    assert.equal(await store.find(collection, { where: { n: 1 } }), []);
    assert.is(await store.count(collection, {}), 0);
    await store.drop(collection);
  },

  async 'drop takes one version and its checkpoint, and nothing of another'(store, { second }) {
    const one = newCollection([['n']]);
    const two = { ...one, version: 2 };
    await store.activate(two.name, 2);
    for (const collection of [two, one]) {
      await store.ensure(collection);
      await store.write([
        batch(collection, [doc('a', collection.version, { n: collection.version })], collection.version),
      ]);
    }
    assert.equal(
      [await bodies(store, one, ['a']), await bodies(store, two, ['a'])],
      [[{ n: 1 }], [{ n: 2 }]],
      'two versions stand side by side',
    );
    const other = await second();
    assert.ok(await other.get(one, 'a'));
    await store.drop(one);
    assert.equal([await store.get(one, 'a'), await other.get(one, 'a')], [undefined, undefined]);
    assert.is(await store.checkpoint(projectionOf(one)), undefined);
    assert.not.ok(await store.reached(projectionOf(one), at(1), 20));
    assert.equal(
      [await bodies(other, two, ['a']), await store.checkpoint(projectionOf(two)), await store.active(two.name)],
      [[{ n: 2 }], at(2), 2],
    );
    await other.ensure(one);
    await other.write([batch(one, [doc('a', 1, { n: 3 })], 1)]);
    assert.equal(await bodies(store, one, ['a']), [{ n: 3 }], 'and it can be made again');
    await store.write([batch(one, [doc('b', 1, { n: 3 })], 2)]);
    assert.is(await other.count(one, { where: { n: 3 } }), 2);
  },

  async 'activate swaps readers at once'(store, { second }) {
    const other = await second();
    const one = newCollection();
    const two = { ...one, version: 2 };
    assert.is(await store.active(one.name), undefined);
    for (const collection of [one, two]) {
      await store.ensure(collection);
      await store.write([batch(collection, [doc('a', 1, { version: collection.version })])]);
    }
    await store.activate(one.name, 1);
    let swapped = false;
    const readers = [store, other].map(async (reader) => {
      for (let last = 1; ; await sleep(1)) {
        const version = await reader.active(one.name);
        assert.ok(version !== undefined && version >= last, 'never back');
        last = version;
        assert.equal(await bodies(reader, { ...one, version }, ['a']), [{ version }]);
        if (swapped) return assert.is(await reader.active(one.name), 2);
      }
    });
    await sleep(10);
    await store.activate(one.name, 2);
    swapped = true;
    await Promise.all(readers);
    await store.activate(one.name, 1);
    assert.is(await other.active(one.name), 1, 'and back');
  },

  async 'a version is taken out of use where it is the one in use, and can be used again'(store, { second }) {
    const { name } = newCollection();
    const other = await second();
    assert.is(await store.deactivate(name, 1), true, 'none was in use');
    await store.activate(name, 1);
    assert.is(await other.deactivate(name, 2), false);
    assert.is(await store.active(name), 1);
    assert.equal(await Promise.all([store, other, store].map(async (one) => one.deactivate(name, 1))), [
      true,
      true,
      true,
    ]);
    for (const one of [store, other]) assert.is(await one.active(name), undefined);
    assert.is(await store.activate(name, 2, { expected: 1 }), false, 'it is as before the first');
    assert.is(await store.activate(name, 2, { expected: 0 }), true);
    assert.is(await other.active(name), 2);
  },

  async 'activate compares and sets: of many one swaps, and an outdated expectation changes nothing'(
    store,
    { second },
  ) {
    const other = await second();
    const { name } = newCollection();
    assert.is(await store.activate(name, 2, { expected: 1 }), false, 'none is in use');
    assert.is(await store.active(name), undefined);
    const first = await Promise.all(
      [store, other, store].map(async (one, at) => one.activate(name, at + 1, { expected: 0 })),
    );
    const [winner, ...others] = first.flatMap((won, at) => (won ? [at + 1] : []));
    assert.equal([await other.active(name), others], [winner, []]);
    assert.is(await other.activate(name, 7, { expected: winner ?? 0 }), true);
    assert.is(await store.activate(name, 8, { expected: winner ?? 0 }), false, 'a process that woke up late');
    assert.is(await store.activate(name, 8, { expected: 0 }), false, 'the first one was there');
    assert.is(await store.active(name), 7);
    const swaps = await Promise.all(
      Array.from({ length: 8 }, async (_, at) =>
        (at % 2 === 0 ? store : other).activate(name, 10 + at, { expected: 7 }),
      ),
    );
    assert.is(swaps.filter(Boolean).length, 1);
    assert.is(await store.active(name), 10 + swaps.indexOf(true));
    const last = 10 + swaps.indexOf(true);
    for (const expected of [7, 0, last])
      assert.is(await other.activate(name, last, { expected }), true, 'asked again, since the answer was lost');
    assert.is(await other.activate(name, 20), true, 'whatever is in use');
    assert.is(await store.active(name), 20);
  },

  async 'readers see one version or the other, whole, while versions are built, swapped and dropped'(
    store,
    { second },
  ) {
    const clients = [store, await second(), await second()];
    const base = newCollection([['kind']]);
    const ids = Array.from({ length: 50 }, (_, n) => `d${n}`);
    const build = async (version: number): Promise<void> => {
      const collection = { ...base, version };
      await store.ensure(collection, { deferIndexes: true });
      await store.write([
        batch(
          collection,
          ids.map((id) => doc(id, 1, { kind: 'k', version })),
          version,
        ),
      ]);
      await store.ensure(collection);
      await store.activate(base.name, version);
    };
    await build(1);
    let done = false;
    let failed = false;
    const reads = clients.map(() => 0);
    const readers = clients.map(async (reader, n) => {
      for (; !done; await sleep(1)) {
        const version = await reader.active(base.name);
        assert.ok(version !== undefined);
        const collection = { ...base, version };
        const seen = [
          ...(await reader.getMany(collection, ids)),
          ...(await reader.find(collection, { where: { kind: 'k' } })),
        ].map((document) => (document?.body as { version?: number } | undefined)?.version);
        assert.equal([...new Set(seen)], [version], 'one version');
        assert.is(seen.length, 100, 'whole');
        reads[n] = (reads[n] as number) + 1;
      }
    });
    const built = (async () => {
      for (let version = 2; version <= 5; version++) {
        await build(version);
        const before = [...reads];
        // Readers of the old version are done by then.
        while (reads.some((count, n) => count < (before[n] as number) + 2) && !failed) await sleep(1);
        await store.drop({ ...base, version: version - 1 });
      }
    })().finally(() => {
      done = true;
    });
    for (const reader of readers) {
      reader.catch(() => {
        failed = true;
      });
    }
    await Promise.all([built, ...readers]);
  },

  async 'reached: already there, later, and too late'(store) {
    const collection = newCollection();
    const projection = projectionOf(collection);
    await store.ensure(collection);
    assert.not.ok(await store.reached(projection, at(1), 0));
    const late = await timed(store.reached(projection, at(1), 60));
    assert.not.ok(late.reached);
    assert.ok(late.ms >= 55, `${late.ms} ms`);
    await store.write([batch(collection, [], 5)]);
    assert.equal(await Promise.all([3, 5].map((n) => store.reached(projection, at(n), 0))), [true, true]);
    const waiting = [9, 7, 8, 7].map((n) => store.reached(projection, at(n), n === 9 ? 100 : FOR_EVER_MS));
    await store.write([batch(collection, [doc('a', 7, {})], 7)]);
    await store.write([batch(collection, [doc('a', 8, {})], 8)]);
    assert.equal(await Promise.all(waiting), [false, true, true, true]);
  },

  async 'reached notices what another client writes'(store, { second }) {
    const other = await second();
    const collection = newCollection();
    await store.ensure(collection);
    const waiting = store.reached(projectionOf(collection), at(3), FOR_EVER_MS);
    const tooFar = store.reached(projectionOf(collection), at(4), 400);
    await sleep(30);
    await other.write([batch(collection, [doc('a', 3, {})], 3)]);
    assert.ok(await waiting);
    assert.equal(await bodies(store, collection, ['a']), [{}], 'the documents are there');
    assert.not.ok(await tooFar);
  },

  async 'reached notices other clients for its own projections, and during other waits'(store, { second }) {
    const other = await second();
    const [mine, another] = [newCollection(), newCollection()];
    for (const collection of [mine, another]) await store.ensure(collection);
    await store.write([batch(mine, [doc('a', 1, {})], 1)]);
    const elsewhere = store.reached(projectionOf(another), at(9), 2_000);
    await other.write([batch(mine, [doc('a', 2, {})], 2)]);
    await sleep(100);
    assert.ok(await store.reached(projectionOf(mine), at(2), FOR_EVER_MS));
    assert.not.ok(await elsewhere);
  },

  async 'it is bound to the first log named'(store, { second }) {
    const bound = await store.boundTo('log-a');
    assert.is(await store.boundTo('log-b'), bound);
    assert.is(await (await second()).boundTo('log-c'), bound);
  },

  async 'close finishes what was asked, and everything is there when it is opened again'(store, { reopen }) {
    const collection = newCollection([['n']]);
    await store.ensure(collection);
    await store.activate(collection.name, 1);
    const bound = await store.boundTo('log-a');
    const writing = store.write(
      Array.from({ length: 3 }, (_, k) =>
        batch(
          collection,
          Array.from({ length: 1_000 }, (_unused, n) => doc(`${k}-${n}`, 1, { n })),
          1,
        ),
      ),
    );
    const putting = store.records.put(collection.name, { a: 1 });
    await Promise.all([writing, putting]);
    await store.close();
    const again = await reopen();
    assert.is(await again.count(collection, {}), 3_000);
    assert.is(await again.count(collection, { where: { n: 5 } }), 3);
    assert.equal(
      [
        await again.active(collection.name),
        await again.boundTo('log-b'),
        await again.checkpoint(projectionOf(collection)),
      ],
      [1, bound, at(1)],
    );
    assert.equal((await again.records.get(collection.name))?.value, { a: 1 });
    await again.ping();
  },

  async 'close ends waiting, and what is asked afterwards fails'(store) {
    const collection = newCollection();
    await store.ensure(collection);
    const waiting = store.reached(projectionOf(collection), at(1), 10_000);
    await store.close();
    assert.not.ok(await waiting);
    await store.close();
    const requested = [
      () => store.get(collection, 'a'),
      () => store.getMany(collection, ['a']),
      () => store.find(collection, {}),
      () => store.write([batch(collection, [], 1)]),
      () => store.records.put('a', 1),
      () => store.records.get('a'),
      () => store.reached(projectionOf(collection), at(1), 1_000),
      () => store.ping(),
    ];
    for (const ask of requested) assert.is((await rejectionOf(ask())).name, 'UnavailableError');
  },

  async 'names of engines are known'(store) {
    assert.ok(['embedded', 'mongodb'].includes(store.engine));
    await store.ping();
  },
};

const PROMISES: Readonly<Record<string, ReadStorePromised>> = {
  ...DOCUMENT_PROMISES,
  ...CORRECTION_PROMISES,
  ...QUERY_PROMISES,
  ...RECORD_PROMISES,
  ...SCRUB_PROMISES,
};
