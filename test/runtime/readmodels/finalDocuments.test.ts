import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { ReadStore } from '../../../src/ports/readStore.js';
import { openReadModel } from '../../../src/runtime/readmodels/readModel.js';
import { installed } from '../../support/fixtures/projecting.js';
import { until } from '../../support/assertions/until.js';

interface Thing {
  readonly state: 'open' | 'done';
  readonly name: string;
}
const things = { name: 'things', version: 1, indexes: [] };
const at = (position: number): string => String(position).padStart(16, '0');

async function put(store: ReadStore, position: number, body: Thing): Promise<void> {
  await store.ensure(things);
  const documents = [{ id: 'one', position: at(position), body }];
  const checkpoint = { projection: 'things@1', position: at(position) };
  await store.write([{ collection: things, documents, checkpoint }]);
  await store.activate('things', 1);
}

const test = suite('final documents');

test(
  'a document that is not final is read anew each time, a final one is kept',
  installed(async ({ store }) => {
    let reads = 0;
    const counted: ReadStore = {
      ...store,
      get: async (...requested) => {
        reads += 1;
        return store.get(...requested);
      },
    };
    const model = openReadModel<Thing>(counted, { ...things, isFinal: ({ state }) => state === 'done' });
    await put(store, 1, { state: 'open', name: 'a' });
    await model.get('one');
    await model.get('one');
    assert.is(reads, 2);
    await put(store, 2, { state: 'done', name: 'b' });
    assert.equal(await model.get('one'), { state: 'done', name: 'b' });
    assert.equal(await model.get('one'), { state: 'done', name: 'b' });
    assert.is(reads, 3);
  }),
);

test(
  'a final document that was repaired is read anew once the edition says so',
  installed(async ({ store }) => {
    const model = openReadModel<Thing>(store, { ...things, isFinal: ({ state }) => state === 'done' });
    await put(store, 1, { state: 'done', name: 'wrong' });
    assert.is((await model.get('one'))?.name, 'wrong');
    await put(store, 2, { state: 'done', name: 'right' });
    await store.records.put('edition/things', {});
    await until(async () => (await model.get('one'))?.name === 'right', 'the repaired document');
  }),
);

test.run();
