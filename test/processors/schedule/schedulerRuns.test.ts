/** How each part of the scheduler runs as a follower, on a log in memory. */
import pino from 'pino';
import * as assert from 'uvu/assert';
import { giftStream } from '../../../src/domain/gift/events.js';
import { transactionStream } from '../../../src/domain/purchase/events.js';
import { type SchedulerOptions, startScheduler } from '../../../src/processors/schedule/scheduler.js';
import { NotOursError } from '../../../src/runtime/coordination/lease.js';
import type { FollowerRun, RestartOptions } from '../../../src/runtime/supervision/followers.js';
import { rejects } from '../../support/assertions/rejects.js';
import { until } from '../../support/assertions/until.js';
import { memoryRecords } from '../../support/engines/memoryRecords.js';
import { logSuite, type TestLog } from '../../support/service/testLog.js';

const test = logSuite('the parts of the scheduler');

const NOW = '2098-12-02T09:30:00.000Z';

interface Started {
  readonly part: string;
  readonly options: RestartOptions | undefined;
  readonly run: (context: FollowerRun) => Promise<void>;
  closed: boolean;
}

interface Scheduler {
  readonly parts: readonly Started[];
  readonly records: ReturnType<typeof memoryRecords>;
  /** Runs a part until it is ended. `well`: how often it said that it is. */
  run(part: string): { readonly ended: Promise<void>; end(): Promise<void>; readonly well: () => number };
  close(): Promise<void>;
}

function scheduler(log: TestLog, due: Partial<SchedulerOptions['due']>): Scheduler {
  const parts: Started[] = [];
  const records = memoryRecords(Date.now);
  const { close } = startScheduler({
    events: log.events,
    records,
    due: {
      serves: async () => true,
      reached: async () => true,
      async *toSend() {},
      async *expiring() {},
      ...due,
    },
    contact: async () => ({ name: 'Bea', phone_number: null, device_tokens: ['d'], locale: null }),
    numberOf: async () => undefined,
    reminders: { days: [30], hours: { from: 0, to: 1_440 } },
    now: () => NOW,
    holder: 'this process',
    logger: pino({ level: 'silent' }),
    followers: {
      start(part, run, options) {
        const started: Started = { part, run, options, closed: false };
        parts.push(started);
        return { close: async () => void (started.closed = true) };
      },
    },
  });
  return {
    parts,
    records,
    run(part) {
      const ending = new AbortController();
      let well = 0;
      const run = parts.find((one) => one.part === part)?.run;
      const context = { signal: ending.signal, well: () => void well++, onTrouble: () => undefined };
      const ended = run === undefined ? Promise.reject(new Error(`no part ${part}`)) : run(context);
      return { ended, end: () => (ending.abort(), ended), well: () => well };
    },
    close,
  };
}

test('are followers that no request needs, of which those of a day start again less often', async ({ log }) => {
  const { parts, close } = scheduler(log, {});
  const slowly = { aside: true, restartMs: [500, 60_000] };
  assert.equal(
    parts.map(({ part, options }) => [part, options]),
    [
      ['sending', { aside: true }],
      ['expiry', slowly],
      ['reminders', slowly],
    ],
  );
  await close();
  assert.equal(
    parts.map(({ closed }) => closed),
    [true, true, true],
  );
});

test('send, tell expiries and remind round after round, by the present time', async ({ log }) => {
  const bought = await log.buy([{ user_id: 'bea' }], { at: '2098-01-01T00:00:00.000Z' });
  await log.append(transactionStream(bought.transactionId), 'PaymentCharged', {
    amount: 250,
    provider: 'p',
    charge_id: 'c',
  });
  const scheduled = await log.buy([{ user_id: 'bea' }], { at: '2098-01-01T00:00:00.000Z', sendAt: NOW });
  const stream = transactionStream(scheduled.transactionId);
  await log.append(stream, 'PaymentCharged', { amount: 250, provider: 'p', charge_id: 'c' });
  const asked: string[] = [];
  const one = scheduler(log, {
    async *toSend(now) {
      asked.push(now);
      yield [{ id: scheduled.transactionId }];
    },
    async *expiring() {
      yield [{ id: bought.transactionId }];
    },
  });
  const runs = ['sending', 'expiry', 'reminders'].map((part) => one.run(part));
  await until(() => runs.every(({ well }) => well() > 1));
  for (const name of ['sending', 'expiry', 'reminders'])
    assert.is((await one.records.get<{ holder: unknown }>(`lease/${name}`))?.value.holder, 'this process');
  for (const { end } of runs) await end();
  assert.equal(new Set(asked), new Set([NOW]));
  assert.ok(asked.length > 1, 'each 500 ms');
  assert.equal((await log.types(giftStream(bought.giftIds[0] ?? ''))).toSorted(), [
    'GiftExpiring',
    'GiftIssued',
    'ReminderDue',
  ]);
  const appended = await log.all('SendStarted', 'SendFinished', 'GiftReleased', 'GiftExpiring', 'ReminderDue');
  assert.equal(
    appended.map(({ at }) => at),
    [NOW, NOW, NOW, NOW, NOW],
  );
  assert.is((await one.records.get<{ holder: unknown }>('lease/sending'))?.value.holder, null, 'released');
});

test('do nothing while the read model is built for the first time, and are well', async ({ log }) => {
  let [built, rounds] = [false, 0];
  const one = scheduler(log, {
    serves: async () => built,
    async *toSend() {
      rounds++;
      yield [];
    },
  });
  const sending = one.run('sending');
  await until(() => sending.well() > 1);
  assert.is(rounds, 0);
  built = true;
  await until(() => rounds > 0);
  await sending.end();
});

test('fail by what fails a round, unless the lease was lost or they are ended', async ({ log }) => {
  let rounds = 0;
  const failing = (error: Error, then: () => void = () => undefined): Scheduler =>
    scheduler(log, {
      async *toSend() {
        yield [];
        if (++rounds > 1) return;
        then();
        throw error;
      },
    });
  const broken = failing(new TypeError('unreadable')).run('sending');
  await rejects(broken.ended, TypeError, /unreadable/);
  assert.equal([rounds, broken.well()], [1, 0]);
  rounds = 0;
  const passedOn = failing(new NotOursError('passed on')).run('sending');
  await until(() => passedOn.well() > 0);
  await passedOn.end();
  assert.ok(rounds > 1, 'with a lease of its own again');
  rounds = 0;
  const cutOff: ReturnType<Scheduler['run']> = failing(new TypeError('cut off'), () => void cutOff.end()).run(
    'sending',
  );
  await cutOff.ended;
  assert.is(rounds, 1);
});

test.run();
