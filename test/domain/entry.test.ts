import fc from 'fast-check';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { DomainEvent } from '../../src/domain/decider.js';
import { type Entry, evolveEntry, putEntry, retireEntry, sameJson } from '../../src/domain/entry.js';

interface Thing {
  readonly id: string;
  readonly size: number;
  readonly tags: readonly string[];
  readonly active: boolean;
}

const thing: Thing = { id: 't', size: 1, tags: ['a'], active: true };
const none: Entry<Thing> = { status: 'none' };
const test = suite('domain/entry');

test('a new entry is added whole', () => {
  assert.equal(putEntry('thing', none, thing), [{ type: 'ThingAdded', data: thing }]);
});

test('appends nothing for an entry that is unchanged', () => {
  assert.equal(putEntry('thing', { status: 'live', value: thing }, { ...thing, tags: ['a'] }), []);
});

test('a changed entry appends only what changed', () => {
  assert.equal(putEntry('thing', { status: 'live', value: thing }, { ...thing, size: 2, tags: ['a', 'b'] }), [
    { type: 'ThingChanged', data: { size: 2, tags: ['a', 'b'] } },
  ]);
});

test('a retired entry is inactive, keeps its values, and is added again when it comes back', () => {
  const [retired] = retireEntry('thing', { status: 'live', value: thing }, 'gone');
  assert.equal(retired, { type: 'ThingRetired', data: { reason: 'gone' } });
  const state = evolveEntry<Thing>({ status: 'live', value: thing }, retired ?? { type: '', data: {} });
  assert.equal(state, { status: 'retired', value: { ...thing, active: false } });
  assert.equal(putEntry('thing', state, thing), [{ type: 'ThingAdded', data: thing }]);
  assert.equal(evolveEntry(state, { type: 'ThingAdded', data: thing }), { status: 'live', value: thing });
});

test('retires an entry without active as it is', () => {
  assert.equal(evolveEntry({ status: 'live', value: { id: 's' } }, { type: 'StoreRetired', data: { reason: '' } }), {
    status: 'retired',
    value: { id: 's' },
  });
});

test('retires no unknown or retired entry', () => {
  assert.equal(retireEntry('thing', none, 'gone'), []);
  assert.equal(retireEntry('thing', { status: 'retired', value: thing }, 'gone'), []);
});

test('events of other types, and changes before anything was added, leave the state as it is', () => {
  assert.is(evolveEntry(none, { type: 'ThingChanged', data: { size: 2 } }), none);
  const live: Entry<Thing> = { status: 'live', value: thing };
  assert.is(evolveEntry(live, { type: 'SomethingElse', data: {} }), live);
});

test('JSON values are the same when JSON writes the same, whatever the order of fields', () => {
  assert.ok(sameJson({ a: 1, b: [-0] }, { b: [0], a: 1 }));
  for (const [left, right] of [
    [1, '1'],
    [null, {}],
    [[], {}],
    [{}, []],
    [[1], [1, 2]],
    [{ a: 1 }, { b: 1 }],
    [{ a: 1 }, { a: 1, b: 1 }],
    [{ a: null }, { a: false }],
    [{}, 5],
    [5, {}],
    [{}, ''],
    [[], { length: 0 }],
    [{ length: 0 }, []],
  ]) {
    assert.not(sameJson(left, right), JSON.stringify([left, right]));
  }
  const json = fc.jsonValue({ maxDepth: 3 });
  fc.assert(fc.property(json, (value) => sameJson(value, JSON.parse(JSON.stringify(value)))));
  fc.assert(
    fc.property(
      json,
      json,
      (left, right) => !sameJson(left, right) || JSON.stringify(left).length === JSON.stringify(right).length,
    ),
  );
});

test('property: folds what it appends to what was wanted', () => {
  const entry = fc.record(
    {
      id: fc.constant('t'),
      size: fc.integer(),
      tags: fc.array(fc.string({ maxLength: 2 }), { maxLength: 2 }),
      active: fc.boolean(),
    },
    { noNullPrototype: true },
  );
  fc.assert(
    fc.property(fc.array(fc.option(entry), { maxLength: 6 }), (steps) => {
      let state: Entry<Thing> = none;
      for (const wanted of steps) {
        const events: DomainEvent[] =
          wanted === null ? retireEntry('thing', state, '') : putEntry('thing', state, wanted);
        for (const event of events) state = evolveEntry(state, event);
        if (wanted === null) assert.is.not(state.status, 'live');
        else assert.equal(state, { status: 'live', value: wanted });
      }
    }),
  );
});

test.run();
