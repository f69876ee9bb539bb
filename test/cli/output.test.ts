import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { csvLine } from '../../src/ops/exports/csv.js';
import { jsonLine, jsonText, printable, tableLines } from '../../src/cli/output.js';

const test = suite('cli/output');

test('a row of CSV reads as RFC 4180 has it', () => {
  assert.is(csvLine(['a', 1, true, null, undefined, '']), 'a,1,true,,,');
  assert.is(csvLine(['a,b', 'say "hi"', 'two\nlines']), '"a,b","say ""hi""","two\nlines"');
});

test('what a spreadsheet would run is led by an apostrophe; numbers stay', () => {
  assert.is(csvLine(['=1+1', '+44', '-x', '@a', '\tx', -5]), "'=1+1,'+44,'-x,'@a,'\tx,-5");
});

test('a table has columns as wide as they must be, numbers to the right', () => {
  assert.equal(
    tableLines(
      ['name', 'pence'],
      [
        ['latte', 350],
        ['x', null],
        ['a long one', 12_345],
      ],
    ),
    ['name        pence', '----------  -----', 'latte         350', 'x', 'a long one  12345'],
  );
  assert.equal(tableLines(['a', 'b'], []), ['a  b', '-  -']);
});

test('a table is as wide as the terminal: texts are broken at words, or each cell has a line', () => {
  const headings = ['id', 'cause', 'times'];
  const rows = [
    ['aaaaaaaaaa', 'the provider takes no such request at all', 2],
    ['b', 'it is away', 13],
  ];
  assert.equal(tableLines(headings, rows, 40), [
    'id          cause                  times',
    '----------  ---------------------  -----',
    'aaaaaaaaaa  the provider takes no      2',
    '            such request at all',
    'b           it is away                13',
  ]);
  assert.equal(
    tableLines(
      headings,
      [
        ['a'.repeat(30), 'the provider takes none', 2],
        ['b', '', 1],
      ],
      40,
    ),
    [`id     ${'a'.repeat(30)}`, 'cause  the provider takes none', 'times  2', '', 'id     b', 'times  1'],
  );
  assert.equal(tableLines(headings, rows, 80), tableLines(headings, rows));
});

test('texts cannot move the cursor', () => {
  assert.is(printable('a\u001B[2Jb\r\n\u202Ec'), 'a[2Jbc');
});

test('neither can those of JSON, which still says the same', () => {
  const message = 'a\u001B[2J\u007f\u009b2J\u202Eb\u{E0001}🎁é\n';
  for (const text of [jsonLine({ message }), jsonText({ message })]) {
    assert.not.match(text.replaceAll('\n', ''), /[\p{Cc}\p{Cf}]/u);
    assert.equal(JSON.parse(text), { message });
  }
  assert.is(jsonText({ a: [1] }), '{\n  "a": [\n    1\n  ]\n}');
});

test('a record is one line', () => {
  assert.is(jsonLine({ a: 'x\ny' }), '{"a":"x\\ny"}');
});

test.run();
