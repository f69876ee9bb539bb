import assert from 'node:assert/strict';
import fc from 'fast-check';
import { suite } from 'uvu';
import { generateCode, PINS, pinOf, V1_INTEGRATIONS, voucherExpiry } from '../../src/domain/voucher.js';
import { isGeneratedCode } from '../support/fixtures/generatedCode.js';

const test = suite('voucher');
const code = fc.uint8Array({ minLength: 12, maxLength: 12 }).map(generateCode);

test('property: a generated code proves its own spelling; one wrong character is always found', () => {
  fc.assert(
    fc.property(
      code,
      fc.nat(12),
      fc.constantFrom(...'0123456789ABCDEFGHJKMNPQRSTVWXYZ'.split('')),
      (text, at, letter) => {
        assert.match(text, /^[0-9A-HJKMNP-TV-Z]{13}$/);
        assert.equal(isGeneratedCode(text), true);
        const wrong = text.slice(0, at) + letter + text.slice(at + 1);
        assert.equal(isGeneratedCode(wrong), wrong === text);
      },
    ),
  );
  for (const text of ['', '0', 'I'.repeat(13), '0'.repeat(14)]) assert.equal(isGeneratedCode(text), false);
});

test('the check character stays as it is: tills may check it by themselves', () => {
  assert.equal(generateCode(Uint8Array.from({ length: 12 }, (_, index) => index * 7)), '07ENW3AHRZ6DK');
});

test('each character of a code is any of 32', () => {
  const firsts = new Set(
    Array.from({ length: 256 }, (_, byte) => generateCode(new Uint8Array(12).fill(byte)).charAt(0)),
  );
  assert.equal(firsts.size, 32);
});

test('every PIN has four digits', () => {
  assert.deepEqual([0, 7, 42, 123, PINS - 1].map(pinOf), ['0000', '0007', '0042', '0123', '9999']);
});

test('V1 is for integrations 1 to 6', () => {
  assert.deepEqual(
    ['0', '1', '2', '3', '4', '5', '6', '7'].filter((id) => V1_INTEGRATIONS.has(id)),
    ['1', '2', '3', '4', '5', '6'],
  );
});

test('a voucher ends with its gift or after the segment’s days, whichever is earlier', () => {
  assert.equal(voucherExpiry('2026-03-01T12:00:00.000Z', '2026-06-30', 30), '2026-03-31T12:00:00.000Z');
  assert.equal(voucherExpiry('2026-06-20T12:00:00.000Z', '2026-06-30', 30), '2026-06-30T23:59:59.999Z');
});

test.run();
