import assert from 'node:assert/strict';
import { Agent, request as httpRequest } from 'node:http';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { suite } from 'uvu';
import { answerOf, checked, unharmed } from '../support/service/answers.js';
import { buyOne, purchaseOf, redeem, refused } from '../support/service/giftFlow.js';
import { type RawReply, requestText, sendRaw, sendThenRead } from '../support/service/rawHttp.js';
import { type Json, type Reply, type Service, startService } from '../support/service/service.js';
import { eventually } from '../support/assertions/until.js';

const test = suite('hostile requests');
let service: Service;
let gift = '';
let token = '';

test.before(async () => {
  service = await startService();
  gift = await buyOne(service);
  token = await service.userToken('ann');
});
test.after(async () => {
  await unharmed(service);
  assert.deepEqual(Object.keys(Object.prototype), []);
  assert.equal(({} as Record<string, unknown>)['polluted'], undefined);
  await service.close();
});

/** Asks as ann; the answer must be one of the table's, below 500. */
async function ask(
  method: string,
  path: string,
  body?: unknown,
  more: { readonly key?: string; readonly headers?: Readonly<Record<string, string>> } = {},
): Promise<Reply> {
  const reply = await service.ask(method, path, { token, ...(body === undefined ? {} : { body }), ...more });
  checked(answerOf(reply), `${method} ${path.slice(0, 200)}`);
  assert.ok(reply.status < 500, `${method} ${path.slice(0, 200)}: ${reply.text}`);
  return reply;
}

/** Sends it as it is; what comes back, if anything, is an answer of the table. */
async function raw(
  parts: Parameters<typeof sendRaw>[1],
  options?: Parameters<typeof sendRaw>[2],
): Promise<RawReply | undefined> {
  const reply = await sendRaw(service.url, parts, options);
  if (reply !== undefined) {
    checked(
      { status: reply.status, text: reply.body, header: (name) => reply.headers.get(name) ?? null },
      String(parts).slice(0, 200),
    );
    assert.ok(reply.status < 500);
  }
  return reply;
}

const errorOf = (reply: RawReply | undefined): unknown =>
  (JSON.parse(reply?.body ?? '{}') as { error?: unknown }).error;
const bearer = (): Record<string, string> => ({ Authorization: `Bearer ${token}` });
const POSTS = (): string[] => [
  '/api/v2/transactions',
  `/api/v2/gifts/${gift}/redemptions`,
  `/api/v2/gifts/${gift}/voucher`,
  `/api/v2/gifts/${gift}/voucher/claimed`,
  '/oauth/token',
];

test('keys that name what every object has', async () => {
  for (const key of [
    '__proto__',
    'constructor',
    'prototype',
    'hasOwnProperty',
    'toString',
    'valueOf',
    '__defineGetter__',
  ]) {
    for (const value of ['{"polluted":1}', '{"prototype":{"polluted":1}}', 'null', '1', '[]', '"x"']) {
      for (const path of POSTS())
        assert.ok(
          [400, 422].includes((await ask('POST', path, `{"${key}":${value}}`)).status),
          `${path} ${key} ${value}`,
        );
    }
    const nested = `{"payment":{"method":"card","reference":"pm_card_visa","${key}":{"polluted":1}},"purchase":{"type":"gift","reference":"latte"}}`;
    refused(await ask('POST', '/api/v2/transactions', nested), 422, `payment.${key} is not a known field`);
    const inReceiver = `{"payment":{"method":"card","reference":"pm_card_visa"},"purchase":{"type":"gift","reference":"latte","receivers":[{"${key}":{"user_id":"bob"}}]}}`;
    refused(
      await ask('POST', '/api/v2/transactions', inReceiver, { key: `proto-${key}` }),
      422,
      `purchase.receivers[0].${key} is not a known field`,
    );
    await ask('GET', `/api/v2/products?${key}=1&${key}[polluted]=1&${key}[]=1`);
    refused(await ask('GET', `/api/v2/products?embed[]=${key}`), 422, `Unknown embed: ${key}.`);
  }
  // A name says nothing of the syntax: the schema refuses it, at the top of a body as deep in it.
  for (const key of ['__proto__', 'constructor']) {
    for (const value of ['{"prototype":{"polluted":1}}', '{}', 'null', '7']) {
      for (const path of [`/api/v2/gifts/${gift}/voucher`, `/api/v2/gifts/${gift}/claim`]) {
        const reply = await ask('POST', path, `{"${key}":${value}}`);
        refused(reply, 422, `${key} is not a known field`);
        assert.equal(reply.headers.get('error-field'), key);
      }
    }
  }
  for (const key of ['__proto__', 'constructor']) {
    for (const body of [
      `{"${key}":{"location_id":"bean-soho"}}`,
      `{"location_id":"bean-soho","${key}":{"prototype":{"polluted":1}}}`,
      `{"${key}":${'['.repeat(31)}${']'.repeat(31)},"location_id":"x"}`,
    ]) {
      refused(
        await ask('POST', `/api/v2/gifts/${gift}/redemptions`, body),
        422,
        body.startsWith('{"location') || body.includes('[[')
          ? `${key} is not a known field`
          : 'location_id is required',
      );
    }
  }
});

test('names a field that stands twice in one object, wherever it stands', async () => {
  const send = async (path: string, body: string): Promise<Reply> => ask('POST', path, body);
  const purchase =
    '{"payment":{"method":"card","reference":"pm_card_visa"},"purchase":{"type":"gift","reference":"latte","receivers":[{},{"user_id":"bob","user_id":"cat"}]}}';
  refused(await send('/api/v2/transactions', purchase), 422, 'purchase.receivers[1].user_id must be given only once');
  refused(await send('/api/v2/transactions', '{"payment":1,"payment":2}'), 422, 'payment must be given only once');
  refused(
    await send('/api/v2/transactions', String.raw`{"__proto__":1,"\u005f_proto__":2}`),
    422,
    '__proto__ must be given only once',
  );
  const deep = `{"x":${'['.repeat(30)}{"a":1${',"a":1'.repeat(200)}}${']'.repeat(30)}}`;
  assert.equal((await send('/api/v2/transactions', deep)).status, 422);
  refused(
    await send('/oauth/token', '{"grant_type":"password","grant_type":"client_credentials"}'),
    422,
    'grant_type must be given only once',
  );
});

