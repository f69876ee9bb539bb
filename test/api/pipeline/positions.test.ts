import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { suite } from 'uvu';
import { isPosition } from '../../../src/adapters/embedded/eventStore/log.js';
import { positionGate, waitUntilProjected } from '../../../src/api/pipeline/positions.js';
import { UnavailableError } from '../../../src/ports/unavailable.js';

const test = suite('positions');
const LOG = '0b7c6f0e-1111-4222-8333-444455556666';
let end: string | undefined;
const log = { logId: LOG, isPosition, end: async () => end };
const follower = { reached: async () => true };
const NONE = {
  feed: follower,
  parked: follower,
  redemptions: follower,
  reversals: follower,
  schedule: follower,
  byUser: follower,
  voucherCodes: follower,
  passwordCosts: follower,
  webhookEndpoints: follower,
};

test('a position is read back as it was written; another log’s is ignored, nonsense refused', () => {
  const gate = positionGate(log, { always: [], where: NONE });
  assert.equal(gate.parse(gate.format('0000000000000042')), '0000000000000042');
  assert.equal(gate.parse(undefined), undefined);
  assert.equal(gate.parse(`${LOG.replace('0b', '1b')}:0000000000000042`), undefined);
  for (const header of [
    '',
    'x',
    `${LOG}:`,
    `${LOG}:A`,
    `${LOG}:42`,
    `${LOG}:00000000000000042`,
    `${LOG}:000000000000000a`,
    `${LOG}:${'0'.repeat(65)}`,
    `${LOG}:18446744073709551615`,
    `${LOG}:${'9'.repeat(16)}`,
    `${LOG}:1,${LOG}:2`,
  ])
    assert.throws(() => gate.parse(header), { message: 'Invalid position.' });
});

test('one that was stored with an answer counts as absent where it is none of this log', () => {
  const gate = positionGate(log, { always: [], where: NONE });
  assert.equal(gate.stored(gate.format('0000000000000042')), '0000000000000042');
  for (const header of [
    undefined,
    '',
    'x',
    `${LOG}:18446744073709551615`,
    `${LOG}:${'9'.repeat(16)}`,
    `${LOG.replace('0b', '1b')}:0000000000000042`,
  ])
    assert.equal(gate.stored(header), undefined, header);
});

test('waits for followers that all routes read, and for others where a route reads them', async () => {
  const asked: string[] = [];
  const told = (name: string, reached: boolean) => ({
    reached: async (position: string) => {
      asked.push(`${name} ${position}`);
      return reached;
    },
  });
  const where = {
    feed: told('feed', true),
    parked: told('parked', true),
    redemptions: told('redemptions', false),
    reversals: told('reversals', true),
    schedule: told('schedule', true),
    byUser: told('byUser', true),
    voucherCodes: told('codes', true),
    passwordCosts: told('costs', true),
    webhookEndpoints: told('endpoints', true),
  };
  const gate = positionGate(log, { always: [told('a', true), told('b', true)], where });
  await gate.wait('7');
  assert.deepEqual(asked.splice(0), ['a 7', 'b 7']);
  await gate.wait('7', ['parked', 'voucherCodes']);
  assert.deepEqual(asked.splice(0), ['a 7', 'b 7', 'parked 7', 'codes 7']);
  await assert.rejects(gate.wait('7', ['redemptions']), UnavailableError);
  await assert.rejects(
    positionGate(log, { always: [told('a', true), told('b', false)], where }).wait('7'),
    UnavailableError,
  );
});

test("waits for the log's present end; an empty log has none, and an unknown end is refused", async () => {
  const asked: string[] = [];
  const always = [{ reached: async (position: string) => asked.push(position) === 1 }];
  const gate = positionGate(log, { always, where: NONE });
  await gate.waitForEnd();
  assert.deepEqual(asked, []);
  end = '9';
  await gate.waitForEnd();
  await assert.rejects(gate.waitForEnd(), UnavailableError);
  assert.deepEqual(asked, ['9', '9']);
  const silent = positionGate({ ...log, end: async () => new Promise(() => undefined) }, { always, where: NONE });
  await assert.rejects(silent.waitForEnd(), UnavailableError);
});

test('waits until a write is shown, unless a read model is out of reach; reports its faults', async () => {
  let shown = false;
  const slow = async (): Promise<boolean> => {
    await sleep(20);
    return (shown = true);
  };
  const fails = (error: Error) => ({ reached: async (): Promise<boolean> => Promise.reject(error) });
  await waitUntilProjected('7', [{ reached: slow }]);
  assert.ok(shown);
  await waitUntilProjected('7', [fails(new UnavailableError('down'))]);
  await assert.rejects(waitUntilProjected('7', [fails(new TypeError('broken'))]), TypeError);
});

test.run();
