import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { textOf } from '../../../src/workers/notifications/text.js';

const test = suite('notification text');

const parts = { sender_name: 'Ann', product_name: 'Flat white', message: 'Enjoy!', launch_url: 'https://gift.test/g/CODE', locale: null };

test('says who sent what, their message, and where to see it', () => assert.is(textOf(parts), 'Ann has sent you a gift: Flat white.\nEnjoy!\nhttps://gift.test/g/CODE'));
test('leaves out what there is not', () => assert.is(textOf({ ...parts, sender_name: '', message: '' }), 'You have been sent a gift: Flat white.\nhttps://gift.test/g/CODE'));
test('speaks the receiver\'s language where it can', () => {
  for (const locale of ['cy', 'cy-GB', 'CY_gb']) assert.match(textOf({ ...parts, locale }), 'Mae Ann wedi anfon');
  assert.match(textOf({ ...parts, locale: 'cy', sender_name: '' }), 'Mae rhywun');
  for (const locale of ['en-GB', 'xx', '', 'constructor', '__proto__']) assert.match(textOf({ ...parts, locale }), 'Ann has sent you');
});

test.run();
