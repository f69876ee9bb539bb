import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { suite } from 'uvu';
import { accessStream } from '../../src/domain/access.js';
import { run } from '../../src/cli/program.js';
import { gift, sink } from '../support/service/cli.js';
import { buy, purchaseOf, redeem, unredeem } from '../support/service/giftFlow.js';
import { type Json, type Service, startService } from '../support/service/service.js';
import { eventually } from '../support/assertions/until.js';

const test = suite('cli/history');
let service: Service;
/** Bought with another for a phone, vouchered, redeemed, unredeemed, redeemed again. */
let id = '';
let transactionId = '';
let redemptions: string[] = [];
/** Before each of the gift's changes, and what the API answered its owner then, with everything embedded. */
const times: string[] = [];
const answers: Json[] = [];
const RELATIONS = [
  'message',
  'redeemed',
  'voucher.segment',
  'purchase.brand.stores',
  'purchase.brand.integration',
  'purchase.segments',
];
const MESSAGE = 'for your eyes only';
const PHONE = '+447700900002';

const history = async (...args: readonly string[]): ReturnType<typeof gift> =>
  gift(service.settings, ['history', ...args]);
const moment = async (): Promise<void> => {
  await sleep(5);
  times.push(new Date().toISOString());
  const answer =
    id === ''
      ? undefined
      : await service.ask('GET', `/api/v2/gifts/${id}?${RELATIONS.map((one) => `embed[]=${one}`).join('&')}`, {
          token: await service.userToken('bob'),
        });
  answers.push(answer?.json);
  await sleep(5);
};

test.before(async () => {
  service = await startService({ env: { PUBLIC_URL: 'https://gifts.test' } });
  await moment();
  const bought = await service.ask('POST', '/api/v2/transactions', {
    token: await service.userToken('ann'),
    body: {
      payment: { method: 'card', reference: 'pm_card_visa' },
      purchase: {
        type: 'gift',
        reference: 'latte',
        receivers: [{ phone_number: PHONE }, { user_id: 'cat' }],
        message: MESSAGE,
      },
    },
    headers: { 'x-request-id': 'the-purchase' },
  });
  transactionId = bought.json.data.id as string;
  id = bought.json.data.gifts[0] as string;
  await eventually(async () => (await service.events.read(`notification-${id}`)).length === 2);
  await moment();
  const voucher = await service.ask('POST', `/api/v2/gifts/${id}/voucher`, { token: await service.userToken('bob') });
  assert.equal(voucher.status, 200, voucher.text);
  await moment();
  redemptions = [(await redeem(service, id)).json.data.id as string];
  await moment();
  assert.equal((await unredeem(service, id)).status, 200);
  await moment();
  redemptions.push((await redeem(service, id)).json.data.id as string);
});
test.after(() => service.close());

test('every event of the life stands there in order, whatever names the gift', async () => {
  const { code, records, err } = await history(id, '--json');
  assert.deepEqual([code, err], [0, '']);
  const events = records();
  assert.deepEqual(
    events.map(({ type }) => type),
    [
      'GiftsPurchased',
      'ChargeStarted',
      'PaymentCharged',
      'GiftIssued',
      'NotificationStarted',
      'NotificationSent',
      'VoucherAssigned',
      'GiftRedeemed',
      'GiftUnredeemed',
      'GiftRedeemed',
    ],
  );
  const positions = events.map(({ position }) => position as string);
  assert.deepEqual(positions, positions.toSorted());
  assert.deepEqual(Object.keys(events[0] ?? {}), [
    'position',
    'stream',
    'revision',
    'type',
    'id',
    'at',
    'by',
    'request_id',
    'command_id',
    'causation_id',
    'correlation_id',
    'data',
  ]);
  assert.deepEqual([events[0]?.['request_id'], events[2]?.['correlation_id']], ['the-purchase', 'the-purchase']);
  assert.deepEqual(events[7]?.['by'], { user: 'till-coffee', client: 'app', roles: ['redeem', 'unredeem'] });
  await eventually(async () => (await history(redemptions[1] ?? '', '--json')).code === 0);
  for (const name of [service.shortcodeOf(id), service.shortcodeOf(id).toLowerCase(), ...redemptions])
    assert.deepEqual((await history(name, '--json')).records(), events, name);
});

