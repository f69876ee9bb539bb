import { readFileSync } from 'node:fs';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { openHouse } from '../support/house.js';

/** Processor time of the main thread, ms: unlike the clock's it does not count what other processes of the machine take. 0 where the system doesn't tell. */
function ownTime(): number {
  try {
    return Number(readFileSync(`/proc/self/task/${process.pid}/schedstat`, 'utf8').split(' ')[0]) / 1e6;
  } catch {
    return 0;
  }
}

test('a purchase of 10,000 receivers is issued and told within 10 s, and never holds the event loop for 50 ms', async () => {
  const house = await openHouse();
  try {
    await house.work();
    house.process();
    await house.buy([{}]);
    await house.until(async () => (await house.all('GiftIssued')).length === 1);
    const receivers = Array.from({ length: 10_000 }, (_, n) => ({ phone_number: `+4477009${String(n).padStart(5, '0')}`, phone_hash: `hash${n}` }));

    let longest = 0;
    let last = ownTime();
    let ticking = true;
    const tick = (): void => {
      const now = ownTime();
      longest = Math.max(longest, now - last);
      last = now;
      if (ticking) setImmediate(tick);
    };
    setImmediate(tick);
    const began = performance.now();
    await house.buy(receivers);
    let told = 0;
    for await (const batch of house.events.follow(undefined, { types: ['NotificationSent'] })) {
      told += batch.events.length;
      if (told === receivers.length) break;
    }
    const took = performance.now() - began;
    ticking = false;

    assert.ok(took < 10_000, `took ${took} ms`);
    assert.ok(longest < 50, `the event loop was held for ${longest} ms`);
    assert.is((await house.all('GiftIssued')).length, 10_001);
    assert.is(house.lines.filter(({ msg }) => msg === 'simulated notification sent').length, 10_000);
  } finally {
    await house.close();
  }
});

test.run();