const MANY_FIELDS = Array.from({ length: 1_500 }, (_, at) => `x${at}=1&`).join('');

test('names a field that stands twice in a form, also without a value', async () => {
  const send = async (path: string, body: string): Promise<Reply> =>
    ask('POST', path, body, { headers: { 'content-type': 'application/x-www-form-urlencoded' } });
  for (const [body, name] of [
    ['grant_type=a&grant_type=b', 'grant_type'],
    ['grant_type=password&client_id=demo-app&client_id=', 'client_id'],
    ['grant_type=password&client_id=&client_id=', 'client_id'],
    ['grant_type=password&grant%5Ftype=password', 'grant_type'],
    ['grant_type=password&refresh_token=a&refresh_token=b', 'refresh_token'],
    [`grant_type=&${MANY_FIELDS}grant_type=password`, 'grant_type'],
  ] as const)
    refused(await send('/oauth/token', body), 422, `${name} must be given only once`);
  refused(await send('/oauth/revoke', 'token=a&token=b'), 422, 'token must be given only once');
});

test('reads a form of over a thousand fields to its end, and ignores what it does not know', async () => {
  const body = `${MANY_FIELDS}scope=a&scope=b&grant_type=client_credentials&client_id=app&client_secret=app-secret`;
  const reply = await ask('POST', '/oauth/token', body, {
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
  });
  assert.equal(reply.status, 200, reply.text);
});

test('ids that name what every object has, or nothing', async () => {
  for (const id of [
    '__proto__',
    'constructor',
    'toString',
    'hasOwnProperty',
    '',
    ' ',
    '.',
    '..',
    '\u0000',
    'a\u0000b',
    '\u202e',
    'x'.repeat(10_000),
    '%s%n',
    "' OR 1=1 --",
    '$ne',
    '*',
    'null',
    '-1',
    '../../etc/passwd',
  ]) {
    refused(
      await ask('POST', `/api/v2/gifts/${gift}/redemptions`, JSON.stringify({ location_id: id })),
      422,
      'Invalid location.',
    );
    refused(
      await ask('POST', `/api/v2/gifts/${gift}/voucher`, JSON.stringify({ segmentId: id })),
      422,
      'Invalid segment.',
    );
    refused(await ask('POST', '/api/v2/transactions', JSON.stringify(purchaseOf(id))), 422, 'Invalid product.');
    refused(
      await ask('POST', '/api/v2/transactions', JSON.stringify(purchaseOf('latte', undefined, { reference: id }))),
      422,
      'Invalid payment reference.',
    );
    refused(
      await ask('POST', '/api/v2/transactions', JSON.stringify(purchaseOf('latte', [{ user_id: id }]))),
      422,
      'Receiver not found.',
    );
    refused(
      await ask('POST', '/api/v2/transactions', JSON.stringify(purchaseOf('latte', [{ phone_number: id }]))),
      422,
      'Invalid phone number.',
    );
    if (id.length < 5_000 && !['', '.', '..'].includes(id)) {
      const inPath = encodeURIComponent(id);
      refused(await ask('GET', `/api/v2/gifts/${inPath}`), 404, 'gift not found');
      refused(await ask('GET', `/api/v2/products/${inPath}`), 404, 'Product not found');
      refused(await ask('GET', `/api/v2/product-tags/categories/${inPath}`), 404, 'Category not found');
      refused(await ask('GET', `/api/v2/transactions/${inPath}/gifts`), 404, 'transaction not found');
      refused(await ask('GET', `/api/v2/tiles/${inPath}`), 422, 'Invalid tile.');
      const token = await service.clientToken();
      for (const [method, path] of [
        ['GET', ''],
        ['DELETE', ''],
        ['POST', '/ping'],
        ['GET', '/attempts'],
      ] as const)
        refused(
          await service.ask(method, `/api/v2/webhook-endpoints/${inPath}${path}`, { token }),
          404,
          'Webhook endpoint not found',
        );
    }
  }
});

test('logins with names and secrets of all kinds', async () => {
  const client = await service.clientToken();
  for (const odd of ['\u0000', 'x'.repeat(1_024), '__proto__', '🎁'.repeat(500), "' OR 1=1 --", '\n\r']) {
    const asPassword = await service.ask('POST', '/oauth/token', {
      token: client,
      body: { grant_type: 'password', username: odd, password: odd },
    });
    checked(answerOf(asPassword));
    refused(asPassword, 401, 'Authentication failed.');
    const asClient = await service.ask('POST', '/oauth/token', {
      body: { grant_type: 'client_credentials', client_id: odd, client_secret: odd },
    });
    refused(asClient, 401, 'Authentication failed.');
    const basic = await service.ask('POST', '/oauth/token', {
      body: { grant_type: 'client_credentials' },
      headers: { authorization: `Basic ${Buffer.from(`${odd}:${odd}`).toString('base64')}` },
    });
    refused(basic, 401, 'Authentication failed.');
  }
  const long = await service.ask('POST', '/oauth/token', {
    token: client,
    body: { grant_type: 'password', username: 'x'.repeat(1_025), password: 'x' },
  });
  refused(long, 422, 'username: at most 1024 characters');
  for (const header of ['Basic', 'Basic !', 'Basic Og==', `Basic ${'A'.repeat(8_000)}`, 'basic %%%']) {
    const reply = await service.ask('POST', '/oauth/token', {
      body: { grant_type: 'client_credentials' },
      headers: { authorization: header },
    });
    checked(answerOf(reply), header.slice(0, 40), /^Basic realm=/);
    assert.equal(reply.status, 401);
  }
});

