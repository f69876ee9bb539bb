import pino from 'pino';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { loadConfig } from '../../src/service/config.js';
import { keyedHash } from '../../src/domain/keyedHash.js';
import { openProviders } from '../../src/providers/openProviders.js';
import { memoryRecords } from '../support/engines/memoryRecords.js';
import { withRealProviders } from '../support/providers/realProviders.js';

const test = suite('providers by settings');

test('the chosen ones talk to where the settings say; the others are left out', async () => {
  await withRealProviders(async ({ stripe, twilio, fcm, settings }) => {
    const deps = {
      records: memoryRecords(Date.now),
      hash: keyedHash(Buffer.alloc(32)),
      logger: pino({ level: 'silent' }),
    };
    assert.equal(await openProviders(loadConfig({}), deps), {});
    const escaped = fcm.privateKey.replaceAll('\n', '\\n');
    const config = loadConfig({ ...settings, TWILIO_FROM: 'Gifts', FCM_PRIVATE_KEY: escaped });
    const { payments, notifications } = await openProviders(config, deps);
    const charge = {
      transaction_id: 't1',
      amount: 250,
      payment_reference: 'pm_card_visa',
      customer: null,
      started_at: new Date().toISOString(),
    };
    assert.is((await payments?.charge(charge))?.outcome, 'charged');
    const send = {
      gift_id: 'g1',
      transaction_id: 't1',
      buyer_id: 'ann',
      sender_name: '',
      product_name: 'Latte',
      message: '',
      launch_url: 'https://gift.test/g/1',
      locale: null,
    };
    assert.is((await notifications?.send({ ...send, channel: 'sms', to: ['+447700900001'] }))?.outcome, 'sent');
    assert.is(
      (await notifications?.send({ ...send, gift_id: 'g2', channel: 'push', to: ['device'] }))?.outcome,
      'sent',
    );
    assert.is(twilio.messages[0]?.from, 'Gifts');
    assert.equal([stripe.charges('t1'), twilio.messages.length, fcm.messages.length], [1, 1, 1]);
    assert.is(
      (
        await notifications?.lookUp({
          gift_id: 'g2',
          channel: 'push',
          to: [],
          launch_url: '',
          started_at: new Date().toISOString(),
        })
      )?.outcome,
      'sent',
    );
  });
});

test.run();
