import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { suite } from 'uvu';
import { MalformedEvidenceError } from '../../../../src/ops/evidence/format/parsing.js';
import {
  leafOf,
  leafOfShown,
  leafOfTexts,
  type LeafRules,
  showEvent,
  type StoredEvent,
} from '../../../../src/ops/evidence/format/eventLeaf.js';
import { encodeLeaf, type Leaf } from '../../../../src/ops/evidence/format/leaf.js';
import { parseLeaf } from '../../../support/evidence/readers.js';
import { hashLeaf } from '../../../../src/ops/evidence/format/merkleTree.js';

const test = suite('leaf');

const sha256 = (bytes: string | Buffer): Buffer => createHash('sha256').update(bytes).digest();

const KEY = 'AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=';
const RULES: LeafRules = { saltKey: KEY, apart: new Set(['receiver', 'sender_id', 'pin']) };

/** The example of docs/evidence.md#an-example. */
const EVENT: StoredEvent = {
  id: '3f0c7f52-8a1e-4f0f-9a51-6f2d7c1e9b10',
  stream: 'gift-0123456789abcdef',
  revision: 1,
  type: 'GiftIssued',
  at: '2026-05-04T09:30:00.000Z',
  data: { value: 500, sender_id: 'ann', brand_id: 'bean', receiver: { user_id: 'bob' } },
  metadata: { commandId: 'c1', correlationId: 'c2', by: { user: 'till-coffee', roles: ['merchant'] } },
};

test('has the hash of the example', () => {
  const page = readFileSync('docs/evidence.md', 'utf8');
  const leaf = leafOf(EVENT, RULES);
  for (const hash of [Buffer.from(leaf.data), Buffer.from(leaf.metadata), hashLeaf(encodeLeaf(leaf))])
    assert.ok(page.includes(`\`${hash.toString('hex')}\``));
});

test('has the bytes that the page describes', () => {
  const salts = [0, 1]
    .map((block) => createHash('sha512').update(`${KEY} ${EVENT.id} ${block}`).digest('hex'))
    .join('');
  const salt = (at: number): string => salts.slice(at * 32, at * 32 + 32);
  const metadata = sha256(
    `${salt(0)}{"commandId":"c1","correlationId":"c2","by":{"user":"till-coffee","roles":["merchant"]}}`,
  );
  const sender = sha256(`${salt(2)}"sender_id":"ann"`).toString('hex');
  const receiver = sha256(`${salt(3)}"receiver":{"user_id":"bob"}`).toString('hex');
  const data = sha256(
    `${salt(1)}["sender_id","receiver"]{"value":500,"sender_id":"${sender}","brand_id":"bean","receiver":"${receiver}"}`,
  );
  const number = (value: bigint): Buffer => {
    const bytes = Buffer.alloc(8);
    bytes.writeBigUInt64BE(value);
    return bytes;
  };
  const field = (bytes: Buffer): Buffer =>
    Buffer.concat([Buffer.from([bytes.length >> 8, bytes.length & 0xff]), bytes]);
  const wanted = Buffer.concat([
    Buffer.from([1]),
    field(Buffer.from(EVENT.id)),
    field(Buffer.from(EVENT.stream)),
    field(number(1n)),
    field(Buffer.from('GiftIssued')),
    field(number(1_777_887_000_000n)),
    field(data),
    field(metadata),
  ]);
  assert.equal(encodeLeaf(leafOf(EVENT, RULES)).toString('hex'), wanted.toString('hex'));
});

const ANY_LEAF: fc.Arbitrary<Leaf> = fc.record(
  {
    id: fc.string({ unit: 'binary' }),
    stream: fc.string({ unit: 'binary' }),
    revision: fc.maxSafeNat(),
    type: fc.string({ unit: 'binary' }),
    time: fc.maxSafeNat(),
    data: fc.uint8Array({ minLength: 32, maxLength: 32 }).map((bytes) => Buffer.from(bytes)),
    metadata: fc.uint8Array({ minLength: 32, maxLength: 32 }).map((bytes) => Buffer.from(bytes)),
  },
  { noNullPrototype: true },
);

