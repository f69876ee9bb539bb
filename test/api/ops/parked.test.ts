import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { parkedId } from '../../../src/domain/parked.js';
import { refused } from '../../support/service/giftFlow.js';
import { heldCollection } from '../../support/faults/heldCollection.js';
import { parkedPurchase, parkedRefund, parkedTimes, startWithTrouble } from '../../support/fixtures/parkedWork.js';
import { type Json, type Reply, type Service } from '../../support/service/service.js';
import { eventually } from '../../support/assertions/until.js';

const test = suite('parked work under /ops');
let service: Service;
test.before(async () => {
  service = await startWithTrouble();
});
test.after(() => service.close());

const get = async (path: string, user = 'sue'): Promise<Reply> =>
  service.ask('GET', `/ops/parked${path}`, { token: await service.userToken(user) });
const decide = async (id: string, what: 'retry' | 'discard', reason = 'works again', key?: string): Promise<Reply> =>
  service.ask('POST', `/ops/parked/${id}/${what}`, {
    token: await service.userToken('sue'),
    body: { reason },
    ...(key === undefined ? {} : { key }),
  });
/** What the list shows of an entity, once it shows it so often parked. */
const listed = async (entity: string, times: number, query = ''): Promise<Json> =>
  eventually(async () =>
    ((await get(`?limit=1000${query}`)).json.data as Json[]).find(
      (one) => one.entity === entity && one.times === times,
    ),
  );

test('lists parked work with its cause, and shows it with its events, by any of its ids', async () => {
  const { transaction, gift } = await parkedPurchase(service, [{ user_id: 'bob' }]);
  const work = await listed(transaction, 1);
  const { parked_at, changed_at, position, ...shown } = work as Record<string, unknown>;
  const id = parkedId('purchase', transaction);
  assert.deepEqual(shown, {
    id,
    process: 'purchase',
    step: 'charge',
    entity: transaction,
    transaction_id: transaction,
    state: 'parked',
    cause: 'the simulated provider does not take this request',
    times: 1,
    by: null,
  });
  assert.equal(parked_at, changed_at);
  for (const name of [id, transaction]) {
    const { events, settled, reason, ...one } = (await get(`/${name}`, 'aud')).json.data as Record<string, unknown> & {
      events: Json[];
    };
    assert.deepEqual([settled, reason], [false, null]);
    assert.deepEqual(one, work);
    assert.deepEqual(
      events.map(({ type, position: at, by }) => [type, at, by]),
      [['WorkParked', position, { user: 'system:process-managers' }]],
    );
  }
  assert.equal(
    (await get(`/${gift}`)).json.data.id,
    (await get(`/${transaction}`)).json.data.id,
    'a charge is found by its gift',
  );
  refused(await get('/nothing'), 404, 'Parked work not found');
  refused(await decide('nothing', 'retry'), 404, 'Parked work not found');
  for (const what of ['retry', 'discard'] as const)
    refused(await decide('nothing', what, ''), 404, 'Parked work not found');
});

