import { setTimeout as sleep } from 'node:timers/promises';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { ReadStore } from '../../../src/ports/readStore.js';
import { UnavailableError } from '../../../src/ports/unavailable.js';
import { openReadModel } from '../../../src/runtime/readmodels/readModel.js';
import { listQuarantined } from '../../../src/runtime/readmodels/quarantine.js';
import { installed } from '../../support/fixtures/projecting.js';
import { until } from '../../support/assertions/until.js';

interface Thing {
  readonly name: string;
}
const indexes = [{ fields: ['name'] }];
const things = { name: 'things', version: 1, indexes };
const second = { ...things, version: 2 };
const at = (position: number): string => String(position).padStart(16, '0');
const unavailable = async (call: Promise<unknown>): Promise<void> => {
  assert.instance(
    await call.then(
      (value) => new Error(`answered ${JSON.stringify(value)}`),
      (error: unknown) => error,
    ),
    UnavailableError,
  );
};

async function fill(store: ReadStore, collection: typeof things, names: readonly string[]): Promise<void> {
  await store.ensure(collection);
  const documents = names.map((name, index) => ({
    id: `id-${name}`,
    position: at(index + 1),
    body: { name, version: collection.version },
  }));
  await store.write([
    { collection, documents, checkpoint: { projection: `things@${collection.version}`, position: at(names.length) } },
  ]);
}

/** Stops the clock by which a reader asks for the build in use: it would run on where this process is held up. */
async function withHeldClock(work: (forward: (ms: number) => void) => Promise<void>): Promise<void> {
  const { now } = performance;
  let held = performance.now();
  performance.now = () => held;
  try {
    await work((ms) => (held += ms));
  } finally {
    performance.now = now;
  }
}

const test = suite('read model');

test(
  'a document is answered and a missing one unavailable before a build has ever caught up',
  installed(async ({ store }) => {
    await fill(store, things, ['a', 'b']);
    const model = openReadModel<Thing>(store, things);
    assert.is((await model.get('id-a'))?.name, 'a');
    assert.is((await model.getMany(['id-b', 'id-a']))[0]?.name, 'b');
    await unavailable(model.get('id-z'));
    await unavailable(model.getMany(['id-a', 'id-z']));
    await unavailable(model.find({}));
    assert.equal(await model.getMany([]), []);
  }),
);

test(
  'a missing document does not exist once a build has caught up',
  installed(async ({ store }) => {
    await fill(store, things, ['a', 'b']);
    const model = openReadModel<Thing>(store, things);
    await unavailable(model.get('id-z'));
    await store.activate('things', 1);
    assert.is(await model.get('id-z'), undefined);
    assert.is((await model.getMany(['id-z', 'id-a']))[0], undefined);
    assert.equal(
      (await model.find({ where: { name: 'b' } })).map(({ id, body }) => [id, body.name]),
      [['id-b', 'b']],
    );
  }),
);

test(
  'a query by an index that the build in use was made without is unavailable until another is',
  installed(async ({ store }) => {
    const before = { ...things, indexes: [] };
    await fill(store, before, ['a']);
    await store.activate('things', 1);
    const model = openReadModel<Thing>(store, {
      ...second,
      previous: [{ ...before, hidden: new Set(), types: [], documentIds: () => [], evolve: () => ({}) }],
    });
    assert.is((await model.get('id-a'))?.name, 'a');
    assert.is((await model.find({ where: { id: { prefix: 'id-' } } })).length, 1);
    await unavailable(model.find({ where: { name: 'a' } }));
    await unavailable(model.find({ sort: [['name', 1]] }));
    await fill(store, second, ['a', 'b']);
    await store.activate('things', 2);
    await until(async () => (await model.get('id-b')) !== undefined);
    assert.is((await model.find({ where: { name: 'b' } })).length, 1);
  }),
);

