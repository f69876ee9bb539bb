import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { isPosition } from '../../src/adapters/embedded/eventStoreLog.js';
import { positionGate } from '../../src/api/positions.js';
import { UnavailableError } from '../../src/ports/unavailable.js';

const test = suite('positions');
const LOG = '0b7c6f0e-1111-4222-8333-444455556666';
const log = { logId: LOG, isPosition };

test('a position is read back as it was written; another log’s is ignored, nonsense refused', () => {
  const gate = positionGate(log, []);
  assert.equal(gate.parse(gate.format('0000000000000042')), '0000000000000042');
  assert.equal(gate.parse(undefined), undefined);
  assert.equal(gate.parse(`${LOG.replace('0b', '1b')}:0000000000000042`), undefined);
  for (const header of ['', 'x', `${LOG}:`, `${LOG}:A`, `${LOG}:42`, `${LOG}:00000000000000042`, `${LOG}:000000000000000a`, `${LOG}:${'0'.repeat(65)}`, `${LOG}:1,${LOG}:2`]) assert.throws(() => gate.parse(header), { message: 'Invalid position.' });
});

test('it waits for every follower', async () => {
  const asked: string[] = [];
  const follower = (name: string, reached: boolean) => ({
    reached: async (position: string) => {
      asked.push(`${name} ${position}`);
      return reached;
    },
  });
  await positionGate(log, [follower('a', true), follower('b', true)]).wait('7');
  assert.deepEqual(asked, ['a 7', 'b 7']);
  await assert.rejects(positionGate(log, [follower('a', true), follower('b', false)]).wait('7'), UnavailableError);
});

test.run();
