import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { type ImportFault, ImportFaultsError } from '../../src/import/faults.js';
import {
  type AnyFile,
  PASSWORD_HASH,
  failureOf,
  fileWith,
  importInto,
  testHash,
  wholeFile,
} from '../support/fixtures/importFile.js';
import { memoryEvents } from '../support/engines/memoryEvents.js';

const told = ({ place, fault }: ImportFault): string => (place === '' ? fault : `${place}: ${fault}`);

/** The faults of a file, each as a line; nothing may have been appended. */
async function faultsOf(file: unknown, events = memoryEvents(), prune = false): Promise<string[]> {
  const before = events.log.length;
  const error = await failureOf(importInto(events, file, prune ? { prune: { reason: 'test', yes: true } } : {}));
  assert.instance(error, ImportFaultsError);
  assert.is(events.log.length, before, 'nothing is appended');
  assert.is((error as ImportFaultsError).appended, 0);
  return (error as ImportFaultsError).faults.map(told);
}

const test = suite('commands/import/faults');

const hashWith = (parameters: string, hash = 'A'.repeat(43)): string =>
  `$argon2id$v=19$${parameters}$c29tZXNhbHRzb21lc2FsdA$${hash}`;

/** The fault that each change of the whole file makes. */
const CASES: readonly (readonly [fault: string | readonly string[], change: (file: AnyFile) => void])[] = [
  ['products[0].brand_id: no such brand "b9"', (file) => void (file['products']![0]!['brand_id'] = 'b9')],
  ['products[0].segments[1]: no such segment "g9"', (file) => void (file['products']![0]!['segments'] = ['g1', 'g9'])],
  [
    'products[0].segments[1]: stands in the list twice',
    (file) => void (file['products']![0]!['segments'] = ['g1', 'g1']),
  ],
  ['products[0].sale_price: must be at least 0', (file) => void (file['products']![0]!['sale_price'] = -1)],
  ['products[0].sale_price: must be a whole number', (file) => void (file['products']![0]!['sale_price'] = 1.5)],
  ['products[0].sale_price: must be a whole number', (file) => void (file['products']![0]!['sale_price'] = '250')],
  ['products[0].sale_price: must be at most 100000000', (file) => void (file['products']![0]!['sale_price'] = 1e300)],
  ['products[0].valid_days: must be at least 1', (file) => void (file['products']![0]!['valid_days'] = 0)],
  ['products[0].valid_days: must be at most 36500', (file) => void (file['products']![0]!['valid_days'] = 36_501)],
  ['products[0].segments[0]: must be a string', (file) => void (file['products']![0]!['segments'] = [7])],
  ['products[0].colour: unknown field', (file) => void (file['products']![0]!['colour'] = 'red')],
  ['products[0].active: must be true or false', (file) => void (file['products']![0]!['active'] = 1)],
  [
    'products[0].image_url: must be an http or https address, or empty',
    (file) => void (file['products']![0]!['image_url'] = 'javascript:alert(1)'),
  ],
  [
    'products[0].image_url: must be an http or https address, or empty',
    (file) => void (file['products']![0]!['image_url'] = 'javascript://x%0aalert(1)'),
  ],
  ['products[0].name: is required', (file) => void delete file['products']![0]!['name']],
  ['products[0].name: must not be empty', (file) => void (file['products']![0]!['name'] = '')],
  [
    'products[0].name: must have at most 200 characters',
    (file) => void (file['products']![0]!['name'] = 'x'.repeat(201)),
  ],
  [
    'products[0].name: must be well-formed text without NUL characters',
    (file) => void (file['products']![0]!['name'] = 'a\0'),
  ],
  [
    'products[0].name: must be well-formed text without NUL characters',
    (file) => void (file['products']![0]!['name'] = '\ud800'),
  ],
  [
    'products[2].id: is the same as products[0].id',
    (file) => void file['products']!.push({ ...file['products']![0]! }),
  ],
  ['products[2]: must be an object', (file) => void file['products']!.push('p3' as unknown as Record<string, unknown>)],
  ['brands[0].merchant_id: no such merchant "m9"', (file) => void (file['brands']![0]!['merchant_id'] = 'm9')],
  ['brands[0].integration_id: no such integration "9"', (file) => void (file['brands']![0]!['integration_id'] = '9')],
  ['brands[0].visible_to[0]: no such user "u9"', (file) => void (file['brands']![0]!['visible_to'] = ['u9'])],
  [
    'brands[0].consolidated_products[0]: no such product "p9"',
    (file) => void (file['brands']![0]!['consolidated_products'] = ['p9']),
  ],
  [
    'brands[1].consolidated_products: must be empty for a consolidated brand',
    (file) => void (file['brands']![1]!['consolidated_products'] = ['p1']),
  ],
  ['brands[1].consolidated: must be 0 or 1', (file) => void (file['brands']![1]!['consolidated'] = 2)],
  ['stores[0].longitude: must be at most 180', (file) => void (file['stores']![0]!['longitude'] = 181)],
  ['stores[0].latitude: must be at least -90', (file) => void (file['stores']![0]!['latitude'] = -90.5)],
  ['stores[0].latitude: must be a number', (file) => void (file['stores']![0]!['latitude'] = Infinity)],
  ['stores[0].brand_id: no such brand "b9"', (file) => void (file['stores']![0]!['brand_id'] = 'b9')],
  ['segments[0].expiry: must be at least 1', (file) => void (file['segments']![0]!['expiry'] = 0)],
  [
    'segments[0].voucherType: must be "qr" or "alpha/qr" or "alpha/pin"',
    (file) => void (file['segments']![0]!['voucherType'] = 'barcode'),
  ],
  [
    'segments[0].configuration.a[0]: must be well-formed text without NUL characters',
    (file) => void (file['segments']![0]!['configuration'] = { a: ['\0'] }),
  ],
  [
    'segments[0].configuration.a: is too large a number',
    (file) => void (file['segments']![0]!['configuration'] = { a: Infinity }),
  ],
  [
    'segments[0].configuration: has a field with a forbidden name',
    (file) => void (file['segments']![0]!['configuration'] = JSON.parse('{"__proto__": {"active": true}}')),
  ],
  [
    'segments[0].configuration: must not nest deeper than 16 levels',
    (file) => void (file['segments']![0]!['configuration'] = JSON.parse(`${'{"a":'.repeat(40)}1${'}'.repeat(40)}`)),
  ],
  [
    'segments[0].configuration: has a field with a forbidden name',
    (file) => void (file['segments']![0]!['configuration'] = { 'a\0': 1 }),
  ],
  [
    'segments[0]: is larger than 900000 bytes',
    (file) => void (file['segments']![0]!['configuration'] = { a: '€'.repeat(300_000) }),
  ],
  [
    'categories[0].products[1]: no such product "p9"',
    (file) => void (file['categories']![0]!['products'] = ['p1', 'p9']),
  ],
  ['categories[0].featured: must be 0 or 1', (file) => void (file['categories']![0]!['featured'] = true)],
  [
    'users[0].phone_number: is not a valid mobile phone number',
    (file) => void (file['users']![0]!['phone_number'] = '0123'),
  ],
  [
    'users[0].phone_number: is not a valid mobile phone number',
    (file) => void (file['users']![0]!['phone_number'] = '020 7946 0958'),
  ],
  [
    'users[0].phone_number: is not a valid mobile phone number',
    (file) => void (file['users']![0]!['phone_number'] = '+491512345678'),
  ],
  [
    'users[0].username: must be of letters, digits and visible ASCII characters, in parts with one space between (RFC 8265 3.1)',
    (file) => void (file['users']![0]!['username'] = 'ﬁona'),
  ],
  [
    'users[1].username: is the same as users[0].username',
    (file) => void ([file['users']![0]!['username'], file['users']![1]!['username']] = ['zo\u00eb', 'ZOE\u0308']),
  ],
  [
    'users[0].password: must be without control characters (RFC 8265 4.2)',
    (file) => {
      delete file['users']![0]!['password_hash'];
      file['users']![0]!['password'] = 'secret\r';
    },
  ],
  [
    'users[0].device_tokens[1]: stands in the list twice',
    (file) => void (file['users']![0]!['device_tokens'] = ['t', 't']),
  ],
  [
    'users[0].roles[1]: stands in the list twice',
    (file) => void (file['users']![0]!['roles'] = ['auditor', 'auditor']),
  ],
  [
    'merchants[0].adjustment_codes[2]: stands in the list twice',
    (file) => void (file['merchants']![0]!['adjustment_codes'] = ['A', 'B', 'A']),
  ],
  [
    'users[0].password: give one of password and password_hash',
    (file) => void (file['users']![0]!['password'] = 'both'),
  ],
  [
    'users[0].password: give one of password and password_hash',
    (file) => void delete file['users']![0]!['password_hash'],
  ],
  ...[
    ['', 'must not be empty'],
    ['x'.repeat(1_025), 'must have at most 1024 characters'],
  ].flatMap(([secret, fault]) => [
    [
      `users[0].password: ${fault}`,
      (file: AnyFile): void => void (file['users']![0] = { id: 'u1', username: 'Ann', password: secret }),
    ] as const,
    [
      `clients[0].secret: ${fault}`,
      (file: AnyFile): void => void (file['clients']![0] = { id: 'app', name: 'App', secret }),
    ] as const,
  ]),
  [
    'users[0].password_hash: must be an argon2id hash in the PHC form ($argon2id$v=19$m=…,t=…,p=…$salt$hash)',
    (file) => void (file['users']![0]!['password_hash'] = 'md5'),
  ],
  ...['m=7,t=1,p=1', 'm=64,t=0,p=1', 'm=64,t=1,p=0', 'm=64,t=1,p=9', 'm=064,t=1,p=1'].map(
    (parameters) =>
      [
        'users[0].password_hash: is not a whole argon2id hash: no log-in could succeed',
        (file: AnyFile) => void (file['users']![0]!['password_hash'] = hashWith(parameters)),
      ] as const,
  ),
  // Cut short by a character: neither salt nor hash can be read.
  [
    'users[0].password_hash: is not a whole argon2id hash: no log-in could succeed',
    (file) => void (file['users']![0]!['password_hash'] = hashWith('m=64,t=1,p=1', 'A'.repeat(25))),
  ],
  [
    'clients[0].secret_hash: is not a whole argon2id hash: no log-in could succeed',
    (file) => void (file['clients']![0]!['secret_hash'] = hashWith('m=8,t=1,p=2')),
  ],
  ...['m=8,t=1,p=1', 'm=4095,t=9,p=1', 'm=4096,t=2,p=1', 'm=12287,t=1,p=1'].map(
    (parameters) =>
      [
        'clients[0].secret_hash: costs too little to guess: m is at least 4096, m times t at least 12288',
        (file: AnyFile) => void (file['clients']![0]!['secret_hash'] = hashWith(parameters)),
      ] as const,
  ),
  ...['m=9999999,t=1,p=1', 'm=131073,t=1,p=1', 'm=65536,t=5,p=1', 'm=19456,t=999,p=1'].map(
    (parameters) =>
      [
        'users[0].password_hash: costs too much to check: m is at most 131072, m times t at most 262144',
        (file: AnyFile) => void (file['users']![0]!['password_hash'] = hashWith(parameters)),
      ] as const,
  ),
  ['users[2].id: is the same as users[0].id', (file) => void file['users']!.push({ ...file['users']![0]! })],
  ['users[1].username: is the same as users[0].username', (file) => void (file['users']![1]!['username'] = 'ＡNN')],
  [
    'users[1].phone_number: is the same as users[0].phone_number',
    (file) => void (file['users']![1]!['phone_number'] = '+44 7700 900001'),
  ],
  [
    'users[1].username: must be 1 to 100 characters without control characters, and without spaces at either end or in a row',
    (file) => void (file['users']![1]!['username'] = ' bob'),
  ],
  ['users[1].roles[0]: must be "support" or "auditor"', (file) => void (file['users']![1]!['roles'] = ['root'])],
  [
    'users[1].permissions[0]: must be "redeem" or "unredeem" or "webhooks"',
    (file) => void (file['users']![1]!['permissions'] = ['all']),
  ],
  ['users[1].merchant_id: no such merchant "m9"', (file) => void (file['users']![1]!['merchant_id'] = 'm9')],
  ['users[1].locale: must be a language tag such as en-GB', (file) => void (file['users']![1]!['locale'] = 'English')],
  [
    'clients[0].id: must be 1 to 64 of A-Z a-z 0-9 _ . : @ ~ - and start with a letter, a digit or _',
    (file) => void (file['clients']![0]!['id'] = 'u/2'),
  ],
  [
    'clients[0].id: must be 1 to 64 of A-Z a-z 0-9 _ . : @ ~ - and start with a letter, a digit or _',
    (file) => void (file['clients']![0]!['id'] = 'u'.repeat(65)),
  ],
  ...['cli:root@till-7', 'system:payment-provider', 'CLI:root@till-7'].map(
    (id) =>
      [
        'users[1].id: must not start with cli:, system: or phone:, by which others than users are named',
        (file: AnyFile) => {
          file['users']![1]!['id'] = id;
          file['payment_methods']![1]!['users'] = ['u1'];
        },
      ] as const,
  ),
  ['users[1].device_tokens: must be a list', (file) => void (file['users']![1]!['device_tokens'] = 'token')],
  ['clients[0].users[0]: no such user "u9"', (file) => void (file['clients']![0]!['users'] = ['u9'])],
  ['clients[0].secret: give one of secret and secret_hash', (file) => void delete file['clients']![0]!['secret_hash']],
  ['payment_methods[0].users[0]: no such user "u9"', (file) => void (file['payment_methods']![0]!['users'] = ['u9'])],
  [
    'payment_methods[0].kind: must be "card" or "wallet"',
    (file) => void (file['payment_methods']![0]!['kind'] = 'cash'),
  ],
  [
    'payment_methods[0].top_ups: only a wallet can be topped up',
    (file) => void (file['payment_methods']![0]!['top_ups'] = [{ id: 't', amount: 1 }]),
  ],
  [
    'payment_methods[0].prepaid: only a wallet can be prepaid',
    (file) => void (file['payment_methods']![0]!['prepaid'] = true),
  ],
  [
    'payment_methods[1].top_ups[0].amount: must be at least 1',
    (file) => void (file['payment_methods']![1]!['top_ups'] = [{ id: 't', amount: 0 }]),
  ],
  [
    'payment_methods[1].top_ups[0].amount: must be a whole number',
    (file) => void (file['payment_methods']![1]!['top_ups'] = [{ id: 't', amount: 1.5 }]),
  ],
  [
    'payment_methods[1].top_ups[0].amount: must be at most 10000000000',
    (file) => void (file['payment_methods']![1]!['top_ups'] = [{ id: 't', amount: 10_000_000_001 }]),
  ],
  [
    'payment_methods[1].top_ups[0].amount: is required',
    (file) => void (file['payment_methods']![1]!['top_ups'] = [{ id: 't' }]),
  ],
  [
    'payment_methods[1].top_ups[1].id: stands in the list twice',
    (file) =>
      void (file['payment_methods']![1]!['top_ups'] = [
        { id: 't', amount: 1 },
        { id: 't', amount: 1 },
      ]),
  ],
  [
    'payment_methods[2].reference: is the same as payment_methods[0].reference',
    (file) => void file['payment_methods']!.push({ ...file['payment_methods']![0]! }),
  ],
  [
    'voucher_codes[0].segment_id: no such segment "g9"',
    (file) => void (file['voucher_codes']![0]!['segment_id'] = 'g9'),
  ],
  ['voucher_codes[0].code: must not be empty', (file) => void (file['voucher_codes']![0]!['code'] = '')],
  [
    'voucher_codes[1].code: is the same as voucher_codes[0].code',
    (file) => void (file['voucher_codes']![1]!['code'] = 'CODE-1'),
  ],
  ['categories: must be a list', (file) => void ((file as Record<string, unknown>)['categories'] = {})],
  [
    ['merchants[0].adjustment_codes: must have at most 1000 entries'],
    (file) =>
      void (file['merchants']![0]!['adjustment_codes'] = Array.from({ length: 1001 }, (_, index) => String(index))),
  ],
  [
    'categories[0].products: must have at most 20000 entries',
    (file) => {
      const products = Array.from({ length: 20_001 }, (_, n) => ({
        id: `x${n}`,
        brand_id: 'b1',
        name: 'X',
        sale_price: 1,
      }));
      file['products']!.push(...products);
      file['categories']![0]!['products'] = products.map(({ id }) => id);
    },
  ],
  [
    'categories[0]: is larger than 900000 bytes',
    (file) => {
      const products = Array.from({ length: 15_000 }, (_, n) => ({
        id: `${n}`.padStart(64, 'x'),
        brand_id: 'b1',
        name: 'X',
        sale_price: 1,
      }));
      file['products']!.push(...products);
      file['categories']![0]!['products'] = products.map(({ id }) => id);
    },
  ],
];

