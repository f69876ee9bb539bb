import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';

const test = suite('the rules for the shape of functions');

const dir = mkdtempSync(join(tmpdir(), 'gift-shapes-'));
test.after(() => rmSync(dir, { recursive: true }));

const shapes = fileURLToPath(new URL('../../../scripts/shapes.mjs', import.meta.url));
const oxlint = join(dirname(createRequire(import.meta.url).resolve('oxlint/package.json')), 'bin', 'oxlint');

/** What the linter says of the functions, by the line that each begins at. */
function faultsOf(...functions: readonly string[]): string[] {
  const config = join(dir, 'config.json');
  const rules = { 'shapes/function-length': 'error', 'shapes/closure-state': 'error' };
  writeFileSync(config, JSON.stringify({ jsPlugins: [shapes], categories: { correctness: 'off' }, rules }));
  const file = join(dir, 'functions.ts');
  writeFileSync(file, functions.join('\n'));
  const { stdout } = spawnSync(process.execPath, [oxlint, '--config', config, '--format', 'unix', file], {
    encoding: 'utf8',
  });
  return stdout.split('\n').flatMap((line) => {
    const [, at, message] = /functions\.ts:(\d+):\d+: (.*) \[Error\/shapes/.exec(line) ?? [];
    return message === undefined ? [] : [`${at}: ${message}`];
  });
}

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
