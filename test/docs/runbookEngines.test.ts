import { readFileSync } from 'node:fs';
import { suite } from 'uvu';
import { eventually } from '../support/assertions/until.js';
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

test('dying process: one of two is killed, and is started again', async () => {
  await inTrouble('Dying process', { PROCESSES: '2' }, async (trouble) => {
    const { url = '', child, lines } = await trouble.start();
    await untilReady(url);
    const [killed = 0] = readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8').split(' ').map(Number);
    process.kill(killed, 'SIGKILL');
    await eventually(async () => lines.some((line) => line.includes('a process has ended, and is started again')));
    await trouble.follow();
    await untilReady(url);
  });
});

test.run();
