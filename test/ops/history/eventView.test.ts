import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { dataShown, eventView } from '../../../src/ops/history/eventView.js';
import { FIELD_CLASSES, type FieldClasses } from '../../../src/domain/fieldClasses.js';
import { MASK } from '../../../src/lib/mask.js';
import type { RecordedEvent } from '../../../src/ports/eventStore.js';

const test = suite('audit/eventView');

const event = (type: string, data: object, metadata: object = {}): RecordedEvent => ({
  position: '0000000000000007',
  stream: 's-1',
  revision: 3,
  type,
  id: 'e1',
  at: '2026-01-02T03:04:05.678Z',
  data,
  metadata: { commandId: 'c1', correlationId: 'r1', by: { user: 'u1' }, ...metadata },
});

test('it has who, when, where and why', () => {
  const whole = event(
    'GiftClaimed',
    { user_id: 'u1' },
    {
      causationId: 'e0',
      requestId: 'q1',
      by: { user: 'u1', client: 'app', roles: ['redeem'] },
      bodyHash: 'h',
      simulated: true,
    },
  );
  assert.equal(eventView(whole, { personal: false }), {
    position: '0000000000000007',
    stream: 's-1',
    revision: 3,
    type: 'GiftClaimed',
    id: 'e1',
    at: '2026-01-02T03:04:05.678Z',
    by: { user: 'u1', client: 'app', roles: ['redeem'] },
    request_id: 'q1',
    command_id: 'c1',
    causation_id: 'e0',
    correlation_id: 'r1',
    data: { user_id: 'u1' },
  });
  const bare = eventView(event('GiftClaimed', {}, { by: {} }), { personal: true });
  assert.equal([bare.by, bare.request_id, bare.causation_id], [{}, null, null]);
});

test('secret fields are shown nowhere, personal ones masked unless asked for', () => {
  const bought = {
    seed: 'ab',
    message: 'for you',
    total: 5,
    receivers: [{ phone_id: 'h' }, { user_id: 'u2' }, {}],
  };
  const masked = { message: MASK, total: 5, receivers: [{}, { user_id: 'u2' }, {}] };
  assert.equal(dataShown('GiftsPurchased', bought, { personal: false }), masked);
  assert.equal(dataShown('GiftsPurchased', bought, { personal: true }), {
    message: 'for you',
    total: 5,
    receivers: [{}, { user_id: 'u2' }, {}],
  });
  for (const type of ['GiftIssued', 'GiftReassigned'])
    assert.equal(dataShown(type, { receiver: { phone_id: 'h' }, value: 1 }, { personal: true }), {
      receiver: {},
      value: 1,
    });
  assert.is(bought.seed, 'ab', 'the event stays as it is');
  assert.equal(dataShown('UserChanged', { device_tokens: ['t1', 't2'], phone_number: null }, { personal: false }), {
    device_tokens: [MASK, MASK],
    phone_number: null,
  });
  assert.equal(dataShown('VoucherAssigned', { code: 'x', pin: null, voucher_id: 'v' }, { personal: true }), {
    voucher_id: 'v',
  });
});

test('a keyed hash in the name of a stream is shown nowhere', () => {
  const hash = 'a-b_c'.padEnd(22, 'x');
  for (const [kind, shown] of [
    ['phone-', 'phone-***'],
    ['username-', 'username-***'],
    ['voucherCode-seg-1-', 'voucherCode-seg-1-***'],
  ] as const) {
    assert.is(
      eventView({ ...event('VoucherCodeAssigned', {}), stream: kind + hash }, { personal: true }).stream,
      shown,
    );
  }
  assert.is(
    eventView({ ...event('GiftClaimed', {}), stream: `gift-${hash}` }, { personal: false }).stream,
    `gift-${hash}`,
  );
});

test('shows no data of an unknown type', () => {
  for (const type of ['Unheard', 'constructor', '__proto__', 'toString'])
    assert.equal(dataShown(type, { code: 'x' }, { personal: true }), {});
});

test("shows no data of a later release's version of a type: its secrets are unknown", () => {
  const reassigned = event('GiftReassigned', { transaction_id: 't', code: 'x' }, { schema: 2 });
  assert.equal(eventView(reassigned, { personal: true }).data, {});
  assert.equal(eventView(reassigned, { personal: true }, { GiftReassigned: [(data) => data] }).data, {
    transaction_id: 't',
    code: 'x',
  });
});

test('whatever the type, no secret and no personal field comes through', () => {
  const secret = 'S3CRET';
  const personal = 'PERS0NAL';
  for (const [type, classes] of Object.entries<FieldClasses>(FIELD_CLASSES)) {
    const data = { kept: 'kept' };
    for (const path of classes.secret) put(data, path, secret);
    for (const path of classes.personal) put(data, path, personal);
    const shown = JSON.stringify(dataShown(type, data, { personal: false }));
    assert.not.match(shown, new RegExp(`${secret}|${personal}`), type);
    assert.match(shown, /"kept":"kept"/);
    const whole = JSON.stringify(dataShown(type, data, { personal: true }));
    assert.not.match(whole, new RegExp(secret), type);
    assert.is(whole.includes(personal), classes.personal.length > 0, type);
  }
});

/** Puts the text where the path leads, beside what is there. */
function put(data: Record<string, unknown>, path: string, text: string): void {
  const [, field = '', list, below] = /^([^.[]+)(\[\])?(?:\.(.+))?$/.exec(path) ?? [];
  if (below === undefined) {
    data[field] = list === undefined ? text : [text, text];
    return;
  }
  const inner = (list === undefined ? data[field] : (data[field] as unknown[] | undefined)?.[0]) ?? {};
  put(inner as Record<string, unknown>, below, text);
  data[field] = list === undefined ? inner : [inner];
}

test.run();
