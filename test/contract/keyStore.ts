import { setTimeout as sleep } from 'node:timers/promises';
import * as assert from 'uvu/assert';
import {
  MAX_ERASURE_BYTES,
  MAX_SECRET_BYTES,
  type ErasureRow,
  type KeyStore,
  type SubjectRow,
} from '../../src/ports/keyStore.js';
import { UnavailableError } from '../../src/ports/unavailable.js';
import { eventually, until } from '../support/assertions/until.js';
import {
  allRows,
  byId,
  type KeyStoreFixture,
  mapBy,
  newKey,
  newRow,
  newRows,
  newSecret,
} from '../support/engines/keyStoreRows.js';
import { rejectionOf } from '../support/engines/readStoreDocuments.js';
import { checkPromises } from './promises.js';

type Promised = (store: KeyStore, fixture: KeyStoreFixture) => Promise<void>;

/** The port's guarantees, as tests of one adapter. `deviations`: see `checkPromises`. */
export function keyStoreContract(
  name: string,
  open: () => Promise<KeyStoreFixture>,
  deviations: Readonly<Record<string, string>> = {},
): void {
  checkPromises(`KeyStore: ${name}`, PROMISES, open, deviations);
}

/** A bulk purchase. */
const MANY = 10_000;
const RACERS = 64;
const CHANGES = 40;

const idsOf = (rows: readonly SubjectRow[]): string[] => rows.map(({ id }) => id);
const fenced = (rows: readonly SubjectRow[]): SubjectRow[] => rows.map((row) => ({ ...row, fenced: true }));
const newErasure = (text = '{"done":false}'): ErasureRow => ({ id: newKey(), text });
const lookupsOf = (rows: readonly SubjectRow[]): string[] => rows.map(({ lookup }) => lookup);

async function nothingOf(
  store: Pick<KeyStore, 'byId' | 'byLookup' | 'page'>,
  rows: readonly SubjectRow[],
): Promise<void> {
  assert.is((await store.byId(idsOf(rows))).size, 0, 'by id');
  assert.is((await store.byLookup(lookupsOf(rows))).size, 0, 'by lookup');
  const gone = new Set(idsOf(rows));
  assert.equal(
    (await allRows(store, 1_000)).filter(({ id }) => gone.has(id)),
    [],
    'in pages',
  );
}