test(
  'the first reader of a damaged document lists it as out of service',
  installed(async ({ store }) => {
    const cause = 'what is stored is damaged: no JSON at position 18';
    const names = ['by id', 'of many', 'of a query'];
    await store.ensure(things);
    await store.write([
      {
        collection: things,
        documents: [...names, 'never read'].sort().map((id) => ({ id, position: at(1), body: { $unreadable: cause } })),
        checkpoint: { projection: 'things@1', position: at(1) },
      },
    ]);
    await store.activate('things', 1);
    const listed = async (): Promise<readonly unknown[]> =>
      (await listQuarantined(store.records, things)).map(({ documentId, position, cause: told }) => [
        documentId,
        position,
        told,
      ]);
    const [byId = '', ofMany = ''] = names;
    const model = openReadModel<Thing>(store, things);
    assert.equal(await model.outOfService(), []);
    const edition = model.edition();
    await unavailable(openReadModel<Thing>(store, things).get(byId));
    await until(async () => (await listed()).length === 1, 'the first');
    assert.equal(await listed(), [[byId, at(1), cause]]);
    await unavailable(openReadModel<Thing>(store, things).getMany([ofMany]));
    await until(async () => (await listed()).length === 2, 'the second');
    assert.equal(await openReadModel<Thing>(store, things).find({ limit: 5 }), []);
    await until(async () => (await listed()).length === 4, 'all');
    assert.equal(await model.outOfService(), [...names, 'never read'].sort());
    await until(async () => (await model.folded(), model.edition() !== edition), 'others to look again');
  }),
);

test(
  'a document written while its build catches up is not taken for missing',
  installed(async ({ store }) => {
    await store.ensure(things);
    let first = true;
    const get: ReadStore['get'] = async (collection, id) => {
      const document = await store.get(collection, id);
      if (first) {
        first = false;
        await fill(store, things, ['a']);
        await store.activate('things', 1);
      }
      return document as never;
    };
    assert.is((await openReadModel<Thing>({ ...store, get }, things).get('id-a'))?.name, 'a');
  }),
);

test(
  'documents out of service shorten no page',
  installed(async ({ store }) => {
    await fill(store, things, ['a', 'b', 'c', 'd', 'e']);
    const position = at(6);
    const documents = ['id-a', 'id-b', 'id-c'].map((id) => ({
      id,
      position,
      body: { $quarantined: { eventId: 'e', type: 'Named', stream: id, position, cause: 'no name' } },
    }));
    await store.write([{ collection: things, documents }]);
    await store.activate('things', 1);
    const model = openReadModel<Thing>(store, things);
    const page = async (after: string, limit: number): Promise<string[]> =>
      (await model.find({ where: { id: { gt: after } }, sort: [['id', 1]], limit })).map(({ id }) => id);
    assert.equal(await page('', 1), ['id-d']);
    assert.equal(await page('', 2), ['id-d', 'id-e']);
    assert.equal(await page('id-d', 2), ['id-e']);
    assert.equal(await page('', 0), []);
  }),
);

test(
  'another build is noticed at once where a document is missing, else within a second',
  installed(async ({ store }) => {
    await fill(store, things, ['a']);
    await store.activate('things', 1);
    const model = openReadModel<Thing & { version: number }>(store, things);
    assert.is((await model.get('id-a'))?.version, 1);
    await fill(store, second, ['a', 'b']);
    await store.activate('things', 2);
    await sleep(120);
    await withHeldClock(async () => {
      assert.is((await model.get('id-b'))?.version, 2);
      assert.is((await model.getMany(['id-b', 'id-a']))[1]?.version, 2);
      assert.is((await model.find({})).length, 2);
      await store.activate('things', 1);
      assert.is((await model.get('id-a'))?.version, 2);
    });
    await until(async () => (await model.get('id-a'))?.version === 1, 'the version in use to be noticed');
  }),
);

