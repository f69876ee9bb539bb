import { execFileSync } from 'node:child_process';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';

const test = suite('cli/priority');
const MODULE = new URL('../../src/cli/priority.js', import.meta.url).href;

test('every thread of the process goes behind the others', () => {
  const script = `import { readdirSync } from 'node:fs';
import { getPriority } from 'node:os';
import { yieldProcessor } from ${JSON.stringify(MODULE)};
yieldProcessor();
const threads = process.platform === 'linux' ? readdirSync('/proc/self/task').map(Number) : [0];
console.log(JSON.stringify(threads.map((thread) => getPriority(thread))));`;
  const priorities = JSON.parse(
    execFileSync(process.execPath, ['--input-type=module', '--eval', script], { encoding: 'utf8' }),
  ) as number[];
  assert.ok(priorities.length > 0);
  assert.equal([...new Set(priorities)], [15]);
});

test.run();
