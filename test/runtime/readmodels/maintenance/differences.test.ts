import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { differenceOf } from '../../../../src/runtime/readmodels/maintenance/differences.js';
import { HIDDEN_FIELDS } from '../../../../src/projections/hiddenFields.js';
import { quarantineDocument } from '../../../../src/runtime/readmodels/quarantine.js';

const test = suite('differences');
const document = (body: object, position = '5') => ({ id: 'one', position, body });
const quarantined = quarantineDocument('one', {
  documentId: 'one',
  eventId: 'e',
  type: 'T',
  stream: 's',
  position: '5',
  cause: 'no',
});

test('equal documents differ in nothing, whatever the order of their fields', () => {
  assert.is(
    differenceOf(HIDDEN_FIELDS, 'one', document({ a: 1, b: [{ c: null }] }), document({ b: [{ c: null }], a: 1 })),
    undefined,
  );
  assert.is(differenceOf(HIDDEN_FIELDS, 'one', undefined, undefined), undefined);
});

test('a document that is out of service differs, also where the log can not be folded either', () => {
  assert.is(differenceOf(HIDDEN_FIELDS, 'one', quarantined, quarantined)?.kind, 'quarantined');
});

test('every kind of difference is found', () => {
  const kinds = [
    [document({}), undefined],
    [undefined, document({})],
    [quarantined, document({})],
    [document({}), quarantined],
    [document({}), document({ a: 1 })],
  ] as const;
  assert.equal(
    kinds.map(([served, log]) => differenceOf(HIDDEN_FIELDS, 'one', served, log)?.kind),
    ['extra', 'missing', 'quarantined', 'unfoldable', 'different'],
  );
  assert.equal(differenceOf(HIDDEN_FIELDS, 'one', document({}, '7'), document({}, '6')), {
    id: 'one',
    kind: 'different',
    served_at: '7',
    log_at: '6',
    fields: [{ field: '(position)', served: '7', log: '6' }],
  });
});

test('a document that lists miss differs, without the values that they find', () => {
  const same = document({ a: 1 });
  const lists = { field: '(lists)', served: 'found by other values than its own', log: 'found by its own' };
  assert.equal(differenceOf(HIDDEN_FIELDS, 'one', same, same, true), {
    id: 'one',
    kind: 'different',
    served_at: '5',
    log_at: '5',
    fields: [lists],
  });
  assert.equal(differenceOf(HIDDEN_FIELDS, 'one', same, document({ a: 2 }), true)?.fields, [
    { field: 'a', served: 1, log: 2 },
    lists,
  ]);
  assert.is(differenceOf(HIDDEN_FIELDS, 'one', same, undefined, true)?.kind, 'extra');
});

test('fields are compared leaf by leaf', () => {
  const served = document({
    same: 1,
    redemption: { id: 'r', redeemed: true },
    list: ['a', 'b'],
    only: { deep: { er: 1 } },
    empty: {},
    kind: 'x',
  });
  const log = document({
    same: 1,
    redemption: { id: 'r', redeemed: false },
    list: ['a', 'c', 'd'],
    kind: ['x'],
    nothing: [],
  });
  assert.equal(differenceOf(HIDDEN_FIELDS, 'one', served, log)?.fields, [
    { field: 'redemption.redeemed', served: true, log: false },
    { field: 'list.1', served: 'b', log: 'c' },
    { field: 'list.2', log: 'd' },
    { field: 'only.deep.er', served: 1 },
    { field: 'empty', served: {} },
    { field: 'kind', served: 'x', log: ['x'] },
    { field: 'nothing', log: [] },
  ]);
});

test('secret and personal values are masked, wherever they stand', () => {
  const served = document({
    voucher: { code: 'SECRET', pin: null, segment_id: 's1' },
    phone_number: '+44',
    list: ['SECRET'],
    holder: { device_tokens: ['SECRET'] },
  });
  const log = document({ voucher: 5, list: [{ code: 'SECRET', other: 1 }], seed: 'SECRET', password_hash: null });
  const found = differenceOf(HIDDEN_FIELDS, 'one', served, log);
  assert.equal(found?.fields, [
    { field: 'voucher', served: { code: '***', pin: null, segment_id: 's1' }, log: 5 },
    { field: 'phone_number', served: '***' },
    { field: 'list.0', served: 'SECRET', log: { code: '***', other: 1 } },
    { field: 'holder.device_tokens.0', served: '***' },
    { field: 'seed', log: '***' },
    { field: 'password_hash', log: null },
  ]);
  const product = differenceOf(
    new Set(),
    'product-1',
    document({ value: { name: 'Tea' } }),
    document({ value: { name: 'Coffee' } }),
  );
  assert.equal(
    product?.fields,
    [{ field: 'value.name', served: 'Tea', log: 'Coffee' }],
    'a catalogue has nothing to hide',
  );
});

test.run();
