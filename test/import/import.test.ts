import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { ImportFaultsError } from '../../src/import/faults.js';
import { ImportInterruptedError, PruneNeedsYesError } from '../../src/import/importCatalogue.js';
import { verifyPassword } from '../../src/lib/passwordHash.js';
import { ConflictError, type RecordedEvent } from '../../src/ports/eventStore.js';
import { PASSWORD_HASH, failureOf, fileWith, importInto, testHash, wholeFile } from '../support/fixtures/importFile.js';
import { AlteredDataError, withFailingFields } from '../../src/runtime/personal/alteredData.js';
import { phoneSubject } from '../../src/domain/personalFields.js';
import { type MemoryEvents, memoryEvents } from '../support/engines/memoryEvents.js';
import { memoryKeys } from '../support/engines/memoryKeys.js';
import { memorySubjects } from '../support/fixtures/memorySubjects.js';

/** What was appended since, as `stream Type`. */
const since = (events: MemoryEvents, from: number): string[] =>
  events.log.slice(from).map(({ stream, type }) => `${stream} ${type}`);
const usernameStream = (name: string): string => `username-${testHash('username', name)}`;
const phoneStream = (number: string): string => `phone-${testHash('phone', number)}`;
const codeStream = (code: string): string => `voucherCode-g1-${testHash('code', code)}`;
const test = suite('commands/import');

test('everything is appended, what is referred to first, with its defaults', async () => {
  const events = memoryEvents();
  const report = await importInto(events, wholeFile());
  const streams = since(events, 0);
  assert.equal(
    streams.slice(0, 4).toSorted(),
    [
      `${phoneStream('+447700900001')} PhoneTaken`,
      `${phoneStream('+447700900002')} PhoneTaken`,
      `${usernameStream('ann')} UsernameTaken`,
      `${usernameStream('bob')} UsernameTaken`,
    ].toSorted(),
  );
  assert.equal(streams.slice(4), [
    'integration-1 IntegrationAdded',
    'merchant-m1 MerchantAdded',
    'segment-g1 SegmentAdded',
    'brand-b1 BrandAdded',
    'brand-b2 BrandAdded',
    `${codeStream('CODE-1')} VoucherCodeAdded`,
    `${codeStream('CODE-2')} VoucherCodeAdded`,
    'product-p1 ProductAdded',
    'product-p2 ProductAdded',
    'store-s1 StoreAdded',
    'category-c1 CategoryAdded',
    'user-u1 UserAdded',
    'user-u2 UserAdded',
    'client-app ClientAdded',
    'wallet-w1 WalletToppedUp',
    'paymentMethod-card_1 PaymentMethodAdded',
    'paymentMethod-w1 PaymentMethodAdded',
  ]);
  const dataOf = (stream: string): unknown => events.log.find((event) => event.stream === stream)?.data;
  assert.equal(dataOf('brand-b2'), {
    id: 'b2',
    name: 'Both',
    merchant_id: 'm1',
    integration_id: null,
    consolidated: 1,
    consolidated_products: [],
    description: '',
    image_url: '',
    active: true,
    visible_to: null,
  });
  assert.equal(dataOf('product-p1'), {
    id: 'p1',
    brand_id: 'b1',
    name: 'Coffee',
    description: '',
    sale_price: 250,
    image_url: '',
    active: true,
    segments: ['g1'],
    valid_days: 365,
  });
  assert.equal(dataOf('user-u1'), {
    id: 'u1',
    username: 'Ann',
    password_hash: PASSWORD_HASH,
    name: '',
    locale: null,
    phone_number: '+447700900001',
    device_tokens: [],
    active: true,
    roles: [],
    merchant_id: null,
    permissions: [],
  });
  assert.equal(dataOf('client-app'), {
    id: 'app',
    secret_hash: PASSWORD_HASH,
    name: 'App',
    active: true,
    users: ['u1'],
    staff: null,
  });
  assert.equal(dataOf('paymentMethod-card_1'), {
    reference: 'card_1',
    kind: 'card',
    users: ['u1'],
    customer: 'cus_1',
    prepaid: false,
    active: true,
  });
  assert.equal(dataOf('wallet-w1'), { top_up_id: 't1', amount: 500 });
  assert.equal(dataOf(codeStream('CODE-2')), { segment_id: 'g1', code: 'CODE-2', pin: null });
  assert.is(report.events, 21);
  assert.is(report.position, events.log.at(-1)?.position);
  assert.is(report.changes.length, 17);
  assert.is(report.unchanged, 0);
});

