/** The page on the engines' traps names tests: they must be there. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const test = suite('docs: traps');

test('every trap has a remedy, and a test that there is', () => {
  const rows = readFileSync(join(ROOT, 'docs/traps.md'), 'utf8')
    .split('\n')
    .filter((line) => line.startsWith('|') && !/^\|(---|\s*Trap)/.test(line));
  assert.ok(rows.length > 40, `${rows.length} traps`);
  for (const row of rows) {
    const [trap = '', remedy = '', named = ''] = row
      .slice(1, -1)
      .split(' | ')
      .map((cell) => cell.trim());
    assert.ok(trap !== '' && remedy !== '', row);
    const [, file, title] = /^`(test\/[\w/.]+\.ts)`: (.+)$/.exec(named) ?? [];
    assert.ok(file !== undefined && title !== undefined, row);
    const source = readFileSync(join(ROOT, file), 'utf8');
    const literal = [`'${title}'`, `'${title.replaceAll("'", "\\'")}'`, `"${title}"`];
    assert.ok(
      literal.some((one) => source.includes(one)),
      `${file} has no test "${title}"`,
    );
  }
});

test.run();
