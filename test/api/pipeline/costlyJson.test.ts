import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { refuseCostlyJson } from '../../../src/api/pipeline/costlyJson.js';

const test = suite('api/pipeline/costlyJson');

const outcomeOf = (text: string, marks = 1_000): string => {
  try {
    refuseCostlyJson(Buffer.from(text), marks);
    return 'taken';
  } catch (error) {
    return (error as { readonly code: string }).code;
  }
};
const nested = (open: string, close: string, levels: number): string =>
  `${open.repeat(levels)}1${close.repeat(levels)}`;
const fields = (count: number): string => `{${Array.from({ length: count }, (_, at) => `"${at}":1`).join()}}`;

test('refuses more than 32 levels, wherever they are', () => {
  for (const [open, close] of [
    ['[', ']'],
    ['{"a":', '}'],
    ['[{"a":', '}]'],
  ] as const) {
    const most = open.startsWith('[{') ? 16 : 32;
    assert.is(outcomeOf(nested(open, close, most)), 'taken');
    assert.is(outcomeOf(nested(open, close, most + 1)), 'malformed_json');
  }
  assert.is(outcomeOf(`[${'[],'.repeat(100)}${nested('[', ']', 31)}]`), 'taken');
  assert.is(outcomeOf(`[${'[],'.repeat(100)}${nested('[', ']', 32)}]`), 'malformed_json');
});

test('refuses more marks than given, and counts none inside strings', () => {
  assert.is(outcomeOf('[1,2,{"a":3}]', 5), 'taken');
  assert.is(outcomeOf('[1,2,{"a":3}]', 4), 'request_too_large');
  for (const text of ['"[[[,,,:::"', '{"[,:":",,\\",,[[[[\\\\"}', '"\\"[,,,,"', '"\\\\\\"[,,,,"'])
    assert.is(outcomeOf(text, 2), 'taken', text);
  assert.is(outcomeOf('["\\\\",[[', 3), 'request_too_large');
});

test('refuses more than 256 fields of one object, and takes as many of each of several', () => {
  assert.is(outcomeOf(fields(256)), 'taken');
  assert.is(outcomeOf(fields(257)), 'request_too_large');
  assert.is(outcomeOf(`[${fields(200)},${fields(200)}]`), 'taken');
  assert.is(outcomeOf(`{"a":${fields(200)},"b":${fields(200)}}`), 'taken');
});

test('refuses more than 256 different names in a long body, and takes the same ones again and again', () => {
  const objects = (count: number, nameOf: (at: number) => string): string =>
    `[${Array.from({ length: count }, (_, at) => `{"${nameOf(at)}":1}`).join()}]`;
  const own = (at: number): string => `name-${at}`;
  assert.is(outcomeOf(objects(330, own)), 'taken');
  assert.is(outcomeOf(objects(1_000, own), 10_000), 'request_too_large');
  assert.is(
    outcomeOf(
      objects(1_000, (at) => own(at % 256)),
      10_000,
    ),
    'taken',
  );
});

test('passes over what is no JSON', () => {
  for (const text of ['', '"', '"\\', '}}}}]', '\u0000', '[{'])
    assert.is(outcomeOf(text), 'taken', JSON.stringify(text));
});

test.run();