test('counts a retry that fails again; one that works finishes the purchase, with who and why', async () => {
  const { transaction, gift } = await parkedPurchase(service, [{ user_id: 'bob' }]);
  const id = parkedId('purchase', transaction);
  const first = await decide(id, 'retry', ' the provider is up ', 'retry-once');
  assert.equal(first.status, 200, first.text);
  assert.deepEqual(
    [first.json.data.state, first.json.data.reason, first.json.data.by],
    ['retried', 'the provider is up', { user: 'sue', client: 'app', roles: ['support'] }],
  );
  assert.match(first.headers.get('gift-position') ?? '', /:\w+$/);
  await parkedTimes(service, 'purchase', transaction, 2);
  const again = await decide(id, 'retry', ' the provider is up ', 'retry-once');
  assert.deepEqual([again.headers.get('idempotent-replayed'), again.json.data.state], ['true', first.json.data.state]);
  assert.deepEqual((await listed(transaction, 2)).state, 'parked');

  assert.equal((await decide(transaction, 'retry', 'really up now')).status, 200);
  await eventually(async () => {
    const look = await service.ask('GET', `/api/v2/gifts/${gift}`, { token: await service.userToken('ann') });
    return look.json.data.gift_status === 'sent' ? look : undefined;
  });
  // A gift is shown as sent from its payment on; it is issued a moment later.
  await eventually(async () => (await service.events.read(`gift-${gift}`)).length > 0);
  assert.equal((await get(`/${id}`)).json.data.settled, true, 'it is over');
  const late = await decide(id, 'retry', 'once more');
  assert.deepEqual([late.status, late.json.data.events.length], [200, 4], 'it was handed back already');
  refused(await decide(id, 'discard'), 409, 'this work has been retried.');
  assert.equal(
    ((await get('?limit=1000')).json.data as Json[]).some(({ entity }) => entity === transaction),
    false,
  );

  await eventually(async () => (await service.events.read(`notification-${gift}`)).length === 2);
  const history = await service.ask('GET', `/ops/gifts/${gift}/history`, { token: await service.userToken('aud') });
  const events = history.json.data as Json[];
  assert.deepEqual(
    events.map(({ type }) => type),
    [
      'GiftsPurchased',
      'ChargeStarted',
      'WorkParked',
      'WorkRetried',
      'WorkParked',
      'WorkRetried',
      'PaymentCharged',
      'GiftIssued',
      'NotificationStarted',
      'NotificationSent',
    ],
  );
  assert.deepEqual(
    events.filter(({ type }) => type === 'WorkRetried').map(({ by, data }) => [by.user, data.reason, data.times]),
    [
      ['sue', 'the provider is up', 1],
      ['sue', 'really up now', 2],
    ],
  );
});

test('discarded work leaves the list and stays in the log; a refund may be retried after all', async () => {
  const { refund, transaction, gift } = await parkedRefund(service);
  const discarded = await decide(refund, 'discard', 'given back by bank transfer');
  assert.deepEqual(
    [discarded.status, discarded.json.data.state, discarded.json.data.reason],
    [200, 'discarded', 'given back by bank transfer'],
  );
  assert.equal((await decide(refund, 'discard', 'again')).json.data.events.length, 2, 'nothing more is recorded');
  assert.equal(
    ((await get('?limit=1000')).json.data as Json[]).some(({ entity }) => entity === refund),
    false,
  );
  assert.equal((await listed(refund, 1, '&state=discarded&process=refund')).state, 'discarded');
  assert.equal((await get(`/${refund}`)).json.data.transaction_id, transaction);
  const history = await service.ask('GET', `/ops/gifts/${gift}/history`, { token: await service.userToken('aud') });
  assert.deepEqual(
    (history.json.data as Json[])
      .filter(({ type }) => type.startsWith('Work'))
      .map(({ type, data }) => [type, data.reason ?? data.cause]),
    [
      ['WorkParked', 'simulated refuses the refund: expired_or_canceled_card'],
      ['WorkDiscarded', 'given back by bank transfer'],
    ],
  );
  assert.equal((await decide(refund, 'retry', 'it came back')).status, 200);
  await parkedTimes(service, 'refund', refund, 2);
  assert.equal((await listed(refund, 2)).state, 'parked');
});

test('a retry does not send a discarded notification', async () => {
  const { gift, transaction } = await parkedPurchase(service);
  const metadata = { commandId: 'x', correlationId: 'x', by: { user: 'system:process-managers' } };
  const data = {
    entity: gift,
    transaction_id: transaction,
    step: 'notify',
    cause: 'nobody knows',
    event_id: 'e',
    times: 1,
  };
  await service.events.append(
    'parked-notification',
    [{ id: crypto.randomUUID(), type: 'WorkParked', at: new Date().toISOString(), data, metadata }],
    'any',
  );
  assert.equal((await listed(gift, 1)).process, 'notification');
  assert.equal((await decide(gift, 'discard', 'notified by telephone')).json.data.state, 'discarded');
  refused(await decide(gift, 'retry'), 409, 'this work was discarded.');
});