for (const [fault, change] of CASES) {
  test(`refuses ${String(fault)}`, async () => {
    assert.equal(await faultsOf(fileWith(change)), [fault].flat());
  });
}

/** Not format characters: fillers, selectors, a joiner, Braille without dots. */
const INVISIBLE = ['\u3164', '\ufe0f', '\u115f', '\u034f', '\uffa0', '\u{e0100}', '\u2800'];
const EXACT = 'must have no blanks at either end, and neither control characters nor invisible ones within';

test('refuses blanks around and invisible characters in exact values', async () => {
  const fields = [
    ['voucher_codes', 'code', 'voucher_codes[0].code'],
    ['voucher_codes', 'pin', 'voucher_codes[0].pin'],
    ['clients', 'secret', 'clients[0].secret'],
    ['payment_methods', 'customer', 'payment_methods[0].customer'],
    ['merchants', 'adjustment_codes', 'merchants[0].adjustment_codes[0]'],
    ['users', 'device_tokens', 'users[0].device_tokens[0]'],
  ] as const;
  for (const [array, field, place] of fields) {
    for (const value of [
      'ABC\r',
      'ABC ',
      ' ABC',
      'ABC\n',
      'A\tBC',
      'ABC\u00a0',
      '\ufeffABC',
      'A\u200bBC',
      'ABC\u202c',
      ...INVISIBLE.map((sign) => `ABC${sign}`),
      `A${' '.repeat(50)}`,
    ]) {
      const file: AnyFile = wholeFile();
      const entry = file[array]![0]!;
      delete entry['secret_hash'];
      entry[field] = field.endsWith('s') ? [value] : value;
      assert.equal(await faultsOf(file), [`${place}: ${EXACT}`], `${place} ${JSON.stringify(value)}`);
    }
  }
  const file = wholeFile();
  file['voucher_codes']![0]!['code'] = 'AB CD  EF-é';
  await importInto(memoryEvents(), file);
});

