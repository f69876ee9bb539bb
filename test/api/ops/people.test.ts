/** Finding persons, and what is kept of them, over HTTP and on the command line. */
import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { suite } from 'uvu';
import { eventually } from '../../support/assertions/until.js';
import { CATALOGUE } from '../../support/fixtures/testCatalogue.js';
import { gift, saidBy } from '../../support/service/cli.js';
import { buyOne, purchaseOf, redeem, refused, unredeem } from '../../support/service/giftFlow.js';
import { type Json, type Reply, type Service, startService } from '../../support/service/service.js';

const NUMBER = '+447700900166';
const MESSAGE = 'For a person to be found';

const test = suite('people under /ops');
let service: Service;
let bought: { readonly transaction: string; readonly gifts: readonly string[] };
let events: Json[];
test.before(async () => {
  service = await startService({ catalogue: CATALOGUE });
  const reply = await service.ask('POST', '/api/v2/transactions', {
    token: await service.userToken('ann'),
    body: purchaseOf('latte', [{ user_id: 'bob' }, { phone_number: NUMBER }], { message: MESSAGE }),
  });
  assert.equal(reply.status, 201, reply.text);
  const { id, gifts } = reply.json['data'] as { id: string; gifts: string[] };
  bought = { transaction: id, gifts };
  events = await eventually(async () => {
    const shown = await service.ask('GET', `/ops/gifts/${id}/history`, { token: await service.userToken('aud') });
    const all = shown.json['data'] as Json[];
    return all.filter(({ type }) => type === 'NotificationSent').length === 2 ? all : undefined;
  });
});
test.after(() => service.close());

const ask = async (path: string, user = 'sue'): Promise<Reply> =>
  service.ask('GET', `/ops/people${path}`, { token: await service.userToken(user) });
const why = 'reason=asked%20by%20letter';
const found = async (query: string): Promise<Json[]> => {
  const reply = await ask(`?${query}&${why}`);
  assert.equal(reply.status, 200, reply.text);
  return reply.json['data'] as Json[];
};
const partOf = (reply: Reply, name: string): Json =>
  (reply.json['data']['parts'] as Json[]).find(({ part }) => part === name) as Json;

test('finds users by number, username and name, and a number that nobody holds', async () => {
  const ann = [{ person: 'ann', kind: 'user' }];
  assert.deepEqual(await found('phone_number=07700%20900001'), ann);
  assert.deepEqual(await found('username=ANN%40test.example'), ann);
  assert.ok((await found('name=ann')).some(({ person }) => person === 'ann'));
  const [number] = await found(`phone_number=${encodeURIComponent(NUMBER)}`);
  assert.match(number?.person as string, /^phone:[\w-]{22}$/);
  assert.deepEqual(await found('phone_number=07700%20900199'), []);
  assert.deepEqual(await found('username=nobody'), []);
});

test('looks for a number that can not be sold to any more', async () => {
  assert.deepEqual(await found('phone_number=%2B442079460018'), []);
  assert.deepEqual(await giftsFound('phone_number=020%207946%200018'), []);
  const because = ['--reason', 'asked by letter'];
  const { err } = await gift(service.settings, ['people', 'find', '--phone', '+442079460018', ...because]);
  assert.match(err, /no person was found/);
  const erased = await gift(service.settings, ['people', 'erase', '--phone', '+442079460018', '--yes', ...because]);
  assert.match(erased.err, /Person not found/);
});

test('finds those of a purchase by its charge, and of a message by its id', async () => {
  const charge = events.find(({ type }) => type === 'PaymentCharged')?.data.charge_id as string;
  const byCharge = await found(`charge=${encodeURIComponent(charge)}`);
  assert.deepEqual(
    byCharge.map(({ kind, role, transaction_id }) => [kind, role, transaction_id]),
    [
      ['user', 'buyer', bought.transaction],
      ['user', 'receiver', bought.transaction],
      ['number', 'receiver', bought.transaction],
    ],
  );
  const sent = events.find(({ type, stream }) => type === 'NotificationSent' && stream.endsWith(bought.gifts[0]));
  const byMessage = await found(`message_id=${encodeURIComponent(sent?.data.message_id as string)}`);
  assert.deepEqual(
    byMessage.map(({ person, role, gift_id }) => [person, role, gift_id]),
    [
      ['ann', 'buyer', bought.gifts[0]],
      ['bob', 'receiver', bought.gifts[0]],
    ],
  );
});