test('offers no product before the codes of its vouchers, and no wallet before its money', async () => {
  const events = memoryEvents();
  await importInto(events, wholeFile());
  const types = events.log.map(({ type }) => type);
  assert.ok(types.lastIndexOf('VoucherCodeAdded') < types.indexOf('ProductAdded'));
  assert.ok(types.lastIndexOf('WalletToppedUp') < types.indexOf('PaymentMethodAdded'));
});

test('what an entry says itself stands', async () => {
  const events = memoryEvents();
  const user = {
    id: 'u',
    username: 'U',
    password_hash: PASSWORD_HASH,
    name: 'Una',
    locale: 'en-GB',
    phone_number: '+447700900001',
    device_tokens: ['d'],
    active: false,
    roles: ['auditor'],
    merchant_id: 'm1',
    permissions: ['unredeem'],
  };
  const clients = [
    { id: 'off', secret_hash: PASSWORD_HASH, name: 'Off', active: false },
    { id: 'none', secret_hash: PASSWORD_HASH, name: 'None', users: [] },
  ];
  await importInto(events, { merchants: wholeFile().merchants, users: [user], clients });
  assert.equal(
    events.log.filter(({ type }) => type === 'UserAdded' || type === 'ClientAdded').map(({ data }) => data),
    [user, { ...clients[0], users: null, staff: null }, { ...clients[1], active: true, staff: null }],
  );
});

/** The log, and how often all of it is looked at. */
function looking(events: MemoryEvents): { readonly log: MemoryEvents; readonly looks: () => number } {
  let looks = 0;
  const readAll: typeof events.readAll = (...requested) => {
    looks += 1;
    return events.readAll(...requested);
  };
  return { log: { ...events, readAll }, looks: () => looks };
}

test('records in every event who, when and which import', async () => {
  const events = memoryEvents();
  await importInto(events, wholeFile());
  await importInto(events, { merchants: [{ id: 'm2', name: 'Other' }] });
  const [first] = events.log;
  for (const event of events.log.slice(0, -1)) assert.equal(event.metadata, first?.metadata);
  assert.equal(first?.metadata.by, { user: 'cli:tester@host' });
  assert.is(first?.at, '2026-03-01T10:00:00.000Z');
  assert.is.not(events.log.at(-1)?.metadata.commandId, first?.metadata.commandId);
  assert.is(new Set(events.log.map(({ id }) => id)).size, events.log.length);
});

test('the same file again appends nothing', async () => {
  const events = memoryEvents();
  await importInto(events, wholeFile());
  const report = await importInto(events, wholeFile());
  assert.equal(report, { dryRun: false, changes: [], unchanged: 16, events: 0, unread: [], mixedClients: [] });
});

test('takes a code under another hash key, as of a restored log, for the same code', async () => {
  const events = memoryEvents();
  const { voucher_codes: _, ...rest } = wholeFile();
  await importInto(events, rest);
  const stream = `voucherCode-g1-${'k'.repeat(22)}`;
  events.given(stream, { type: 'VoucherCodeAdded', data: { segment_id: 'g1', code: 'OLD', pin: null } });
  const before = events.log.length;
  const report = await importInto(events, {
    voucher_codes: [
      { segment_id: 'g1', code: 'OLD' },
      { segment_id: 'g1', code: 'NEW' },
    ],
  });
  assert.equal([since(events, before), report.unchanged], [[`${codeStream('NEW')} VoucherCodeAdded`], 1]);
  await importInto(
    events,
    { voucher_codes: [{ segment_id: 'g1', code: 'OLD', pin: '1' }] },
    { prune: { reason: 'gone', yes: true } },
  );
  assert.equal(
    since(events, before + 1).toSorted(),
    [`${stream} VoucherCodeChanged`, `${codeStream('NEW')} VoucherCodeWithdrawn`].toSorted(),
  );
});

