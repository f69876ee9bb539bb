import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { pushTextOf, SMS_LENGTH, textOf, type TextParts, wordsOf } from '../../../src/providers/notifications/text.js';

const test = suite('texts');
const LANGUAGES = ['en', 'cy', 'de', 'es', 'fr', 'it', 'nl', 'pl', 'pt'];

const parts: TextParts = {
  sender_name: 'Ann',
  product_name: 'Flat white',
  message: 'Enjoy',
  launch_url: 'https://gift.test/g/CODE',
  locale: null,
};

test('sender, product, message and address', () => {
  assert.is(textOf(parts), 'Ann has sent you a gift: Flat white.\nEnjoy\nhttps://gift.test/g/CODE');
  assert.is(
    textOf({ ...parts, sender_name: '', message: '' }),
    'You have been sent a gift: Flat white.\nhttps://gift.test/g/CODE',
  );
  assert.equal(pushTextOf(parts), {
    title: 'Ann has sent you a gift: Flat white.',
    body: 'Enjoy\nhttps://gift.test/g/CODE',
  });
});

test('a reminder says product, last day and address, in the receiver’s language, and no message', () => {
  const reminder = { ...parts, message: '', expires_on: '2027-03-01' };
  assert.is(textOf(reminder), 'Use your gift by 1 March 2027: Flat white.\nhttps://gift.test/g/CODE');
  assert.is(
    textOf({ ...reminder, locale: 'de-AT' }),
    'Ihr Geschenk gilt bis 1. März 2027: Flat white.\nhttps://gift.test/g/CODE',
  );
  for (const language of LANGUAGES) assert.match(textOf({ ...reminder, locale: language }), /2027.*Flat white/);
});

test("in the receiver's language, English where there are no words", () => {
  assert.is(
    textOf({ ...parts, locale: 'cy_GB', message: '' }).split('\n')[0],
    'Mae Ann wedi anfon anrheg atoch: Flat white.',
  );
  assert.is(
    textOf({ ...parts, locale: 'fr-FR', message: '' }).split('\n')[0],
    'Ann vous a envoyé un cadeau : Flat white.',
  );
  for (const locale of ['', 'xx', 'constructor', '-', 'EN-us'])
    assert.is(textOf({ ...parts, locale }), textOf(parts), locale);
  const lines = LANGUAGES.flatMap((language) => [
    wordsOf(language).named('Ann', 'Latte'),
    wordsOf(language).anonymous('Latte'),
  ]);
  assert.is(new Set(lines).size, LANGUAGES.length * 2);
  for (const line of lines) assert.match(line, 'Latte');
});

test('cuts a long message, never the address or half a character', () => {
  for (const message of ['x'.repeat(3_000), '🎁'.repeat(1_500), `x${'🎁'.repeat(1_500)}`]) {
    const text = textOf({ ...parts, message });
    assert.ok(text.length <= SMS_LENGTH && text.length >= SMS_LENGTH - 2);
    assert.ok(text.endsWith('…\nhttps://gift.test/g/CODE'));
    assert.is(Buffer.from(text).toString(), text);
    assert.ok(Buffer.byteLength(JSON.stringify(pushTextOf({ ...parts, message }))) < 3_600);
  }
  assert.is(
    textOf({ ...parts, sender_name: ' Ann\r\nhttps://evil.test\u0007 ' }).split('\n')[0],
    'Ann https://evil.test has sent you a gift: Flat white.',
  );
  assert.ok(textOf({ ...parts, sender_name: 'n'.repeat(5_000), product_name: 'p'.repeat(5_000) }).length < 400);
});

test.run();
