import assert from 'node:assert/strict';
import fc from 'fast-check';
import { suite } from 'uvu';
import { deriveGiftIds, giftIdsIn, isGiftId, isShortcode, shortcodesUnder } from '../../src/domain/giftIds.js';
import { keyedHash } from '../../src/domain/keyedHash.js';

const test = suite('gift ids');
const id = fc.stringMatching(/^[0-9a-f]{20}$/);
const KEY = Buffer.alloc(32, 7);
const shortcodes = shortcodesUnder(keyedHash(KEY));

test('property: a shortcode names its gift, in any case and with look-alikes', () => {
  fc.assert(
    fc.property(id, fc.infiniteStream(fc.boolean()), (giftId, upper) => {
      const shortcode = shortcodes.of(giftId);
      assert.match(shortcode, /^[0-9A-HJKMNP-TV-Z]{16}$/);
      assert.ok(isShortcode(shortcode));
      assert.equal(shortcodes.giftIdOf(shortcode), giftId);
      assert.equal(shortcodes.giftIdOf(giftId), giftId);
      const mixed = [...shortcode]
        .map((letter) => (upper.next().value === true ? letter : letter.toLowerCase()))
        .join('');
      assert.equal(shortcodes.giftIdOf(mixed), giftId);
      assert.equal(shortcodes.giftIdOf(shortcode.replaceAll('0', 'o').replaceAll('1', 'l')), giftId);
    }),
  );
});

test('a shortcode is read as people type it and scanners send it', () => {
  const giftId = '0123456789abcdef0123';
  const shortcode = shortcodes.of(giftId);
  const groups = shortcode.match(/.{4}/g) ?? [];
  for (const text of [
    groups.join('-'),
    groups.join(' ').toLowerCase(),
    groups.join('\u2011'),
    groups.join(' – '),
    `${shortcode}\r`,
    `${shortcode}\r\n`,
    `\u0002${shortcode}\t`,
    `\ufeff\u00a0${shortcode}\u200b`,
    `${shortcode}${' '.repeat(48)}`,
    [...shortcode].map((letter) => String.fromCharCode(letter.charCodeAt(0) + 0xfee0)).join(''),
    groups.join('\u3000'),
  ])
    assert.equal(shortcodes.giftIdOf(text), giftId, JSON.stringify(text));
  // An id is a name that programs pass on: it is read to the letter.
  for (const text of [`${giftId}\r`, giftId.toUpperCase(), `${shortcode}${' '.repeat(64)}`, `${shortcode}-0`])
    assert.equal(shortcodes.giftIdOf(text), undefined, JSON.stringify(text));
});

test('property: different ids have different shortcodes', () => {
  fc.assert(fc.property(id, id, (a, b) => assert.equal(a === b, shortcodes.of(a) === shortcodes.of(b))));
});

test('property: nothing else is read as an id', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 24 }), (text) => {
      const read = shortcodes.giftIdOf(text);
      assert.equal(read !== undefined, isGiftId(text) || isShortcode(text));
      if (read !== undefined)
        assert.ok(
          read === text ||
            shortcodes.of(read) ===
              text
                .replaceAll(/[^0-9a-z]/gi, '')
                .toUpperCase()
                .replaceAll('O', '0')
                .replaceAll(/[IL]/g, '1'),
        );
    }),
  );
  for (const text of [
    '',
    'x',
    'A'.repeat(20),
    'u'.repeat(16),
    '0'.repeat(15),
    '0'.repeat(17),
    '0'.repeat(19),
    '0'.repeat(21),
    '-'.repeat(16),
    'ﬀ'.repeat(8),
  ])
    assert.equal(shortcodes.giftIdOf(text), undefined, text);
});

test('shortcodes are the same in every process with the key, and others with another key', () => {
  const giftId = '5f2c9d6a1b7e4c80d3a1';
  assert.equal(shortcodesUnder(keyedHash(KEY)).of(giftId), shortcodes.of(giftId));
  assert.equal(shortcodes.of(giftId), 'SJRXWAB31KPN936T');
  const others = shortcodesUnder(keyedHash(Buffer.alloc(32, 8)));
  assert.notEqual(others.of(giftId), shortcodes.of(giftId));
  assert.notEqual(others.giftIdOf(shortcodes.of(giftId)), giftId);
});

test('a bit of an id changes about half of the bits of its shortcode', () => {
  const bits = (giftId: string): string =>
    [...shortcodes.of(giftId)]
      .map((letter) => '0123456789ABCDEFGHJKMNPQRSTVWXYZ'.indexOf(letter).toString(2).padStart(5, '0'))
      .join('');
  const seeded = deriveGiftIds('ab'.repeat(32), 3).map(({ gift_id }) => gift_id);
  for (const giftId of ['0'.repeat(20), 'f'.repeat(20), ...seeded])
    for (let bit = 0; bit < 80; bit++) {
      const other = (BigInt(`0x${giftId}`) ^ (1n << BigInt(bit))).toString(16).padStart(20, '0');
      const [one, two] = [bits(giftId), bits(other)];
      const changed = [...one].filter((value, at) => value !== two[at]).length;
      assert.ok(changed >= 15 && changed <= 65, `bit ${bit} of ${giftId}: ${changed} of 80`);
    }
});

test('a seed gives the same ids always, the first of many being the first of few', () => {
  const seed = 'ab'.repeat(32);
  const many = deriveGiftIds(seed, 10_000);
  assert.deepEqual(deriveGiftIds(seed, 3), many.slice(0, 3));
  assert.equal(new Set(many.flatMap(({ gift_id, message_id }) => [gift_id, message_id])).size, 20_000);
  assert.deepEqual([giftIdsIn(seed, 10_000)(9_999), giftIdsIn(seed, 3)(2)], [many[9_999], many[2]]);
  assert.notDeepEqual(deriveGiftIds('cd'.repeat(32), 3), many.slice(0, 3));
  assert.ok(many.every(({ gift_id, message_id }) => isGiftId(gift_id) && isGiftId(message_id)));
});

test.run();