test('bodies nested 100,000 levels deep', async () => {
  const lists = '['.repeat(100_000) + ']'.repeat(100_000);
  const objects = '{"a":'.repeat(100_000) + '1' + '}'.repeat(100_000);
  for (const deep of [lists, objects]) {
    for (const path of POSTS()) {
      for (const more of [{}, { key: `deep-${deep.length}` }])
        assert.ok([400, 413].includes((await ask('POST', path, deep, more)).status));
      for (const field of ['embed', 'segmentId', 'location_id', 'payment', 'purchase', 'grant_type', 'nothing']) {
        assert.ok(
          [400, 413].includes(
            (await ask('POST', path, `{"${field}":${deep}}`, { key: `deep-${field}-${deep.length}` })).status,
          ),
        );
      }
    }
    refused(
      await ask(
        'POST',
        '/api/v2/transactions',
        `{"payment":{"method":"card","reference":"x"},"purchase":{"type":"gift","reference":"latte","receivers":[${deep}]}}`,
      ),
      400,
      'Malformed JSON.',
    );
  }
});

test('numbers beyond all bounds', async () => {
  for (const number of ['1e400', '-1e400', '9007199254740993', '1e-400', '-0', '1'.repeat(10_000)]) {
    for (const path of POSTS()) await ask('POST', path, number);
    assert.ok(
      [400, 422].includes((await ask('POST', `/api/v2/gifts/${gift}/redemptions`, `{"location_id":${number}}`)).status),
    );
  }
  for (const number of [
    '1e400',
    'Infinity',
    'NaN',
    '0x10',
    '99999999999999999999',
    '-99999999999999999999',
    '1'.repeat(5_000),
    '１２',
    '١',
    '1_000',
    '+1',
    ' 1',
    '1%00',
    '2147483648',
  ]) {
    for (const path of [
      `/api/v2/products?min_price=${number}`,
      `/api/v2/product-tags/categories?page=${number}`,
      `/api/v2/product-tags/categories?per_page=${number}`,
      `/api/v2/tiles/-0.2,51.4:0.1,51.6?granularity=${number}`,
    ]) {
      const reply = await ask('GET', path);
      assert.ok(
        reply.status === 422 || (number === '2147483648' && path.includes('min_price')),
        `${path.slice(0, 80)} ${reply.status}`,
      );
    }
  }
  for (const tile of [
    '1e400,0.0:0.0,0.0',
    '1e2,0.0:0.0,0.0',
    '-999999999999.0,0.0:1.0,1.0',
    '0.0,0.0:0.0,0.0:0.0,0.0',
    `${'1'.repeat(400)}.0,0.0:0.0,0.0`,
    '0.0,NaN:0.0,0.0',
    `0.${'0'.repeat(5_000)},x:0.0,0.0`,
  ])
    refused(await ask('GET', `/api/v2/tiles/${tile}`), 422, 'Invalid tile.');
  assert.equal((await ask('GET', '/api/v2/tiles/-180.0,-90.0:180.0,90.0?granularity=0')).status, 200);
  assert.equal((await ask('GET', `/api/v2/tiles/0.${'0'.repeat(300)},0.0:1.0,1.0`)).status < 500, true);
});

test('text that is hard to keep: a message comes back as it was sent, a NUL is refused', async () => {
  for (const message of [
    '\ufffd',
    '<script>alert(1)</script>',
    '\t\n\u200e',
    "'; DROP TABLE gifts; --",
    '🎁'.repeat(1000),
    '\uffff\ufffe',
  ]) {
    const bought = await ask(
      'POST',
      '/api/v2/transactions?embed[]=gifts.message',
      JSON.stringify(purchaseOf('latte', undefined, { message })),
    );
    assert.equal(bought.status, 201, bought.text);
    assert.equal(bought.json.embedded.messages[0].message, message);
    assert.equal(
      (await ask('GET', `/api/v2/gifts/${bought.json.data.gifts[0]}?embed[]=message`)).json.embedded.messages[0]
        .message,
      message,
    );
  }
  for (const message of ['a\u0000', '\u0001\u001f', '\u202eevil'])
    refused(
      await ask('POST', '/api/v2/transactions', purchaseOf('latte', undefined, { message })),
      422,
      'purchase.message must not contain control characters, nor ones that turn the direction of text',
    );
});

test('refuses half of a character wherever it stands, and names its field', async () => {
  const half = 'must not have half of a character (an unpaired surrogate)';
  const purchase = (more: object): object => purchaseOf('latte', undefined, more);
  const bodies: [path: string, body: object, field: string][] = [
    ['/api/v2/transactions', purchase({ message: 'Happy birthday \ud83c' }), 'purchase.message'],
    ['/api/v2/transactions', purchase({ message: '\udc00\ud800' }), 'purchase.message'],
    ['/api/v2/transactions', purchaseOf('\ud800'), 'purchase.reference'],
    ['/api/v2/transactions', purchaseOf('latte', undefined, { reference: 'pm_\udfff' }), 'payment.reference'],
    ['/api/v2/transactions', purchaseOf('latte', [{}, { user_id: 'bob\ud83c' }]), 'purchase.receivers[1].user_id'],
    ['/api/v2/transactions', { ...purchase({}), '\ud83c': 1 }, '\ufffd'],
    ['/api/v2/transactions', { ...purchase({}), embed: ['gifts', '\ud83c'] }, 'embed[1]'],
    [`/api/v2/gifts/${gift}/redemptions`, { location_id: '\ud800' }, 'location_id'],
    [`/api/v2/gifts/${gift}/voucher`, { segmentId: '\ud800' }, 'segmentId'],
    ['/oauth/token', { grant_type: 'password', username: 'ann', password: '\ud800' }, 'password'],
  ];
  for (const [path, body, field] of bodies) {
    const reply = await ask('POST', path, JSON.stringify(body));
    refused(reply, 422, `${field} ${half}`);
    assert.equal(reply.headers.get('error-field'), field.replace('\ufffd', '?'));
    assert.match(reply.text, /^[^\ud800-\udfff]*$/);
  }
  const form = await ask('POST', '/oauth/token', 'grant_type=password&username=ann%ed%a0%bc&password=x', {
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
  });
  refused(form, 422, `username ${half}`);
  for (const [query, field] of [
    ['q=%ED%A0%80', 'q'],
    ['q=latte%eD%bF%Bf&page=1', 'q'],
    ['id[0]=latte&id[1]=%ed%a0%80', 'id[1]'],
    ['nothing=%ed%b0%80', 'nothing'],
    ['%ed%a0%80=1', '\ufffd\ufffd\ufffd'],
  ]) {
    refused(await ask('GET', `/api/v2/products?${query}`), 422, `${field} ${half}`);
    refused(await ask('GET', `/api/v2/gifts/${gift}?${query}`), 422, `${field} ${half}`);
  }
  for (const query of ['q=%ED%9F%BF', 'q=%EE%80%80', 'q=%F0%9F%8E%81', 'q=%25ed%a0', 'q=%ed'])
    assert.equal((await ask('GET', `/api/v2/products?${query}`)).status, 200, query);
  // A message is cut between characters, so that its answer can be read.
  const long = await ask('POST', '/api/v2/transactions', { ...purchase({}), [`${'x'.repeat(63)}🎁y`]: 1 });
  refused(long, 422, `${'x'.repeat(63)}… is not a known field`);
});

