import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { accessStream } from '../../../src/domain/access.js';
import { giftStream } from '../../../src/domain/gift/events.js';
import type { RecordedEvent } from '../../../src/ports/eventStore.js';
import { buy, buyOne, notificationOver, redeem, refused } from '../../support/service/giftFlow.js';
import { type Json, type Reply, type Service, startService } from '../../support/service/service.js';

const test = suite('one action for many gifts');
const NO_GIFT = '0'.repeat(20);
let service: Service;
test.before(async () => {
  service = await startService({ env: { REVERSALS_PER_DAY: '2', REPLACEMENTS_PER_DAY: '1' } });
});
test.after(() => service.close());

const act = async (body: object, key?: string): Promise<Reply> =>
  service.ask('POST', '/ops/actions', {
    token: await service.userToken('sue'),
    body: { reason: 'reported as stolen', ...body },
    ...(key === undefined ? {} : { key }),
  });
const items = (ids: readonly string[]): object[] => ids.map((id) => ({ id }));
const outcomes = ({ json, text }: Reply): string[] => {
  assert.ok(json['data'], text);
  return (json['data'].items as Json[]).map(({ outcome }) => outcome as string);
};
const typesOf = async (id: string): Promise<string[]> =>
  (await service.events.read(giftStream(id))).map(({ type }) => type).filter((type) => type !== 'GiftIssued');

test('blocks each gift once, by id or shortcode, and names each that is refused', async () => {
  const ids = await buy(service, 'latte', [{}, {}, {}]);
  const [first = '', second = '', third = ''] = ids;
  const body = { action: 'block', items: items([first, service.shortcodeOf(second), third, first, NO_GIFT]) };
  const dry = await act({ ...body, dry_run: true });
  assert.deepEqual(
    [dry.status, dry.json['data']],
    [
      200,
      {
        action: 'block',
        dry_run: true,
        items: [
          ...ids.map((id) => ({ id, outcome: 'done' })),
          { id: NO_GIFT, outcome: 'refused', why: 'gift not found' },
        ],
      },
    ],
  );
  for (const id of ids) assert.deepEqual(await typesOf(id), []);
  assert.deepEqual(outcomes(await act(body)), ['done', 'done', 'done', 'refused']);
  assert.deepEqual(outcomes(await act(body)), ['unchanged', 'unchanged', 'unchanged', 'refused']);
  for (const id of ids) assert.deepEqual(await typesOf(id), ['GiftBlocked']);
  assert.deepEqual(
    (await service.events.read(giftStream(first)))
      .slice(1)
      .map(({ metadata, data }) => [metadata.by.user, (data as Json).reason]),
    [['sue', 'reported as stolen']],
  );
});

test('answers a repeated key alike, and does nothing again', async () => {
  const id = await buyOne(service, 'latte', { user_id: 'bob' });
  await notificationOver(service, id);
  const body = { action: 'resend', items: items([id]), reason: 'deleted the message' };
  const first = await act(body, 'many-once');
  const again = await act(body, 'many-once');
  assert.deepEqual([outcomes(first), again.json], [['done'], first.json]);
  assert.equal(again.headers.get('idempotent-replayed'), 'true');
  assert.deepEqual(outcomes(await act(body)), ['unchanged'], 'nor under another key');
});

test('gives each gift to its own receiver', async () => {
  const [one = '', other = ''] = await buy(service, 'latte', [{}, {}]);
  const given = [
    { id: one, user_id: 'cat' },
    { id: other, phone_number: '07700 900002' },
  ];
  const reply = await act({ action: 'reassign', items: given, reason: 'wrong list' });
  assert.deepEqual(outcomes(reply), ['done', 'done']);
  const receivers = await Promise.all(
    [one, other].map(async (id) => {
      const [, given] = await service.events.read(giftStream(id));
      return ((given as RecordedEvent).data as Json).receiver as object;
    }),
  );
  assert.deepEqual([receivers[0], Object.keys(receivers[1] ?? {})], [{ user_id: 'cat' }, ['phone_id']]);
  const log = JSON.stringify(await service.events.read(accessStream(new Date().toISOString())));
  assert.doesNotMatch(log, /900002|wrong list/, 'the access record has neither number nor reason');
  assert.deepEqual(outcomes(await act({ action: 'reassign', items: given, reason: 'wrong list' })), [
    'unchanged',
    'unchanged',
  ]);
  const [, event] = await service.events.read(giftStream(other));
  const item = { id: other, receiver: { phone_number: '07700 900002' } };
  const guess = service.hash('command', JSON.stringify([{ name: 'reassign' }, 'wrong list', item]));
  assert.match(event?.metadata.commandId ?? '', /^many-[\w-]{22}$/);
  assert.notEqual(
    event?.metadata.commandId,
    `many-${guess}`,
    'after an erasure no number and no reason can be guessed by HASH_KEY',
  );
});