test('distinguishes a code under another hash key from the same code of another segment', async () => {
  const events = memoryEvents();
  const segments = ['g1', 'g2'].map((id) => ({ id, name: id, voucherType: 'qr', expiry: 30 }));
  events.given(`voucherCode-g1-${'k'.repeat(22)}`, {
    type: 'VoucherCodeAdded',
    data: { segment_id: 'g1', code: 'SAME', pin: null },
  });
  await importInto(events, { segments, voucher_codes: segments.map(({ id }) => ({ segment_id: id, code: 'SAME' })) });
  assert.equal(since(events, 3), [`voucherCode-g2-${testHash('code', 'SAME')} VoucherCodeAdded`]);
});

test('a changed entry appends only its change', async () => {
  const events = memoryEvents();
  await importInto(events, wholeFile());
  const before = events.log.length;
  const report = await importInto(
    events,
    fileWith((file) => {
      Object.assign(file['products']![0]!, { name: 'Espresso', sale_price: 200 });
      Object.assign(file['segments']![0]!, { configuration: { deep: [{ ok: true }], width: 2 } });
      Object.assign(file['voucher_codes']![0]!, { pin: '4321' });
      Object.assign(file['payment_methods']![1]!, {
        top_ups: [
          { id: 't1', amount: 500 },
          { id: 't2', amount: 70 },
        ],
      });
    }),
  );
  assert.equal(
    events.log.slice(before).map(({ stream, type, data }) => [stream, type, data]),
    [
      [codeStream('CODE-1'), 'VoucherCodeChanged', { pin: '4321' }],
      ['product-p1', 'ProductChanged', { name: 'Espresso', sale_price: 200 }],
      ['wallet-w1', 'WalletToppedUp', { top_up_id: 't2', amount: 70 }],
    ],
  );
  assert.equal(report.changes, [
    { action: 'change', array: 'voucher_codes', id: `g1-${testHash('code', 'CODE-1')}`, fields: ['pin'] },
    { action: 'change', array: 'products', id: 'p1', fields: ['name', 'sale_price'] },
    { action: 'add', array: 'top_ups', id: 'w1/t2' },
  ]);
});

test('top-ups follow whatever else stands in the wallet', async () => {
  const events = memoryEvents();
  events.given('wallet-w1', { type: 'WalletDebited', data: { transaction_id: 't', amount: 5 } });
  await importInto(events, wholeFile());
  assert.is(events.log.filter(({ stream }) => stream === 'wallet-w1').at(-1)?.revision, 1);
});

test('a wallet that is debited all the time is topped up all the same, each top-up once', async () => {
  const events = memoryEvents();
  const wallets = (...ids: string[]): object => ({
    payment_methods: [
      { reference: 'w', kind: 'wallet', prepaid: true, users: [], top_ups: ids.map((id) => ({ id, amount: 500 })) },
    ],
  });
  let debits = 0;
  const others = ['t1'];
  events.beforeAppend = (stream) => {
    if (stream !== 'wallet-w') return;
    if (debits++ < 30)
      events.given(stream, { type: 'WalletDebited', data: { transaction_id: `t-${debits}`, amount: 5 } });
    else
      for (const top_up_id of others.splice(0))
        events.given(stream, { type: 'WalletToppedUp', data: { top_up_id, amount: 500 } });
  };
  await importInto(events, wallets('t1', 't2'));
  const ids = events.log
    .filter(({ type }) => type === 'WalletToppedUp')
    .map(({ data }) => (data as { top_up_id: string }).top_up_id);
  assert.equal(ids, ['t1', 't2'], 'the first by another import, meanwhile');
});

test('tops up behind a debit that came between, without another read of the log', async () => {
  const events = memoryEvents();
  events.given('wallet-w1', { type: 'WalletToppedUp', data: { top_up_id: 't0', amount: 9 } });
  let appends = 0;
  events.beforeAppend = (stream) => {
    if (stream === 'wallet-w1' && appends++ === 0)
      events.given(stream, { type: 'WalletDebited', data: { transaction_id: 't', amount: 5 } });
  };
  const { log, looks } = looking(events);
  await importInto(log, wholeFile());
  assert.equal([appends, looks()], [2, 1]);
});

test('another hash that is given takes the place of the one there is', async () => {
  const events = memoryEvents();
  await importInto(events, wholeFile());
  const before = events.log.length;
  const another = PASSWORD_HASH.replace('c29tZXNhbHR', 'c29tZXNhbHQ');
  await importInto(
    events,
    fileWith((file) => {
      file['users']![0]!['password_hash'] = another;
      file['clients']![0]!['secret_hash'] = another;
    }),
  );
  assert.equal(
    events.log.slice(before).map(({ stream, data }) => [stream, data]),
    [
      ['user-u1', { password_hash: another }],
      ['client-app', { secret_hash: another }],
    ],
  );
});

