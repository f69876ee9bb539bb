import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { verificationStream } from '../../src/domain/logVerified.js';
import { notificationStream } from '../../src/domain/notification.js';
import { idOf, kindOf, shownStream } from '../../src/domain/streamName.js';
import { treeHeadStream } from '../../src/domain/treeHeads.js';

const test = suite('domain/stream names');
const HASH = 'abcdefghij-lmnopqrst_v';

test('a stream is named by its kind and an id, which may have dashes', () => {
  assert.equal([kindOf('gift-0a1b'), idOf('gift-0a1b')], ['gift', '0a1b']);
  assert.equal([kindOf('user-ann-2'), idOf('user-ann-2')], ['user', 'ann-2']);
  assert.is(kindOf('log'), 'log');
});

test('streams that others read too are named as the design says', () => {
  assert.is(notificationStream('0a1b'), 'notification-0a1b');
  assert.is(treeHeadStream('l'), 'treeHeads-l');
  assert.is(verificationStream('l'), 'verifications-l');
});

test('a shown name has a mask in place of its keyed hash, and hides nothing else', () => {
  for (const kind of ['username', 'phone', 'voucherCode-segment']) {
    assert.is(shownStream(`${kind}-${HASH}`, '…'), `${kind}-…`);
  }
  assert.is(shownStream(`gift-${HASH}`, '…'), `gift-${HASH}`);
});

test.run();