test('is read as it is written', () => {
  fc.assert(fc.property(ANY_LEAF, (leaf) => assert.deepEqual(parseLeaf(encodeLeaf(leaf)), leaf)));
});

test('with changed bytes is another leaf, or none', () => {
  fc.assert(
    fc.property(ANY_LEAF, fc.nat(), (leaf, at) => {
      const bytes = encodeLeaf(leaf);
      const place = at % bytes.length;
      bytes[place] = (bytes[place] as number) ^ (1 << (at % 8));
      let read: Leaf;
      try {
        read = parseLeaf(bytes);
      } catch (error) {
        assert.ok(error instanceof MalformedEvidenceError);
        return;
      }
      assert.notDeepEqual(read, leaf);
      assert.ok(encodeLeaf(read).equals(bytes));
    }),
  );
});

test('is refused where it is cut short, too long, or of another version', () => {
  const bytes = encodeLeaf(leafOf(EVENT, RULES));
  for (let length = 0; length < bytes.length; length++)
    assert.throws(() => parseLeaf(bytes.subarray(0, length)), MalformedEvidenceError, String(length));
  assert.throws(() => parseLeaf(Buffer.concat([bytes, Buffer.alloc(1)])), MalformedEvidenceError);
  assert.throws(() => parseLeaf(Buffer.concat([Buffer.from([2]), bytes.subarray(1)])), MalformedEvidenceError);
});

test('is not made of what no event is', () => {
  for (const change of [
    { at: '2026-05-04T09:30:00Z' },
    { at: '2026-05-04T10:30:00.000+01:00' },
    { at: 'today' },
    { at: '1969-12-31T23:59:59.999Z' },
    { at: '2026-02-29T09:30:00.000Z' },
    { at: '2026-05-04T24:00:00.000Z' },
    { at: '2026-05-04T09:60:00.000Z' },
    { at: '2026-05-04T09:30:60.000Z' },
    { at: '2026-05-04T09:30:00.0000Z' },
    { at: '' },
    { revision: -1 },
    { revision: 0.5 },
    { data: ['a'] },
    { data: null as unknown as object },
    { stream: 'x'.repeat(65_536) },
  ])
    assert.throws(
      () => encodeLeaf(leafOf({ ...EVENT, ...change }, RULES)),
      MalformedEvidenceError,
      JSON.stringify(change),
    );
});

test('has the time that Node reads, whatever times came before', () => {
  fc.assert(
    fc.property(
      fc.date({ min: new Date(0), max: new Date('9999-12-31T23:59:59.999Z'), noInvalidDate: true }),
      (date) => {
        for (const at of [date.toISOString(), EVENT.at])
          assert.equal(leafOf({ ...EVENT, at }, RULES).time, Date.parse(at));
      },
    ),
  );
});

test('is another one for each thing that the log holds of an event', () => {
  const hex = (event: StoredEvent, rules = RULES): string => encodeLeaf(leafOf(event, rules)).toString('hex');
  const all = [
    hex(EVENT),
    hex(EVENT, { ...RULES, saltKey: randomBytes(32).toString('base64') }),
    hex(EVENT, { ...RULES, apart: new Set(['receiver']) }),
    hex({ ...EVENT, id: 'e' }),
    hex({ ...EVENT, stream: 'gift-2' }),
    hex({ ...EVENT, revision: 2 }),
    hex({ ...EVENT, type: 'GiftUnredeemed' }),
    hex({ ...EVENT, at: '2026-05-04T09:30:00.001Z' }),
    hex({ ...EVENT, data: {} }),
    hex({ ...EVENT, data: { ...EVENT.data, value: 501 } }),
    hex({ ...EVENT, data: { ...EVENT.data, value: '500' } }),
    hex({ ...EVENT, data: { ...EVENT.data, more: null } }),
    hex({ ...EVENT, data: Object.fromEntries(Object.entries(EVENT.data).reverse()) }),
    hex({ ...EVENT, metadata: { ...EVENT.metadata, by: { user: 'somebody' } } }),
    hex({ ...EVENT, metadata: { ...EVENT.metadata, schema: 2 } }),
  ];
  assert.equal(new Set(all).size, all.length);
  assert.equal(hex({ ...EVENT, data: { ...EVENT.data, none: undefined } }), hex(EVENT));
  assert.equal(hex(JSON.parse(JSON.stringify(EVENT)) as StoredEvent), hex(EVENT));
});