test('a plain password is hashed, and hashed again only when it is another one', async () => {
  const events = memoryEvents();
  const file = (password: string, secret: string) => ({
    users: [{ id: 'u', username: 'u', password }],
    clients: [{ id: 'c', name: 'C', secret }],
  });
  await importInto(events, file('first', 'one'));
  const hashIn = (event: RecordedEvent | undefined): string =>
    String((event?.data as Record<string, unknown> | undefined)?.['password_hash']);
  assert.ok(await verifyPassword(hashIn(events.log.find(({ type }) => type === 'UserAdded')), 'first'));
  assert.not.match(JSON.stringify(events.log), /first|"one"/);
  assert.is((await importInto(events, file('first', 'one'))).events, 0);
  const report = await importInto(events, file('second', 'one'));
  assert.equal(report.changes, [{ action: 'change', array: 'users', id: 'u', fields: ['password_hash'] }]);
  assert.ok(await verifyPassword(hashIn(events.log.at(-1)), 'second'));
  assert.is((await importInto(events, file('second', 'two'))).changes[0]?.array, 'clients');
});

test('two users swap usernames and numbers in one file', async () => {
  const events = memoryEvents();
  await importInto(events, wholeFile());
  const before = events.log.length;
  const { log, looks } = looking(events);
  await importInto(
    log,
    fileWith((file) => {
      const [ann, bob] = file['users']!;
      [ann!['username'], bob!['username']] = [bob!['username'], ann!['username']];
      [ann!['phone_number'], bob!['phone_number']] = [bob!['phone_number'], ann!['phone_number']];
    }),
  );
  assert.is(looks(), 1);
  const types = events.log.slice(before).map(({ type }) => type);
  assert.equal(types.slice(0, 4).toSorted(), ['PhoneGivenUp', 'PhoneGivenUp', 'UsernameGivenUp', 'UsernameGivenUp']);
  assert.equal(types.slice(4, 8).toSorted(), ['PhoneTaken', 'PhoneTaken', 'UsernameTaken', 'UsernameTaken']);
  assert.equal(
    events.log.slice(before + 8).map(({ data }) => data),
    [
      { username: 'Bob', phone_number: '+447700900002' },
      { username: 'Ann', phone_number: '+447700900001' },
    ],
  );
  assert.equal(
    events.log.filter(({ stream }) => stream === phoneStream('+447700900001')).map(({ type, data }) => [type, data]),
    [
      ['PhoneTaken', { user_id: 'u1' }],
      ['PhoneGivenUp', { user_id: 'u1' }],
      ['PhoneTaken', { user_id: 'u2' }],
    ],
  );
});

test('a number moves on to a new user when its holder gives it up in the same file, or is pruned', async () => {
  const newcomer = { id: 'u3', username: 'Cy', password_hash: PASSWORD_HASH, phone_number: '07700 900001' };
  const movedOn = memoryEvents();
  await importInto(movedOn, wholeFile());
  await importInto(
    movedOn,
    fileWith((file) => {
      delete file['users']![0]!['phone_number'];
      file['users']!.push(newcomer);
    }),
  );
  const pruned = memoryEvents();
  const [, bob] = wholeFile().users;
  const users = [{ id: 'u1', username: 'Ann', password_hash: PASSWORD_HASH, phone_number: '07700 900001' }, bob];
  await importInto(pruned, { merchants: wholeFile().merchants, users });
  await importInto(
    pruned,
    { users: [{ ...newcomer, username: 'ANN' }, bob] },
    { prune: { reason: 'left', yes: false } },
  );
  for (const events of [movedOn, pruned]) {
    assert.equal(
      events.log.filter(({ stream }) => stream === phoneStream('+447700900001')).map(({ type, data }) => [type, data]),
      [
        ['PhoneTaken', { user_id: 'u1' }],
        ['PhoneGivenUp', { user_id: 'u1' }],
        ['PhoneTaken', { user_id: 'u3' }],
      ],
    );
  }
  assert.equal(since(pruned, pruned.log.length - 2), ['user-u3 UserAdded', 'user-u1 UserRetired']);
});