test('an error that is about one field of many names it in Error-Field; its message stays', async () => {
  const receivers = (bad: object, at: number): object[] =>
    Array.from({ length: 20 }, (_, index) => (index === at ? bad : { user_id: 'bob' }));
  const rows: [body: object, message: string, field: string][] = [
    [
      purchaseOf('latte', receivers({ phone_number: '0800' }, 1)),
      'Invalid phone number.',
      'purchase.receivers[1].phone_number',
    ],
    [
      purchaseOf('latte', receivers({ user_id: 'nobody' }, 17)),
      'Receiver not found.',
      'purchase.receivers[17].user_id',
    ],
    [
      purchaseOf('latte', receivers({ user_id: 'bob', phone_number: '07700 900123' }, 3)),
      'receivers: give only one of phone_number or user_id',
      'purchase.receivers[3]',
    ],
    [
      purchaseOf('latte', receivers({ phone_number: 7 }, 19)),
      'purchase.receivers[19].phone_number must be a string',
      'purchase.receivers[19].phone_number',
    ],
    [
      purchaseOf('latte', receivers({ nubmer: '1' }, 2)),
      'purchase.receivers[2].nubmer is not a known field',
      'purchase.receivers[2].nubmer',
    ],
    [{ payment: {} }, 'purchase is required', 'purchase'],
  ];
  for (const [body, message, field] of rows) {
    const reply = await ask('POST', '/api/v2/transactions', body);
    refused(reply, 422, message);
    assert.equal(reply.headers.get('error-field'), field);
  }
  const again = purchaseOf('latte', receivers({ phone_number: '0800' }, 5));
  for (const replayed of [null, 'true']) {
    const reply = await ask('POST', '/api/v2/transactions', again, { key: 'one-bad' });
    assert.deepEqual(
      [reply.headers.get('error-field'), reply.headers.get('idempotent-replayed')],
      ['purchase.receivers[5].phone_number', replayed],
    );
  }
  assert.equal((await ask('GET', '/api/v2/products?min_price=x')).headers.get('error-field'), 'min_price');
});

test('bytes that are no UTF-8', async () => {
  for (const bytes of [
    [0xff],
    [0xc0, 0xaf],
    [0xe0, 0x80, 0xaf],
    [0xed, 0xa0, 0x80],
    [0xf5, 0x80, 0x80, 0x80],
    [0x80],
    [0xc3],
    [0xf0, 0x9f, 0x8e],
    [0xef, 0xbf, 0xbd, 0xff],
  ]) {
    const body = Buffer.concat([Buffer.from('{"location_id":"'), Buffer.from(bytes), Buffer.from('"}')]);
    for (const path of POSTS())
      refused(
        await ask('POST', path, body, { headers: { 'content-type': 'application/json' } }),
        400,
        'Malformed JSON.',
      );
  }
  // U+FFFD itself is a character like others, in one piece and in chunks that cut it.
  const marked = `/api/v2/gifts/${gift}/redemptions`;
  refused(await ask('POST', marked, { location_id: '\ufffd' }), 422, 'Invalid location.');
  const chunk = (bytes: Buffer): Buffer =>
    Buffer.concat([Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, Buffer.from('\r\n')]);
  const head = requestText('POST', marked, {
    ...bearer(),
    'Content-Type': 'application/json',
    'Transfer-Encoding': 'chunked',
  });
  for (const [middle, status, error] of [
    [[0xef, 0xbf, 0xbd], 422, 'Invalid location.'],
    [[0xf0, 0x9f, 0x8e], 400, 'Malformed JSON.'],
  ] as const) {
    const bytes = Buffer.concat([Buffer.from('{"location_id":"'), Buffer.from(middle), Buffer.from('"}')]);
    const reply = await raw([head, chunk(bytes.subarray(0, 18)), chunk(bytes.subarray(18)), '0\r\n\r\n'], {
      pauseMs: 5,
    });
    assert.deepEqual([reply?.status, errorOf(reply)], [status, error]);
  }
  // Compressed, too, it's the bytes that are looked at.
  const packed = { headers: { 'content-type': 'application/json', 'content-encoding': 'gzip' } };
  refused(await ask('POST', marked, gzipSync('{"location_id":"\ufffd"}'), packed), 422, 'Invalid location.');
  refused(
    await ask(
      'POST',
      marked,
      gzipSync(Buffer.concat([Buffer.from('{"location_id":"'), Buffer.from([0xff]), Buffer.from('"}')])),
      packed,
    ),
    400,
    'Malformed JSON.',
  );
  for (const body of [
    Buffer.from('\ufeff{}', 'utf8'),
    Buffer.from('{}', 'utf16le'),
    Buffer.alloc(1000),
    Buffer.from('{"a":1}\u0000'),
  ]) {
    for (const path of POSTS())
      assert.ok(
        [400, 422, 200].includes(
          (await ask('POST', path, body, { headers: { 'content-type': 'application/json' } })).status,
        ),
      );
  }
});