test('page by page, by process and state', async () => {
  for (let n = 0; n < 2; n++) await parkedPurchase(service);
  await listed((await parkedRefund(service)).refund, 1);
  const all = (await get('?state=all&limit=1000')).json.data as Json[];
  const paged: Json[] = [];
  for (let after: string | null = ''; after !== null;) {
    const page: Json = (await get(`?state=all&limit=2${after === '' ? '' : `&after=${after}`}`)).json;
    assert.ok(page.data.length <= 2);
    paged.push(...(page.data as Json[]));
    after = page.next as string | null;
  }
  assert.deepEqual(paged, all);
  assert.ok(all.every(({ position }, index) => index === 0 || position > all[index - 1].position));
  const of = async (query: string): Promise<Json[]> => (await get(`?limit=1000&${query}`)).json.data as Json[];
  assert.deepEqual(
    await of('process=purchase'),
    all.filter(({ process, state }) => process === 'purchase' && state === 'parked'),
  );
  assert.deepEqual(await of('process=dispute&state=all'), []);
  assert.deepEqual(
    await of('state=discarded'),
    all.filter(({ state }) => state === 'discarded'),
  );
  for (const after of ['x', '42', '18446744073709551615', '9'.repeat(16)]) {
    const answer = await get(`?after=${after}`);
    assert.deepEqual(
      [answer.status, /^after must be a position of this log, such as \d+$/.test(answer.json.error)],
      [422, true],
      after,
    );
  }
  refused(await get('?state=lost'), 422, 'state must be parked or retried or discarded or all');
});

test('support decides, auditors look, others do neither; a reason is wanted', async () => {
  const { transaction } = await parkedPurchase(service);
  for (const what of ['retry', 'discard'] as const) {
    refused(await decide(transaction, what, ' '), 422, 'reason must not be empty');
    refused(
      await service.ask('POST', `/ops/parked/${transaction}/${what}`, {
        token: await service.userToken('sue'),
        body: {},
      }),
      422,
      'reason is required',
    );
    for (const user of ['aud', 'ann'])
      refused(
        await service.ask('POST', `/ops/parked/${transaction}/${what}`, {
          token: await service.userToken(user),
          body: { reason: 'x' },
        }),
        403,
        'Forbidden.',
      );
  }
  assert.equal((await get('', 'aud')).status, 200);
  refused(await get('', 'ann'), 403, 'Forbidden.');
  assert.equal(
    (await service.events.read('parked-purchase')).some(
      ({ type, data }) => type !== 'WorkParked' && (data as Json).entity === transaction,
    ),
    false,
  );
});

test('waits for the position of a decision before it lists; shows what the log has meanwhile', async () => {
  const { through, hold, free } = heldCollection('parked');
  const slow = await startWithTrouble({ through });
  try {
    const { transaction } = await parkedPurchase(slow);
    const token = await slow.userToken('sue');
    const list = async (headers: Readonly<Record<string, string>> = {}): Promise<Reply> =>
      slow.ask('GET', '/ops/parked', { token, headers });
    await eventually(async () => (await list()).json.data.length === 1);
    hold();
    const discarded = await slow.ask('POST', `/ops/parked/${transaction}/discard`, {
      token,
      body: { reason: 'not wanted' },
    });
    assert.equal(discarded.status, 200, discarded.text);
    const headers = { 'gift-position': discarded.headers.get('gift-position') ?? '' };
    refused(await list(headers), 503, 'Service unavailable.');
    assert.equal(
      (await slow.ask('GET', `/ops/parked/${transaction}`, { token, headers })).json.data.state,
      'discarded',
    );
    await free();
    await eventually(async () => (await list()).json.data.length === 0);
    assert.deepEqual((await list(headers)).json.data, []);
  } finally {
    await free();
    await slow.close();
  }
});

test.run();
