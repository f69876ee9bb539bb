import fc from 'fast-check';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { repeatedNames } from '../../src/lib/repeatedNames.js';

const test = suite('repeated names');

const places = (text: string): string[] => repeatedNames(text).map(({ path }) => path);

test('a name is repeated where it stands twice in the same object', () => {
  assert.equal(repeatedNames('{"a":1,"b":2,"a":3}'), [{ path: 'a', at: 13, before: 1 }]);
  assert.equal(places('{"a":[{"b":1,"c":{"b":2}},{"b":1,"x":[0,[],{}, {"d":1,"d":2}],"b":1}]}'), [
    'a[1].x[3].d',
    'a[1].b',
  ]);
  assert.equal(places('{"a":1,"a":2,"a":3}'), ['a', 'a']);
  assert.equal(
    repeatedNames('{"a":1,"a":2,"b":3,"b":4}', 1).map(({ path }) => path),
    ['a'],
  );
  assert.equal(places('[{"a":1},{"a":1},{"a":{"a":{"a":1}}}]'), []);
});

test('names are compared as they are meant, whatever stands in them or in values', () => {
  assert.equal(places(String.raw`{"id":1,"\u0069d":2}`), ['id']);
  assert.equal(places(String.raw`{"a\"b":1,"a\\":2,"a\\":3,"a\"b":"{\"x\":1,\"x\":2}"}`), ['a\\', 'a"b']);
  assert.equal(places('{"__proto__":1,"constructor":2,"__proto__":3,"":4,"":5}'), ['__proto__', '']);
  assert.equal(places('{"a":"a","b":"a","c":["a","a"]}'), []);
});

test('any JSON without repeated names has none', () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.constantFrom(undefined, 2), (value, indent) =>
      assert.equal(repeatedNames(JSON.stringify(value, null, indent)), []),
    ),
  );
});

test('a repeated name is found wherever it stands', () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.string(), fc.jsonValue(), (before, name, after) => {
      const key = JSON.stringify(name);
      const text = `[${JSON.stringify(before)},{${key}:${JSON.stringify(before)},${key}:${JSON.stringify(after)}}]`;
      assert.equal(places(text), [`[1].${name.slice(0, 64)}`]);
    }),
  );
});

test.run();