test('hashes of other systems are taken as they are', async () => {
  for (const parameters of [
    'm=4096,t=3,p=255',
    'm=65536,t=3,p=4',
    'm=65536,t=4,p=1',
    'm=102400,t=2,p=8',
    'm=131072,t=2,p=1',
  ]) {
    const { unchanged, events } = await importInto(
      memoryEvents(),
      fileWith((file) => void (file['users']![0]!['password_hash'] = hashWith(parameters))),
    );
    assert.ok(events > 0 && unchanged === 0, parameters);
  }
});

test('refuses hashes of a fifth cost, in the file or with those in the log', async () => {
  const userWith = (index: number, parameters: string): object => ({
    id: `h${index}`,
    username: `h${index}`,
    password_hash: hashWith(parameters),
  });
  const fault = /^users\[\d\]\.password_hash: has a cost \(m, t and p\) beyond 4 of all users and clients/;
  const four = ['m=19456,t=2,p=1', 'm=4096,t=3,p=1', 'm=65536,t=3,p=4', 'm=65536,t=4,p=1'];
  const events = memoryEvents();
  const all = [...four, 'm=65536,t=3,p=1', 'm=65536,t=3,p=4'];
  const faults = await faultsOf({ users: all.map((parameters, index) => userWith(index, parameters)) }, events);
  assert.is(faults.length, 1);
  assert.match(faults[0] ?? '', fault);
  await importInto(events, { users: four.map((parameters, index) => userWith(index, parameters)) });
  assert.match((await faultsOf({ users: [userWith(9, 'm=65536,t=2,p=1')] }, events))[0] ?? '', fault);
  await importInto(events, { users: [userWith(9, 'm=65536,t=4,p=1')] });
});

