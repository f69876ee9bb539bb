import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { Writable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { suite } from 'uvu';
import { accessStream } from '../../../src/domain/access.js';
import { type Ran, gift } from '../../support/service/cli.js';
import { buy, redeem, unredeem } from '../../support/service/giftFlow.js';
import { GIFT } from '../../support/service/programs.js';
import { type Json, type Service, startService } from '../../support/service/service.js';

const test = suite('cli/audit');
let service: Service;
let between = '';
let lattes: string[] = [];
const TODAY = new Date().toISOString().slice(0, 10);

const audit = async (...args: readonly string[]): Promise<Ran> => gift(service.settings, ['audit', ...args]);
const seen = async (): Promise<Json[]> => (await service.events.read(accessStream(new Date().toISOString()))) as Json[];

test.before(async () => {
  service = await startService();
  lattes = await buy(service, 'latte', [{}, {}, {}]);
  const [ticket = ''] = await buy(service, 'ticket', [{ user_id: 'dan' }]);
  const [first = '', second = ''] = lattes;
  assert.equal((await redeem(service, first)).status, 201);
  await sleep(5);
  between = new Date().toISOString();
  await sleep(5);
  assert.equal((await redeem(service, second, 'till-coffee', 'bean-leeds')).status, 201);
  assert.equal((await unredeem(service, first)).status, 200);
  assert.equal((await redeem(service, ticket, 'dan', 'screen-soho')).status, 201);
});
test.after(() => service.close());

test('redemptions and their reversals come as CSV, in log order, with what was redeemed', async () => {
  const { code, out, err } = await audit('redemptions');
  assert.equal(code, 0, err);
  const lines = out.trimEnd().split('\n');
  assert.equal(
    lines[0],
    'position,at,local_day,type,gift_id,redemption_id,location_id,location_merchant_id,merchant_id,brand_id,product_id,value_pence,user,client,roles,request_id,command_id,causation_id,correlation_id,id,revision,by_support,reason,location_name,location_merchant_name,brand_name,product_name',
  );
  const cells = lines.slice(1).map((line) => line.split(','));
  assert.deepEqual(
    cells.map((row) => [row[3], row[4], row[6], row[11], row[12]]),
    [
      ['GiftRedeemed', lattes[0], 'bean-soho', '350', 'till-coffee'],
      ['GiftRedeemed', lattes[1], 'bean-leeds', '350', 'till-coffee'],
      ['GiftUnredeemed', lattes[0], 'bean-soho', '350', 'till-coffee'],
      ['GiftRedeemed', cells[3]?.[4], 'screen-soho', '1050', 'dan'],
    ],
  );
  assert.deepEqual(cells[0]?.slice(-4), ['Bean Soho', 'Coffee Ltd', 'Bean', 'Café latte']);
  assert.match(cells[0]?.[0] ?? '', /^'\d{16,19}$/, 'a spreadsheet keeps its digits');
  // The operations API sends the very same.
  const sent = await service.ask('GET', '/ops/redemptions?format=csv', { token: await service.userToken('aud') });
  assert.deepEqual([sent.status, sent.text], [200, out]);
  assert.match(
    err,
    /^the whole log: log positions after the beginning through \d+; days are of Europe\/London\n4 records up to log position \d+\n$/,
  );
});

test('a merchant, location or user that the log does not know is no empty export', async () => {
  for (const what of ['merchant', 'location', 'user']) {
    const { code, out, err } = await audit('redemptions', '--json', `--${what}`, 'mistyped');
    assert.deepEqual([code, out, err], [1, '', `gift: --${what}: the log knows no ${what} "mistyped"\n`]);
  }
});

test('they come as JSON lines, filtered by merchant, location, user and time', async () => {
  const types = async (...args: readonly string[]): Promise<string[]> => {
    const { out } = await audit('redemptions', '--json', ...args);
    return out === ''
      ? []
      : out
          .trimEnd()
          .split('\n')
          .map((line) => `${(JSON.parse(line) as Json).type}@${(JSON.parse(line) as Json).redemption.location_id}`);
  };
  assert.deepEqual(await types('--merchant', 'cinema'), ['GiftRedeemed@screen-soho']);
  assert.deepEqual(await types('--merchant-id', 'cinema'), ['GiftRedeemed@screen-soho']);
  assert.deepEqual(
    await types('--location-id', 'bean-soho', '--gift-id', lattes[0] ?? '', '--brand-id', 'bean', '--product', 'latte'),
    ['GiftRedeemed@bean-soho', 'GiftUnredeemed@bean-soho'],
  );
  const twice = await audit('redemptions', '--merchant', 'cinema', '--merchant-id', 'coffee');
  assert.deepEqual([twice.code, twice.out, twice.err], [2, '', 'gift: --merchant must be given only once\n']);
  const totals = await audit('totals', '--csv', '--merchant-id', 'cinema');
  assert.deepEqual(
    totals.out
      .trimEnd()
      .split('\n')
      .slice(1)
      .map((line) => line.split(',')[1]),
    ['cinema'],
  );
  assert.deepEqual(await types('--location', 'bean-soho'), ['GiftRedeemed@bean-soho', 'GiftUnredeemed@bean-soho']);
  assert.deepEqual(await types('--user', 'dan', '--merchant', 'coffee'), []);
  assert.deepEqual(await types('--from', between, '--user', 'till-coffee'), [
    'GiftRedeemed@bean-leeds',
    'GiftUnredeemed@bean-soho',
  ]);
  assert.deepEqual(await types('--to', between), ['GiftRedeemed@bean-soho']);
  assert.deepEqual(await types('--to', '1999-01-01'), []);
  assert.equal((await types('--from', TODAY, '--to', TODAY, '--time-zone', 'UTC')).length, 4);
});

test('an export is gone on with where it ended', async () => {
  const all = (await audit('redemptions')).out.trimEnd().split('\n');
  const position = all[2]?.split(',')[0] ?? '';
  assert.deepEqual(
    (await audit('redemptions', '--after', position)).out.trimEnd().split('\n'),
    all.slice(3),
    'without a heading',
  );
  assert.equal((await audit('redemptions', '--after', all.at(-1)?.split(',')[0] ?? '')).out, '');
});

test('what is exported is recorded before and after, with who and why', async () => {
  await audit('redemptions', '--merchant', 'coffee', '--reason', 'monthly report');
  const [begun, ended] = (await seen()).slice(-2);
  assert.deepEqual(
    [begun.type, begun.data.what, begun.data.asked.merchant, begun.data.reason],
    ['OperationStarted', 'gift audit redemptions', 'coffee', 'monthly report'],
  );
  assert.deepEqual(
    [ended.type, ended.data.count, ended.data.complete, ended.data.operation_id],
    ['OperationEnded', 3, true, begun.data.operation_id],
  );
  assert.match(begun.metadata.by.user as string, /^cli:/);
});

test('a reader that goes away ends it quietly, and the record says so', async () => {
  const closing = new Writable({ highWaterMark: 1, write: (_chunk, _encoding, done) => (closing.destroy(), done()) });
  const { code, err } = await gift(service.settings, ['audit', 'redemptions'], { stdout: closing });
  assert.equal(code, 0);
  assert.doesNotMatch(err, /records/);
  assert.deepEqual([(await seen()).at(-1).type, (await seen()).at(-1).data.complete], ['OperationEnded', false]);
  const child = spawn('sh', ['-c', `"${process.execPath}" "${GIFT}" audit redemptions --json | head -1`], {
    env: { ...service.settings, PATH: process.env['PATH'] },
  });
  let out = '';
  let told = '';
  child.stdout.on('data', (chunk: Buffer) => (out += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (told += chunk.toString()));
  await once(child, 'close');
  assert.equal(out.trimEnd().split('\n').length, 1);
  assert.doesNotMatch(told, /EPIPE|Error/);
});

test('an interruption says where to go on', async () => {
  const interrupted = new AbortController();
  interrupted.abort();
  const { code, err } = await gift(service.settings, ['audit', 'redemptions'], { signal: interrupted.signal });
  assert.equal(code, 130);
  assert.match(err, /gift: interrupted after 0 records up to log position none; go on with --after/);
  const totals = await gift(service.settings, ['audit', 'totals'], { signal: interrupted.signal });
  assert.deepEqual([totals.code, totals.out, totals.err], [130, '', 'gift: interrupted; nothing was shown\n']);
});

test('totals are per merchant and day, to the penny, and agree with the streams', async () => {
  const { code, records, err } = await audit('totals', '--check', '--json', '--time-zone', 'UTC');
  assert.equal(code, 0, err);
  const [cinema, coffee, done] = records() as Json[];
  assert.deepEqual(coffee, {
    day: TODAY,
    merchant_id: 'coffee',
    issued: 3,
    issued_value: 1050,
    replaced: 0,
    replaced_value: 0,
    redeemed: 2,
    redeemed_value: 700,
    unredeemed: 1,
    unredeemed_value: 350,
    refunded: 0,
    refunded_value: 0,
    unredeemed_by_support: 0,
    unredeemed_by_support_value: 0,
    charged_back: 0,
    charged_back_value: 0,
  });
  assert.deepEqual(cinema, {
    day: TODAY,
    merchant_id: 'cinema',
    issued: 1,
    issued_value: 1050,
    replaced: 0,
    replaced_value: 0,
    redeemed: 1,
    redeemed_value: 1050,
    unredeemed: 0,
    unredeemed_value: 0,
    refunded: 0,
    refunded_value: 0,
    unredeemed_by_support: 0,
    unredeemed_by_support_value: 0,
    charged_back: 0,
    charged_back_value: 0,
  });
  assert.deepEqual(
    [done.action, done.sums.issued_value, done.sums.redeemed_value, done.time_zone],
    ['done', 2100, 1750, 'UTC'],
  );
  assert.deepEqual(done.check, {
    agree: true,
    transactions: 2,
    gifts: 4,
    not_issued_yet: 0,
    differences: [],
    faults: [],
    differences_found: 0,
    faults_found: 0,
  });
});

test('a part of the time counts what happened in it', async () => {
  const { records } = await audit('totals', '--check', '--json', '--from', between);
  const done = records().at(-1) as Json;
  assert.deepEqual(
    [done.sums.issued, done.sums.redeemed, done.sums.unredeemed, done.check.agree, done.check.gifts],
    [0, 2, 1, true, 4],
  );
});

test('people see a table with pounds, and CSV has pence', async () => {
  const { out, err } = await audit('totals', '--check');
  assert.match(out, /^the whole log: .*\n\nday +merchant +issued +£ +replaced +£ +redeemed +£/);
  assert.match(
    out,
    /all +4 +21\.00 +0 +0\.00 +3 +17\.50 +1 +3\.50 +0 +0\.00 +0 +0\.00 +0 +0\.00\n\nby location: gift audit redemptions /,
  );
  assert.match(
    err,
    /2 transactions and 4 gifts read by their streams, 0 of them paid for and not issued yet: all agrees to the penny/,
  );
  const csv = (await audit('totals', '--csv')).out.split('\n');
  assert.equal(
    csv[0],
    'day,merchant_id,issued,issued_value_pence,replaced,replaced_value_pence,redeemed,redeemed_value_pence,unredeemed,unredeemed_value_pence,unredeemed_by_support,unredeemed_by_support_value_pence,refunded,refunded_value_pence,charged_back,charged_back_value_pence,merchant_name',
  );
  assert.match(csv[2] ?? '', /,coffee,3,1050,0,0,2,700,1,350,0,0,0,0,0,0,Coffee Ltd$/);
});

test('who saw what is shown', async () => {
  const { out } = await audit('access');
  assert.match(out, /OperationStarted +gift audit redemptions +\{.*"merchant":"coffee".*\} +monthly report/);
  const events = (await audit('access', '--day', TODAY, '--json')).records() as Json[];
  assert.ok(events.every(({ stream }) => stream === `access-${TODAY}`));
  assert.equal(events.at(-1).data.what, 'gift audit access');
  assert.equal((await audit('access', '--day', '1999-01-01', '--csv')).out.trimEnd().split('\n').length, 1);
});

test('what can not be done says why, and nothing is shown', async () => {
  for (const [args, code, err] of [
    [['redemptions', '--from', 'soon'], 2, /"soon" is not a time/],
    [
      ['redemptions', '--from', '2026-05-04', '--to', '2026-05-03'],
      2,
      /from \(2026-05-03T23:00:00.000Z\) is later than to/,
    ],
    [['redemptions', '--after', '12'], 2, /after must be a position of this log, such as \d+/],
    [['redemptions', '--after', '0'], 2, /after must be a position of this log, such as \d+/],
    [['redemptions', '--after', 'x'], 2, /after must be a position/],
    [['redemptions', '--after', '9'.repeat(16)], 2, /after must be a position of this log, such as \d+/],
    [['redemptions', '--time-zone', 'Mars'], 2, /not a time zone/],
    [['redemptions', '--json', '--csv'], 2, /cannot be used with/],
    [['totals', '--to', '31/12/2026'], 2, /not a time/],
    [['access', '--day', '2026-02-30'], 2, /is not a day/],
    [['access', '--day', 'today'], 2, /is not a day/],
    [['nonsense'], 2, /unknown command/],
  ] as const) {
    const ran = await audit(...args);
    assert.deepEqual([ran.code, ran.out], [code, ''], args.join(' '));
    assert.match(ran.err, err);
  }
  for (const name of ['redemptions', 'totals', 'access'])
    assert.match((await audit(name, '--help')).out, new RegExp(`\\$ gift audit ${name}`));
});

test('a reversal by support says so in the CSV, with its reason', async () => {
  const [, second = ''] = lattes;
  const reversed = await gift(service.settings, [
    'gifts',
    'unredeem',
    second,
    '--reason',
    'scanned twice, ticket 4711',
  ]);
  assert.equal(reversed.code, 0, reversed.err);
  const [heading = '', redeemed, unredeemed] = (await audit('redemptions', '--gift', second)).out.split('\n');
  const from = heading.split(',').indexOf('by_support');
  assert.deepEqual(redeemed?.split(',').slice(from, from + 3), ['', '', 'Bean Leeds']);
  assert.match(unredeemed ?? '', /,true,"scanned twice, ticket 4711",Bean Leeds,/);
});

test.run();
