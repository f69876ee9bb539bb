/** Scheduled purchases are sent once, whatever dies (docs/design.md#scheduled-work). */
import { setTimeout as sleep } from 'node:timers/promises';
import * as assert from 'uvu/assert';
import { giftStream } from '../../../src/domain/gift/events.js';
import { notificationStream } from '../../../src/domain/notification.js';
import { transactionStream } from '../../../src/domain/purchase/events.js';
import { type SchedulerOptions, startScheduler } from '../../../src/processors/schedule/scheduler.js';
import { followers } from '../../../src/runtime/supervision/followers.js';
import { recordsOf, everyKillPoint } from '../../support/faults/killPoints.js';
import { crashable } from '../../support/faults/crashable.js';
import { type TestInstallation, phone, sentIn } from '../../support/service/installation.js';
import type { Bought } from '../../support/service/testLog.js';
import { installationSuite } from '../../support/service/installationSuite.js';

const test = installationSuite('scheduler');
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
  { deps }: TestInstallation,
  due: SchedulerOptions['due'],
  replaced: Partial<
    Pick<SchedulerOptions, 'events' | 'now' | 'followers'> & Pick<TestInstallation['deps'], 'records'>
  > = {},
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
    followers: replaced.followers ?? followers({ logger }),
    leaseMs: 90,
  });
}

const count = async (installation: TestInstallation, stream: string, type: string): Promise<number> =>
  (await installation.types(stream)).filter((one) => one === type).length;

/** The gifts with a receiver. */
const named = ({ giftIds }: Bought): readonly string[] => giftIds.slice(0, 2);

async function isSent(installation: TestInstallation, bought: Bought): Promise<boolean> {
  const counts = named(bought).map(async (id) => count(installation, notificationStream(id), 'NotificationSent'));
  return (
    (await Promise.all(counts)).every((sent) => sent === 1) &&
    (await count(installation, transactionStream(bought.transactionId), 'SendFinished')) === 1
  );
}

async function checkOnce(installation: TestInstallation, bought: Bought, where: string): Promise<void> {
  const types = await installation.types(transactionStream(bought.transactionId));
  assert.equal(types, ['GiftsPurchased', 'ChargeStarted', 'PaymentCharged', 'SendStarted', 'SendFinished'], where);
  for (const id of named(bought)) {
    assert.is(await count(installation, giftStream(id), 'GiftReleased'), 1, where);
    assert.equal(await installation.types(notificationStream(id)), ['NotificationStarted', 'NotificationSent'], where);
  }
  assert.is(await count(installation, giftStream(bought.giftIds[2] ?? ''), 'GiftReleased'), 0, 'it has no receiver');
}

const buy = async (installation: TestInstallation, at: number): Promise<Bought> =>
  installation.buy([phone(2 * at), phone(2 * at + 1), {}], { sendAt: PAST });

for (const moment of ['before', 'after'] as const) {
  test(`sends once where it dies ${moment} any one append`, async ({ installation }) => {
    await installation.work();
    let parts = 0;
    const deaths = await everyKillPoint(installation, async (part, at) => {
      parts++;
      const processes = part.process();
      const bought = await buy(part, at);
      const doomed = crashable(part.deps, at, moment);
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
    assert.is(sentIn(installation), parts * 2);
    assert.equal(await installation.all('WorkParked'), []);
  });
}

test('two that both take themselves for the leader send once', async ({ installation }) => {
  await installation.work();
  installation.process();
  const bought = await Promise.all(Array.from({ length: 5 }, async (_, n) => buy(installation, n)));
  const apart = recordsOf(installation.reads.records, 'apart');
  const both = [
    schedule(installation, naming(...bought)),
    schedule(installation, naming(...bought), { records: apart }),
  ];
  await installation.until(async () =>
    (await Promise.all(bought.map(async (one) => isSent(installation, one)))).every(Boolean),
  );
  await Promise.all(both.map(async (one) => one.close()));
  for (const one of bought) await checkOnce(installation, one, 'two leaders');
  assert.is(sentIn(installation), 10);
});

test('one purchase that cannot be read holds up no other, nor any request, and is sent once it can', async ({
  installation,
}) => {
  await installation.work();
  installation.process();
  const [damaged, good] = [await buy(installation, 1), await buy(installation, 2)];
  let broken = true;
  const events: TestInstallation['events'] = {
    ...installation.events,
    read: async (stream, ...rest) => {
      if (broken && stream === transactionStream(damaged.transactionId)) throw new Error('unreadable');
      return installation.events.read(stream, ...rest);
    },
  };
  const parts = followers({ logger: installation.deps.logger });
  const scheduler = schedule(installation, naming(damaged, good), { events, followers: parts });
  await installation.until(async () => isSent(installation, good));
  assert.not(await isSent(installation, damaged));
  assert.ok(installation.lines.some(({ part, msg }) => part === 'sending' && msg.includes('starting again')));
  await installation.until(async () => parts.health().some(({ failing }) => failing));
  assert.equal(
    parts.health().flatMap(({ part, failing, aside }) => (failing ? [[part, aside]] : [])),
    [['sending', true]],
  );
  broken = false;
  await installation.until(async () => isSent(installation, damaged));
  await scheduler.close();
  await checkOnce(installation, damaged, 'after a failure');
});

test('sends nothing before its time, whatever the read model says; nobody is told once erased', async ({
  installation,
}) => {
  await installation.work();
  const numberOf = async (id: string): Promise<string | undefined> => (id === 'phone4' ? undefined : '+447700900005');
  installation.process({ numberOf });
  let now = '2026-06-01T08:59:59.999Z';
  const bought = await installation.buy([phone(4), phone(5), {}], { sendAt: '2026-06-01T09:00:00.000Z' });
  const { transactionId } = bought;
  await installation.until(async () =>
    (await installation.types(transactionStream(transactionId))).includes('PaymentCharged'),
  );
  const scheduler = schedule(installation, naming(bought), { now: () => now });
  await sleep(700);
  assert.not((await installation.types(transactionStream(transactionId))).includes('SendStarted'));
  now = '2026-06-01T09:00:00.000Z';
  await installation.until(async () => (await installation.all('NotificationSent', 'NotificationFailed')).length === 2);
  assert.equal(await installation.types(notificationStream(bought.giftIds[0] ?? '')), ['NotificationFailed']);
  assert.is(sentIn(installation), 1);
  await scheduler.close();
});

test.run();
