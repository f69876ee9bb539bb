import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { suite } from 'uvu';
import { giftStream } from '../../src/domain/gift/events.js';
import { type Ran, gift } from '../support/service/cli.js';
import { buy, buyOne, notificationOver, redeem } from '../support/service/giftFlow.js';
import { type Service, startService } from '../support/service/service.js';

const test = suite('cli/many');
const dir = mkdtempSync(join(tmpdir(), 'gift-many-'));
const NO_GIFT = '0'.repeat(20);
let service: Service;
test.before(async () => {
  service = await startService();
});
test.after(async () => {
  await service.close();
  rmSync(dir, { recursive: true });
});

const REASON = ['--reason', 'reported as stolen'] as const;
const ran = async (args: readonly string[], stdin?: string): Promise<Ran> =>
  gift(service.settings, args, stdin === undefined ? {} : { stdin: Readable.from([Buffer.from(stdin)]) });
const typesOf = async (id: string): Promise<string[]> =>
  (await service.events.read(giftStream(id))).map(({ type }) => type).filter((type) => type !== 'GiftIssued');

function written(name: string, text: string): string {
  const file = join(dir, name);
  writeFileSync(file, text);
  return file;
}

test('blocks the gifts of a file once, whatever is repeated, and names each that is refused', async () => {
  const ids = await buy(service, 'latte', [{}, {}, {}]);
  const [first = '', second = '', third = ''] = ids;
  const file = written('stolen.txt', `${first}\n${service.shortcodeOf(second)}\r\n\n${third}\n${third}\n${NO_GIFT}`);
  const block = ['gifts', 'block', '--file', file, ...REASON] as const;
  const unknown = `${NO_GIFT}: gift not found: give a gift's id or shortcode\n`;

  const dry = await ran([...block, '--dry-run']);
  assert.deepEqual(
    [dry.code, dry.out, dry.err],
    [1, `${unknown}3 would be done, 0 had nothing left to do, 1 refused\n`, 'gift: 1 of 4 was refused\n'],
  );
  for (const id of ids) assert.deepEqual(await typesOf(id), []);

  assert.equal((await ran(block)).out, `${unknown}3 done, 0 had nothing left to do, 1 refused\n`);
  assert.equal((await ran(block)).out, `${unknown}0 done, 3 had nothing left to do, 1 refused\n`);
  for (const id of ids) assert.deepEqual(await typesOf(id), ['GiftBlocked']);

  const freed = await ran(['gifts', 'unblock', '--file', '-', '--json', ...REASON], ids.join('\n'));
  assert.deepEqual(
    freed.records(),
    ids.map((id) => ({ id, outcome: 'done' })),
  );
});

test('a gift has one command, by its id or its shortcode, in one call and the next', async () => {
  const id = await buyOne(service, 'latte', { user_id: 'bob' });
  await notificationOver(service, id);
  const resend = (text: string): Promise<Ran> =>
    ran(['gifts', 'resend', '--file', '-', '--reason', 'deleted the message'], text);
  assert.equal(
    (await resend(`${service.shortcodeOf(id)}\n${id}`)).out,
    '1 done, 0 had nothing left to do, 0 refused\n',
  );
  assert.equal((await resend(id)).out, '0 done, 1 had nothing left to do, 0 refused\n');
});

test('goes on where an earlier call was interrupted', async () => {
  const ids = await buy(service, 'latte', [{}, {}]);
  const extend = (file: string): Promise<Ran> =>
    ran(['gifts', 'extend', '--file', file, '--until', '2030-01-01', '--reason', 'the shop was closed']);
  assert.equal((await extend(written('half.txt', ids[0] ?? ''))).code, 0);
  assert.equal((await extend(written('all.txt', ids.join('\n')))).out, '1 done, 1 had nothing left to do, 0 refused\n');
});

test('refunds the purchases of a list, as CSV has them', async () => {
  const gifts = [await buyOne(service, 'mocha'), await buyOne(service, 'mocha'), await buyOne(service, 'mocha')];
  assert.equal((await redeem(service, gifts[2] ?? '')).status, 201);
  const csv = await ran(['purchases', 'list', '--product', 'mocha', '--csv']);
  assert.deepEqual([csv.code, csv.err], [0, '3 purchases\n']);
  const refund = ['purchases', 'refund', '--file', written('wrong.csv', csv.out), '--reason', 'wrong price'] as const;
  assert.match(
    (await ran([...refund, '--dry-run'])).out,
    /^[0-9a-f]{32}: nothing would be refunded: no gift could be cancelled \(1 redeemed\)\n2 would be done, 0 had nothing left to do, 1 refused\n$/,
  );
  const { code, out } = await ran(refund);
  assert.equal(code, 1);
  assert.match(
    out,
    /^[0-9a-f]{32}: nothing was refunded: no gift could be cancelled \(1 redeemed\)\n2 done, 0 had nothing left to do, 1 refused\n$/,
  );
  assert.match((await ran(refund)).out, /0 done, 2 had nothing left to do, 1 refused\n$/);
  const listed = await ran(['purchases', 'list', '--product', 'mocha']);
  assert.match(listed.out, /\n3 purchases: (?:1 charged, 2 refunded|2 refunded, 1 charged); /);
});