test('a name in another spelling is the same name: only the entry changes', async () => {
  const events = memoryEvents();
  await importInto(events, wholeFile());
  const before = events.log.length;
  await importInto(
    events,
    fileWith((file) => void (file['users']![0]!['username'] = 'ANN')),
  );
  assert.equal(since(events, before), ['user-u1 UserChanged']);
});

test('appends nothing in a dry run and reports what would be done', async () => {
  const events = memoryEvents();
  await importInto(events, wholeFile());
  const before = events.log.length;
  const file = { stores: [], products: [{ ...wholeFile().products[0], name: 'Mocha' }, wholeFile().products[1]] };
  const report = await importInto(events, file, { dryRun: true, prune: { reason: '', yes: false } });
  assert.is(events.log.length, before);
  assert.equal(report, {
    dryRun: true,
    changes: [
      { action: 'change', array: 'products', id: 'p1', fields: ['name'] },
      { action: 'retire', array: 'stores', id: 's1' },
    ],
    unchanged: 1,
    events: 0,
    unread: [],
    mixedClients: [],
  });
});

test('imports all where fields of a user were altered, writes these anew, and names the user', async () => {
  const stored = memoryEvents();
  await importInto(stored, wholeFile());
  await importInto(
    stored,
    fileWith(({ users }) => Object.assign(users?.[0] ?? {}, { locale: 'en' })),
  );
  const readAll = stored.readAll.bind(stored);
  stored.readAll = async function* altered(...requested) {
    for await (const batch of readAll(...requested))
      yield {
        ...batch,
        events: batch.events.map((event) =>
          event.stream === 'user-u1' && event.type === 'UserAdded'
            ? { ...event, data: withFailingFields(event.data, ['name'], new AlteredDataError('name', undefined)) }
            : event,
        ),
      };
  };
  const before = stored.log.length;
  const file = fileWith(({ merchants }) => Object.assign(merchants?.[0] ?? {}, { name: 'Other' }));
  const { unread } = await importInto(stored, file);
  assert.equal(unread, ['user-u1']);
  assert.equal(since(stored, before), ['merchant-m1 MerchantChanged', 'user-u1 UserChanged']);
  assert.equal(stored.log.at(-1)?.data, { name: '', locale: null });
});

test('prunes only arrays of the file, and retires missing entries once, with the reason', async () => {
  const events = memoryEvents();
  await importInto(events, wholeFile());
  events.given(codeStream('CODE-1'), { type: 'VoucherCodeAssigned', data: { gift_id: 'gift' } });
  const before = events.log.length;
  const prune = { prune: { reason: 'closed', yes: false } };
  const empty = { stores: [], categories: [], clients: [], payment_methods: [], voucher_codes: [] };
  const report = await importInto(events, empty, prune);
  assert.equal(
    events.log.slice(before).map(({ stream, type, data }) => [stream, type, data]),
    [
      [codeStream('CODE-2'), 'VoucherCodeWithdrawn', { reason: 'closed' }],
      ['paymentMethod-card_1', 'PaymentMethodRetired', { reason: 'closed' }],
      ['paymentMethod-w1', 'PaymentMethodRetired', { reason: 'closed' }],
      ['client-app', 'ClientRetired', { reason: 'closed' }],
      ['category-c1', 'CategoryRetired', { reason: 'closed' }],
      ['store-s1', 'StoreRetired', { reason: 'closed' }],
    ],
  );
  assert.is(report.changes.filter(({ action }) => action === 'retire').length, 6);
  assert.is((await importInto(events, empty, prune)).events, 0);
  const back = await importInto(events, wholeFile());
  assert.equal(
    since(events, events.log.length - back.events).toSorted(),
    [
      'category-c1 CategoryAdded',
      'client-app ClientAdded',
      'paymentMethod-card_1 PaymentMethodAdded',
      'paymentMethod-w1 PaymentMethodAdded',
      'store-s1 StoreAdded',
      `${codeStream('CODE-2')} VoucherCodeAdded`,
    ].toSorted(),
  );
});

test('leaves missing entries alone without prune', async () => {
  const events = memoryEvents();
  await importInto(events, wholeFile());
  assert.is((await importInto(events, { stores: [], users: [] })).events, 0);
});