test(
  'a reader asks for the build in use first after a long pause',
  installed(async ({ store }) => {
    await fill(store, things, ['a']);
    await store.activate('things', 1);
    const model = openReadModel<Thing & { version: number }>(store, things);
    await withHeldClock(async (forward) => {
      await model.get('id-a');
      await fill(store, second, ['a']);
      await store.activate('things', 2);
      assert.is((await model.get('id-a'))?.version, 1, 'no pause');
      forward(11_000);
      assert.is((await model.get('id-a'))?.version, 2);
      assert.equal(
        (await model.find({})).map(({ body }) => body.version),
        [2],
      );
    });
  }),
);

test(
  'a dropped build is not read as empty',
  installed(async ({ store }) => {
    await fill(store, things, ['a']);
    await store.activate('things', 1);
    const model = openReadModel<Thing & { version: number }>(store, things);
    await model.get('id-a');
    await fill(store, second, ['a']);
    await store.activate('things', 2);
    await sleep(120);
    await store.drop(things);
    assert.equal(
      (await model.getMany(['id-a'])).map((body) => body?.version),
      [2],
    );
  }),
);

test(
  'waiting for a position goes by the build in use',
  installed(async ({ store }) => {
    await fill(store, things, ['a', 'b']);
    await store.activate('things', 1);
    const model = openReadModel<Thing>(store, things);
    assert.ok(await model.reached(at(2), 10));
    assert.not(await model.reached(at(3), 10));
    await fill(store, second, ['a', 'b', 'c']);
    await store.activate('things', 2);
    assert.ok(await model.reached(at(3), 20), 'nobody advances the first version any more');
  }),
);

test(
  'a caller that waits for a position hurries the log, and no other does',
  installed(async ({ store }) => {
    await fill(store, things, ['a', 'b']);
    await store.activate('things', 1);
    const hurried: string[] = [];
    const model = openReadModel<Thing>(store, things, {
      hurry: (position) => void hurried.push(position),
      isPosition: () => true,
      reaches: async () => true,
    });
    await model.get('id-a');
    await model.reached(at(1), 0);
    await model.reached(at(2), 10, 'patient');
    assert.equal(hurried, []);
    assert.not(await model.reached(at(3), 10));
    assert.equal(hurried, [at(3)]);
  }),
);

test(
  'nothing is read of a build whose stored position lies beyond the log, and the log is asked once for each build',
  installed(async ({ store }) => {
    await fill(store, things, ['a', 'b']);
    await store.activate('things', 1);
    const asked: string[] = [];
    let end = at(1);
    const model = openReadModel<Thing>(store, things, {
      isPosition: () => true,
      reaches: async (position) => {
        asked.push(position);
        return position <= end;
      },
    });
    for (const read of [model.folded(), model.get('id-a'), model.find({}), model.reached(at(1), 0)])
      await unavailable(read);
    const before = asked.length;
    end = at(2);
    assert.equal([await model.folded(), (await model.get('id-a'))?.name], [at(2), 'a']);
    assert.equal(asked.slice(before), [at(2)]);
  }),
);

test(
  'a store that does not answer is not taken for empty',
  installed(async ({ store }) => {
    const down: ReadStore = { ...store, active: async () => Promise.reject(new UnavailableError('down')) };
    const model = openReadModel<Thing>(down, things);
    await unavailable(model.get('id-a'));
    await unavailable(model.find({}));
    let failing = false;
    const flaky: ReadStore = {
      ...store,
      active: async (name) => (failing ? Promise.reject(new UnavailableError('down')) : store.active(name)),
    };
    await fill(store, things, ['a']);
    await store.activate('things', 1);
    const known = openReadModel<Thing>(flaky, things);
    await known.get('id-a');
    failing = true;
    await sleep(1_050);
    assert.is((await known.get('id-a'))?.name, 'a', 'the version known so far is good enough for what is there');
    await unavailable(known.get('id-z'));
  }),
);

test.run();