test('refunds purchases', async () => {
  const gift = await buyOne(service);
  const { transaction_id } = (
    await service.ask('GET', `/api/v2/gifts/${gift}`, { token: await service.userToken('ann') })
  ).json['data'] as Json;
  const body = { action: 'refund', items: items([transaction_id, 'nothing']) };
  assert.deepEqual(outcomes(await act({ ...body, dry_run: true })), ['done', 'refused']);
  assert.deepEqual(outcomes(await act(body)), ['done', 'refused']);
  assert.deepEqual(outcomes(await act(body)), ['unchanged', 'refused']);
  assert.deepEqual(await typesOf(gift), ['GiftCancelled']);
});

test('says in a dry run, too, of which purchase nothing would be refunded, and what to do', async () => {
  const [redeemed = '', vouchered = ''] = await buy(service, 'latte', [{}, {}]);
  const user = { token: await service.userToken('ann') };
  assert.equal((await redeem(service, redeemed)).status, 201);
  assert.equal((await service.ask('POST', `/api/v2/gifts/${vouchered}/voucher/claimed`, user)).status, 200);
  const { transaction_id } = (await service.ask('GET', `/api/v2/gifts/${redeemed}`, user)).json['data'] as Json;
  const body = { action: 'refund', reason: 'wrong product', items: items([transaction_id as string]) };
  const whyOf = ({ json }: Reply): unknown => (json['data'].items as Json[])[0]?.['why'];
  const why =
    'refunded: no gift could be cancelled (1 redeemed, 1 with a voucher: say voided once its code is worthless)';
  assert.equal(whyOf(await act({ ...body, dry_run: true })), `nothing would be ${why}`);
  assert.equal(whyOf(await act(body)), `nothing was ${why}`);
  assert.deepEqual(outcomes(await act({ ...body, voided: true, dry_run: true })), ['done']);
  assert.deepEqual(outcomes(await act({ ...body, voided: true })), ['done']);
});

test('counts each reversal against the limit of the day, and none that is done already', async () => {
  const ids = await buy(service, 'latte', [{}, {}, {}]);
  for (const id of ids) assert.equal((await redeem(service, id)).status, 201);
  const reverse = (some: readonly string[], more: object = {}): Promise<Reply> =>
    act({ action: 'unredeem', items: items(some), reason: 'a mistake', ...more });
  assert.deepEqual(outcomes(await reverse(ids, { dry_run: true })), ['done', 'done', 'done']);
  assert.deepEqual(outcomes(await reverse(ids.slice(0, 1))), ['done']);
  const rest = await reverse(ids);
  assert.deepEqual(outcomes(rest).toSorted(), ['done', 'refused', 'unchanged']);
  assert.match(rest.text, /Too many requests/);
});

test('answers the repeat of a replacement that took the last of the day', async () => {
  const [one = '', other = ''] = await buy(service, 'latte', [{}, {}]);
  const replace = async (id: string, key: string): Promise<Reply> =>
    service.ask('POST', `/ops/gifts/${id}/replace`, {
      token: await service.userToken('sue'),
      body: { reason: 'lost' },
      key,
    });
  const first = await replace(one, 'replace-one');
  assert.equal(first.status, 200, first.text);
  const again = await replace(one, 'replace-one');
  assert.deepEqual([again.status, again.json['data'].replaced_by], [200, first.json['data'].replaced_by], again.text);
  assert.equal((await replace(other, 'replace-other')).status, 429);
});

test('refuses what an action does not take, too many, and a receiver too few or too many', async () => {
  const id = NO_GIFT;
  for (const [body, message] of [
    [{ action: 'block', items: items([id]), voided: true }, 'block takes no voided'],
    [{ action: 'extend', items: items([id]) }, 'extend wants expiry_date'],
    [{ action: 'block', items: [{ id, user_id: 'bob' }] }, 'an item of block has an id only'],
    [{ action: 'reassign', items: items([id]) }, 'give one of user_id or phone_number'],
    [
      {
        action: 'reassign',
        items: [
          { id, user_id: 'bob' },
          { id, user_id: 'cat' },
        ],
      },
      `${id} is named twice, with two receivers`,
    ],
  ] as const)
    refused(await act(body), 422, message);
  assert.equal((await act({ action: 'block', items: [] })).status, 422);
  assert.equal((await act({ action: 'block', items: items(Array(101).fill(id)) })).status, 422);
  assert.equal((await act({ action: 'steal', items: items([id]) })).status, 422);
});

test.run();