test('query keys twice, in brackets, malformed, and many', async () => {
  refused(await ask('GET', '/api/v2/products?q=a&q=b'), 422, 'q must be given only once');
  refused(await ask('GET', '/api/v2/product-tags/categories?page=1&page=1'), 422, 'page must be given only once');
  for (const query of [
    'q[]=a',
    'q[a]=b',
    'embed[a]=brand',
    'embed[][]=brand',
    'page[]=2',
    '&&&',
    '=',
    '==',
    '?',
    '%',
    '%zz',
    '%00=%00',
    'q=%',
    'q=%ff',
    'q=%00',
    'a'.repeat(8_000),
    Array(1_500).fill('a=1').join('&'),
    'q=' + encodeURIComponent('(a+)+$'),
    'brand_id[]=',
    'id[]=__proto__',
    'id=latte&id[]=mocha&id=latte',
    'consolidated',
  ]) {
    assert.ok((await ask('GET', `/api/v2/products?${query}`)).status === 200, query.slice(0, 60));
  }
  assert.equal((await ask('GET', `/api/v2/products?q=${'x'.repeat(3_000)}`)).status, 422);
  const ids = async (query: string): Promise<string[]> =>
    (await ask('GET', `/api/v2/products?${query}`)).json.data.map((one: Json) => one.id);
  for (const query of [
    'id[0]=latte&id[1]=mocha',
    'id%5B0%5D=latte&id%5B1%5D=mocha',
    'id=latte&id[7]=mocha',
    'id[]=latte&id[0]=mocha&id[00]=latte',
    `${Array(1_500).fill('a=1').join('&')}&id[0]=latte&id[1]=mocha`,
  ]) {
    assert.deepEqual(await ids(query), ['latte', 'mocha'], query.slice(0, 60));
  }
  assert.deepEqual(await ids('brand_id[0]=nothing'), []);
  assert.deepEqual(Object.keys((await ask('GET', '/api/v2/products/latte?embed[0]=brand')).json.embedded), ['brands']);
  assert.deepEqual(
    Object.keys(
      (await ask('GET', `/api/v2/gifts/${gift}?embed[0]=message&embed[1]=purchase&embed[]=purchase.brand`)).json
        .embedded,
    ).sort(),
    ['brands', 'messages', 'products'],
  );
  refused(await ask('GET', '/api/v2/products?embed[0]=nonsense'), 422, 'Unknown embed: nonsense.');
  assert.deepEqual(
    (await ask('GET', '/api/v2/products?id=latte&id[]=mocha&id=latte')).json.data.map((one: Json) => one.id),
    ['latte', 'mocha'],
  );
});

test('embed bombs', async () => {
  const body = purchaseOf('latte') as object;
  refused(
    await ask('POST', '/api/v2/transactions', { ...body, embed: Array(10_000).fill('gifts.purchase.brand.stores') }),
    422,
    'embed: at most 100',
  );
  refused(
    await ask('POST', '/api/v2/transactions', {
      ...body,
      embed: Array.from({ length: 10_000 }, (_, index) => `x${index}`),
    }),
    422,
    'embed: at most 100',
  );
  refused(
    await ask('POST', '/api/v2/transactions', { ...body, embed: [`x${'.x'.repeat(100_000)}`] }),
    422,
    `Unknown embed: ${`x${'.x'.repeat(40)}`.slice(0, 64)}….`,
  );
  assert.equal(
    (await ask('POST', '/api/v2/transactions', { ...body, embed: Array(100).fill('gifts.purchase.brand.stores') })).json
      .embedded.stores.length,
    2,
  );
  refused(await ask('POST', '/api/v2/transactions', { ...body, embed: [['gifts']] }), 422, 'embed[0] must be a string');
  const many = Array(1_000).fill('embed=purchase').join('&');
  assert.deepEqual(Object.keys((await ask('GET', `/api/v2/gifts/${gift}?${many}`)).json.embedded), ['products']);
  const bomb = await raw(
    requestText(
      'GET',
      `/api/v2/gifts/${gift}?${Array(10_000).fill('embed[]=purchase.brand.stores').join('&')}`,
      bearer(),
    ),
  );
  assert.deepEqual([bomb?.status, errorOf(bomb)], [431, 'Request too large.']);
});

