/** Scheduled purchases are sent once, whatever dies (docs/design.md#scheduled-work). */
import { setTimeout as sleep } from 'node:timers/promises';
import * as assert from 'uvu/assert';
import { giftStream } from '../../../src/domain/gift/events.js';
import { notificationStream } from '../../../src/domain/notification.js';
import { transactionStream } from '../../../src/domain/purchase/events.js';
import { type SchedulerOptions, startScheduler } from '../../../src/processors/schedule/scheduler.js';
import { followers } from '../../../src/runtime/supervision/followers.js';
import { recordsOf, everyKillPoint } from '../../support/faults/killPoints.js';
import { mortal } from '../../support/faults/mortal.js';
import { type Bought, type House, phone, sentIn } from '../../support/service/house.js';
import { houseSuite } from '../../support/service/houseSuite.js';

const test = houseSuite('scheduler');
const PAST = '2026-01-01T00:00:00.000Z';

/** The read model may be late: it names what was due once, whatever became of it. */
const naming = (...bought: readonly Bought[]): SchedulerOptions['due'] => ({
  serves: async () => true,
  reached: async () => true,
  async *toSend() {
    yield bought.map(({ transactionId: id }) => ({ id }));
  },
  async *expiring() {},
});

let holders = 0;
function schedule(
  { deps }: House,
  due: SchedulerOptions['due'],
  replaced: Partial<Pick<SchedulerOptions, 'events' | 'now'> & Pick<House['deps'], 'records'>> = {},
): { close(): Promise<void> } {
  const { logger } = deps;
  return startScheduler({
    events: replaced.events ?? deps.events,
    records: replaced.records ?? deps.records,
    due,
    contact: deps.contact,
    numberOf: deps.numberOf,
    reminders: { days: [], hours: { from: 0, to: 1_440 } },
    now: replaced.now ?? (() => new Date().toISOString()),
    holder: `scheduler ${++holders}`,
    logger,
    followers: followers({ logger }),
    leaseMs: 90,
  });
}

const count = async (house: House, stream: string, type: string): Promise<number> =>
  (await house.types(stream)).filter((one) => one === type).length;

/** The gifts with a receiver. */
const named = ({ giftIds }: Bought): readonly string[] => giftIds.slice(0, 2);

async function isSent(house: House, bought: Bought): Promise<boolean> {
  const counts = named(bought).map(async (id) => count(house, notificationStream(id), 'NotificationSent'));
  return (
    (await Promise.all(counts)).every((sent) => sent === 1) &&
    (await count(house, transactionStream(bought.transactionId), 'SendFinished')) === 1
  );
}

async function checkOnce(house: House, bought: Bought, where: string): Promise<void> {
  const types = await house.types(transactionStream(bought.transactionId));
  assert.equal(types, ['GiftsPurchased', 'ChargeStarted', 'PaymentCharged', 'SendStarted', 'SendFinished'], where);
  for (const id of named(bought)) {
    assert.is(await count(house, giftStream(id), 'GiftReleased'), 1, where);
    assert.equal(await house.types(notificationStream(id)), ['NotificationStarted', 'NotificationSent'], where);
  }
  assert.is(await count(house, giftStream(bought.giftIds[2] ?? ''), 'GiftReleased'), 0, 'it has no receiver');
}

const buy = async (house: House, at: number): Promise<Bought> =>
  house.buy([phone(2 * at), phone(2 * at + 1), {}], { sendAt: PAST });

for (const moment of ['before', 'after'] as const) {
  test(`sends once where it dies ${moment} any one append`, async ({ house }) => {
    await house.work();
    let parts = 0;
    const deaths = await everyKillPoint(house, async (part, at) => {
      parts++;
      const processes = part.process();
      const bought = await buy(part, at);
      const doomed = mortal(part.deps, at, moment);
      const first = schedule(part, naming(bought), doomed.deps);
      await part.until(async () => doomed.dead || (await isSent(part, bought)));
      const died = doomed.dead;
      const second = schedule(part, naming(bought));
      await part.until(async () => isSent(part, bought));
      await Promise.all([first.close(), second.close()]);
      await checkOnce(part, bought, `died ${moment} append ${at}`);
      await processes.close();
      return died;
    });
    // The start, two releases, the end.
    assert.ok(deaths >= 4, `a purchase has ${deaths} appends`);
    assert.is(sentIn(house), parts * 2);
    assert.equal(await house.all('WorkParked'), []);
  });
}

test('two that both take themselves for the leader send once', async ({ house }) => {
  await house.work();
  house.process();
  const bought = await Promise.all(Array.from({ length: 5 }, async (_, n) => buy(house, n)));
  const apart = recordsOf(house.reads.records, 'apart');
  const both = [schedule(house, naming(...bought)), schedule(house, naming(...bought), { records: apart })];
  await house.until(async () => (await Promise.all(bought.map(async (one) => isSent(house, one)))).every(Boolean));
  await Promise.all(both.map(async (one) => one.close()));
  for (const one of bought) await checkOnce(house, one, 'two leaders');
  assert.is(sentIn(house), 10);
});

test('one purchase that cannot be read holds up no other, and is sent once it can', async ({ house }) => {
  await house.work();
  house.process();
  const [damaged, good] = [await buy(house, 1), await buy(house, 2)];
  let broken = true;
  const events: House['events'] = {
    ...house.events,
    read: async (stream, ...rest) => {
      if (broken && stream === transactionStream(damaged.transactionId)) throw new Error('unreadable');
      return house.events.read(stream, ...rest);
    },
  };
  const scheduler = schedule(house, naming(damaged, good), { events });
  await house.until(async () => isSent(house, good));
  assert.not(await isSent(house, damaged));
  assert.ok(house.lines.some(({ part, msg }) => part === 'sending' && msg.includes('starting again')));
  broken = false;
  await house.until(async () => isSent(house, damaged));
  await scheduler.close();
  await checkOnce(house, damaged, 'after a failure');
});

test('sends nothing before its time, whatever the read model says; nobody is told once erased', async ({ house }) => {
  await house.work();
  const numberOf = async (id: string): Promise<string | undefined> => (id === 'phone4' ? undefined : '+447700900005');
  house.process({ numberOf });
  let now = '2026-06-01T08:59:59.999Z';
  const bought = await house.buy([phone(4), phone(5), {}], { sendAt: '2026-06-01T09:00:00.000Z' });
  const { transactionId } = bought;
  await house.until(async () => (await house.types(transactionStream(transactionId))).includes('PaymentCharged'));
  const scheduler = schedule(house, naming(bought), { now: () => now });
  await sleep(700);
  assert.not((await house.types(transactionStream(transactionId))).includes('SendStarted'));
  now = '2026-06-01T09:00:00.000Z';
  await house.until(async () => (await house.all('NotificationSent', 'NotificationFailed')).length === 2);
  assert.equal(await house.types(notificationStream(bought.giftIds[0] ?? '')), ['NotificationFailed']);
  assert.is(sentIn(house), 1);
  await scheduler.close();
});

test.run();
