import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { suite } from 'uvu';
import { type Ran, gift } from '../support/service/cli.js';
import { buyOne, redeem, refused, notificationOver } from '../support/service/giftFlow.js';
import { boughtBefore, daysFromNow } from '../support/fixtures/pastPurchase.js';
import { type Json, type Service, startService } from '../support/service/service.js';
import { eventually } from '../support/assertions/until.js';

const test = suite('cli/gifts');
let service: Service;
test.before(async () => {
  service = await startService();
});
test.after(() => service.close());

const gifts = async (...args: readonly string[]): Promise<Ran> => gift(service.settings, ['gifts', ...args]);
const UNUSABLE = "it can't be redeemed, claimed or given a voucher";
const REASON = ['--reason', 'ticket 7'] as const;
const told = async (id: string, times: number): Promise<true> =>
  eventually(
    async () =>
      (await service.events.read(`notification-${id}`)).filter(({ type }) => type === 'NotificationSent').length ===
      times,
  );
const said = async (...args: readonly string[]): Promise<string> => {
  const { code, out, err } = await gifts(...args, ...REASON);
  assert.deepEqual([code, err], [0, ''], args.join(' '));
  return out;
};
/** Who did what and why, as the history tells it. */
const history = async (id: string): Promise<[string, string][]> => {
  const events = (await gift(service.settings, ['history', id, '--json'])).records() as Json[];
  return events
    .filter(({ by }) => String(by.user).startsWith('cli:'))
    .map(({ type, data }) => [type as string, data.reason as string]);
};

test('notifies a receiver again', async () => {
  const id = await buyOne(service, 'latte', { user_id: 'bob' });
  await told(id, 1);
  assert.equal(
    await said('resend', service.shortcodeOf(id)),
    `gift ${id}: a running service notifies its receiver again; gift history shows what comes of it\n`,
  );
  await told(id, 2);
  assert.deepEqual(await history(id), [['NotificationRequested', 'ticket 7']]);
  const { code, err } = await gifts('resend', await buyOne(service), ...REASON);
  assert.deepEqual([code, err], [1, 'gift: gift has no receiver: give it to one (gift gifts reassign)\n']);
});

test('gives a gift to a user, or to the owner of a number', async () => {
  const id = await buyOne(service);
  assert.equal(
    await said('reassign', id, '--to-user', 'dan'),
    `gift ${id}: it is now for user dan, whom a running service notifies\n`,
  );
  await notificationOver(service, id);
  assert.equal(
    await said('reassign', id, '--to-phone', '07700 900002'),
    `gift ${id}: it is now for the owner of the phone number, whom a running service notifies\n`,
  );
  const read = await gift(service.settings, ['gifts', 'reassign', id, '--to-phone', '-', ...REASON], {
    stdin: Readable.from([Buffer.from('07700 '), Buffer.from('900002\n')]),
  });
  assert.deepEqual(
    [read.code, read.out],
    [0, `gift ${id}: it has been for this receiver all along\n`],
    'as it was read',
  );
  assert.equal(
    await said('reassign', id, '--to-phone', '\u202a+447700900002\u202c'),
    `gift ${id}: it has been for this receiver all along\n`,
  );
  await told(id, 1);
  refused(await redeem(service, id, 'dan'), 403, 'Cannot redeem this gift.');
  assert.equal((await redeem(service, id, 'bob')).status, 201);
  assert.deepEqual(await history(id), [
    ['GiftReassigned', 'ticket 7'],
    ['GiftReassigned', 'ticket 7'],
  ]);
  const shown = await gift(service.settings, ['history', id]);
  assert.match(shown.out, /GiftReassigned\n +by cli:.+\n.*phone_number=\*\*\* reason=ticket 7/);
  for (const [args, message] of [
    [['--to-user', 'nobody'], 'Receiver not found: there is no active user with this id'],
    [['--to-phone', '12'], 'Invalid phone number: give a mobile number such as 07700 900102 or +447700900102'],
    [['--to-user', 'bob'], 'gift already redeemed.'],
  ] as const) {
    const { code, err } = await gifts('reassign', id, ...args, ...REASON);
    assert.deepEqual([code, err], [1, `gift: ${message}\n`]);
  }
});