test('paths', async () => {
  const tricks = [
    '/api/v2/gifts/..%2f..%2fetc%2fpasswd',
    '/api/v2/../../etc/passwd',
    '/api/v2/gifts/%2e%2e/%2e%2e/x',
    '//api/v2/products',
    '/api//v2/products',
    '/api/v2//products',
    '/api/v2/products//',
    '/api/v2/products;a=1',
    '/api/v2/products%00',
    '/api/v2/products/%ff',
    '/api/v2/products/%E0%A4%A',
    '/%',
    '/%zz',
    '/api/v2/gifts/%',
    '/api/v2/gifts/%u0041',
    '/api/v2/gifts/%c0%ae',
    '/api/v2/tiles/%',
    '/g/%',
    '/g/%ff',
    '/oauth/token%2f',
    '/docs/../package.json',
    '/docs/..%2fpackage.json',
    '/docs/%2e%2e%2fpackage.json',
    '/docs/swagger-ui.css.map',
    '/docs//swagger-ui.css',
    '/docs/__proto__',
    '/docs/constructor',
    '/docs\\..\\package.json',
    '/openapi.json/',
    '/openapi.json%00',
    '/\\evil.test',
    '//evil.test/docs/',
    '//evil.test//',
    'http://evil.test/api/v2/nothing',
    '*',
    '?',
    '/?',
    '/#',
    '/api/v2/products#x',
    `/api/v2/gifts/${'x'.repeat(8_000)}`,
    `/${'a/'.repeat(5_000)}`,
    '/api/v2/gifts/\u00e9',
    '/api/v2/transactions/a%2fgifts',
    '/healthz/x',
    '/healthz%20',
    'javascript:alert(1)',
    '/api/v2/gifts/%0d%0aSet-Cookie:x=1',
    '/docs/%0d%0aLocation:evil',
  ];
  for (const path of tricks) {
    const reply = await raw(requestText('GET', path, bearer()));
    assert.ok(
      reply !== undefined && [200, 302, 400, 404, 422].includes(reply.status),
      `${path.slice(0, 80)}: ${reply?.status} ${reply?.body.slice(0, 100)}`,
    );
    assert.doesNotMatch(reply.headers.get('location') ?? '', /evil|^\/\//, path);
    assert.equal(reply.headers.get('set-cookie'), undefined);
    if (/passwd|package/.test(path)) assert.equal(reply.status, 404, path);
  }
  for (const target of [
    'http://[/healthz',
    'http://',
    'http://xn--/healthz',
    'https://\u00ad{&',
    'x://\u0080',
    'x://y',
    '//a@[#',
  ]) {
    for (const method of ['GET', 'POST']) {
      // What the parser takes names nothing of ours; the rest is malformed.
      const reply = await raw(requestText(method, target));
      assert.ok(reply !== undefined && [400, 404].includes(reply.status), `${method} ${target} ${reply?.status}`);
    }
  }
  assert.equal((await raw(requestText('OPTIONS', '*')))?.status, 404);
  assert.equal((await raw(requestText('GET', `/${'x'.repeat(20_000)}`)))?.status, 431);
});

test('headers', async () => {
  const path = '/api/v2/products';
  const cases: [Record<string, string>, number][] = [
    [{ 'X-HTTP-Method-Override': 'DELETE' }, 200],
    [{ 'X-Forwarded-For': 'x, 1.2.3.4, \u00ff', 'X-Forwarded-Host': 'evil.test', Forwarded: 'for=x' }, 200],
    [{ Host: 'evil.test@x' }, 200],
    [{ Host: '' }, 200],
    [{ Origin: 'https://evil.test' }, 200],
    [{ Accept: 'text/html', 'Accept-Encoding': 'bomb', 'Accept-Language': '*' }, 200],
    [{ Range: 'bytes=0-1' }, 200],
    [{ 'If-None-Match': '*', 'If-Modified-Since': 'Thu, 01 Jan 2099 00:00:00 GMT' }, 304],
    [{ Expect: 'nonsense' }, 200],
    [{ Upgrade: 'websocket', Connection: 'Upgrade' }, 200],
    [{ Cookie: 'a=b; __proto__=1' }, 200],
    [{ 'Content-Length': '-1' }, 400],
    [{ 'Content-Length': 'abc' }, 400],
    [{ 'Content-Length': '5', 'Transfer-Encoding': 'chunked' }, 400],
    [{ 'Transfer-Encoding': 'xchunked' }, 400],
    [{ 'Bad Name': 'x' }, 400],
    [{ 'X-Nul': 'a\u0000b' }, 400],
    [{ 'X-Long': 'x'.repeat(20_000) }, 431],
    [{ 'Gift-Position': '__proto__' }, 400],
    [{ 'Gift-Position': `${service.events.logId}:${'z'.repeat(64)}` }, 400],
    // No event can ever stand at the first; the log has not come to the second yet.
    [{ 'Gift-Position': `${service.events.logId}:${'9'.repeat((await service.events.end())?.length ?? 0)}` }, 400],
    [{ 'Gift-Position': `${service.events.logId}:${'8'.repeat((await service.events.end())?.length ?? 0)}` }, 503],
  ];
  for (const [headers, status] of cases) {
    const reply = await sendRaw(service.url, requestText('GET', path, { ...bearer(), ...headers }));
    assert.equal(
      reply?.status,
      status,
      `${JSON.stringify(headers).slice(0, 100)}: ${reply?.status} ${reply?.body.slice(0, 100)}`,
    );
    assert.equal(reply.headers.get('access-control-allow-origin'), undefined);
    if (status >= 400) assert.equal(typeof errorOf(reply), 'string');
  }
  const many = Object.fromEntries(Array.from({ length: 500 }, (_, index) => [`X-Many-${index}`, 'x']));
  assert.equal((await raw(requestText('GET', path, { ...bearer(), ...many })))?.status, 200);
  for (const text of [
    `GET ${path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer x\r\nAuthorization: Bearer ${token}\r\nConnection: close\r\n\r\n`,
    `GET ${path} HTTP/1.1\r\nHost: a\r\nX-Fold: a\r\n b\r\nConnection: close\r\n\r\n`,
  ])
    assert.ok([400, 401].includes((await raw(text))?.status ?? 0), text);
});

test('malformed HTTP', async () => {
  const cases: (string | Buffer)[] = [
    'nonsense\r\n\r\n',
    '\u0000\u0001\u0002\r\n\r\n',
    'GET\r\n\r\n',
    'GET / HTTP/9.9\r\n\r\n',
    'GET / HTTP/1.1 x\r\n\r\n',
    'get / HTTP/1.1\r\nHost: x\r\n\r\n',
    'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
    Buffer.from('16030100ff010000fb0303', 'hex'),
    'GET / HTTP/1.1\r\n\r\n',
    'GET /healthz HTTP/1.1\r\nHost: a\r\nhost: b\r\n\r\n',
    'GET /healthz HTTP/1.0\r\nHost: a\r\nHost: a\r\n\r\n',
    'GET / HTTP/1.1\r\nHost\r\n\r\n',
    'GET / HTTP/1.1\r\n: x\r\n\r\n',
    'POST /oauth/token HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Type: application/json\r\n\r\nzz\r\n',
  ];
  for (const text of cases) {
    const reply = await raw(text, { waitMs: 2_000 });
    assert.deepEqual([reply?.status, errorOf(reply)], [400, 'Malformed request.'], String(text));
    assert.equal(reply?.headers.get('connection'), 'close');
    assert.ok(Math.abs(Date.parse(reply?.headers.get('date') ?? '') - Date.now()) < 60_000, String(text));
  }
  const tunnel = await raw('CONNECT evil.test:443 HTTP/1.1\r\nHost: evil.test:443\r\n\r\n');
  assert.deepEqual([tunnel?.status, errorOf(tunnel)], [404, 'Not found.']);
  assert.equal(
    (await raw('TRACE /api/v2/products HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX-Secret: echo\r\n\r\n'))?.status,
    405,
  );
  assert.equal((await raw('GET /healthz HTTP/1.0\r\n\r\n'))?.status, 200);
});

test('answers a request in single bytes; an unfinished one harms no other', async () => {
  const text = requestText(
    'POST',
    `/api/v2/gifts/${gift}/redemptions`,
    { ...bearer(), 'Content-Type': 'application/json' },
    '{"location_id":"nowhere"}',
  );
  const slow = await raw([...text], { pauseMs: 0 });
  assert.deepEqual([slow?.status, errorOf(slow)], [422, 'Invalid location.']);
  const { hostname, port } = new URL(service.url);
  const idle = Array.from({ length: 50 }, (_, index) => {
    const socket = connect(Number(port), hostname);
    socket.on('error', () => undefined);
    socket.write(index % 2 === 0 ? text.slice(0, 40) : text.slice(0, -5));
    return socket;
  });
  await sleep(50);
  assert.equal((await ask('GET', `/api/v2/gifts/${gift}`)).status, 200);
  for (const socket of idle) socket.destroy();
});

test('a caller who leaves during the body has bought nothing; after it, bought once', async () => {
  const purchases = async (): Promise<number> => {
    let count = 0;
    for await (const batch of service.events.readAll(undefined, { types: ['GiftsPurchased'] }))
      count += batch.events.length;
    return count;
  };
  const before = await purchases();
  const { hostname, port } = new URL(service.url);
  const text = requestText(
    'POST',
    '/api/v2/transactions',
    { ...bearer(), 'Content-Type': 'application/json', 'Idempotency-Key': 'gone' },
    JSON.stringify(purchaseOf('latte')),
  );
  for (const part of [text.slice(0, -1), text.slice(0, -40)]) {
    const socket = connect(Number(port), hostname);
    socket.on('error', () => undefined);
    await new Promise<void>((resolve) => socket.write(part, () => resolve()));
    await sleep(20);
    socket.destroy();
  }
  await sleep(100);
  assert.equal(await purchases(), before);
  const whole = connect(Number(port), hostname);
  whole.on('error', () => undefined);
  whole.write(text, () => setTimeout(() => whole.destroy(), 5));
  await eventually(async () => (await purchases()) === before + 1);
  const again = await eventually(async () => {
    const reply = await ask('POST', '/api/v2/transactions', purchaseOf('latte'), { key: 'gone' });
    return reply.status === 409 ? undefined : reply;
  });
  assert.deepEqual([again.status, again.headers.get('idempotent-replayed')], [201, 'true']);
  assert.equal(await purchases(), before + 1);
});

test('after a body was refused the same connection goes on', async () => {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const send = (path: string, headers: Record<string, string>, body?: Buffer | string): Promise<[number, boolean]> =>
    new Promise((resolve, reject) => {
      const sent = httpRequest(
        service.url + path,
        { agent, method: body === undefined ? 'GET' : 'POST', headers: { ...bearer(), ...headers }, timeout: 5_000 },
        (response) => {
          response.resume().on('end', () => resolve([response.statusCode ?? 0, sent.reusedSocket]));
        },
      );
      sent.on('timeout', () => sent.destroy(new Error('the connection hangs')));
      sent.on('error', reject);
      sent.end(body);
    });
  const json = { 'Content-Type': 'application/json' };
  const bomb = gzipSync(Buffer.alloc(50 * 1_048_576, ' '));
  try {
    await send('/healthz', {});
    for (const [headers, body, status] of [
      [{ ...json, 'Content-Encoding': 'gzip' }, bomb, 413],
      [{ ...json, 'Content-Encoding': 'gzip' }, Buffer.alloc(200_000, 'x'), 400],
      [{ ...json, 'Transfer-Encoding': 'chunked' }, Buffer.alloc(2_000_000, ' '), 413],
      [json, Buffer.alloc(1_500_000, ' '), 413],
      [{ 'Content-Type': 'text/plain' }, Buffer.alloc(300_000, ' '), 415],
    ] as const) {
      assert.equal((await send('/api/v2/transactions', headers, body))[0], status);
      assert.deepEqual(await send('/healthz', {}), [200, true], JSON.stringify(headers));
    }
  } finally {
    agent.destroy();
  }
});

test('a claim takes no field, and looks at a body as any other POST does', async () => {
  const shared = await buyOne(service);
  const claim = (body?: unknown, more: Parameters<typeof ask>[3] = {}): Promise<Reply> =>
    ask('POST', `/api/v2/gifts/${shared}/claim`, body, more);
  refused(await claim('hello', { headers: { 'content-type': 'text/plain' } }), 415, 'Unsupported content type.');
  refused(await claim(Buffer.alloc(2_000_000)), 413, 'Request too large.');
  refused(await claim('{'), 400, 'Malformed JSON.');
  refused(await claim('{"user_id":"cat"}'), 422, 'user_id is not a known field');
  assert.equal((await claim(undefined, { key: 'claim' })).json.data.receiver_id, 'ann');
  assert.equal((await claim({}, { key: 'claim' })).headers.get('idempotent-replayed'), 'true');
  refused(await claim({ x: 1 }, { key: 'claim' }), 422, 'Idempotency key already used with another request.');
});

test('takes an optional body in chunks without bytes as absent, and reads one that has some', async () => {
  const path = `/api/v2/gifts/${await buyOne(service)}/voucher/claimed`;
  for (const type of [{}, { 'Content-Type': 'application/json' }, { 'Content-Type': 'text/plain' }]) {
    const head = requestText('POST', path, { ...bearer(), ...type, 'Transfer-Encoding': 'chunked' });
    assert.equal((await raw([head, '0\r\n\r\n'], { pauseMs: 5 }))?.status, 200);
    assert.equal((await raw(`${head}0\r\n\r\n`))?.status, 200);
  }
  const json = requestText('POST', path, {
    ...bearer(),
    'Content-Type': 'application/json',
    'Transfer-Encoding': 'chunked',
  });
  // Broken off before its first byte: no answer reaches anybody, and it is no fault of the service.
  const { hostname, port } = new URL(service.url);
  const gone = connect(Number(port), hostname);
  const before = service.log.length;
  await new Promise<void>((resolve) => gone.write(json, () => resolve()));
  await sleep(20);
  gone.resetAndDestroy();
  // Processes of their own log elsewhere.
  if (before > 0)
    await eventually(async () =>
      service.log.slice(before).find((line) => line.includes('/voucher/claimed') && line.includes('"status":499')),
    );
  for (const parts of [
    ['1\r\n{\r\n', '10\r\n"segmentId":"x"}\r\n0\r\n\r\n'],
    ['1\r\n{\r\n10\r\n"segmentId":"x"}\r\n0\r\n\r\n'],
  ]) {
    assert.equal(errorOf(await raw([json, ...parts], { pauseMs: 5 })), 'Invalid segment.');
    assert.equal(errorOf(await raw(json + parts.join(''))), 'Invalid segment.');
  }
});

test('delivers a refusal before the body has come, also to clients that send all of it first', async () => {
  const json = { 'Content-Type': 'application/json' };
  const rows: [path: string, headers: Readonly<Record<string, string>>, bytes: number, status: number][] = [
    ['/api/v2/transactions', { ...bearer(), ...json }, 1_048_577, 413],
    ['/api/v2/transactions', json, 5_000_000, 401],
    ['/nothing', json, 5_000_000, 404],
    ['/api/v2/transactions', { ...bearer(), 'Content-Type': 'text/plain' }, 5_000_000, 415],
    ['/openapi.json', json, 5_000_000, 405],
  ];
  for (const [path, headers, bytes, status] of rows) {
    for (const connection of ['close', 'keep-alive']) {
      const head = requestText('POST', path, { ...headers, Connection: connection, 'Content-Length': String(bytes) });
      const sent = await Promise.all(
        [0, 0, 10].map((pauseMs) =>
          sendThenRead(service.url, head, bytes, { pauseMs, waitMs: connection === 'close' ? 5_000 : 500 }),
        ),
      );
      for (const { error, text, ended } of sent)
        assert.deepEqual(
          [error, text.slice(9, 12), ended],
          [undefined, String(status), connection === 'close'],
          `${path} ${connection}`,
        );
    }
  }
});

test('who waits to be asked for the body gets a refusal that needs none alone (RFC 9110 10.1.1)', async () => {
  const expecting = { 'Content-Type': 'application/json', Expect: '100-continue', Connection: 'keep-alive' };
  const send = async (path: string, headers: Readonly<Record<string, string>>, body = ''): Promise<string[]> => {
    const { text } = await sendThenRead(
      service.url,
      requestText('POST', path, { ...expecting, ...headers }) + body,
      0,
      { waitMs: 1_000 },
    );
    return [...text.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status = '']) => status);
  };
  const long = { 'Content-Length': '5000000' };
  assert.deepEqual(await send('/api/v2/transactions', long), ['401']);
  assert.deepEqual(await send('/nothing', long), ['404']);
  assert.deepEqual(await send('/api/v2/transactions', { ...bearer(), ...long }), ['413']);
  assert.deepEqual(
    await send('/api/v2/transactions', { ...bearer(), 'Content-Type': 'text/plain', 'Content-Length': '10' }),
    ['415'],
  );
  assert.deepEqual(await send('/api/v2/transactions', { ...bearer(), 'Content-Length': '10' }), ['100']);
  assert.deepEqual(await send('/api/v2/transactions', { ...bearer(), 'Content-Length': '2' }, '{}'), ['100', '422']);
  assert.deepEqual(
    await send(`/api/v2/gifts/${gift}/claim`, { ...bearer(), 'Transfer-Encoding': 'chunked' }, '2\r\n{}\r\n0\r\n\r\n'),
    ['100', '200'],
  );
  // Another expectation may be ignored.
  assert.deepEqual(
    await send('/api/v2/transactions', { ...bearer(), Expect: 'a-miracle', 'Content-Length': '2' }, '{}'),
    ['422'],
  );
});