test('pruning a user frees name and number; the user comes back with them', async () => {
  const events = memoryEvents();
  const [ann] = wholeFile().users;
  await importInto(events, { users: [ann] });
  await importInto(events, { users: [] }, { prune: { reason: 'left', yes: false } });
  assert.equal(
    since(events, 3).toSorted(),
    [
      `${phoneStream('+447700900001')} PhoneGivenUp`,
      'user-u1 UserRetired',
      `${usernameStream('ann')} UsernameGivenUp`,
    ].toSorted(),
  );
  await importInto(events, { users: [ann] });
  assert.equal(
    since(events, 6).toSorted(),
    [
      `${phoneStream('+447700900001')} PhoneTaken`,
      'user-u1 UserAdded',
      `${usernameStream('ann')} UsernameTaken`,
    ].toSorted(),
  );
});

test('pruning something of a user’s id takes nothing from the user', async () => {
  const events = memoryEvents();
  await importInto(events, { users: [wholeFile().users[0]], merchants: [{ id: 'u1', name: 'Merchant' }] });
  const before = events.log.length;
  await importInto(
    events,
    { users: [wholeFile().users[0]], merchants: [] },
    { prune: { reason: 'closed', yes: false } },
  );
  assert.equal(since(events, before), ['merchant-u1 MerchantRetired']);
});

test('pruning more than 10 entries wants a yes', async () => {
  const events = memoryEvents();
  const merchants = (count: number) => ({
    merchants: Array.from({ length: count }, (_, n) => ({ id: `m${n}`, name: 'M' })),
  });
  await importInto(events, merchants(21));
  const before = events.log.length;
  const error = await failureOf(importInto(events, merchants(10), { prune: { reason: 'x', yes: false } }));
  assert.instance(error, PruneNeedsYesError);
  assert.is((error as PruneNeedsYesError).pruned, 11);
  assert.is(events.log.length, before);
  assert.is((await importInto(events, merchants(11), { prune: { reason: 'x', yes: false } })).events, 10);
  assert.is((await importInto(events, { merchants: [] }, { prune: { reason: 'x', yes: true } })).events, 11);
});

test('an empty file does nothing', async () => {
  assert.equal(await importInto(memoryEvents(), {}), {
    dryRun: false,
    changes: [],
    unchanged: 0,
    events: 0,
    unread: [],
    mixedClients: [],
  });
});

test('two imports of one file at once append everything once', async () => {
  const events = memoryEvents();
  const reports = await Promise.all([importInto(events, wholeFile()), importInto(events, wholeFile())]);
  assert.is(events.log.length, 21);
  assert.is(
    reports.reduce((sum, report) => sum + report.events, 0),
    21,
  );
});

test('refuses what another import took meanwhile, and counts what it had appended', async () => {
  const events = memoryEvents();
  const [ann] = wholeFile().users;
  events.beforeAppend = (stream) => {
    if (stream !== usernameStream('ann')) return;
    events.beforeAppend = () => undefined;
    events.given(stream, { type: 'UsernameTaken', data: { user_id: 'other' } });
  };
  const error = await failureOf(importInto(events, { users: [ann] }));
  assert.instance(error, ImportFaultsError);
  assert.equal((error as ImportFaultsError).faults, [
    { place: 'users[0].username', fault: 'is user "other"\'s already' },
  ]);
  assert.is((error as ImportFaultsError).appended, 1);
});

test('an import that loses races to others looks at the log again', async () => {
  const events = memoryEvents();
  let lost = 3;
  events.beforeAppend = (stream) => {
    if (stream === 'user-u' && lost-- > 0) throw new ConflictError(stream, 'none', 0);
  };
  const file = { merchants: [{ id: 'm', name: 'M' }], users: [{ id: 'u', username: 'u', password: 'secret' }] };
  const { changes, unchanged } = await importInto(events, file);
  assert.is(events.log.filter(({ type }) => type === 'UserAdded').length, 1);
  assert.equal([changes.map(({ id }) => id), unchanged], [['m', 'u'], 0]);
});

