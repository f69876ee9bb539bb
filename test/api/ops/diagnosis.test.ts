/** The diagnosis over HTTP and on the command line, of one service. */
import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { parkedPurchase, startWithTrouble } from '../../support/fixtures/parkedWork.js';
import { gift, type Ran } from '../../support/service/cli.js';
import { refused } from '../../support/service/giftFlow.js';
import type { Json, Service } from '../../support/service/service.js';
import { eventually } from '../../support/assertions/until.js';

const test = suite('the diagnosis');
let service: Service;
test.before(async () => {
  service = await startWithTrouble();
});
test.after(() => service.close());

const found = async (): Promise<Json[]> => {
  const reply = await service.ask('GET', '/ops/diagnosis', { token: await service.userToken('sue') });
  assert.equal(reply.status, 200, reply.text);
  return reply.json.data as Json[];
};
const onCommandLine = async (...args: readonly string[]): Promise<Ran> =>
  gift({ ...service.settings, PORT: new URL(service.url).port }, ['diagnose', ...args]);
const access = async (): Promise<number> =>
  (await service.events.read(`access-${new Date().toISOString().slice(0, 10)}`)).filter(
    ({ data }) => (data as Json).what === 'GET /ops/diagnosis',
  ).length;

test('finds nothing in a service that is well, in one line', async () => {
  await eventually(async () => (await found()).length === 0);
  const { code, out, err } = await onCommandLine();
  assert.deepEqual([code, out, err], [0, 'nothing is wrong\n', '']);
  assert.equal((await onCommandLine('--json')).out, '');
  refused(await service.ask('GET', '/ops/diagnosis', { token: await service.userToken('ann') }), 403, 'Forbidden.');
  assert.equal(await access(), 1, 'the same call within a minute is recorded once');
});

test('names a parked purchase and the command that mends it, the same on both fronts', async () => {
  await parkedPurchase(service);
  const [one, ...others] = await found();
  assert.deepEqual([one.code, one.harm, others], ['parked_purchases', 'money', []]);
  assert.match(one.what, /^1 × purchase charge, .*the simulated provider does not take this request$/);
  const json = await onCommandLine('--json');
  assert.deepEqual([json.code, json.records(), json.err], [1, [one], 'gift: 1 thing is wrong\n']);
  const { out } = await onCommandLine();
  assert.ok(
    out.split('\n').every((line) => line.length <= 80),
    out,
  );
  assert.match(out, /^parked_purchases \(money\): 1 × purchase charge/);
});

test.run();