test("reports all faults at once, in the order of the file, an entry's own and its references'", async () => {
  const faults = await faultsOf(
    fileWith((file) => {
      Object.assign(file['products']![0]!, { brand_id: 'b9', sale_price: -1, colour: 'red' });
      file['products']![1]!['valid_days'] = 0;
      Object.assign(file['users']![0]!, { phone_number: '1', merchant_id: 'm9' });
      file['colours'] = [];
    }),
  );
  assert.equal(faults, [
    'colours: unknown array; known are integrations, merchants, brands, stores, segments, products, categories, users, clients, payment_methods, voucher_codes',
    'products[0].colour: unknown field',
    'products[0].sale_price: must be at least 0',
    'products[0].brand_id: no such brand "b9"',
    'products[1].valid_days: must be at least 1',
    'users[0].merchant_id: no such merchant "m9"',
    'users[0].phone_number: is not a valid mobile phone number',
  ]);
});

test('an entry of the wrong shape is known to those who refer to it', async () => {
  assert.equal(await faultsOf(fileWith((file) => void (file['brands']![0]!['name'] = 7))), [
    'brands[0].name: must be a string',
  ]);
});

test('a file that is not an object of arrays is refused', async () => {
  for (const file of [null, [], 'text', 7])
    assert.equal(await faultsOf(file), ['the file must be a JSON object of arrays']);
});