test('is the same of the texts that the log keeps, also where somebody has written them in another form', () => {
  const fields = fc.dictionary(fc.oneof(fc.string(), fc.constantFrom(...RULES.apart)), fc.jsonValue());
  fc.assert(
    fc.property(fields, fc.constantFrom(0, 1), (data, spaces) => {
      const texts = (value: object): string => JSON.stringify(value, null, spaces);
      const event = { ...EVENT, data: texts(data), metadata: texts({ ...EVENT.metadata, ...data }) };
      const parsed = { ...EVENT, data: JSON.parse(event.data), metadata: JSON.parse(event.metadata) } as StoredEvent;
      assert.deepEqual(leafOfTexts(event, RULES), leafOf(parsed, RULES));
    }),
  );
  const event = { ...EVENT, data: JSON.stringify(EVENT.data), metadata: JSON.stringify(EVENT.metadata) };
  assert.deepEqual(leafOfTexts(event, RULES), leafOf(EVENT, RULES));
  for (const text of ['', '{"value":500', 'null', '"a"', '[]']) {
    assert.throws(() => leafOfTexts({ ...event, data: text }, RULES), MalformedEvidenceError);
    assert.throws(() => leafOfTexts({ ...event, metadata: text }, RULES), MalformedEvidenceError);
  }
});

test('follows from any part of what is shown and the hashes of the others', () => {
  const fields = fc.dictionary(fc.oneof(fc.string(), fc.constantFrom(...RULES.apart)), fc.jsonValue());
  fc.assert(
    fc.property(fields, fc.dictionary(fc.string(), fc.jsonValue()), fc.nat(), (data, more, mask) => {
      const stored = JSON.parse(JSON.stringify({ data, metadata: { ...EVENT.metadata, ...more } })) as StoredEvent;
      const event = { ...EVENT, data: stored.data, metadata: stored.metadata };
      let at = 0;
      const isShown = {
        field: (name: string) => (mask % 3 > 0 && !RULES.apart.has(name)) || ((mask >> (at++ % 31)) & 1) === 1,
        metadata: mask % 2 === 0,
      };
      const parts = JSON.parse(JSON.stringify(showEvent(event, RULES, isShown))) as ReturnType<typeof showEvent>;
      assert.deepEqual(leafOfShown(event, parts), leafOf(event, RULES));
    }),
  );
});

test('keeps a field behind a hash that no other field and event has', () => {
  const pins = { ...EVENT, data: { pin: '1234', sender_id: '1234' } };
  const none = { field: () => false, metadata: false };
  const all = [pins, { ...pins, id: 'another' }].flatMap((event) => {
    const { data } = showEvent(event, RULES, none);
    assert.ok('value' in data);
    assert.deepEqual(data.shown, []);
    return Object.values(data.value);
  });
  assert.equal(new Set(all).size, 4);
});

test('keeps all data where a field is not to be shown that does not stand apart', () => {
  const isShown = (kept: string): { field: (name: string) => boolean; metadata: boolean } => ({
    field: (name) => name !== kept,
    metadata: true,
  });
  const { data } = showEvent(EVENT, RULES, isShown('value'));
  assert.deepEqual(data, { hash: Buffer.from(leafOf(EVENT, RULES).data).toString('hex') });
  const other = showEvent(EVENT, RULES, isShown('receiver')).data;
  assert.ok('value' in other && other.shown.length === 1 && other.apart.length === 2);
});

test.run();
