import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { backoff } from '../../src/lib/backoff.js';
import { enterWorld, REAL_WORLD } from '../../src/lib/world.js';

const test = suite('lib/backoff');
test.after.each(() => void enterWorld(REAL_WORLD));

/** The first four waits, where chance is always the same. */
function waits(random: number): number[] {
  enterWorld({ ...REAL_WORLD, random: () => random });
  let wait = backoff(100, 500).next();
  return [1, 2, 3, 4].map(() => {
    const { duration } = wait;
    wait = wait.next(undefined);
    return duration;
  });
}

test('doubles the wait up to the highest, less up to half by the chance of the world', () => {
  assert.equal(waits(0), [50, 100, 200, 250]);
  assert.equal(waits(0.5), [75, 150, 300, 375]);
});

test.run();