test('hostile field names are unknown fields', async () => {
  const products = JSON.parse(
    '[{"id": "p", "brand_id": "b1", "name": "x", "sale_price": 1, "__proto__": {"x": 1}, "constructor": 1}]',
  ) as Record<string, unknown>[];
  assert.equal(await faultsOf(fileWith((file) => void (file['products'] = [...file['products']!, ...products]))), [
    'products[2].__proto__: unknown field',
    'products[2].constructor: unknown field',
  ]);
});

test('no fault repeats a secret, a name or a number', async () => {
  const secret = 'hunter2hunter2\0';
  const faults = await faultsOf(
    fileWith((file) => {
      file['users']![0] = {
        id: 'u1',
        username: ` ${secret}`,
        password: secret,
        phone_number: secret,
        device_tokens: [secret],
      };
      file['clients']![0] = { id: 'app', secret, name: secret, users: ['u1'] };
      file['voucher_codes']![0] = { segment_id: 'g1', code: secret, pin: secret };
    }),
  );
  assert.ok(faults.length >= 6);
  assert.not.match(faults.join('\n'), /hunter2/);
});

test('accepts references to live entries of the log, and no others', async () => {
  const events = memoryEvents();
  await importInto(events, wholeFile());
  const category = { id: 'c2', name: 'More', products: ['p1'] };
  assert.is((await importInto(events, { categories: [category] })).events, 1);
  assert.is(
    (await importInto(events, { products: [wholeFile().products[0]], categories: [{ ...category, products: ['p2'] }] }))
      .events,
    1,
    'the file leaves p2 as it is',
  );
  await importInto(events, { products: [wholeFile().products[0]] }, { prune: { reason: 'test', yes: false } });
  assert.equal(await faultsOf({ categories: [{ ...category, products: ['p2', 'p9'] }] }, events), [
    'categories[0].products[0]: product "p2" is retired: bring it back in the same file',
    'categories[0].products[1]: no such product "p9"',
  ]);
});

