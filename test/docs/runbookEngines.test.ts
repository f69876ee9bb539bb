import { suite } from 'uvu';
import { startEventStoreDouble } from '../support/engines/eventStoreDouble.js';
import { untilReady } from '../support/service/service.js';
import { buyInto, inTrouble } from '../support/service/trouble.js';

const test = suite('runbook, engines');

test('lost engine: an EventStoreDB that is gone for a while, then a read store for good', async () => {
  const double = await startEventStoreDouble();
  const settings = {
    EVENTSTORE_URL: double.url,
    TOKEN_KEY: 't'.repeat(40),
    HASH_KEY: 'h'.repeat(40),
    MASTER_KEY: 'm'.repeat(40),
    SEAL_KEY: 's'.repeat(40),
    KEYS_URL: 'embedded',
    PAYMENTS: 'simulated',
    NOTIFICATIONS: 'simulated',
  };
  try {
    await inTrouble('Lost engine', settings, async (trouble) => {
      const service = await trouble.start();
      const { url = '' } = service;
      await untilReady(url);
      await buyInto(trouble, url);
      await double.way.down();
      await trouble.follow(/gift history/);
      await double.way.up();
      await trouble.follow(/gift history/);
      await service.end();
      await trouble.follow(/^rm /);
      await trouble.start();
      await trouble.follow();
    });
  } finally {
    await double.close();
  }
});

test.run();
