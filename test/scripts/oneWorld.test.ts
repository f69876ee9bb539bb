import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { lintedBy } from './lintedBy.js';

const test = suite('the rule for time and chance');

const linted = lintedBy('world', ['time-and-chance'], 'oneWorld');
test.after(linted.close);

/** What the linter says of the lines, sorted by their numbers. */
const faultsOf = (...lines: readonly string[]): string[] =>
  linted
    .faultsOf(lines.join('\n'))
    .map((fault) => fault.replace(': time and chance come from src/lib/world.ts', ''))
    .toSorted();

test('refuses the real clock and real timers, whichever way they are named', () => {
  assert.equal(
    faultsOf(
      'Date.now(); later(Date.now); Date["now"]();',
      'const { now } = Date;',
      'new Date(); Date();',
      'performance.now(); performance.timeOrigin;',
      'setTimeout(run, 5); setInterval(run, 5); setImmediate(run); queueMicrotask(run);',
      'clearTimeout(timer); globalThis.setTimeout(run, 5);',
      'AbortSignal.timeout(5); process.hrtime.bigint();',
    ),
    [
      '1: Date.now',
      '1: Date.now',
      '1: Date.now',
      '2: Date.now',
      '3: Date()',
      '3: new Date()',
      '4: performance',
      '4: performance',
      '5: queueMicrotask',
      '5: setImmediate',
      '5: setInterval',
      '5: setTimeout',
      '6: clearTimeout',
      '6: globalThis.setTimeout',
      '7: AbortSignal.timeout',
      '7: process.hrtime',
    ],
  );
});

test('refuses real chance', () => {
  assert.equal(
    faultsOf(
      'Math.random();',
      'crypto.randomUUID(); crypto.getRandomValues(bytes);',
      "import { createHash, randomBytes as bytes } from 'node:crypto';",
      "import { randomUUID } from 'crypto';",
    ),
    [
      '1: Math.random',
      '2: crypto.getRandomValues',
      '2: crypto.randomUUID',
      '3: randomBytes of node:crypto',
      '4: randomUUID of crypto',
    ],
  );
});

test("refuses Node's modules of timers, and a module of chance or time as a whole", () => {
  assert.equal(
    faultsOf(
      "import { setTimeout as sleep } from 'node:timers/promises';",
      "import * as crypto from 'node:crypto';",
      "import { performance as p, monitorEventLoopDelay } from 'node:perf_hooks';",
      "await import('node:timers');",
    ),
    [
      '1: node:timers/promises',
      '2: node:crypto as a whole',
      '3: monitorEventLoopDelay of node:perf_hooks',
      '3: performance of node:perf_hooks',
      '4: node:timers as a whole',
    ],
  );
});

test('allows dates of given times, hashes, and functions and fields with the names of timers', () => {
  assert.equal(
    faultsOf(
      'new Date(5); Date.parse(text); Math.floor(5); process.pid; let date: Date;',
      'function run(setTimeout: () => void) { setTimeout(); }',
      'world.setTimeout(run); const timers = { setTimeout: 5 };',
      "import { createHash } from 'node:crypto'; import type { IntervalHistogram } from 'node:perf_hooks';",
      "import type { randomUUID } from 'node:crypto';",
    ),
    [],
  );
});

test('holds for src, but for files that exist', () => {
  const root = fileURLToPath(new URL('../../..', import.meta.url));
  const { overrides } = JSON.parse(readFileSync(`${root}/.oxlintrc.json`, 'utf8')) as {
    overrides: { files: string[]; rules: Record<string, unknown> }[];
  };
  const [on, off, ...others] = overrides.filter(({ rules }) => 'world/time-and-chance' in rules);
  assert.equal([on?.files, on?.rules['world/time-and-chance'], others], [['src/**'], 'error', []]);
  assert.equal(
    off?.files.filter((file) => !existsSync(`${root}/${file.replace('/**', '')}`)),
    [],
  );
});

test.run();
