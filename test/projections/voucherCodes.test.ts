import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { openEmbeddedReadStore } from '../../src/adapters/embedded/readStore/readStore.js';
import { voucherCodeStream } from '../../src/domain/voucherCode.js';
import type { ReadStore } from '../../src/ports/readStore.js';
import { collectionOf } from '../../src/runtime/readmodels/projection.js';
import { openReadModel } from '../../src/runtime/readmodels/readModel.js';
import {
  type VoucherCodeDocument,
  codesOfGift,
  freeCodes,
  hasPool,
  voucherCodesProjection,
} from '../../src/projections/voucherCodes.js';
import { testHash } from '../support/fixtures/importFile.js';
import { memoryEvents } from '../support/engines/memoryEvents.js';

const test = suite<{ dir: string; store: ReadStore }>('projections/voucherCodes');

test.before.each(async (context) => {
  context.dir = mkdtempSync(join(tmpdir(), 'codes-'));
  context.store = await openEmbeddedReadStore({ dir: context.dir });
});

test.after.each(async ({ store, dir }) => {
  await store.close();
  rmSync(dir, { recursive: true });
});

const streamOf = (code: string, segment = 'seg-1'): string => voucherCodeStream(segment, testHash('code', code));

/** Writes the pool, as the log has it, to the read store. */
async function pool(store: ReadStore, change: (given: ReturnType<typeof memoryEvents>['given']) => void) {
  const events = memoryEvents();
  change(events.given);
  const documents = new Map<string, { id: string; position: string; body: VoucherCodeDocument }>();
  for (const event of events.log) {
    for (const id of voucherCodesProjection.documentIds(event))
      documents.set(id, {
        id,
        position: event.position,
        body: voucherCodesProjection.evolve(documents.get(id)?.body, event, id, 0),
      });
  }
  const collection = collectionOf(voucherCodesProjection);
  await store.ensure(collection);
  await store.write([{ collection, documents: [...documents.values()] }]);
  await store.activate(collection.name, collection.version);
  return openReadModel<VoucherCodeDocument>(store, voucherCodesProjection);
}

test('a code goes from free to assigned or withdrawn, and back', () => {
  const events = memoryEvents();
  const stream = streamOf('A');
  const states: [string, string | null, string | null][] = [];
  let document: VoucherCodeDocument | undefined;
  events.given(
    stream,
    { type: 'VoucherCodeAdded', data: { segment_id: 'seg-1', code: 'A', pin: null } },
    { type: 'VoucherCodeWithdrawn', data: { reason: '' } },
    { type: 'VoucherCodeAdded', data: { segment_id: 'seg-1', code: 'A', pin: '1' } },
    { type: 'VoucherCodeChanged', data: { pin: '2' } },
    { type: 'VoucherCodeAssigned', data: { gift_id: 'g' } },
    { type: 'VoucherCodeChanged', data: { pin: '3' } },
  );
  for (const event of events.log) {
    assert.equal(voucherCodesProjection.documentIds(event), [stream]);
    document = voucherCodesProjection.evolve(document, event, stream, 0);
    states.push([document.status, document.pin, document.gift_id]);
  }
  assert.equal(states, [
    ['free', null, null],
    ['withdrawn', null, null],
    ['free', '1', null],
    ['free', '2', null],
    ['assigned', '2', 'g'],
    ['assigned', '3', 'g'],
  ]);
  assert.equal([document?.segment_id, document?.code, document?.probe], ['seg-1', 'A', testHash('code', 'A')]);
});

test('a change before the code was added is an error', () => {
  const events = memoryEvents();
  events.given(streamOf('A'), { type: 'VoucherCodeAssigned', data: { gift_id: 'g' } });
  assert.throws(
    () => voucherCodesProjection.evolve(undefined, events.log[0]!, streamOf('A'), 0),
    /before anything was added/,
  );
});

test('free codes are found once each, from an offset that differs from gift to gift', async ({ store }) => {
  const codes = Array.from({ length: 20 }, (_, n) => `C${n}`);
  const model = await pool(store, (given) => {
    for (const code of codes)
      given(streamOf(code), { type: 'VoucherCodeAdded', data: { segment_id: 'seg-1', code, pin: `pin ${code}` } });
    given(streamOf('C3'), { type: 'VoucherCodeAssigned', data: { gift_id: 'taken' } });
    given(streamOf('C4'), { type: 'VoucherCodeWithdrawn', data: { reason: '' } });
    given(streamOf('X', 'seg-2'), { type: 'VoucherCodeAdded', data: { segment_id: 'seg-2', code: 'X', pin: null } });
  });
  const expected = codes.filter((code) => code !== 'C3' && code !== 'C4').toSorted();
  const firsts = new Set<string>();
  for (let gift = 0; gift < 30; gift++) {
    const found = await freeCodes(model, 'seg-1', `gift ${gift}`, 50);
    assert.equal(found.map(({ code }) => code).toSorted(), expected);
    const [first] = await freeCodes(model, 'seg-1', `gift ${gift}`, 1);
    assert.equal(first, found[0]);
    assert.equal(first, { stream: streamOf(first?.code ?? ''), code: first?.code, pin: `pin ${first?.code}` });
    firsts.add(first?.code ?? '');
  }
  assert.ok(firsts.size > 5, `30 gifts began at ${firsts.size} places`);
  assert.equal((await freeCodes(model, 'seg-1', 'gift 1', 3)).length, 3);
});

test('a pool is known also when it is used up or withdrawn', async ({ store }) => {
  const model = await pool(store, (given) => {
    given(
      streamOf('A'),
      { type: 'VoucherCodeAdded', data: { segment_id: 'seg-1', code: 'A', pin: null } },
      { type: 'VoucherCodeAssigned', data: { gift_id: 'g' } },
    );
    given(
      streamOf('B', 'seg-2'),
      { type: 'VoucherCodeAdded', data: { segment_id: 'seg-2', code: 'B', pin: null } },
      { type: 'VoucherCodeWithdrawn', data: { reason: '' } },
    );
  });
  assert.equal(await Promise.all(['seg-1', 'seg-2', 'seg-3'].map((segment) => hasPool(model, segment))), [
    true,
    true,
    false,
  ]);
  assert.equal(await freeCodes(model, 'seg-1', 'g', 5), []);
});

test('the code that names a gift is found again', async ({ store }) => {
  const model = await pool(store, (given) => {
    given(
      streamOf('A'),
      { type: 'VoucherCodeAdded', data: { segment_id: 'seg-1', code: 'A', pin: '1' } },
      { type: 'VoucherCodeAssigned', data: { gift_id: 'g' } },
    );
    given(streamOf('B'), { type: 'VoucherCodeAdded', data: { segment_id: 'seg-1', code: 'B', pin: null } });
  });
  assert.equal(await codesOfGift(model, 'seg-1', 'g'), [{ stream: streamOf('A'), code: 'A', pin: '1' }]);
  assert.equal(await codesOfGift(model, 'seg-1', 'other'), []);
  assert.equal(await codesOfGift(model, 'seg-2', 'g'), []);
});

test.run();