const PROMISES: Readonly<Record<string, Promised>> = {
  async 'rows are found by id and by lookup as they were added, and absent ones are not'(store) {
    const rows = newRows(3);
    assert.equal(await store.add(rows), mapBy(rows, 'lookup'));
    const absent = newRow();
    assert.equal(await store.byId([...idsOf(rows), absent.id, rows[0]!.id]), mapBy(rows, 'id'));
    assert.equal(await store.byLookup([absent.lookup, ...lookupsOf(rows)]), mapBy(rows, 'lookup'));
    assert.equal(await store.byId(lookupsOf(rows)), new Map(), 'a lookup is no id');
    assert.equal(
      [await store.byId([]), await store.byLookup([]), await store.add([])],
      [new Map(), new Map(), new Map()],
    );
    await store.rewrap([]);
    await store.fence([]);
    await store.unfence([]);
    await store.remove([]);
    assert.equal([await store.removed([]), await store.removed(idsOf(rows))], [new Set(), new Set()]);
  },

  async 'secrets of any text up to the limit are given back as they were added'(store) {
    const secrets = ['', 'x', 'ä€😀"\'\\\n', 'a'.repeat(1_000), '€'.repeat(1_365), 'b'.repeat(MAX_SECRET_BYTES)];
    const rows = secrets.map((secret) => newRow({ secret }));
    await store.add(rows);
    assert.equal(await store.byId(idsOf(rows)), mapBy(rows, 'id'));
    await store.rewrap(rows.map(({ id }, n) => ({ id, secret: secrets.at(-1 - n)! })));
    assert.equal(
      [...(await store.byId(idsOf(rows))).values()].map(({ secret }) => secret).toSorted(),
      secrets.toSorted(),
    );
  },

  async 'malformed rows are refused, and nothing is stored'(store) {
    const good = newRow();
    const malformed: Partial<SubjectRow>[] = [
      { id: '' },
      { id: `${newKey()}A` },
      { id: `${newKey().slice(1)}+` },
      { lookup: '+491701234567' },
      { lookup: newKey().slice(1) },
      { secret: 'x'.repeat(MAX_SECRET_BYTES + 1) },
      { secret: '€'.repeat(MAX_SECRET_BYTES / 3 + 1) },
    ];
    for (const changes of malformed) {
      const error = await rejectionOf(store.add([good, newRow(changes)]));
      assert.not.instance(error, UnavailableError);
      for (const secret of [changes.lookup, changes.secret])
        if (secret !== undefined) assert.not(error.message.includes(secret), 'its message shows neither');
    }
    await nothingOf(store, [good]);
    await store.add([good]);
    await rejectionOf(store.rewrap([{ id: good.id, secret: 'x'.repeat(MAX_SECRET_BYTES + 1) }]));
    assert.equal(await store.byId([good.id]), mapBy([good], 'id'));
  },

  async 'a row that stands stays, and its lookup is answered with it'(store, { second }) {
    const other = await second();
    const [first, free] = newRows(2);
    await store.add([first!]);
    const late = newRow({ lookup: first!.lookup });
    for (const client of [store, other])
      assert.equal(await client.add([late, free!]), mapBy([first!, free!], 'lookup'));
    assert.equal(await store.byId([late.id, first!.id]), mapBy([first!], 'id'));
    assert.equal(await store.add([first!, free!]), mapBy([first!, free!], 'lookup'), 'the same call again');
  },

  async 'of two rows of one lookup in a call the first stays'(store) {
    const [first, between] = newRows(2);
    const again = newRow({ lookup: first!.lookup });
    assert.equal(await store.add([first!, between!, again]), mapBy([first!, between!], 'lookup'));
    assert.equal(await store.byId([first!.id, again.id]), mapBy([first!], 'id'));
  },

  async 'an id is refused that has another lookup, and only the call that adds it'(store) {
    const stands = newRow();
    await store.add([stands]);
    const wrong = newRow({ id: stands.id });
    const others = newRows(20);
    const [refused, ...added] = await Promise.allSettled([
      store.add([wrong]),
      ...others.map((row) => store.add([row])),
    ]);
    const { reason } = refused as PromiseRejectedResult;
    assert.not.instance(reason, UnavailableError);
    assert.match((reason as Error).message, stands.id);
    for (const { status } of added) assert.is(status, 'fulfilled');
    assert.equal(await store.byLookup([wrong.lookup, stands.lookup]), mapBy([stands], 'lookup'));
    assert.is((await store.byId(idsOf(others))).size, others.length);
  },

  async 'of 64 adds of one lookup, by two processes, one stays and all get it'(store, { elsewhere, second }) {
    const other = await elsewhere();
    try {
      for (let round = 0; round < 3; round++) {
        const lookup = newKey();
        const rows = Array.from({ length: RACERS }, () => newRow({ lookup }));
        const answers = await Promise.all(rows.map((row, n) => (n % 2 === 0 ? store : other).add([row])));
        const stands = [...(await store.byLookup([lookup])).values()];
        assert.is(stands.length, 1);
        for (const answer of answers) assert.equal(answer, mapBy(stands, 'lookup'));
        assert.equal(await (await second()).byId(idsOf(rows)), mapBy(stands, 'id'), 'the others are nowhere');
      }
    } finally {
      await other.kill();
    }
  },

  async 'of many lookups added at once by two processes, in other orders, each has one row'(store, { elsewhere }) {
    const other = await elsewhere();
    try {
      const mine = newRows(500);
      const theirs = mine.map(({ lookup }) => newRow({ lookup })).toReversed();
      const [here, there] = await Promise.all([store.add(mine), other.add(theirs)]);
      assert.equal(here, there);
      assert.equal(await store.byLookup(lookupsOf(mine)), here);
      assert.is(here.size, mine.length);
      assert.is((await store.byId(idsOf([...mine, ...theirs]))).size, mine.length);
    } finally {
      await other.kill();
    }
  },

  async 'what is added is found at once by every client'(store, { second }) {
    const other = await second();
    for (let n = 0; n < 20; n++) {
      const row = newRow();
      const [writer, reader] = n % 2 === 0 ? [store, other] : [other, store];
      await writer.add([row]);
      assert.equal(await reader.byLookup([row.lookup]), mapBy([row], 'lookup'));
      assert.equal(await writer.byId([row.id]), mapBy([row], 'id'));
    }
  },

  async 'what a killed process was told is stored stays, and what is removed stays away'(store, { elsewhere }) {
    for (const wait of [60, 200]) {
      const other = await elsewhere();
      const said = other.load(30);
      await until(() => said.removed.length > 0, 'the first removal');
      await sleep(wait);
      await other.kill();
      assert.equal(await store.byId(idsOf(said.added)), mapBy(said.added, 'id'));
      assert.equal(await store.byLookup(lookupsOf(said.added)), mapBy(said.added, 'lookup'));
      await nothingOf(store, said.removed);
      const [row] = newRows(1);
      await store.add([row!]);
      assert.equal(await store.byId([row!.id]), mapBy([row!], 'id'), 'and it goes on');
    }
  },

  async 'removed rows are given to no client, and removing them again is no error'(store, { second }) {
    const other = await second();
    const [gone, stays] = [newRows(5), newRows(5)];
    await store.add([...gone, ...stays]);
    await other.byId(idsOf(gone));
    await store.remove(idsOf(gone));
    for (const client of [store, other]) {
      await nothingOf(client, gone);
      assert.equal(await client.byId(idsOf(stays)), mapBy(stays, 'id'));
    }
    await other.remove([...idsOf(gone), newKey()]);
    const again = newRow({ lookup: gone[0]!.lookup });
    assert.equal(await store.add([again]), mapBy([again], 'lookup'), 'who comes again is another subject');
    await nothingOf(store, gone.slice(1));
    assert.is((await store.byId([gone[0]!.id])).size, 0);
    for (const client of [store, other])
      assert.equal(await client.removed(idsOf([...gone, ...stays, again])), new Set(idsOf(gone)));
  },

  async 'a fenced row is given as such to every client, also after a kill and a reopening'(
    store,
    { second, elsewhere, reopen },
  ) {
    const other = await second();
    const process = await elsewhere();
    const [being, stays] = [newRows(30), newRows(30)];
    await store.add([...being, ...stays]);
    await other.byId(idsOf(being));
    await process.fence(idsOf(being));
    await process.kill();
    const rows = [...fenced(being), ...stays];
    const check = async (client: KeyStore): Promise<void> => {
      assert.equal(await client.byId(idsOf(rows)), mapBy(rows, 'id'));
      assert.equal(await client.byLookup(lookupsOf(rows)), mapBy(rows, 'lookup'));
      assert.equal(await allRows(client, 7), byId(rows));
    };
    for (const client of [store, other]) await check(client);
    await other.fence(idsOf(being));
    await store.close();
    await check(await reopen());
  },

  async 'a fenced row stands until it is removed, and its lookup is free then'(store, { second }) {
    const other = await second();
    const rows = newRows(20);
    await store.add(rows);
    await other.fence(idsOf(rows));
    const late = rows.map(({ lookup }) => newRow({ lookup }));
    for (const client of [store, other]) assert.equal(await client.add(late), mapBy(fenced(rows), 'lookup'));
    assert.equal(await store.add(rows), mapBy(fenced(rows), 'lookup'), 'the same rows again');
    const next = rows.map((row) => ({ ...row, secret: newSecret(80) }));
    await store.rewrap(next);
    assert.equal(await other.byId(idsOf(rows)), mapBy(fenced(next), 'id'), 'wrapped anew it is fenced');
    await store.remove(idsOf(rows));
    await store.fence(idsOf(rows));
    await nothingOf(other, rows);
    assert.equal(await other.add(late), mapBy(late, 'lookup'), 'who comes again is another subject');
    assert.equal(await store.byId(idsOf([...rows, ...late])), mapBy(late, 'id'));
  },

  async 'a row whose fence has ended is as before, to every client, also after a kill and a reopening'(
    store,
    { second, elsewhere, reopen },
  ) {
    const other = await second();
    const process = await elsewhere();
    const [freed, stays, gone] = [newRows(20), newRows(20), newRows(20)];
    await store.add([...freed, ...stays, ...gone]);
    await store.fence(idsOf([...freed, ...stays, ...gone]));
    await store.remove(idsOf(gone));
    await process.unfence(idsOf([...freed, ...gone]));
    await process.kill();
    await other.unfence([...idsOf(freed), newKey()]);
    const rows = [...freed, ...fenced(stays)];
    const check = async (client: KeyStore): Promise<void> => {
      assert.equal(await client.byId(idsOf([...rows, ...gone])), mapBy(rows, 'id'));
      assert.equal(await client.removed(idsOf([...rows, ...gone])), new Set(idsOf(gone)), 'what was removed stays so');
      assert.equal(await client.add(freed), mapBy(freed, 'lookup'));
    };
    for (const client of [store, other]) await check(client);
    await store.fence([freed[0]!.id]);
    assert.is((await other.byId([freed[0]!.id])).get(freed[0]!.id)?.fenced, true, 'it may be fenced again');
    await other.unfence([freed[0]!.id]);
    await store.close();
    await check(await reopen());
  },

  async 'a fence of an unknown id fails nothing, and no row is fenced by adding it'(store) {
    const [unknown, own] = newRows(2);
    await store.fence([unknown!.id]);
    assert.is((await store.add([unknown!])).get(unknown!.lookup)?.id, unknown!.id);
    assert.equal(await store.add(fenced([own!])), mapBy([own!], 'lookup'));
    assert.equal(await store.byId([own!.id]), mapBy([own!], 'id'));
  },

  async 'an add of a removed id adds nothing, whoever removed it, and though it was never there'(
    store,
    { second, elsewhere, reopen },
  ) {
    const other = await second();
    const process = await elsewhere();
    const [gone, never, fresh] = [newRows(20), newRows(20), newRows(5)];
    await store.add(gone);
    await process.remove(idsOf([...gone, ...never]));
    await process.kill();
    const late = [...gone, ...never, ...gone.map(({ id }) => newRow({ id }))];
    for (const client of [store, other]) {
      assert.equal(await client.add([...late, ...fresh]), mapBy(fresh, 'lookup'));
      await nothingOf(client, late);
    }
    const successor = newRow({ lookup: gone[0]!.lookup });
    assert.equal(await store.add([gone[0]!, successor]), mapBy([successor], 'lookup'), 'the next of its lookup stays');
    assert.equal(await store.add([gone[0]!]), mapBy([successor], 'lookup'));
    await store.close();
    const again = await reopen();
    await again.add(late);
    await nothingOf(again, late.slice(1, 40));
    assert.equal(await again.removed(idsOf([...late, ...fresh])), new Set(idsOf(late)));
  },

  async 'an add of a row that is removed at the same moment leaves none'(store, { elsewhere }) {
    const other = await elsewhere();
    try {
      const [known, fresh] = [newRows(60), newRows(60)];
      await store.add(known);
      const rows = [...known, ...fresh];
      await Promise.all([
        ...rows.map((row) => store.add([row])),
        ...rows.map(({ id }) => other.remove([id])),
        ...rows.map(({ id }) => store.remove([id])),
      ]);
      await nothingOf(store, rows);
      assert.is((await store.add(rows)).size, 0);
    } finally {
      await other.kill();
    }
  },

  async 'fences and removals of malformed ids are refused, and nothing is done'(store) {
    const row = newRow();
    await store.add([row]);
    for (const ask of [
      () => store.remove([row.id, '+491701234567']),
      () => store.fence([row.id, '+491701234567']),
      () => store.unfence([row.id, '+491701234567']),
      () => store.remove([row.id, '']),
    ])
      assert.not.instance(await rejectionOf(ask()), UnavailableError);
    assert.equal(await store.byId([row.id]), mapBy([row], 'id'));
  },

  async 'erasures are kept, replaced and given in pages in their order, after a kill too'(
    store,
    { second, elsewhere, reopen },
  ) {
    const other = await second();
    const process = await elsewhere();
    assert.equal(await store.erasures(undefined, 10), []);
    const erasures = Array.from({ length: 25 }, () => newErasure()).toSorted((a, b) => (a.id < b.id ? -1 : 1));
    await Promise.all(erasures.map((row, n) => (n % 2 === 0 ? store : process).putErasure(row)));
    const next = { id: erasures[3]!.id, text: `{"words":"${'€'.repeat((MAX_ERASURE_BYTES - 12) / 3)}"}` };
    await process.putErasure(next);
    await process.kill();
    await other.putErasure(next);
    erasures[3] = next;
    const check = async (client: KeyStore): Promise<void> => {
      assert.equal(await client.erasures(undefined, 100), erasures);
      assert.equal(await client.erasures(undefined, 10), erasures.slice(0, 10));
      assert.equal(await client.erasures(erasures[9]!.id, 10), erasures.slice(10, 20));
      assert.equal(await client.erasures(erasures.at(-1)!.id, 10), []);
      assert.equal(await client.erasures(undefined, 0), []);
    };
    for (const client of [store, other]) await check(client);
    await store.close();
    await check(await reopen());
  },

  async 'an erasure that two clients put at the same moment stands once'(store, { elsewhere }) {
    const other = await elsewhere();
    try {
      const erasures = Array.from({ length: 30 }, () => newErasure());
      await Promise.all(erasures.flatMap((row) => [store.putErasure(row), other.putErasure(row)]));
      assert.is((await store.erasures(undefined, 100)).length, erasures.length);
    } finally {
      await other.kill();
    }
  },

  async 'malformed and over-long erasures are refused, and nothing is stored'(store) {
    for (const row of [{ ...newErasure(), id: '+491701234567' }, newErasure('€'.repeat(MAX_ERASURE_BYTES / 3 + 1))])
      assert.not.instance(await rejectionOf(store.putErasure(row)), UnavailableError);
    assert.equal(await store.erasures(undefined, 10), []);
  },

  async 'no byte of a removed secret or lookup is left in the files'(store, { textsInFiles, second }) {
    const texts = (rows: readonly SubjectRow[]): string[] => rows.flatMap(({ lookup, secret }) => [lookup, secret]);
    const other = await second();
    const rows = Array.from({ length: 1_200 }, (_, n) => newRow({ secret: newSecret(40 + ((n * 37) % 300)) }));
    for (let at = 0; at < rows.length; at += 250) await store.add(rows.slice(at, at + 250));
    if (textsInFiles === undefined) return nothing();
    assert.equal(new Set(textsInFiles(texts(rows))), new Set(texts(rows)), 'they can be found there');
    const rewrapped = rows
      .filter((_, n) => n % 5 === 0)
      .map((row, n) => ({ ...row, secret: newSecret(60 + (n % 90)) }));
    await other.rewrap(rewrapped);
    const gone = rows.filter((_, n) => n % 2 === 0);
    const goneIds = new Set(idsOf(gone));
    for (let at = 0; at < gone.length; at += 200) {
      const some = gone.slice(at, at + 200);
      await other.fence(idsOf(some));
      await store.remove(idsOf(some));
      assert.equal(textsInFiles(texts(some)), [], `after ${at + some.length}`);
      await store.add(some);
      await store.putErasure(newErasure());
    }
    assert.equal(textsInFiles(texts([...gone, ...rewrapped.filter(({ id }) => goneIds.has(id))])), []);
    await other.add(newRows(500));
    const last = await store.page(undefined, 4_000);
    await store.remove(idsOf(last));
    assert.equal(textsInFiles(texts([...last, ...rows, ...rewrapped])), [], 'all');
    return undefined;

    async function nothing(): Promise<void> {
      await store.remove(idsOf(rows));
      await nothingOf(other, rows);
    }
  },

  async 'rewrap changes the secrets of rows that stand, and nothing else'(store, { second }) {
    const rows = newRows(4);
    await store.add(rows);
    const next = rows.map((row, n) => ({ ...row, secret: newSecret(30 + n * 40) }));
    await store.rewrap(next.slice(0, 3).map(({ id, secret }) => ({ id, secret })));
    const expected = [...next.slice(0, 3), rows[3]!];
    for (const client of [store, await second()]) {
      assert.equal(await client.byId(idsOf(rows)), mapBy(expected, 'id'));
      assert.equal(await client.byLookup(lookupsOf(rows)), mapBy(expected, 'lookup'));
    }
    await store.rewrap(next.slice(0, 3));
    assert.equal(await store.byId(idsOf(rows)), mapBy(expected, 'id'), 'the same call again');
  },

  async 'rewrap brings no removed row back, also while it is removed'(store, { second }) {
    const other = await second();
    const rows = newRows(200);
    await store.add(rows);
    await store.remove(idsOf(rows.slice(0, 100)));
    await store.rewrap(rows.map(({ id }) => ({ id, secret: newSecret() })));
    await nothingOf(store, rows.slice(0, 100));
    const still = rows.slice(100);
    await Promise.all([
      ...still.map(({ id }) => other.rewrap([{ id, secret: newSecret() }])),
      ...still.map(({ id }) => store.remove([id])),
    ]);
    await nothingOf(store, rows);
    await nothingOf(other, rows);
  },

  async 'pages give rows in the order of their ids, each once'(store) {
    const rows = byId(newRows(1_100));
    await store.add(rows);
    for (const limit of [7, 100, 1_100, 2_000]) assert.equal(await allRows(store, limit), rows, `${limit} a page`);
    assert.equal(await store.page(rows[4]!.id, 3), rows.slice(5, 8));
    assert.equal(await store.page(rows.at(-1)!.id, 3), []);
    assert.equal(await store.page(undefined, 0), []);
  },

  async 'pages that are read while rows are added and removed give each row that stays, once'(store, { second }) {
    const other = await second();
    const [stays, gone] = [byId(newRows(400)), newRows(100)];
    await store.add([...stays, ...gone]);
    let read = false;
    const changing = (async () => {
      for (let n = 0; !read && n < CHANGES; n++) {
        await other.add(newRows(20));
        await other.remove(idsOf(gone.slice(n * 5, n * 5 + 5)));
      }
    })();
    try {
      for (let round = 0; round < 5; round++) {
        const rows = await allRows(store, 20);
        assert.is(new Set(idsOf(rows)).size, rows.length, 'none twice');
        assert.equal(idsOf(rows), idsOf(byId(rows)), 'in order');
        const ids = new Set(idsOf(stays));
        assert.equal(
          rows.filter(({ id }) => ids.has(id)),
          stays,
        );
      }
    } finally {
      read = true;
      await changing;
    }
  },

  async 'adds, reads and removes 10,000 rows at once'(store, { many = MANY }) {
    const rows = newRows(many);
    const standing = await store.add(rows);
    assert.equal(standing, mapBy(rows, 'lookup'));
    const others = rows.map(({ lookup }) => newRow({ lookup }));
    const again = await store.add(others);
    assert.equal(again, standing);
    assert.equal(await store.byId(idsOf(rows)), mapBy(rows, 'id'));
    assert.equal(await store.byLookup(lookupsOf(rows)), standing);
    assert.equal(await store.page(undefined, many), byId(rows));
    const rewrapped = rows.map(({ id }) => ({ id, secret: newSecret() }));
    await store.rewrap(rewrapped);
    await store.fence(idsOf(rows));
    await store.remove(idsOf(rows));
    assert.equal(await store.add(rows), new Map());
    assert.equal(await store.removed(idsOf(rows)), new Set(idsOf(rows)));
    assert.equal(await store.page(undefined, 1), []);
  },

  async 'close finishes what was asked, and everything is there when it is opened again'(store, { reopen }) {
    const rows = newRows(100);
    const adding = Promise.all(rows.map((row) => store.add([row])));
    await adding;
    await store.close();
    await store.close();
    const again = await reopen();
    assert.equal(await again.byId(idsOf(rows)), mapBy(rows, 'id'));
    await again.ping();
  },

  async 'what is asked after close fails'(store) {
    await store.add([newRow()]);
    await store.close();
    for (const ask of Object.values(everyCall(store))) assert.instance(await rejectionOf(ask()), UnavailableError);
  },

  async 'calls fail with UnavailableError while the engine is gone, and work when it is back'(store, { engine }) {
    const rows = newRows(10);
    await store.add(rows);
    await store.ping();
    await engine.take();
    try {
      // Reads may still be answered.
      await eventually(async () => (await Promise.allSettled([store.ping()]))[0]!.status === 'rejected');
      const calls = Object.entries(everyCall(store));
      const outcomes = await Promise.allSettled(calls.map(async ([, ask]) => ask()));
      for (const [n, outcome] of outcomes.entries()) {
        const name = calls[n]![0];
        if (outcome.status === 'rejected') assert.instance(outcome.reason, UnavailableError, name);
        else assert.ok(name.startsWith('read'), `${name} was answered`);
      }
    } finally {
      await engine.giveBack();
    }
    await eventually(async () =>
      store.ping().then(
        () => true,
        () => false,
      ),
    );
    assert.equal(await store.byId(idsOf(rows)), mapBy(rows, 'id'), 'nothing acknowledged is lost');
    const row = newRow();
    assert.equal(await store.add([row]), mapBy([row], 'lookup'));
    await store.remove(idsOf(rows));
    await nothingOf(store, rows);
  },

  async 'names of engines are known'(store) {
    assert.ok(['embedded', 'mongodb'].includes(store.engine));
    await store.ping();
  },
};

function everyCall(store: KeyStore): Record<string, () => Promise<unknown>> {
  return {
    'read by id': () => store.byId([newKey()]),
    'read by lookup': () => store.byLookup([newKey()]),
    'read a page': () => store.page(undefined, 10),
    'read removed ones': () => store.removed([newKey()]),
    'read erasures': () => store.erasures(undefined, 10),
    ping: () => store.ping(),
    add: () => store.add([newRow()]),
    rewrap: () => store.rewrap([{ id: newKey(), secret: newSecret() }]),
    fence: () => store.fence([newKey()]),
    unfence: () => store.unfence([newKey()]),
    remove: () => store.remove([newKey()]),
    'put an erasure': () => store.putErasure(newErasure()),
  };
}
