/** Parked work by group, over HTTP and on the command line. */
import assert from 'node:assert/strict';
import { suite } from 'uvu';
import type { ParkedGroup } from '../../../src/ops/parked/groups.js';
import { accessStream } from '../../../src/domain/access.js';
import { parkedId } from '../../../src/domain/parked.js';
import { parkedPurchase, parkedRefund, parkedTimes, startWithTrouble } from '../../support/fixtures/parkedWork.js';
import { gift, type Ran } from '../../support/service/cli.js';
import { refused } from '../../support/service/giftFlow.js';
import type { Json, Reply, Service } from '../../support/service/service.js';
import { eventOf } from '../../support/service/testLog.js';

const test = suite('parked work by group');
let service: Service;
/** Ids of parked purchases, in the order of the log. */
let purchases: string[];
let refund: string;

test.before(async () => {
  service = await startWithTrouble();
  const bought = [await parkedPurchase(service), await parkedPurchase(service), await parkedPurchase(service)];
  purchases = bought.map(({ transaction }) => transaction);
  ({ refund } = await parkedRefund(service));
});
test.after(() => service.close());

const token = async (user = 'sue'): Promise<string> => service.userToken(user);
const groups = async (): Promise<ParkedGroup[]> =>
  (await service.ask('GET', '/ops/parked/groups', { token: await token('aud') })).json.data as ParkedGroup[];
const decide = async (group: string, what: string, body: object, key?: string): Promise<Reply> =>
  service.ask('POST', `/ops/parked/groups/${group}/${what}`, {
    token: await token(),
    body: { reason: 'the provider is up', ...body },
    ...(key === undefined ? {} : { key }),
  });
const parked = async (...args: readonly string[]): Promise<Ran> => gift(service.settings, ['parked', ...args]);
const retries = async (): Promise<Json[]> =>
  (await service.events.read('parked-purchase')).filter(({ type }) => type === 'WorkRetried');
const ids = (): string[] => purchases.map((transaction) => parkedId('purchase', transaction));

test('lists one group a cause, the largest first, the same on both fronts', async () => {
  const [charges, refunds, ...others] = await groups();
  assert.deepEqual(
    [charges?.process, charges?.step, charges?.count, charges?.example, refunds?.process, refunds?.count, others],
    ['purchase', 'charge', 3, ids().at(-1), 'refund', 1, []],
  );
  assert.ok((charges?.first_at ?? '') < (charges?.last_at ?? ''));
  assert.deepEqual((await parked('groups', '--json')).records(), await groups());
  const { code, out } = await parked('groups');
  assert.equal(code, 0);
  assert.ok(
    out.split('\n').every((line) => line.length <= 80),
    out,
  );
});

test('shows in a dry run what would be retried, and does nothing', async () => {
  const id = (await groups())[0]?.id ?? '';
  const reply = await decide(id, 'retry', { dry_run: true });
  assert.equal(reply.status, 200, reply.text);
  assert.deepEqual(reply.json.data, {
    group_id: id,
    dry_run: true,
    items: ids().map((piece) => ({ id: piece, outcome: 'done' })),
    left: 3,
  });
  const { code, out, err } = await parked('retry', '--group', id, '--dry-run');
  assert.deepEqual([code, out.split('\n').length - 1, err], [0, 3, '3 in all; nothing was done\n']);
  assert.deepEqual(await retries(), []);
});