test('names the user whom a number belongs to, also of a purchase from before and of a reassigned gift', async () => {
  const reply = await service.ask('POST', '/api/v2/transactions', {
    token: await service.userToken('ann'),
    body: purchaseOf('latte', [{ phone_number: '+447700900002' }], { message: MESSAGE }),
  });
  const { id, gifts } = reply.json['data'] as { id: string; gifts: string[] };
  const sentTo = async (): Promise<Json[] | undefined> => {
    const shown = await service.ask('GET', `/ops/gifts/${id}/history`, { token: await service.userToken('aud') });
    const all = (shown.json['data'] as Json[]).filter(({ type }) =>
      ['NotificationSent', 'PaymentCharged', 'GiftIssued'].includes(type as string),
    );
    return all.length === 3 ? all : undefined;
  };
  const of = async (type: string): Promise<Json> =>
    (await eventually(sentTo)).find((event) => event.type === type)?.data as Json;
  const charge = (await of('PaymentCharged')).charge_id as string;
  assert.deepEqual(
    (await found(`charge=${encodeURIComponent(charge)}`)).map(({ person, role }) => [person, role]),
    [
      ['ann', 'buyer'],
      ['bob', 'receiver'],
    ],
  );
  const message = (await of('NotificationSent')).message_id as string;
  assert.deepEqual(
    (await found(`message_id=${encodeURIComponent(message)}`)).map(({ person, gift_id }) => [person, gift_id]),
    [
      ['ann', gifts[0]],
      ['bob', gifts[0]],
    ],
  );
});

const giftsFound = async (query: string): Promise<Json[]> => {
  const reply = await service.ask('GET', `/ops/gifts?${query}&${why}`, { token: await service.userToken('sue') });
  assert.equal(reply.status, 200, reply.text);
  return reply.json['data'] as Json[];
};
const idsOf = (gifts: readonly Json[]): unknown[][] => gifts.map(({ gift_id, as }) => [gift_id, as]);

test('finds gifts by their person, number, username, charge and message', async () => {
  const [toBob, toNumber] = bought.gifts;
  assert.deepEqual(idsOf(await giftsFound(`phone_number=${encodeURIComponent(NUMBER)}`)), [[toNumber, 'receiver']]);
  const ofAnn = idsOf(await giftsFound('username=ann%40test.example'));
  assert.ok(
    [toBob, toNumber].every((id) => ofAnn.some(([other, as]) => other === id && as === 'buyer')),
    JSON.stringify(ofAnn),
  );
  assert.deepEqual(idsOf(await giftsFound('person=ann')), ofAnn);
  assert.ok(idsOf(await giftsFound('person=bob')).some(([id, as]) => id === toBob && as === 'receiver'));
  const charge = events.find(({ type }) => type === 'PaymentCharged')?.data.charge_id as string;
  const ofCharge = await giftsFound(`charge=${encodeURIComponent(charge)}`);
  assert.deepEqual(
    ofCharge.map(({ gift_id, transaction_id, as }) => [gift_id, transaction_id, as]),
    bought.gifts.map((id) => [id, bought.transaction, undefined]),
  );
  const sent = events.find(({ type, stream }) => type === 'NotificationSent' && stream.endsWith(toNumber));
  assert.deepEqual(idsOf(await giftsFound(`message_id=${encodeURIComponent(sent?.data.message_id as string)}`)), [
    [toNumber, undefined],
  ]);
  assert.deepEqual(await giftsFound('person=nobody'), []);
});

test('answers the latest gifts first, and says that there are more', async () => {
  const all = await giftsFound('person=ann');
  assert.ok(all.length > 2);
  const times = all.map(({ at }) => at as string);
  assert.deepEqual(times, times.toSorted().toReversed());
  const token = await service.userToken('sue');
  const paged: Json[] = [];
  let after = '';
  for (let pages = 1; ; pages++) {
    const reply = await service.ask('GET', `/ops/gifts?person=ann&limit=2${after}&${why}`, { token });
    const page = reply.json['data'] as Json[];
    paged.push(...page);
    const next = reply.json['next'] as string | null;
    assert.deepEqual([page.length === 2 || next === null, pages <= all.length], [true, true]);
    if (next === null) break;
    after = `&after=${next}`;
  }
  assert.deepEqual(paged, all);
  assert.equal((await service.ask('GET', `/ops/gifts?person=ann&after=x&${why}`, { token })).status, 422);
});

test('refuses a search for gifts without a reason, of none or several, and of who may not', async () => {
  const search = async (query: string, user = 'sue'): Promise<Reply> =>
    service.ask('GET', `/ops/gifts?${query}`, { token: await service.userToken(user) });
  assert.equal((await search('person=ann')).status, 422);
  const one = 'give exactly one of person, phone_number, username, transaction, charge, message_id, redemption';
  refused(await search(why), 422, one);
  refused(await search(`person=ann&charge=x&${why}`), 422, one);
  refused(await search(`phone_number=12&${why}`), 422, 'Invalid phone number.');
  refused(await search(`person=ann&${why}`, 'ann'), 403, 'Forbidden.');
  assert.equal((await search(`person=ann&${why}`, 'aud')).status, 200);
});