test('gives a number that was erased meanwhile to its new holder, as another one', async () => {
  const events = memoryEvents();
  const keys = memoryKeys();
  const subjects = memorySubjects(keys);
  const number = phoneSubject('+447700900001');
  const [before = ''] = await subjects.ids([number]);
  events.beforeAppend = async (stream) => {
    // Its erasure had looked before who holds it.
    if (stream === `phone-${before}`) await keys.remove([before]);
  };
  await importInto(events, { users: [wholeFile().users[0]] }, {}, subjects);
  const [after = ''] = await subjects.find([number]);
  const types = (id: string): string[] =>
    events.log.filter(({ stream }) => stream === `phone-${id}`).map(({ type }) => type);
  assert.equal([types(before), types(after)], [['PhoneTaken', 'PhoneGivenUp'], ['PhoneTaken']]);
  assert.is((await importInto(events, { users: [wholeFile().users[0]] }, {}, subjects)).events, 0);
});

test('gives up while others keep changing an entry', async () => {
  const events = memoryEvents();
  let attempts = 0;
  events.beforeAppend = (stream) => {
    attempts += 1;
    throw new ConflictError(stream, 'none', 0);
  };
  assert.instance(await failureOf(importInto(events, { merchants: [{ id: 'm', name: 'M' }] })), ConflictError);
  assert.is(attempts, 10);
});

test('a failing log ends the import; repeating it finishes', async () => {
  const events = memoryEvents();
  let failures = 0;
  events.beforeAppend = (stream) => {
    if (stream !== 'product-p2') return;
    failures += 1;
    throw new Error('disk full');
  };
  assert.is((await failureOf(importInto(events, wholeFile()))).message, 'disk full');
  assert.is(failures, 1);
  assert.ok(events.log.length > 0 && events.log.length < 21);
  events.beforeAppend = () => undefined;
  await importInto(events, wholeFile());
  assert.is(events.log.length, 21);
});

test('an import interrupted at any point is finished by repeating it', async () => {
  const swapped = fileWith((file) => {
    const [ann, bob] = file['users']!;
    [ann!['username'], bob!['username']] = [bob!['username'], ann!['username']];
    [ann!['phone_number'], bob!['phone_number']] = [bob!['phone_number'], ann!['phone_number']];
    file['stores'] = [];
    file['products']![0]!['name'] = 'Mocha';
  });
  const prune = { reason: 'x', yes: true };
  const finalState = async (interruptAfter: number): Promise<unknown> => {
    const events = memoryEvents();
    await importInto(events, wholeFile());
    const controller = new AbortController();
    let appends = 0;
    events.beforeAppend = () => {
      if (++appends > interruptAfter) controller.abort();
    };
    if (interruptAfter === 0) controller.abort();
    const error = await importInto(events, swapped, { prune, signal: controller.signal }).catch(
      (reason: unknown) => reason,
    );
    if (interruptAfter < 3) {
      assert.instance(error, ImportInterruptedError);
      assert.is((error as ImportInterruptedError).appended, events.log.length - 21);
    }
    await importInto(events, swapped, { prune });
    assert.is((await importInto(events, swapped, { prune })).events, 0);
    return events.log.map(({ stream, type, data }) => JSON.stringify([stream, type, data])).toSorted();
  };
  const whole = await finalState(Infinity);
  for (let after = 0; after < 14; after++)
    assert.equal(await finalState(after), whole, `interrupted after ${after} appends`);
});

test('reports an interruption before the first append, and no faults of what it has not read', async () => {
  const events = memoryEvents();
  await importInto(events, wholeFile());
  const reading = new AbortController();
  const readAll: typeof events.readAll = () => {
    reading.abort();
    return events.readAll(undefined, { streams: ['unread-'] });
  };
  assert.instance(
    await failureOf(importInto({ ...events, readAll }, { products: wholeFile().products }, { signal: reading.signal })),
    ImportInterruptedError,
  );
  const hashing = new AbortController();
  const users = Array.from({ length: 40 }, (_, n) => ({ id: `h${n}`, username: `h${n}`, password: 'secret' }));
  setTimeout(() => hashing.abort(), 50);
  assert.instance(
    await failureOf(importInto(events, { users }, { dryRun: true, signal: hashing.signal })),
    ImportInterruptedError,
  );
});

test('reports progress after each append', async () => {
  const told: string[] = [];
  await importInto(
    memoryEvents(),
    {
      merchants: [
        { id: 'a', name: 'A' },
        { id: 'b', name: 'B' },
      ],
      integrations: [{ id: '1', name: 'I' }],
    },
    {
      onProgress: (done, total) => void told.push(`${done}/${total}`),
    },
  );
  assert.equal(told, ['1/3', '2/3', '3/3']);
});