test('a transaction gives the lives of all its gifts, one gift only its own share', async () => {
  const all = (await history(transactionId, '--json')).records() as Json[];
  assert.equal(all.filter(({ type }) => type === 'GiftIssued').length, 2);
  assert.deepEqual(
    all[0].data.receivers.map((receiver: Json) => receiver.user_id ?? receiver.phone_number),
    ['***', 'cat'],
  );
  const [first] = (await history(id, '--json')).records() as Json[];
  assert.deepEqual(
    [first.data.receivers.length, first.data.receivers[0].phone_number, first.data.other_receivers],
    [1, '***', 1],
  );
});

test("shows people a block for each event, with causes and the provider's name of a message", async () => {
  const { out } = await history(id);
  const lines = out.trimEnd().split('\n');
  assert.match(
    lines[0] ?? '',
    new RegExp(`^gift ${id} of transaction ${transactionId}: 10 events, the last at log position \\d+; times are UTC$`),
  );
  const block = (type: string): string => out.slice(out.indexOf(`Z  ${type}`)).split(/\n#/)[0] ?? '';
  assert.match(out, /\n\n#1  \S+Z  GiftsPurchased\n    by ann\b.*, request the-purchase\n    buyer_id=ann /);
  assert.match(block('PaymentCharged'), /because of #2\n    amount=700 provider=simulated/);
  assert.match(block('GiftRedeemed'), /\n    by till-coffee \(redeem unredeem\), through app, at bean-soho, request /);
  const sent = (await history(id, '--json')).records().find(({ type }) => type === 'NotificationSent') as Json;
  assert.ok(
    block('NotificationSent').includes(`message_id=${sent.data.message_id as string}`),
    block('NotificationSent'),
  );
});

test('on a terminal no line is wider than it is, and nothing is lost', async () => {
  const whole = (await history(id)).out;
  for (const columns of [100, 60, 1]) {
    const { stream, text } = sink();
    const stdout = Object.assign(stream, { columns });
    assert.equal(
      await run(
        {
          stdin: Readable.from([]),
          stdout,
          stderr: sink().stream,
          env: service.settings,
          signal: new AbortController().signal,
        },
        ['history', id],
      ),
      0,
    );
    for (const line of text().trimEnd().split('\n')) assert.ok(line.length <= Math.max(40, columns), line);
    const told = (output: string): string => output.slice(output.indexOf('#1')).replaceAll(/\s/g, '');
    assert.equal(told(text()), told(whole));
  }
});

test('CSV has a heading, and one line an event', async () => {
  const { out } = await history(id, '--csv');
  const lines = out.trimEnd().split('\n');
  assert.equal(
    lines[0],
    'position,stream,revision,type,id,at,local_day,user,client,roles,request_id,command_id,causation_id,correlation_id,data',
  );
  assert.equal(lines.length, 11);
  assert.match(
    lines[8] ?? '',
    new RegExp(
      `^'\\d+,gift-${id},2,GiftRedeemed,[0-9a-f-]+,[^,]+,\\d{4}-\\d\\d-\\d\\d,till-coffee,app,redeem unredeem,`,
    ),
  );
});

test('CSV for Excel has a byte order mark first, and is the same after it', async () => {
  const [plain, excel] = [await history(id, '--csv'), await history(id, '--excel')];
  assert.equal(excel.out, `\uFEFF${plain.out}`);
});

test('shows no secret, and personal fields only for a reason, which it records', async () => {
  const stored = [
    ...(await service.events.read(`transaction-${transactionId}`)),
    ...(await service.events.read(`gift-${id}`)),
  ];
  const dataOf = (type: string): Json => stored.find((event) => event.type === type)?.data;
  const { seed } = dataOf('GiftsPurchased');
  const { code: itsCode } = dataOf('VoucherAssigned');
  assert.ok(seed !== undefined && itsCode !== undefined);
  const asOf = ['--as-of', new Date().toISOString()];
  for (const args of [
    [id],
    [id, '--json'],
    [id, '--csv'],
    [transactionId, '--json'],
    [id, ...asOf],
    [id, ...asOf, '--json'],
  ]) {
    const { out, code } = await history(...args);
    assert.equal(code, 0, args.join(' '));
    for (const hidden of [seed, itsCode, MESSAGE, PHONE])
      assert.ok(!out.includes(hidden), `${args.join(' ')} shows ${hidden}`);
    const open = await history(...args, '--personal', '--reason', 'a complaint');
    for (const hidden of [seed, itsCode]) assert.ok(!open.out.includes(hidden), `${args.join(' ')} shows ${hidden}`);
    assert.ok(open.out.includes(MESSAGE));
  }
  const refused = await history(id, '--personal');
  assert.deepEqual([refused.code, refused.out, refused.err], [2, '', 'gift: --personal wants --reason "<why>"\n']);
  const seen = (await service.events.read(accessStream(new Date().toISOString()))) as Json[];
  const last = seen.at(-1);
  assert.deepEqual(
    [last.type, last.data.what, last.data.personal, last.data.reason, last.data.count],
    ['RecordsShown', 'gift history', true, 'a complaint', 1],
  );
  assert.match(last.metadata.by.user as string, /^cli:.+@.+/);
  assert.deepEqual(last.data.asked, { gift: id, transactionId, asOf: asOf[1], timeZone: 'Europe/London' });
});

/** Without what opens the gift (docs/api/gifts.md#what-opens-a-gift). */
function closed(data: Json): Json {
  const launch_url = (data.launch_url as string).replace(data.shortcode as string, '***');
  return { ...data, shortcode: '***', launch_url };
}

test('--as-of shows the gift as the API showed it then', async () => {
  const at = async (time: string | undefined, ...more: readonly string[]): Promise<Json> => {
    const { code, records, err } = await history(id, '--as-of', time ?? '', '--json', ...more);
    assert.equal(code, 0, err);
    return records()[0];
  };
  const before = await history(id, '--as-of', times[0] ?? '');
  assert.deepEqual([before.code, before.out], [1, '']);
  assert.match(before.err, /^gift: at \S+Z \(log position \d+\) there was no such gift\n$/);
  const [told, vouchered, redeemed, unredeemed] = [
    await at(times[1]),
    await at(times[2]),
    await at(times[3]),
    await at(times[4]),
  ];
  assert.deepEqual([told.data.gift_status, told.data.voucher_id, told.embedded.vouchers], ['sent', null, []]);
  assert.deepEqual([told.as_of, told.viewer, told.time_zone], [times[1], 'bob', 'Europe/London']);
  assert.equal(told.embedded.vouchers.length, 0);
  assert.deepEqual(
    [vouchered.embedded.vouchers.length, vouchered.embedded.vouchers[0].code, vouchered.embedded.messages[0].message],
    [1, '***', '***'],
  );
  assert.deepEqual(
    [redeemed.data.gift_status, redeemed.data.redeemed_id, redeemed.embedded.redemptions[0].id],
    ['redeemed', redemptions[0], redemptions[0]],
  );
  assert.deepEqual(
    [unredeemed.data.gift_status, unredeemed.data.redeemed_id, unredeemed.embedded.redemptions],
    ['sent', null, []],
  );
  await moment();
  for (const [index, answer] of answers.entries()) {
    if (index === 0) continue;
    const then = await at(times[index], '--personal', '--reason', 'a test');
    const vouchers = answer.embedded.vouchers.map((voucher: Json) => ({ ...voucher, code: '***' }));
    assert.deepEqual(
      { data: then.data, embedded: then.embedded },
      { data: closed(answer.data), embedded: { ...answer.embedded, vouchers } },
      times[index],
    );
  }
  assert.equal(answers.length, 6);
});

test('the catalogue and the accounts are those of then', async () => {
  const [other = ''] = await buy(service, 'ticket', [{ user_id: 'dan' }]);
  await moment();
  await service.import({
    products: [
      { id: 'ticket', brand_id: 'screen', name: 'Cinema ticket, renamed', sale_price: 1200, segments: ['seg-pin'] },
    ],
    stores: [{ id: 'screen-new', brand_id: 'screen', name: 'Screen New', longitude: 0, latitude: 50 }],
  });
  const then = (
    await history(other, '--as-of', times.at(-1) ?? '', '--json', '--embed', 'purchase.brand.stores')
  ).records()[0] as Json;
  assert.deepEqual([then.embedded.products[0].name, then.embedded.products[0].sale_price], ['Cinema ticket', 1050]);
  assert.deepEqual(
    then.embedded.stores.map((store: Json) => store.id),
    ['screen-soho'],
  );
  assert.deepEqual(Object.keys(then.embedded), ['products', 'brands', 'stores']);
  const now = (
    await history(other, '--as-of', new Date().toISOString(), '--json', '--embed', 'purchase.brand.stores')
  ).records()[0] as Json;
  assert.equal(now.embedded.products[0].name, 'Cinema ticket, renamed');
  assert.deepEqual(
    now.embedded.stores.map((store: Json) => store.id),
    ['screen-soho', 'screen-new'],
  );
  const viewer = (
    await history(other, '--as-of', new Date().toISOString(), '--json', '--viewer', 'ann')
  ).records()[0] as Json;
  assert.deepEqual([viewer.viewer, viewer.data.receiver_id, viewer.embedded.vouchers], ['ann', 'dan', []]);
});

test('what support did for a gift stands there, and it is shown as it was before and after', async () => {
  const [other = ''] = await buy(service, 'latte', [{ phone_number: PHONE }]);
  await eventually(async () => (await service.events.read(`notification-${other}`)).length === 2);
  const care = async (...args: readonly string[]): Promise<void> => {
    await sleep(5);
    const { code, err } = await gift(service.settings, ['gifts', ...args, '--reason', 'a ticket']);
    assert.equal(code, 0, err);
    await sleep(5);
  };
  const shown = async (user: string, given: string): Promise<Json> =>
    eventually(async () => {
      const { json } = await service.ask('GET', `/api/v2/gifts/${other}?embed[]=purchase`, {
        token: await service.userToken(user),
      });
      return json.data.expiry_date === given && json.data.receiver_id === user ? json : undefined;
    });
  const { expiry_date: expiry } = (
    await service.ask('GET', `/api/v2/gifts/${other}`, { token: await service.userToken('bob') })
  ).json.data;
  const until = `${Number((expiry as string).slice(0, 4)) + 1}-03-01`;
  const seen: { time: string; user: string; answer: Json }[] = [];
  const note = async (user: string, day: string): Promise<void> =>
    void seen.push({ answer: await shown(user, day), user, time: new Date().toISOString() });
  await note('bob', expiry);
  await care('reassign', other, '--to-phone', '07700 900001');
  await note('ann', expiry);
  await care('extend', other, '--until', until);
  await note('ann', until);
  await eventually(async () => (await service.events.read(`notification-${other}`)).length === 4);
  await care('reassign', other, '--to-user', 'cat');
  await note('cat', until);
  for (const { time, user, answer } of seen) {
    const [then] = (await history(other, '--as-of', time, '--json', '--embed', 'purchase')).records() as Json[];
    assert.deepEqual([then.viewer, then.data, then.embedded], [user, closed(answer.data), answer.embedded], time);
  }
  const events = (await history(other, '--json')).records() as Json[];
  assert.deepEqual(
    events.filter(({ type }) => type === 'GiftReassigned').map(({ data }) => [data.phone_number, data.reason]),
    [
      ['***', 'a ticket'],
      [null, 'a ticket'],
    ],
  );
  assert.ok(events.some(({ type, by }) => type === 'GiftExtended' && (by.user as string).startsWith('cli:')));
});

test('money that moved in a prepaid wallet stands there, of this purchase alone, there and back', async () => {
  const paid = async (): Promise<string> => {
    const reply = await service.ask('POST', '/api/v2/transactions', {
      token: await service.userToken('ann'),
      body: purchaseOf('latte', undefined, { reference: 'wallet-prepaid' }),
    });
    assert.equal(reply.status, 201, reply.text);
    return reply.json.data.id as string;
  };
  const [first, second] = [await paid(), await paid()];
  const refund = await gift(service.settings, ['purchases', 'refund', first, '--reason', 'a test']);
  assert.equal(refund.code, 0, refund.err);
  const moved = async (transaction: string): Promise<string[]> =>
    ((await history(transaction, '--json')).records() as Json[])
      .filter(({ stream }) => stream === 'wallet-wallet-prepaid')
      .map(({ type, data }) => `${type} ${data.transaction_id === transaction}`);
  await eventually(async () => (await moved(first)).length === 2);
  assert.deepEqual(
    [await moved(first), await moved(second)],
    [['WalletDebited true', 'WalletCredited true'], ['WalletDebited true']],
  );
});

test('what can not be answered says why, and nothing is recorded', async () => {
  const today = new Date().toISOString().slice(0, 10);
  const before = (await service.events.read(accessStream(new Date().toISOString()))).length;
  for (const [args, code, err] of [
    [['0'.repeat(20)], 1, /^gift: nothing is known of "0{20}": give a gift's id/],
    [['../../etc'], 1, /nothing is known of/],
    [['x'.repeat(5_000)], 1, /nothing is known of "x{64}"/],
    [[''], 1, /nothing is known of ""/],
    [[id, '--as-of', 'soon'], 2, /^gift: --as-of: "soon" is not a time: give one such as 2026-05-04,/],
    [[id, '--as-of', '2026-05-04', '--time-zone', 'Mars'], 2, /^gift: --time-zone: "Mars" is not a time zone/],
    [[id, '--as-of', '1999-01-01'], 1, /there was no such gift/],
    [[id, '--as-of', '2100-01-01'], 2, /^gift: --as-of: "2100-01-01" is still to come: it is 20/],
    [[transactionId, '--as-of', today], 1, /^gift: this transaction has 2 gifts: name one of them/],
    [[id, '--as-of', today, '--viewer', 'nobody'], 1, /there was no user "nobody"/],
    [[id, '--as-of', today, '--csv'], 2, /not as --csv/],
    [[id, '--as-of', today, '--embed', 'nonsense'], 2, /--embed nonsense is unknown: message, redeemed/],
    [[id, '--viewer', 'ann'], 2, /go with --as-of/],
    [[id, '--reason', ' '], 2, /--reason must not be empty/],
    [[id, '--reason', 'x'.repeat(501)], 2, /at most 500/],
    [[id, '--json', '--csv'], 2, /cannot be used with/],
  ] as const) {
    const ran = await history(...args);
    assert.deepEqual([ran.code, ran.out], [code, ''], args.join(' ').slice(0, 100));
    assert.match(ran.err, err);
  }
  assert.equal((await service.events.read(accessStream(new Date().toISOString()))).length, before);
});

test("shows nothing with another key than the log's: events of pool codes would be missing", async () => {
  const other = await gift({ ...service.settings, HASH_KEY: 'k'.repeat(43) }, ['history', id]);
  assert.deepEqual([other.code, other.out], [1, '']);
  assert.match(other.err, /^gift: HASH_KEY: this is not the key that the event log was made with: put/);
});

test('without a log there is nothing to show, and none is made', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'cli-'));
  try {
    const { code, err } = await gift(join(dir, 'none'), ['history', id]);
    assert.equal(code, 1);
    assert.match(err, /^gift: there is no event log in .*none: set DATA_DIR/);
  } finally {
    rmSync(dir, { recursive: true });
  }
});

test('help shows how it is used', async () => {
  const { code, out } = await history('--help');
  assert.equal(code, 0);
  for (const word of ['--as-of', '--personal', '--reason', '--csv', '--json', '$ gift history'])
    assert.ok(out.includes(word), word);
});

test.run();