test('refuses a search without a reason, of none or several, and of who may not', async () => {
  assert.equal((await ask('?phone_number=07700900001')).status, 422);
  refused(await ask(`?${why}`), 422, 'give exactly one of phone_number, username, name, charge, message_id');
  refused(
    await ask(`?phone_number=07700900001&name=ann&${why}`),
    422,
    'give exactly one of phone_number, username, name, charge, message_id',
  );
  refused(await ask(`?phone_number=12&${why}`), 422, 'Invalid phone number.');
  refused(await ask(`?name=ann&${why}`, 'ann'), 403, 'Forbidden.');
  refused(await ask(`/nobody?${why}`), 404, 'Person not found');
  assert.equal((await ask('/ann')).status, 422);
});

test('shows what is kept, where, why and how long; secrets never', async () => {
  const reply = await ask(`/ann?${why}`);
  assert.equal(reply.status, 200, reply.text);
  const [account] = partOf(reply, 'account').records as Json[];
  assert.deepEqual([account?.id, account?.phone_number], ['ann', '+447700900001']);
  assert.ok(!reply.text.includes('password') && !reply.text.includes('argon2'), reply.text);
  assert.ok(!reply.text.includes('seed'));
  const purchases = partOf(reply, 'purchases');
  assert.deepEqual([purchases.count, purchases.records[0].message], [2, MESSAGE]);
  assert.ok(partOf(reply, 'sessions').count > 0);
  for (const part of reply.json['data']['parts'] as Json[])
    for (const field of ['where', 'why', 'until']) assert.ok(part[field] !== '', `${part.part} ${field}`);
  const number = (await found(`phone_number=${encodeURIComponent(NUMBER)}`))[0]?.person as string;
  const ofNumber = await ask(`/${number}/export?${why}`);
  assert.deepEqual(partOf(ofNumber, 'account').records, [{ phone_number: NUMBER }]);
  assert.deepEqual(
    (partOf(ofNumber, 'gifts').records as Json[]).map(({ gift_id, as }) => [gift_id, as]),
    [[bought.gifts[1], 'receiver']],
  );
});

test('records who asked, why and who was found, never what was asked for', async () => {
  const day = new Date().toISOString().slice(0, 10);
  const access = await service.ask('GET', `/ops/access?from=${day}T00:00Z&limit=1000`, {
    token: await service.userToken('aud'),
  });
  const searches = (access.json['data'] as Json[]).filter(({ data }) => data.what === 'GET /ops/people');
  assert.ok(
    (access.json['data'] as Json[]).some(
      ({ data }) => data.what === 'GET /ops/gifts' && data.reason === 'asked by letter',
    ),
  );
  assert.ok(searches.length > 5);
  assert.ok(searches.every(({ data, by }) => data.reason === 'asked by letter' && data.personal && by.user === 'sue'));
  assert.ok(
    searches.some(({ data }) => data.asked.found?.includes('ann')),
    JSON.stringify(searches[0]),
  );
  for (const clear of ['900001', '900166', 'test.example']) assert.ok(!access.text.includes(clear), clear);
});

test('does the same on the command line', async () => {
  const because = ['--reason', 'asked by letter'];
  const find = await gift(service.settings, ['people', 'find', '--phone', '-', ...because], {
    stdin: Readable.from([`${NUMBER}\n`]),
  });
  const [person = '', , , row = '', ...rest] = find.out.split('\n');
  assert.match(person, /^phone:[\w-]{22}: a number$/);
  assert.match(row, new RegExp(`^${bought.gifts[1]} +receiver +latte +3\\.50 +sent +\\S+ +NotificationSent +\\S+Z$`));
  assert.match(rest.join('\n'), /^\ntimes are UTC.*gift history GIFT; gift gifts resend GIFT.*\n$/);
  const asJson = await gift(service.settings, ['people', 'find', '--phone', NUMBER, '--json', ...because]);
  assert.match(asJson.out, /^\{"person":"phone:[\w-]{22}","kind":"number"\}\n$/);
  const named = await gift(service.settings, ['people', 'find', '--name', 'bob', ...because]);
  assert.match(named.out, /^bob: a user\n\nnext: gift gifts find --person PERSON/);
  assert.equal((await gift(service.settings, ['people', 'find', '--name', 'zzz', ...because])).code, 1);
  assert.equal((await gift(service.settings, ['people', 'find', ...because])).code, 2);
  assert.equal((await gift(service.settings, ['people', 'find', '--name', '', ...because])).code, 2);
  assert.equal((await gift(service.settings, ['people', 'show', 'ann'])).code, 2);
  const show = await gift(service.settings, ['people', 'show', 'ann', ...because]);
  assert.match(show.out, /^ann\naccount: 1 in event log/);
  const all = await gift(service.settings, ['people', 'export', '--phone', NUMBER, ...because]);
  assert.ok(all.out.includes(bought.gifts[1] as string) && !all.out.includes('seed'), all.out);
});