test('a password is hashed composed, so that the same one written otherwise changes nothing', async () => {
  const events = memoryEvents();
  const withPassword = (password: string): object => ({ users: [{ id: 'u1', username: 'ann', password }] });
  await importInto(events, withPassword('cafe\u0301\u00a09'));
  const [hash = ''] = events.log.flatMap(({ type, data }) =>
    type === 'UserAdded' ? [(data as { password_hash: string }).password_hash] : [],
  );
  assert.ok(await verifyPassword(hash, 'caf\u00e9 9'));
  assert.is((await importInto(events, withPassword('caf\u00e9 9'))).events, 0);
});

/** A log in which one user's number is not valid any more: it is a landline. */
async function logWithLandline(): Promise<{ events: MemoryEvents; file: ReturnType<typeof wholeFile> }> {
  const file = wholeFile();
  const imported = memoryEvents();
  await importInto(imported, file);
  const events = memoryEvents();
  const [landline, mobile] = ['+442079460018', '+447700900001'];
  for (const { stream, type, data } of imported.log)
    events.given(stream === phoneStream(mobile) ? phoneStream(landline) : stream, {
      type,
      data: JSON.parse(JSON.stringify(data).replaceAll(mobile, landline)) as object,
    } as RecordedEvent);
  file.users[0]!.phone_number = '020 7946 0018';
  return { events, file };
}

test('takes an unchanged number that is not valid any more, and changes nothing', async () => {
  const { events, file } = await logWithLandline();
  const before = events.log.length;
  const report = await importInto(events, file);
  assert.equal([report.events, events.log.length], [0, before]);
  file.users[0]!.username = 'Anna';
  assert.equal((await importInto(events, file)).changes, [
    { action: 'change', array: 'users', id: 'u1', fields: ['username'] },
  ]);
});

test('refuses a number that is not valid any more for users who did not have it', async () => {
  const fault = 'is not a valid mobile phone number';
  const { events, file } = await logWithLandline();
  const refused = async (): Promise<unknown> => {
    const error = await failureOf(importInto(events, file));
    return (error as ImportFaultsError).faults;
  };
  file.users[0]!.phone_number = '020 7946 0019';
  assert.equal(await refused(), [{ place: 'users[0].phone_number', fault }]);
  file.users[0]!.phone_number = '07700 900001';
  file.users[1]!.phone_number = '020 7946 0018';
  assert.equal(await refused(), [{ place: 'users[1].phone_number', fault }]);
});

test('names clients that staff and others log in through and that do not say whether staff may', async () => {
  const user = (id: string, more = {}): object => ({ id, username: id, password_hash: PASSWORD_HASH, ...more });
  const client = (id: string, more = {}): object => ({ id, name: id, secret_hash: PASSWORD_HASH, ...more });
  const events = memoryEvents();
  const users = [user('ann'), user('sue', { roles: ['support'] }), user('left', { roles: ['auditor'], active: false })];
  const clients = [
    client('all'),
    client('both', { users: ['ann', 'sue'] }),
    client('customers', { users: ['ann', 'left'] }),
    client('staff', { users: ['sue'] }),
    client('off', { active: false }),
    client('said-no', { staff: false }),
    client('said-yes', { staff: true }),
  ];
  const mixed = async (file: object, dryRun = false): Promise<readonly string[]> =>
    (await importInto(events, file, { dryRun })).mixedClients;
  assert.equal(await mixed({ users, clients }, true), ['all', 'both']);
  assert.equal(await mixed({ users: [users[0]], clients: [clients[0]] }), []);
  assert.equal(await mixed({ users, clients }), ['all', 'both']);
  assert.equal(await mixed({ users: [user('bob')] }), ['all', 'both']);
  assert.equal(await mixed({ clients: [client('all', { staff: false })] }), ['both']);
  const report = await importInto(events, { users, clients: [client('all', { staff: false })] });
  assert.is(report.events, 0);
});

test('takes an entry of before that lacks a field with a default for the same', async () => {
  const events = memoryEvents();
  const file = { clients: [{ id: 'app', name: 'App', secret_hash: PASSWORD_HASH }] };
  await importInto(events, file);
  delete (events.log[0]!.data as { staff?: null }).staff;
  assert.is((await importInto(events, file)).events, 0);
});

test.run();
