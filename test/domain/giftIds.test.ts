import assert from 'node:assert/strict';
import fc from 'fast-check';
import { suite } from 'uvu';
import { deriveGiftIds, giftIdOf, giftIdsIn, shortcodeOf } from '../../src/domain/giftIds.js';

const test = suite('gift ids');
const id = fc.stringMatching(/^[0-9a-f]{20}$/);

test('property: id and shortcode spell the same number, in any case and with look-alikes', () => {
  fc.assert(
    fc.property(id, fc.infiniteStream(fc.boolean()), (giftId, upper) => {
      const shortcode = shortcodeOf(giftId);
      assert.match(shortcode, /^[0-9A-HJKMNP-TV-Z]{16}$/);
      assert.equal(giftIdOf(shortcode), giftId);
      assert.equal(giftIdOf(giftId), giftId);
      const mixed = [...shortcode]
        .map((letter) => (upper.next().value === true ? letter : letter.toLowerCase()))
        .join('');
      assert.equal(giftIdOf(mixed), giftId);
      assert.equal(giftIdOf(shortcode.replaceAll('0', 'o').replaceAll('1', 'l')), giftId);
    }),
  );
});

test('property: different ids have different shortcodes', () => {
  fc.assert(fc.property(id, id, (a, b) => assert.equal(a === b, shortcodeOf(a) === shortcodeOf(b))));
});

test('property: nothing else is read as an id', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 24 }), (text) => {
      const read = giftIdOf(text);
      if (read !== undefined)
        assert.ok(
          read === text || shortcodeOf(read) === text.toUpperCase().replaceAll('O', '0').replaceAll(/[IL]/g, '1'),
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
    assert.equal(giftIdOf(text), undefined, text);
});

test('a seed gives the same ids always, the first of many being the first of few', () => {
  const seed = 'ab'.repeat(32);
  const many = deriveGiftIds(seed, 10_000);
  assert.deepEqual(deriveGiftIds(seed, 3), many.slice(0, 3));
  assert.equal(new Set(many.flatMap(({ gift_id, message_id }) => [gift_id, message_id])).size, 20_000);
  assert.deepEqual([giftIdsIn(seed, 10_000)(9_999), giftIdsIn(seed, 3)(2)], [many[9_999], many[2]]);
  assert.notDeepEqual(deriveGiftIds('cd'.repeat(32), 3), many.slice(0, 3));
  assert.ok(
    many.every(({ gift_id, message_id }) => giftIdOf(gift_id) === gift_id && /^[0-9a-f]{20}$/.test(message_id)),
  );
});

test.run();
