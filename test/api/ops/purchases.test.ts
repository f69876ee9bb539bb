/** Finding purchases, over HTTP and on the command line. */
import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { accessStream } from '../../../src/domain/access.js';
import { CATALOGUE } from '../../support/fixtures/testCatalogue.js';
import { gift } from '../../support/service/cli.js';
import { buy, purchaseOf, refused } from '../../support/service/giftFlow.js';
import { eventually } from '../../support/assertions/until.js';
import { type Json, type Reply, type Service, startService } from '../../support/service/service.js';

const test = suite('api/ops/purchases');
let service: Service;
const bought: string[] = [];

const ask = async (query: string, user = 'sue'): Promise<Reply> =>
  service.ask('GET', `/ops/transactions?${query}`, { token: await service.userToken(user) });
const found = async (query: string): Promise<Json[]> => {
  const reply = await ask(query);
  assert.equal(reply.status, 200, reply.text);
  return reply.json['data'] as Json[];
};
const idsOf = (rows: readonly Json[]): unknown[] => rows.map(({ transaction_id }) => transaction_id as unknown);
const last = async (): Promise<Json> => (await service.events.read(accessStream(new Date().toISOString()))).at(-1);
const run = async (...args: readonly string[]) => gift(service.settings, ['purchases', 'list', ...args]);

test.before(async () => {
  service = await startService({ catalogue: CATALOGUE });
  for (const product of ['latte', 'mocha', 'latte', 'ticket']) {
    const [one = ''] = await buy(service, product, [{ user_id: 'bob' }, { phone_number: '07700 900166' }]);
    const shown = await service.ask('GET', `/api/v2/gifts/${one}`, { token: await service.userToken('ann') });
    bought.unshift(shown.json.data.transaction_id as string);
  }
  const declined = await service.ask('POST', '/api/v2/transactions', {
    token: await service.userToken('ann'),
    body: purchaseOf('latte', [{}], { reference: 'pm_card_visa_chargeDeclined' }),
  });
  assert.equal(declined.status, 402);
  bought.unshift((await found('status=declined'))[0]?.transaction_id as string);
  const [ofBob = ''] = await buy(service, 'latte', [{}], 'bob');
  const shown = await service.ask('GET', `/api/v2/gifts/${ofBob}`, { token: await service.userToken('bob') });
  bought.unshift(shown.json.data.transaction_id as string);
});
test.after(() => service.close());

test('lists purchases with what was bought, paid and given back, the latest first', async () => {
  const [ofBob, declined, ticket, latte] = await found('');
  assert.deepEqual(idsOf(await found('')), bought);
  const { at, charge_id, ...rest } = ticket ?? {};
  assert.match(at as string, /^\d{4}-\d\d-\d\dT.*Z$/);
  assert.match(charge_id as string, /^ch_simulated_/);
  assert.deepEqual(rest, {
    transaction_id: bought[2],
    buyer_id: 'ann',
    brand_id: 'screen',
    product_id: 'ticket',
    sale_price: 1050,
    count: 2,
    total: 2100,
    status: 'charged',
    reference_id: null,
    paid: 2100,
    refunded: 0,
    product_name: 'Cinema ticket',
  });
  assert.deepEqual(
    [declined?.status, declined?.charge_id, declined?.paid, ofBob?.buyer_id, latte?.product_name],
    ['declined', null, 0, 'bob', 'Café latte'],
  );
});

test('finds them by buyer, product, price, time, status and charge', async () => {
  const [ofBob, declined, ticket, latte, mocha, first] = bought;
  assert.deepEqual(idsOf(await found('buyer=bob')), [ofBob]);
  assert.deepEqual(idsOf(await found('product=latte&status=charged')), [ofBob, latte, first]);
  assert.deepEqual(idsOf(await found('min=400')), [ticket, mocha]);
  assert.deepEqual(idsOf(await found('min=400&max=400')), [mocha]);
  assert.deepEqual(idsOf(await found('status=declined')), [declined]);
  const all = await found('');
  assert.deepEqual(idsOf(await found(`charge=${all[3]?.charge_id as string}`)), [latte]);
  assert.deepEqual(idsOf(await found(`from=${all[2]?.at as string}&to=${all[1]?.at as string}`)), [declined, ticket]);
  assert.deepEqual(await found('from=2020-01-01&to=2020-01-02'), []);
  assert.deepEqual(await found('charge=ch_nothing'), []);
});

