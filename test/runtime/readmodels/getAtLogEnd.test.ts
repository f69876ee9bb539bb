import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { UnavailableError } from '../../../src/ports/unavailable.js';
import { getAtLogEnd } from '../../../src/runtime/readmodels/getAtLogEnd.js';

const test = suite('a document at the end of the log');
const events = { end: async () => '0009' };

test('a document that arrives during the wait is found; one missing at the end does not exist', async () => {
  for (const coming of ['a gift', undefined]) {
    let known: string | undefined;
    const asked: unknown[] = [];
    const model = {
      get: async () => known,
      reached: async (...question: unknown[]) => {
        asked.push(question);
        known = coming;
        return true;
      },
    };
    assert.is(await getAtLogEnd(events, model, 'g', 700), coming);
    assert.equal(asked, [['0009', 700]]);
  }
});

test('nothing is said to be missing while the read model is behind', async () => {
  const behind = { get: async () => undefined, reached: async () => false };
  try {
    await getAtLogEnd(events, behind, 'g', 1);
    assert.unreachable();
  } catch (error) {
    assert.instance(error, UnavailableError);
  }
  assert.is(await getAtLogEnd(events, { ...behind, get: async () => 'known' }, 'g', 1), 'known');
  assert.is(
    await getAtLogEnd({ end: async () => undefined }, behind, 'g', 1),
    undefined,
    'an empty log tells of nothing',
  );
});

test.run();