test('shows gifts with product, value, status and last event, the same on the command line', async () => {
  const because = ['--reason', 'asked by letter'];
  const [toNumber] = await giftsFound(`phone_number=${encodeURIComponent(NUMBER)}`);
  const { at, last_event_at, expiry_date, ...row } = toNumber ?? {};
  for (const time of [at, last_event_at]) assert.match(time as string, /^\d{4}-\d\d-\d\dT.*Z$/);
  assert.match(expiry_date as string, /^\d{4}-\d\d-\d\d$/);
  assert.deepEqual(row, {
    gift_id: bought.gifts[1],
    transaction_id: bought.transaction,
    as: 'receiver',
    product_id: 'latte',
    value: 350,
    gift_status: 'sent',
    blocked: false,
    last_event: 'NotificationSent',
  });
  const find = async (...args: readonly string[]) => gift(service.settings, ['gifts', 'find', ...args, ...because]);
  const linesOf = ({ out }: { readonly out: string }): Json[] =>
    out
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Json);
  assert.deepEqual(linesOf(await find('--phone', NUMBER, '--json')), [toNumber]);
  assert.deepEqual(linesOf(await find('--person', 'ann', '--json')), await giftsFound('person=ann'));
  const block = await service.ask('POST', `/ops/gifts/${bought.gifts[1]}/block`, {
    token: await service.userToken('sue'),
    body: { reason: 'reported as stolen' },
  });
  assert.equal(block.status, 200, block.text);
  assert.match((await find('--phone', NUMBER)).out, /receiver +latte +3\.50 +sent, blocked +\S+ +GiftBlocked/);
  const charge = events.find(({ type }) => type === 'PaymentCharged')?.data.charge_id as string;
  assert.equal(linesOf(await find('--charge', charge, '--json')).length, 2);
  assert.deepEqual(
    [(await find()).code, (await find('--person', 'ann', '--charge', 'x')).code, (await find('--phone', '12')).code],
    [2, 2, 1],
  );
  const { code, err } = await gift(service.settings, ['gifts', 'find', '--person', 'ann']);
  assert.deepEqual([code, err], [2, 'gift: find wants --reason "<why>"\n']);
  assert.deepEqual(saidBy(await find('--charge', 'nothing')), { code: 1, out: '', err: 'gift: no gift was found\n' });
});

test('shows nothing of an erased number, as of one that nobody ever had', async () => {
  const because = ['--reason', 'asked by letter'];
  const erased = await gift(service.settings, ['people', 'erase', '--phone', NUMBER, '--yes', ...because]);
  assert.equal(erased.code, 0, erased.err);
  for (const group of ['people', 'gifts']) {
    const [gone, unknown] = [
      await gift(service.settings, [group, 'find', '--phone', NUMBER, ...because]),
      await gift(service.settings, [group, 'find', '--phone', '07700 900199', ...because]),
    ].map(saidBy);
    assert.deepEqual(gone, unknown);
    assert.deepEqual(gone, {
      code: 1,
      out: '',
      err: 'gift: no person was found: no user has this number, and no gift was sent to it\n',
    });
  }
  assert.deepEqual(await giftsFound(`phone_number=${encodeURIComponent(NUMBER)}`), []);
});

test('finds the gift of a redemption, also of a reversed one', async () => {
  const id = await buyOne(service, 'latte');
  const redemption = (await redeem(service, id)).json.data.id as string;
  assert.deepEqual(idsOf(await giftsFound(`redemption=${redemption}`)), [[id, undefined]]);
  assert.equal((await unredeem(service, id)).status, 200);
  assert.deepEqual(idsOf(await giftsFound(`redemption=${redemption}`)), [[id, undefined]]);
  assert.deepEqual(await giftsFound('redemption=unknown'), []);
  const args = ['gifts', 'find', '--redemption', redemption, '--reason', 'asked by letter', '--json'];
  assert.deepEqual(idsOf((await gift(service.settings, args)).records() as Json[]), [[id, undefined]]);
});

test.run();
