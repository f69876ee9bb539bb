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
const FOLLOWERS = {
  accounts: follower,
  catalogue: follower,
  gifts: follower,
  transactions: follower,
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
  const gate = positionGate(log, FOLLOWERS);
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
  const gate = positionGate(log, FOLLOWERS);
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

/** Which read models were waited for, and how long; `late`: the ones that are behind. */
function told(late: readonly string[] = []) {
  const requested: string[] = [];
  const followers = Object.fromEntries(
    Object.keys(FOLLOWERS).map((name) => [
      name,
      {
        async reached(position: string, timeoutMs: number) {
          requested.push(`${name} ${position} ${timeoutMs}`);
          return !late.includes(name);
        },
      },
    ]),
  ) as typeof FOLLOWERS;
  return { requested, gate: positionGate(log, followers) };
}

test('waits for read models that all routes read, and for others where a route reads them', async () => {
  const { requested, gate } = told(['redemptions']);
  await gate.wait('7');
  const all = ['accounts 7 1000', 'catalogue 7 1000', 'gifts 7 1000', 'transactions 7 1000'];
  assert.deepEqual(requested.splice(0).sort(), all);
  await gate.wait('7', ['parked', 'voucherCodes']);
  assert.deepEqual(requested.splice(0).sort(), [...all, 'parked 7 1000', 'voucherCodes 7 1000'].sort());
  await assert.rejects(gate.wait('7', ['redemptions']), UnavailableError);
  await assert.rejects(told(['gifts']).gate.wait('7'), UnavailableError);
});

test('waits a moment where gifts are read singly, and refuses only what the log has not reached', async () => {
  const { requested, gate } = told(['gifts']);
  end = '7';
  await gate.wait('7', [], true);
  assert.ok(requested.includes('gifts 7 100'));
  await assert.rejects(gate.wait('8', [], true), UnavailableError);
  assert.ok(requested.includes('gifts 8 900'), 'for the rest of the second, where the log may reach it');
});

test("waits for the log's present end; an empty log has none, and an unknown end is refused", async () => {
  const { requested, gate } = told(['parked']);
  end = undefined;
  await gate.waitForEnd(['catalogue']);
  assert.deepEqual(requested, []);
  end = '9';
  await gate.waitForEnd(['catalogue']);
  await assert.rejects(gate.waitForEnd(['catalogue', 'parked']), UnavailableError);
  assert.deepEqual(requested, ['catalogue 9 1000', 'catalogue 9 1000', 'parked 9 1000']);
  const silent = positionGate({ ...log, end: async () => new Promise(() => undefined) }, FOLLOWERS);
  await assert.rejects(silent.waitForEnd(['catalogue']), UnavailableError);
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
