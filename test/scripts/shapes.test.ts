import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { lintedBy } from './lintedBy.js';

const test = suite('the rules for the shape of functions');

const linted = lintedBy('shapes', ['function-length', 'closure-state']);
test.after(linted.close);

/** What the linter says of the functions, by the line that each begins at. */
const faultsOf = (...functions: readonly string[]): string[] => linted.faultsOf(functions.join('\n'));

const statements = (count: number): string => 'work();\n'.repeat(count);
const lets = (count: number): string => Array.from({ length: count }, (_, n) => `let v${n} = 0;`).join(' ');
const arrows = (count: number): string => Array.from({ length: count }, (_, n) => `const f${n} = () => 0;`).join(' ');

test('refuse a function of more than 120 lines of code, by its name and first line', () => {
  assert.equal(faultsOf(`function fits() {\n${statements(118)}}`, `const long = () => {\n${statements(119)}};`), [
    '121: long has 121 lines of code: at most 120',
  ]);
});

test('count neither comments nor blank lines', () => {
  assert.equal(faultsOf(`function fits() {\n${statements(110)}${'// why\n\n/** what\n */\n'.repeat(9)}}`), []);
});

test('count no line of a table that a function returns, but those of each function in it', () => {
  const table = (entry: string): string => `function routes() {\n  return [\n{ path: '/', ${entry} },\n];\n}`;
  assert.equal(faultsOf(table(`texts: [\n${"'text',\n".repeat(150)}]`)), []);
  assert.equal(faultsOf(table(`handle() {\n${statements(150)}}`)), ['3: handle has 152 lines of code: at most 120']);
});

test('refuse a closure of more than 5 lets of its own and more than 8 functions', () => {
  const closure = (ownLets: number, inner: number): string => `function f() { ${lets(ownLets)} ${arrows(inner)} }`;
  assert.equal(faultsOf(closure(5, 20), closure(20, 8), closure(6, 9)), [
    '3: f has 6 lets and 9 functions in it: name its state, and write functions over that',
  ]);
  assert.equal(faultsOf(`function f() { ${lets(5)} ${arrows(9)} function g() { let v = 0; } }`), []);
});

test.run();
