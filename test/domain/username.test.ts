import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { normaliseUsername } from '../../src/domain/username.js';

const test = suite('usernames');

test('one name has one spelling', () => {
  for (const spelling of ['ada', 'ADA', 'Ａda', 'ａｄａ']) assert.is(normaliseUsername(spelling), 'ada');
  assert.is(normaliseUsername('zoe\u0308'), normaliseUsername('Zo\u00eb'));
});

test('other names stay other names', () => {
  assert.is.not(normaliseUsername('ada '), normaliseUsername('ada'));
  assert.is.not(normaliseUsername('zoe'), normaliseUsername('zoë'));
});

test.run();