test('pages follow one another, and each is recorded', async () => {
  const paged: Json[] = [];
  for (let next: string | null = ''; next !== null;) {
    const reply = await ask(`limit=4&after=${next}`);
    assert.equal(reply.status, 200, reply.text);
    paged.push(...(reply.json.data as Json[]));
    next = reply.json.next as string | null;
  }
  assert.deepEqual(paged, await found(''));
  await ask('buyer=bob&limit=1', 'aud');
  const { type, data, metadata } = await last();
  assert.deepEqual(
    [type, data.what, data.asked.buyer, data.asked.person, data.count, data.personal, metadata.by.user],
    ['RecordsShown', 'GET /ops/transactions', 'bob', 'bob', 1, false, 'aud'],
  );
});

test('refuses an unknown buyer or product, a fault of a filter, and who may not', async () => {
  refused(await ask('product=lattee'), 422, 'product: the log knows no product "lattee"');
  refused(await ask('buyer=nobody'), 422, 'buyer: the log knows no buyer "nobody"');
  assert.match((await ask('from=2026-05-05&to=2026-05-04&time_zone=UTC')).text, /is later than to/);
  for (const query of ['status=paid', 'min=-1', 'after=x', 'price=1', 'from=noon'])
    assert.equal((await ask(query)).status, 422, query);
  for (const user of ['ann', 'till-coffee']) refused(await ask('', user), 403, 'Forbidden.');
});

test('writes CSV and NDJSON, the same on the command line', async () => {
  const csv = await ask('format=csv&product=latte');
  assert.match(
    csv.text,
    /^at,local_day,transaction_id,buyer_id,brand_id,product_id,sale_price_pence,count,total_pence,status,charge_id,reference_id,paid_pence,refunded_pence,product_name\n/,
  );
  assert.equal(csv.text.split('\n').length, 6);
  assert.equal((await run('--csv', '--product', 'latte')).out, csv.text);
  const ended = await eventually(async () => {
    const event = await last();
    return event.type === 'OperationEnded' ? (event as Json) : undefined;
  });
  assert.deepEqual([ended.data.count, ended.data.complete], [4, true]);
  const { out } = await run('--json');
  assert.equal(out, (await ask('format=ndjson')).text);
  assert.deepEqual(
    out
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Json),
    await found(''),
  );
});

test('shows a table on the command line, and says what is wrong', async () => {
  const { out, code } = await run('--product', 'mocha', '--min', '400', '--max', '400');
  assert.equal(code, 0);
  assert.match(out, new RegExp(`${bought[4]}  ann +mocha +4\\.00 +2  charged  ch_simulated_\\w+  8\\.00  0\\.00`));
  assert.match(out, /\n1 purchase: 1 charged; .*gift purchases refund TRANSACTION/);
  assert.equal((await run('--status', 'pending')).out, 'no purchase is like this\n');
  const unknown = await run('--product', 'lattee');
  assert.deepEqual([unknown.code, unknown.err], [1, 'gift: --product: the log knows no product "lattee"\n']);
  for (const wrong of [
    ['--min', '3.50'],
    ['--status', 'paid'],
    ['--from', 'noon'],
    ['--from', '2026-05-05', '--to', '2026-05-04'],
  ])
    assert.equal((await run(...wrong)).code, 2, wrong.join(' '));
});

test('finds a purchase by the reference of its order', async () => {
  const ordered = await service.ask('POST', '/api/v2/transactions', {
    token: await service.userToken('ann'),
    body: {
      payment: { method: 'card', reference: 'pm_card_visa' },
      purchase: { type: 'gift', reference: 'latte', reference_id: 'order 1042' },
    },
  });
  assert.equal(ordered.status, 201, ordered.text);
  const id = ordered.json.data.id as string;
  for (const query of ['reference_id=order%201042', 'buyer=ann&reference_id=order%201042'])
    assert.deepEqual(idsOf(await found(query)), [id]);
  assert.deepEqual(await found('buyer=bob&reference_id=order%201042'), []);
  assert.match(
    (await run('--reference-id', 'order 1042')).out,
    new RegExp(`charge +order +paid.*\n-.*\n.*${id} .* order 1042 +3\\.50`),
  );
});

test('shows what a refund gave back, and its status', async () => {
  const [, , , latte = ''] = bought;
  const reply = await service.ask('POST', `/ops/transactions/${latte}/refund`, {
    token: await service.userToken('sue'),
    body: { reason: 'sold at a wrong price' },
  });
  assert.equal(reply.status, 200, reply.text);
  const [row] = await found('status=refunded');
  assert.deepEqual([row?.transaction_id, row?.paid, row?.refunded], [latte, 700, 700]);
});

test.run();