test('an expired gift is extended', async () => {
  const id = await boughtBefore(service);
  const until = daysFromNow(30).slice(0, 10);
  const [view] = (await gifts('extend', id, '--until', until, '--json', ...REASON)).records() as Json[];
  assert.deepEqual(
    [view.gift_id, view.expiry_date, view.gift_status, view.events[0].type, view.events[0].data.reason],
    [id, until, 'sent', 'GiftExtended', 'ticket 7'],
  );
  assert.equal(
    await said('extend', id, '--until', until),
    `gift ${id}: it is valid to the end of ${until} (UTC) already\n`,
  );
  const later = daysFromNow(31).slice(0, 10);
  assert.equal(await said('extend', id, '--until', later), `gift ${id}: it is valid to the end of ${later} (UTC)\n`);
  assert.equal((await redeem(service, id)).status, 201);
  assert.deepEqual(await history(id), [
    ['GiftExtended', 'ticket 7'],
    ['GiftExtended', 'ticket 7'],
  ]);
  const { code, err } = await gifts('extend', id, '--until', daysFromNow(-3).slice(0, 10), ...REASON);
  assert.deepEqual(
    [code, err],
    [1, 'gift: expiry_date must be a day to come, later than the present one and at most ten years ahead.\n'],
  );
});

test('a gift is blocked, for a ticket too, and freed', async () => {
  const id = await buyOne(service);
  assert.equal(await said('block', id), `gift ${id}: it is blocked by support; ${UNUSABLE}\n`);
  assert.equal(await said('block', id), `gift ${id}: it is blocked by support\n`);
  assert.equal(
    await said('block', id, '--ticket', 'T-1'),
    `gift ${id}: it is blocked by support, support:T-1; ${UNUSABLE}\n`,
  );
  refused(await redeem(service, id), 405, 'gift is blocked.');
  assert.equal(
    await said('unblock', id, '--ticket', 'T-2'),
    `gift ${id}: this does not block it; it is blocked by support, support:T-1\n`,
  );
  assert.equal(await said('unblock', id), `gift ${id}: it is blocked by support:T-1\n`);
  assert.equal(await said('unblock', id, '--ticket', 'T-1'), `gift ${id}: nothing blocks it\n`);
  assert.equal((await redeem(service, id)).status, 201);
  assert.deepEqual(
    (await history(id)).map(([type]) => type),
    ['GiftBlocked', 'GiftBlocked', 'GiftUnblocked', 'GiftUnblocked'],
  );
});

test('reverses a redemption that was somebody else’s', async () => {
  const id = await buyOne(service);
  assert.equal((await redeem(service, id)).status, 201);
  const { expiry_date } = (await service.ask('GET', `/api/v2/gifts/${id}`, { token: await service.userToken('ann') }))
    .json.data;
  assert.equal(
    await said('unredeem', id),
    `gift ${id}: its redemption is reversed; it can be redeemed to the end of ${expiry_date} (UTC)\n`,
  );
  const { code, err } = await gifts('unredeem', id, ...REASON);
  assert.deepEqual([code, err], [1, 'gift: gift not redeemed.\n']);
  assert.equal((await redeem(service, id)).status, 201);
  await said('block', id);
  assert.equal(await said('unredeem', id), `gift ${id}: its redemption is reversed; it is blocked by support\n`);
  refused(await redeem(service, id), 405, 'gift is blocked.');
  assert.deepEqual(
    (await service.events.read(`gift-${id}`)).map(({ type, data }) => [type, (data as Json).reason]),
    [
      ['GiftIssued', undefined],
      ['GiftRedeemed', undefined],
      ['GiftUnredeemed', 'ticket 7'],
      ['GiftRedeemed', undefined],
      ['GiftBlocked', 'ticket 7'],
      ['GiftUnredeemed', 'ticket 7'],
    ],
  );
});

