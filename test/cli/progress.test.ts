import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { type Goal, progressBar, progressLine } from '../../src/cli/progress.js';
import { sink } from '../support/service/cli.js';

const test = suite('cli/progress');
const WORDS = { doing: 'rebuilding gifts', unit: 'events' };

/** What the bar says each time, at these ms of its clock. */
function said(steps: readonly (readonly [at: number, done: number, goal: Goal, note?: string])[]): string[] {
  const line = progressLine(WORDS);
  return steps.map(([at, done, goal, note]) => line(at, done, goal, { note }));
}

test('a bar is drawn on a terminal, and goes without a trace', () => {
  const { stream, text } = sink(true);
  const show = progressBar(stream, WORDS);
  show(0, 2_000_000);
  show(500_000, 2_000_000, '3 parked');
  show.clear();
  assert.match(text(), /rebuilding gifts ░{24} 0 % \| 0 of 2,000,000 events/);
  assert.ok(text().lastIndexOf('\u001B[2K') > text().lastIndexOf('events'), 'the bar is removed');
});

test('shows a terminal how much is done, and rate and time once they are known', () => {
  const [first, soon, half, most] = said([
    [0, 0, 2_000_000],
    [500, 400_000, 2_000_000],
    [2_000, 1_000_000, 2_000_000, '3 parked'],
    [3_000, 1_500_000, 2_000_000],
  ]);
  assert.is(first, `rebuilding gifts ${'░'.repeat(24)} 0 % | 0 of 2,000,000 events`);
  assert.match(soon ?? '', /20 % \| 400,000 of 2,000,000 events$/);
  assert.match(half ?? '', /50 % \| 1,000,000 of 2,000,000 events \| 500,000\/s \| 2 s left \| 3 parked$/);
  assert.match(most ?? '', /75 % \| 1,500,000 of 2,000,000 events \| 500,000\/s \| 1 s left$/);
});

test('fits the terminal: the bar is shorter there, or not shown', () => {
  const at = (columns: number): string => {
    const line = progressLine(WORDS);
    line(0, 0, 2_000_000);
    return line(1_000, 1_000_000, 2_000_000, { columns });
  };
  const text = '50 % | 1,000,000 of 2,000,000 events | 1,000,000/s | 1 s left';
  assert.is(at(120), `rebuilding gifts ${'█'.repeat(12)}${'░'.repeat(12)} ${text}`);
  assert.is(at(88), `rebuilding gifts ${'█'.repeat(4)}${'░'.repeat(5)} ${text}`);
  assert.is(at(80), `rebuilding gifts ${text}`);
  assert.ok(at(80).length <= 80);
});

test('makes up no total: shows the share of the log, or how much is done', () => {
  const byShare = said([
    [0, 0, { share: 0 }],
    [1_000, 300, { share: 0.3 }],
    [2_000, 900, { share: 0.2 }],
    [3_000, 1_000, { share: 0.6 }],
    [4_000, 1_000, { share: 1 }],
  ]);
  assert.match(byShare[1] ?? '', /30 % \| 300 events \| 300\/s \| 3 s left$/);
  assert.match(byShare[2] ?? '', /30 % \| 900 events \| 450\/s \| 5 s left$/, 'it never goes back');
  assert.match(byShare[4] ?? '', /█{24} 100 % \| 1,000 events \| 250\/s$/);
  assert.equal(
    said([
      [0, 12, undefined],
      [1_500, 12, undefined],
      [3_000, 3_012, undefined],
    ]),
    ['rebuilding gifts | 12 events', 'rebuilding gifts | 12 events', 'rebuilding gifts | 3,012 events | 1,000/s'],
  );
  for (const line of byShare) assert.not.match(line, /NaN|NF|Infinity|\?| 0\/s/);
  assert.match(
    said([
      [0, 0, { share: 0 }],
      [60_000, 10, { share: 0.01 }],
    ])[1] ?? '',
    /1 h 39 min left$/,
  );
  assert.match(
    said([
      [0, 0, { share: 0 }],
      [60_000, 10, { share: 0.2 }],
    ])[1] ?? '',
    /4 min left$/,
  );
});

test('what is no terminal sees nothing, and clearing twice does no harm', () => {
  const { stream, text } = sink();
  const show = progressBar(stream, WORDS);
  show(1, 2);
  show.clear();
  show.clear();
  assert.is(text(), '');
});

test.run();