test('refuses references to entries that the import prunes', async () => {
  const events = memoryEvents();
  await importInto(events, wholeFile());
  const file = fileWith((one) => void one['users']!.pop());
  assert.equal(await faultsOf(file, events, true), [
    'payment_methods[1].users[1]: user "u2" has gone from the file and would be pruned',
  ]);
});

test('a username or number of a user who keeps it is refused', async () => {
  const events = memoryEvents();
  await importInto(events, wholeFile());
  const user = { id: 'u3', username: 'ann', password_hash: PASSWORD_HASH, phone_number: '+447700900002' };
  assert.equal(await faultsOf({ users: [user] }, events), [
    'users[0].username: is user "u1"\'s already',
    'users[0].phone_number: is user "u2"\'s already',
  ]);
});

test('a top-up that was counted with another amount is refused', async () => {
  const events = memoryEvents();
  await importInto(events, wholeFile());
  const file = fileWith((one) => void (one['payment_methods']![1]!['top_ups'] = [{ id: 't1', amount: 501 }]));
  assert.equal(await faultsOf(file, events), [
    'payment_methods[1].top_ups[0].amount: this top-up has been counted with 500 already, and counts once: give another one another id',
  ]);
});

test('the pin of a code that a gift has got cannot change', async () => {
  const events = memoryEvents();
  await importInto(events, wholeFile());
  events.given(`voucherCode-g1-${testHash('code', 'CODE-1')}`, {
    type: 'VoucherCodeAssigned',
    data: { gift_id: 'gift' },
  });
  const file = fileWith((one) => void (one['voucher_codes']![0]!['pin'] = '9999'));
  assert.equal(await faultsOf(file, events), [
    'voucher_codes[0].pin: differs from the one that a gift has already got',
  ]);
});

