import { randomBytes, randomUUID } from 'node:crypto';
import * as assert from 'uvu/assert';
import type { CollectionSpec } from '../../src/ports/readStore.js';
import type { ReadStorePromised } from '../support/engines/readStoreDocuments.js';
import { at, batch, doc, newCollection } from '../support/engines/readStoreDocuments.js';

const personalCollection = (indexes: readonly (readonly string[])[] = []): CollectionSpec => ({
  ...newCollection(indexes),
  personal: true,
});

/** A random text of 24 to 900 characters, or now and then of several pages. */
const newText = (n: number): string => randomBytes(n % 40 === 0 ? 9_000 : 18 + ((n * 131) % 650)).toString('base64url');
const newTexts = (count: number): string[] => Array.from({ length: count }, (_, n) => newText(n));

/** The port's guarantees of scrubbing. */
export const SCRUB_PROMISES: Readonly<Record<string, ReadStorePromised>> = {
  async 'no byte of replaced and deleted documents and records is left after a scrub'(store, { second, textsInFiles }) {
    const other = await second();
    const { records } = store;
    const own = randomUUID();
    const people = personalCollection();
    const dropped = personalCollection([['name']]);
    for (const collection of [people, dropped]) await store.ensure(collection);
    const [first, later, last] = [newTexts(900), newTexts(900), newTexts(300)];
    const gone: string[] = [];
    const standing = new Map<string, string>();
    const put = async (texts: readonly string[], position: number): Promise<void> => {
      for (let from = 0; from < texts.length; from += 150) {
        const some = texts.slice(from, from + 150).map((text, n) => ({ id: `d${from + n}`, text }));
        for (const { id, text } of some) {
          const before = standing.get(id);
          if (before !== undefined) gone.push(before);
          standing.set(id, text);
        }
        await (from % 300 === 0 ? store : other).write([
          batch(
            people,
            some.map(({ id, text }) => doc(id, position, { text })),
          ),
        ]);
        await Promise.all(some.map(({ id, text }) => records.put(`${own}/${id}/${text.slice(0, 24)}`, text)));
      }
    };
    await put(first, 1);
    await put(later, 2);
    await put(last, 3);
    await store.write([
      batch(
        dropped,
        first.slice(0, 200).map((text, n) => doc(`d${n}`, 1, { name: text })),
      ),
    ]);
    await other.drop(dropped);
    for (const [id, text] of standing) {
      if (Number(id.slice(1)) % 3 > 0) continue;
      const correction = { id, expected: at(Number(id.slice(1)) < last.length ? 3 : 2), document: undefined };
      assert.equal(await store.correct(people, [correction]), [true]);
      standing.delete(id);
      gone.push(text);
    }
    const kept = new Set(standing.values());
    for (const { key, value } of await records.list<string>(own)) if (!kept.has(value)) await records.delete(key);

    await Promise.all([store.scrub(), other.scrub()]);
    if (textsInFiles !== undefined) {
      assert.equal(textsInFiles(gone), []);
      assert.equal(new Set(textsInFiles([...kept])), kept, 'what stands is found in them');
    }
    const ids = Array.from({ length: 900 }, (_, n) => `d${n}`);
    for (const client of [store, other]) {
      const bodies = (await client.getMany<{ text: string }>(people, ids)).map((document) => document?.body.text);
      assert.equal(
        bodies,
        ids.map((id) => standing.get(id)),
      );
      const values = (await client.records.list<string>(own)).map(({ value }) => value);
      assert.equal(new Set(values), kept);
      assert.is(values.length, kept.size);
      assert.equal(await client.versions(dropped.name), []);
    }
  },

  async 'reads and writes go on while a store is scrubbed, and none is lost'(store, { second }) {
    const other = await second();
    const people = personalCollection([['name']]);
    const own = randomUUID();
    const ids = Array.from({ length: 800 }, (_, n) => `d${n}`);
    await store.ensure(people);
    const name = newText(1);
    await store.write([
      batch(
        people,
        ids.map((id) => doc(id, 1, { name })),
      ),
    ]);
    for (const id of ids) await store.records.put(`${own}/${id}`, 1);
    let scrubbing = true;
    const scrubbed = (async () => {
      for (let time = 0; time < 3; time++) await store.scrub();
      scrubbing = false;
    })();
    let round = 1;
    do {
      round++;
      for (let n = 0; n < ids.length; n += 97) {
        const id = ids[n]!;
        const client = n % 2 === 0 ? store : other;
        await client.write([batch(people, [doc(id, round, { name: `${id} ${round}` })], round)]);
        assert.equal((await client.get(people, id))?.body, { name: `${id} ${round}` });
        assert.is(await client.records.put(`${own}/${id}`, round, { expected: round - 1 }), round);
        assert.is(await client.records.put(`${own}/new-${id}-${round}`, round, { expected: 0 }), 1);
        assert.ok(round === 2 || (await client.records.delete(`${own}/new-${id}-${round - 1}`)));
      }
      const gone = ids[round]!;
      assert.equal(await other.correct(people, [{ id: gone, expected: at(1), document: undefined }]), [
        round % 97 !== 0,
      ]);
    } while (scrubbing && round < 600);
    await scrubbed;
    for (const client of [store, other]) {
      assert.is(
        (await client.find(people, { where: { name } })).length,
        ids.length - 9 - (round - 1) + Math.floor(round / 97),
      );
      assert.is((await client.find(people, { where: { name: `d97 ${round}` } })).length, 1);
      assert.is((await client.get(people, ids[2]!)) === undefined, true);
      assert.is((await client.records.list(own)).length, ids.length + 9);
    }
  },

  async 'all documents and records stand in its texts, once each'(store, { second }) {
    const collection = newCollection([['name']]);
    const ids = Array.from({ length: 1_100 }, (_, n) => `d${n}`);
    await store.ensure(collection);
    for (const from of [0, 600])
      await store.write([
        batch(
          collection,
          ids.slice(from, from + 600).map((id) => doc(id, 1, { name: `of ${id} "ä"` })),
        ),
      ]);
    const own = randomUUID();
    for (const id of ids.slice(0, 300)) await store.records.put(`${own}/${id}`, { value: `"${id}"` });
    const texts: string[] = [];
    for await (const some of (await second()).texts())
      for (const { place, text } of some) {
        if (text.includes(own)) assert.ok(place.includes(own));
        if (place.includes(collection.name) || text.includes(own)) texts.push(text);
      }
    const found = (part: string): number => texts.filter((text) => text.includes(part)).length;
    for (const id of ['d0', 'd599', 'd600', 'd1099']) assert.is(found(`{"name":"of ${id} \\"ä\\""}`), 1, id);
    for (const id of ['d0', 'd299']) assert.is(found(`{"value":"\\"${id}\\""}`), 1, id);
    assert.ok(texts.length >= ids.length + 300);
  },

  async 'a store without personal documents is scrubbed, too'(store) {
    await store.scrub();
    const collection = personalCollection();
    await store.ensure(collection);
    await store.drop(collection);
    await store.drop(collection);
    await store.scrub();
    await store.ensure(collection);
    await store.write([batch(collection, [doc('a', 1, { n: 1 })], 1)]);
    assert.equal((await store.get(collection, 'a'))?.body, { n: 1 });
  },
};
