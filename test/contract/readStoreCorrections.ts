import * as assert from 'uvu/assert';
import type { Correction } from '../../src/ports/readStore.js';
import { MAX_BATCH_DOCUMENTS } from '../../src/ports/readStore.js';
import type { ReadStorePromised } from '../support/engines/readStoreDocuments.js';
import { at, batch, doc, idsOf, newCollection, rejectionOf } from '../support/engines/readStoreDocuments.js';

/** The port's guarantees of corrections and of stored versions. */
export const CORRECTION_PROMISES: Readonly<Record<string, ReadStorePromised>> = {
  async 'correct replaces, removes and creates documents of any position, if the expectation holds'(store, { second }) {
    const collection = newCollection([['n', 'flag']]);
    await store.ensure(collection);
    await store.write([
      batch(
        collection,
        [
          doc('same', 5, { n: 5 }),
          doc('back', 9, { n: 9 }),
          doc('gone', 5, { n: 5 }),
          doc('moved', 6, { n: 6 }),
          doc('there', 1, { n: 1 }),
        ],
        9,
      ),
    ]);
    const corrections: Correction[] = [
      { id: 'same', expected: at(5), document: doc('same', 5, { n: 50, flag: true }) },
      { id: 'back', expected: at(9), document: doc('back', 3, { n: 30, flag: false }) },
      { id: 'gone', expected: at(5), document: undefined },
      { id: 'moved', expected: at(5), document: doc('moved', 7, { n: 70 }) },
      { id: 'moved', expected: at(5), document: undefined },
      { id: 'there', expected: undefined, document: doc('there', 8, { n: 80 }) },
      { id: 'there', expected: undefined, document: undefined },
      { id: 'new', expected: undefined, document: doc('new', 2, { n: 20, flag: true }) },
      { id: 'none', expected: at(1), document: doc('none', 2, { n: 20 }) },
      { id: 'none', expected: at(1), document: undefined },
      { id: 'none', expected: undefined, document: undefined },
    ];
    assert.equal(await store.correct(collection, corrections), [
      true,
      true,
      true,
      false,
      false,
      false,
      false,
      true,
      false,
      false,
      true,
    ]);
    const other = await second();
    const expected = [
      doc('same', 5, { n: 50, flag: true }),
      doc('back', 3, { n: 30, flag: false }),
      undefined,
      doc('moved', 6, { n: 6 }),
      doc('there', 1, { n: 1 }),
      doc('new', 2, { n: 20, flag: true }),
      undefined,
    ];
    const ids = ['same', 'back', 'gone', 'moved', 'there', 'new', 'none'];
    for (const reader of [store, other]) assert.equal(await reader.getMany(collection, ids), expected);
    assert.equal(
      idsOf(await other.find(collection, { where: { n: { gte: 20 }, flag: true }, sort: [['n', -1]] })),
      ['same', 'new'],
      'its indexes follow',
    );
    assert.is(await store.count(collection, { where: { n: { in: [5, 9] } } }), 0, 'and forget what was');
    await store.write([batch(collection, [doc('back', 4, { n: 40 })])]);
    assert.equal(await store.get(collection, 'back'), doc('back', 4, { n: 40 }), 'what comes after it is written');
  },

  async 'of many corrections of one document at once one is made'(store, { second }) {
    const collection = newCollection();
    const other = await second();
    await store.ensure(collection);
    await store.write([batch(collection, [doc('one', 1, {})])]);
    const made = await Promise.all(
      Array.from({ length: 12 }, (_, n) =>
        (n % 2 === 0 ? store : other).correct(collection, [
          { id: 'one', expected: at(1), document: doc('one', n + 2, { n }) },
        ]),
      ),
    );
    assert.is(made.flat().filter(Boolean).length, 1);
    assert.equal((await store.get(collection, 'one'))?.body, { n: made.flat().indexOf(true) });
  },

  async 'correct makes the collection it needs, and refuses too many'(store) {
    const collection = newCollection([['n']]);
    assert.equal(await store.correct(collection, []), []);
    assert.equal(
      await store.correct(collection, [{ id: 'one', expected: undefined, document: doc('one', 1, { n: 1 }) }]),
      [true],
    );
    assert.equal(idsOf(await store.find(collection, { where: { n: 1 } })), ['one']);
    const many = Array.from({ length: MAX_BATCH_DOCUMENTS + 1 }, (_, n): Correction => ({
      id: `${n}`,
      expected: undefined,
      document: undefined,
    }));
    assert.match((await rejectionOf(store.correct(collection, many))).message, '1001');
  },

  async 'the stored versions are listed'(store, { second }) {
    const collection = newCollection([['n']]);
    assert.equal(await store.versions(collection.name), []);
    for (const version of [2_000_001, 3, 10]) await store.ensure({ ...collection, version });
    await store.ensure({ ...collection, name: `${collection.name}_3`, version: 7 });
    const other = await second();
    for (const reader of [store, other]) assert.equal(await reader.versions(collection.name), [3, 10, 2_000_001]);
    await other.drop({ ...collection, version: 10 });
    assert.equal(await store.versions(collection.name), [3, 2_000_001]);
    assert.equal(await store.versions(`${collection.name}_3`), [7]);
  },
};
