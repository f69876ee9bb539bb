import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { progressBar } from '../../src/cli/progress.js';
import { sink } from '../support/cli.js';

const test = suite('cli/progress');
const WORDS = { doing: 'rebuilding gifts', unit: 'events' };

test('a terminal sees how much is done of all, how fast, how long it will take; the bar goes without a trace', () => {
  const { stream, text } = sink(true);
  const show = progressBar(stream, WORDS);
  show(0, 2_000_000);
  show(500_000, 2_000_000, '3 parked');
  show.clear();
  assert.match(text(), /rebuilding gifts ░{24} 0 % \| 0 of 2,000,000 events \| 0\/s/);
  assert.ok(text().lastIndexOf('\u001B[2K') > text().lastIndexOf('events'), 'the bar is removed');
});

test('a total that is not known yet is a question mark', () => {
  const { stream, text } = sink(true);
  const show = progressBar(stream, WORDS);
  show(12, undefined);
  show.clear();
  assert.match(text(), /12 of \? events/);
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