test('gives another gift in place of one, once', async () => {
  const id = await buyOne(service, 'latte', { user_id: 'bob' });
  const out = await said('replace', id);
  const next = /^gift [0-9a-f]{20}: it is replaced by gift ([0-9a-f]{20}), of whose issue/.exec(out)?.[1] ?? out;
  await told(next, 1);
  refused(await redeem(service, id), 405, 'gift is cancelled and cannot be redeemed.');
  assert.equal((await redeem(service, next)).status, 201);
  assert.deepEqual(await history(id), [['GiftReplaced', 'ticket 7']]);
  assert.deepEqual(await history(next), [['GiftsPurchased', 'ticket 7']]);
  const { code, err } = await gifts('replace', id, ...REASON);
  assert.deepEqual([code, err], [1, 'gift: gift was replaced by another one already.\n']);
});

test('a cancelled one needs no block', async () => {
  const id = await buyOne(service);
  const [cancelled] = await eventually(async () => {
    const events = await service.events.read(`gift-${id}`);
    return events.length > 0 ? events : undefined;
  });
  await service.events.append(
    `gift-${id}`,
    [{ ...(cancelled as Json), id: crypto.randomUUID(), type: 'GiftCancelled', data: { reason: 'x' } }],
    'any',
  );
  assert.equal(await said('block', id), `gift ${id}: it is cancelled: it can't be used anyway\n`);
});

test('unknown gifts and wrong usage are refused, and nothing is changed', async () => {
  const id = await buyOne(service);
  const flags: Readonly<Record<string, readonly string[]>> = {
    resend: [],
    reassign: ['--to-user', 'bob'],
    extend: ['--until', daysFromNow(900).slice(0, 10)],
    unredeem: [],
    block: [],
    unblock: [],
  };
  for (const [what, more] of Object.entries(flags)) {
    for (const unknown of ['nothing', 'feedfeedfeedfeedfeed']) {
      const { code, err } = await gifts(what, unknown, ...more, ...REASON);
      assert.deepEqual([code, err], [1, "gift: gift not found: give a gift's id or shortcode\n"], what);
    }
    const { code, err } = await gifts(what, id, ...more);
    assert.deepEqual([code, err], [2, `gift: ${what} wants --reason "<why>"\n`]);
  }
  for (const [args, message] of [
    [['reassign', id], 'give one of --to-user and --to-phone'],
    [['reassign', id, '--to-user', 'bob', '--to-phone', '07700 900002'], 'give one of --to-user and --to-phone'],
    [['extend', id], 'extend wants --until, the new last valid day, such as 2027-05-04'],
    [['extend', id, '--until', '2027-02-30'], '--until "2027-02-30" is not a day: give one such as 2027-05-04'],
    [['block', id, '--ticket', 'a b'], '--ticket must be 1 to 64 of A-Z, a-z, 0-9, ., _, # and -'],
  ] as const) {
    const { code, err } = await gifts(...args, ...REASON);
    assert.deepEqual([code, err], [2, `gift: ${message}\n`]);
  }
  assert.deepEqual(
    (await service.events.read(`gift-${id}`)).map(({ type }) => type),
    ['GiftIssued'],
  );
});

test('help shows an example of each', async () => {
  for (const command of ['', 'find', 'resend', 'reassign', 'extend', 'unredeem', 'block', 'unblock']) {
    const { code, out } = await gifts(...(command === '' ? ['--help'] : [command, '--help']));
    assert.equal(code, 0);
    assert.match(out, /Examples?:\n {2}\$ gift gifts /, command);
  }
});

test.run();
