import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import * as assert from 'uvu/assert';
import type { ReadStorePromised } from '../support/engines/readStoreDocuments.js';
import { rejectionOf } from '../support/engines/readStoreDocuments.js';

/** Guarantees of records. */
export const RECORD_PROMISES: Readonly<Record<string, ReadStorePromised>> = {
  async 'a record is read as it was put, with versions from 1'({ records }) {
    const key = randomUUID();
    assert.is(await records.get(key), undefined);
    const value = { text: 'ä€😀\u0000"\\', list: [null, 1.5, { deep: true }] };
    assert.is(await records.put(key, value), 1);
    assert.equal(await records.get(key), { key, value, version: 1 });
    for (const [n, plain] of (['text', 0, false, null, []] as const).entries()) {
      assert.is(await records.put(key, plain), n + 2);
      assert.equal((await records.get(key))?.value, plain);
    }
    const expiresAt = Date.now() + 60_000;
    assert.is(await records.put(key, 1, { expiresAt }), 7);
    assert.equal(await records.get(key), { key, value: 1, version: 7, expiresAt });
    assert.is(await records.put(key, 2), 8);
    assert.equal(await records.get(key), { key, value: 2, version: 8 }, 'a put without an expiry takes it away');
  },

  async 'a value that is no JSON, and a key over 200 characters, are refused'({ records }) {
    assert.match((await rejectionOf(records.put(randomUUID(), undefined))).message, 'not JSON');
    assert.match((await rejectionOf(records.put('k'.repeat(201), 1))).message, '200');
    assert.is(await records.put(`${randomUUID()}${'ä'.repeat(164)}`, 1), 1);
  },

  async 'a put holds to the version it expects'({ records }) {
    const key = randomUUID();
    assert.is(await records.put(key, 'x', { expected: 1 }), undefined);
    assert.is(await records.get(key), undefined);
    assert.is(await records.put(key, 'a', { expected: 0 }), 1);
    assert.is(await records.put(key, 'x', { expected: 0 }), undefined);
    assert.is(await records.put(key, 'b', { expected: 1 }), 2);
    assert.is(await records.put(key, 'x', { expected: 1 }), undefined);
    assert.is(await records.put(key, 'x', { expected: 3 }), undefined);
    assert.equal(await records.get(key), { key, value: 'b', version: 2 });
  },

  async 'of 64 puts at once that expect one version, one succeeds'({ records }, { second }) {
    const other = (await second()).records;
    const key = randomUUID();
    for (const expected of [0, 1, 2]) {
      const versions = await Promise.all(
        Array.from({ length: 64 }, (_, n) => (n % 2 === 0 ? records : other).put(key, n, { expected })),
      );
      assert.equal(
        versions.filter((version) => version !== undefined),
        [expected + 1],
      );
      assert.is(
        (await other.get(key))?.value,
        versions.findIndex((version) => version !== undefined),
      );
    }
  },

  async 'puts that expect nothing all count'({ records }, { second }) {
    const other = (await second()).records;
    const key = randomUUID();
    const versions = await Promise.all(
      Array.from({ length: 40 }, (_, n) => (n % 2 === 0 ? records : other).put(key, n)),
    );
    assert.equal(
      versions.map(Number).sort((a, b) => a - b),
      Array.from({ length: 40 }, (_, n) => n + 1),
    );
  },

  async 'counting by compare-and-set loses nothing'({ records }, { second }) {
    const other = (await second()).records;
    const key = randomUUID();
    const count = async (on: typeof records): Promise<void> => {
      for (;;) {
        const record = await on.get<number>(key);
        if ((await on.put(key, (record?.value ?? 0) + 1, { expected: record?.version ?? 0 })) !== undefined) return;
      }
    };
    await Promise.all(Array.from({ length: 24 }, (_, n) => count(n % 2 === 0 ? records : other)));
    assert.is((await records.get(key))?.value, 24);
  },

  async 'delete, with and without an expected version'({ records }) {
    const key = randomUUID();
    assert.not.ok(await records.delete(key));
    assert.not.ok(await records.delete(key, 1));
    await records.put(key, 'a');
    await records.put(key, 'b');
    assert.not.ok(await records.delete(key, 1));
    assert.is((await records.get(key))?.value, 'b');
    assert.ok(await records.delete(key, 2));
    assert.is(await records.get(key), undefined);
    assert.is(await records.put(key, 'c', { expected: 0 }), 1, 'it starts again at 1');
    assert.ok(await records.delete(key));
    assert.not.ok(await records.delete(key));
  },

  async 'an expired record is as if it were not there'({ records }) {
    const prefix = randomUUID();
    const [past, soon, later] = [`${prefix}-past`, `${prefix}-soon`, `${prefix}-later`];
    await records.put(past, 'x', { expiresAt: Date.now() - 1 });
    await records.put(soon, 'x');
    assert.is(await records.put(soon, 'x', { expiresAt: Date.now() + 150 }), 2);
    await records.put(later, 'x', { expiresAt: Date.now() + 60_000 });
    assert.is(await records.get(past), undefined);
    assert.is(await records.put(past, 'y', { expected: 1 }), undefined);
    assert.not.ok(await records.delete(past));
    assert.is((await records.get(later))?.version, 1);
    await sleep(200);
    assert.is(await records.get(soon), undefined);
    assert.equal(
      (await records.list(prefix)).map(({ key }) => key),
      [later],
    );
    assert.not.ok(await records.delete(soon, 2));
    assert.is(await records.put(soon, 'y', { expected: 0 }), 1);
    assert.equal(await records.get(soon), { key: soon, value: 'y', version: 1 });
  },

  async 'list by prefix, in order, whatever the characters'({ records }) {
    const own = randomUUID();
    const ends = ['', '%', '%a', '_', '\\', 'a', 'a%', 'ab', 'a_b', 'b', 'é', '😀', '😀a', '😁', '.*', '$', "'"];
    for (const end of ends) await records.put(`${own}${end}`, end);
    await records.put(`x${own}`, 'another');
    const sorted = ends.toSorted((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
    const listed = async (prefix: string, limit?: number): Promise<unknown[]> =>
      (await records.list(`${own}${prefix}`, limit)).map(({ value }) => value);
    for (const prefix of ends)
      assert.equal(
        await listed(prefix),
        sorted.filter((end) => end.startsWith(prefix)),
        prefix,
      );
    for (const limit of [0, 3]) assert.equal(await listed('', limit), sorted.slice(0, limit));
    for (const limit of [1, 4, 100]) {
      const pages: string[] = [];
      for (let after: string | undefined; ;) {
        const page = await records.list<string>(own, limit, after);
        pages.push(...page.map(({ value }) => value));
        after = page.at(-1)?.key;
        if (after === undefined) break;
      }
      assert.equal(pages, sorted, `page by page, ${limit} at a time`);
    }
    assert.is((await records.list(own, undefined, ' ')).length, ends.length, 'a key before the prefix leaves none out');
    assert.equal(await records.list(own, undefined, `x${own}`), [], 'nor does one after it give any');
    assert.equal(await listed('nothing'), []);
    assert.ok((await records.list('')).length >= ends.length + 1, 'an empty prefix lists all');
  },

  async 'keys may be any string'({ records }) {
    const own = randomUUID();
    for (const end of ["o'brien", 'a.b/c:d', 'nul\u0000', '$where', '"', ' ']) {
      assert.is(await records.put(`${own}${end}`, end, { expected: 0 }), 1);
      assert.is((await records.get(`${own}${end}`))?.value, end);
      assert.ok(await records.delete(`${own}${end}`, 1));
    }
  },
};