test('goes on where it ended, and retries each piece once, with who and why', async () => {
  const id = (await groups())[0]?.id ?? '';
  const first = await decide(id, 'retry', { limit: 1 }, 'group-once');
  const again = await decide(id, 'retry', { limit: 1 }, 'group-once');
  assert.deepEqual(
    [first.json.data, again.json.data.group_id],
    [{ group_id: id, dry_run: false, items: [{ id: ids()[0], outcome: 'done' }], left: 2 }, id],
  );
  const store = await service.openStore();
  for (const { key } of await store.records.list('idempotency:')) await store.records.delete(key);
  await store.close();
  const third = await decide(id, 'retry', { limit: 1 }, 'group-once');
  assert.deepEqual(
    [third.headers.get('idempotent-replayed'), third.json.data.items],
    ['true', first.json.data.items],
    'the log knows the command without its stored answer',
  );
  // The service parks the first again, since its card still makes trouble: it belongs to the same group again.
  await parkedTimes(service, 'purchase', purchases[0] ?? '', 2);
  const { code, out, err } = await parked('retry', '--group', id, '--reason', 'the provider is up');
  assert.equal(code, 0, err);
  for (const piece of ids()) assert.equal(out.split(piece).length, 2, out);
  assert.match(err, /^3 of 3 handed back\n/);
  const recorded = await retries();
  const counted = purchases.map((one) => recorded.filter(({ data }) => data.entity === one).length);
  assert.deepEqual(counted, [2, 1, 1]);
  assert.deepEqual(new Set(recorded.map(({ data }) => data.reason)), new Set(['the provider is up']));
  assert.equal(recorded[0].metadata.by.user, 'sue');
});

test('leaves the reason out of the access record, where no erasure would reach it', async () => {
  const records = (await service.events.read(accessStream(new Date().toISOString()))).filter(
    ({ data }) => (data as Json).what === 'POST /ops/parked/groups/:groupId/retry',
  );
  assert.deepEqual(new Set(records.map(({ data }) => (data as Json).reason)), new Set([null]));
});

test('discards a group, and says when nothing of it waits any more', async () => {
  const { id = '' } = (await groups()).find(({ process }) => process === 'refund') ?? {};
  const { json } = await decide(id, 'discard', {});
  assert.deepEqual([json.data.items, json.data.left], [[{ id: parkedId('refund', refund), outcome: 'done' }], 0]);
  assert.deepEqual((await decide(id, 'discard', {})).json.data.items, []);
  const { code, err } = await parked('discard', '--group', id, '--reason', 'given back by hand');
  assert.deepEqual(
    [code, err],
    [
      1,
      'gift: nothing of this group waits any more, so nothing is discarded: gift parked list --state all shows what there is\n',
    ],
  );
});

test('ends a charge whose discard died before it was declined, whoever goes on with the group', async () => {
  for (const front of ['API', 'command line']) {
    const { transaction } = await parkedPurchase(service);
    const group = (await groups()).find(({ example }) => example === parkedId('purchase', transaction))?.id ?? '';
    const work = { entity: transaction, transaction_id: transaction, step: 'charge', times: 1, reason: 'x' };
    await service.events.append('parked-purchase', [eventOf('WorkDiscarded', work)], 'any');
    if (front === 'API') assert.deepEqual((await decide(group, 'discard', {})).json.data.left, 0);
    else await parked('discard', '--group', group, '--reason', 'x');
    const last = (await service.events.read(`transaction-${transaction}`)).at(-1);
    assert.deepEqual([last?.type, last?.data], ['PaymentDeclined', { provider: 'support', code: 'discarded' }], front);
  }
});

test('refuses an unknown group and contradicting options', async () => {
  refused(await decide('nothing', 'retry', {}), 404, 'Parked work not found');
  assert.equal(
    (await parked('retry', '--group', 'nothing', '--reason', 'x')).err,
    'gift: there is no such group: gift parked groups lists them\n',
  );
  for (const [args, message] of [
    [['retry', '--group', 'x', '--all'], 'give --all or --group, not both'],
    [['discard', 'some', '--group', 'x'], 'give ids or --group, not both'],
    [['retry', 'some', '--dry-run'], '--dry-run goes with --group or --all: gift parked show ID shows a single one'],
    [['discard'], 'discard wants ids, or --group'],
  ] as const) {
    const { code, err } = await parked(...args, '--reason', 'x');
    assert.deepEqual([code, err], [2, `gift: ${message}\n`]);
  }
});

test.run();