test('gives each gift of a file to its own receiver, also from a list of JSON', async () => {
  const [one = '', other = ''] = await buy(service, 'latte', [{}, {}]);
  const reassign = (text: string): Promise<Ran> =>
    ran(['gifts', 'reassign', '--file', '-', '--reason', 'wrong list'], text);
  const csv = `gift_id,name,phone_number,user_id\n${one},Bob,'+447700900002,\n${other},Cat,,cat\n`;
  assert.equal((await reassign(csv)).out, '2 done, 0 had nothing left to do, 0 refused\n');
  assert.equal((await reassign(csv)).out, '0 done, 2 had nothing left to do, 0 refused\n');
  assert.deepEqual(await typesOf(one), ['GiftReassigned']);
  const json = `{"gift_id":"${one}","user_id":"cat"}\n{"action":"done"}\n`;
  assert.equal((await reassign(json)).out, '1 done, 0 had nothing left to do, 0 refused\n');
  assert.equal((await reassign(`\uFEFF${json}`)).out, '0 done, 1 had nothing left to do, 0 refused\n');
  for (const [text, message] of [
    [`gift_id,user_id\n${one},\n`, `${one} wants one receiver: a user_id or a phone_number`],
    [`gift_id,user_id\n${one},bob\n${one},cat\n`, `${one} is named twice, with two receivers: give one`],
    [
      `gift_id,user_id,user_id\n${one},bob,cat\n`,
      'standard input has the column user_id twice: which of them is meant is unknown',
    ],
    [
      `{"gift_id":"${one}","user_id":"bob","user_id":"cat"}`,
      'standard input: line 1 has user_id twice: which is meant is unknown',
    ],
    ['{"gift_id":7}', 'standard input: line 1 has no text gift_id'],
    ['{"gift_id"', 'standard input: line 1 is no JSON object'],
  ] as const) {
    const { code, err } = await reassign(text);
    assert.deepEqual([code, err], [1, `gift: ${message}\n`]);
  }
});

test('what a list finds is done as it is piped', async () => {
  const ids = await buy(service, 'latte', [{}, {}]);
  const listed = await ran(['purchases', 'list', '--buyer', 'ann', '--json']);
  const transaction_id = String(listed.records()[0]?.['transaction_id']);
  const found = await ran(['gifts', 'find', '--transaction', transaction_id, '--json', ...REASON]);
  const blocked = await ran(['gifts', 'block', '--file', '-', ...REASON], found.out);
  assert.equal(blocked.out, '2 done, 0 had nothing left to do, 0 refused\n', blocked.err);
  for (const id of ids) assert.deepEqual(await typesOf(id), ['GiftBlocked']);
  const refund = await ran(['purchases', 'refund', '--file', '-', '--dry-run', '--reason', 'all'], listed.out);
  assert.match(refund.out, /would be done/);
});

test('a purchase leads to its gifts; a transaction is not taken for a gift', async () => {
  const ids = await buy(service, 'latte', [{}, {}]);
  const [latest] = (await ran(['purchases', 'list', '--buyer', 'ann', '--json'])).records();
  const transaction_id = String(latest?.['transaction_id']);
  const found = await ran(['gifts', 'find', '--transaction', transaction_id, '--json', ...REASON]);
  assert.deepEqual(new Set(found.records().map(({ gift_id }) => gift_id)), new Set(ids));
  const { code, err } = await ran(['gifts', 'block', transaction_id, ...REASON]);
  assert.deepEqual(
    [code, err],
    [1, `gift: ${transaction_id} is a transaction's id: gift gifts find --transaction shows its gifts\n`],
  );
});

test('refuses contradictory flags, and files that name nothing', async () => {
  const id = await buyOne(service);
  const file = written('one.txt', id);
  for (const [args, code, message] of [
    [['gifts', 'block', id, '--file', file], 2, 'name a gift or a file, not both'],
    [['gifts', 'block'], 2, 'name a gift, or a file with --file'],
    [['gifts', 'reassign', '--file', file, '--to-user', 'bob'], 2, '--file names the receivers'],
    [['gifts', 'block', id, '--dry-run'], 2, '--dry-run is for many: give --file'],
    [['gifts', 'block', '--file', written('empty.txt', '\n')], 1, 'names nothing: give one id a line'],
    [['gifts', 'block', '--file', written('other.csv', 'a,b\n1,2\n')], 1, 'a CSV wants the column gift_id'],
    [['gifts', 'block', '--file', written('odd.csv', 'gift_id,b\n1,"2"x\n')], 1, 'line 2 has a quote in a wrong place'],
    [['purchases', 'refund', '--file', file, '--gift', id], 2, '--file names whole purchases'],
  ] as const) {
    const result = await ran([...args, ...REASON]);
    assert.equal(result.code, code, result.err);
    assert.ok(result.err.includes(message), result.err);
  }
});

test.run();