test('names of content codings have no case', async () => {
  const body = gzipSync('{"location_id":"nowhere"}');
  const path = `/api/v2/gifts/${gift}/redemptions`;
  for (const coding of ['gzip', 'GZIP', 'X-GZip'])
    refused(await ask('POST', path, body, { headers: { 'content-encoding': coding } }), 422, 'Invalid location.');
  refused(
    await ask('POST', path, '{"location_id":"nowhere"}', { headers: { 'content-encoding': 'Identity' } }),
    422,
    'Invalid location.',
  );
});

test('compressed bytes without end that come to nothing are too large, as they are plain', async () => {
  const head = requestText('POST', '/api/v2/transactions', {
    ...bearer(),
    'Content-Type': 'application/json',
    'Content-Encoding': 'gzip',
    'Transfer-Encoding': 'chunked',
  });
  const emptyBlocks = Buffer.from([0, 0, 0, 0xff, 0xff]).toString('latin1').repeat(13_107);
  const gzipHead = Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3]).toString('latin1');
  const chunk = (bytes: string): Buffer => Buffer.from(`${bytes.length.toString(16)}\r\n${bytes}\r\n`, 'latin1');
  // Its end never comes: the answer does all the same.
  const reply = await raw([head, chunk(gzipHead), ...Array.from({ length: 17 }, () => chunk(emptyBlocks))]);
  assert.equal(reply?.status, 413);
  assert.equal(errorOf(reply), 'Request too large.');
});

test('identifiers that look like others do not reach other gifts', async () => {
  const other = await buyOne(service);
  for (const spelling of [
    `${other}%00`,
    `${other}%20`,
    `%20${other}`,
    `${other}%0a`,
    `${other}.`,
    `${other}/../${gift}x`,
    `${other},${gift}`,
    `${other}%2f`,
  ]) {
    const reply = await redeem(service, spelling, 'ann');
    checked(answerOf(reply));
    refused(reply, 404, 'gift not found');
  }
});

test.run();