/** The whole file, whose codes' segment shows a PIN; each code has one. */
const withPins = (change: (file: AnyFile) => void = () => undefined): AnyFile =>
  fileWith((file) => {
    file['segments']![0]!['voucherType'] = 'alpha/pin';
    file['voucher_codes']![1]!['pin'] = '5678';
    change(file);
  });
const pinRequired = 'voucher_codes[1].pin: is required: segment "g1" is of alpha/pin';

test('a code without the PIN that its segment shows is refused', async () => {
  const withoutPin = withPins((file) => void delete file['voucher_codes']![1]!['pin']);
  assert.equal(await faultsOf(withoutPin), [pinRequired]);

  const events = memoryEvents();
  await importInto(events, withPins());
  assert.equal(await faultsOf(withoutPin, events), [pinRequired], 'a PIN is not taken away');
  const more = { voucher_codes: [{ segment_id: 'g1', code: 'CODE-3' }] };
  assert.equal(await faultsOf(more, events), [pinRequired.replace('[1]', '[0]')], 'the segment is in the log only');
});

test('a code that a gift got without a PIN, from an earlier release, is not refused', async () => {
  const events = memoryEvents();
  await importInto(events, withPins());
  events.given(
    `voucherCode-g1-${testHash('code', 'OLD')}`,
    { type: 'VoucherCodeAdded', data: { segment_id: 'g1', code: 'OLD', pin: null } },
    { type: 'VoucherCodeAssigned', data: { gift_id: 'gift' } },
  );
  const report = await importInto(
    events,
    withPins((file) => void file['voucher_codes']!.push({ segment_id: 'g1', code: 'OLD' })),
  );
  assert.is(report.events, 0);
});

test('a segment whose vouchers may be out neither gets nor loses a PIN', async () => {
  for (const [file, next, from] of [
    [wholeFile(), withPins(), 'qr'],
    [withPins(), wholeFile(), 'alpha/pin'],
  ] as const) {
    const events = memoryEvents();
    await importInto(events, file);
    const change = { segments: next['segments'] };
    const fault = `segments[0].voucherType: cannot change from "${from}", since only vouchers of alpha/pin have a PIN: give a new segment another id`;
    assert.equal(await faultsOf(change, events), [fault]);
    await importInto(events, { segments: [] }, { prune: { reason: 'test', yes: true } });
    assert.equal(await faultsOf(change, events), [fault], 'also of a pruned segment');
  }
  const events = memoryEvents();
  await importInto(events, wholeFile());
  const segment = { ...wholeFile().segments[0], voucherType: 'alpha/qr' };
  assert.is((await importInto(events, { segments: [segment] })).events, 1, 'both are without a PIN');
});

test.run();
