import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { suite } from 'uvu';
import { type ChargeOutcomes, openChargeOutcomes } from '../../src/commands/chargeOutcomes.js';
import type { EventBatch, EventFilter, EventStore, ReadOptions, RecordedEvent } from '../../src/ports/eventStore.js';
import type { FollowerRun, Followers } from '../../src/runtime/supervision/followers.js';
import { inVirtualTime } from '../simulation/world/virtualTime.js';

const test = suite('commands/charge outcomes');
const timed = inVirtualTime(test);

interface Following {
  readonly outcomes: ChargeOutcomes;
  /** The follower's run: ends when the log does, and may be started again. */
  readonly run: () => Promise<void>;
  readonly from: (string | undefined)[];
  readonly filters: (EventFilter | undefined)[];
  readonly options: (ReadOptions | undefined)[];
  readonly context: Pick<FollowerRun, 'signal' | 'well' | 'onTrouble'>;
  wells: number;
  closed: number;
}

/** Outcomes on a log that gives these transactions' outcomes in a batch each. */
async function following(...transactions: readonly string[]): Promise<Following> {
  const self = {
    from: [] as Following['from'],
    filters: [] as Following['filters'],
    options: [] as Following['options'],
    wells: 0,
    closed: 0,
  };
  const events = {
    end: async () => 'end',
    async *follow(after: string | undefined, filter?: EventFilter, options?: ReadOptions): AsyncIterable<EventBatch> {
      self.options.push(options);
      self.from.push(after);
      self.filters.push(filter);
      for (const [n, id] of transactions.entries())
        yield { events: [{ stream: `transaction-${id}` } as RecordedEvent], position: `${n}`, caughtUp: true };
    },
  } as unknown as EventStore;
  let run = (): Promise<void> => Promise.reject(new Error('not started'));
  const context = { signal: new AbortController().signal, well: () => void self.wells++, onTrouble: () => undefined };
  const followers: Pick<Followers, 'start'> = {
    start(_, work) {
      run = () => work(context as unknown as FollowerRun);
      return { close: async () => void self.closed++ };
    },
  };
  const outcomes = await openChargeOutcomes(events, followers);
  return Object.assign(self, { outcomes, run, context });
}

/** What a wait says, and the virtual ms that it took. */
async function waited(settled: Promise<boolean>): Promise<[boolean, number]> {
  const from = Date.now();
  return [await settled, Date.now() - from];
}

timed('ends all waits for a transaction at its outcome, and no other', async () => {
  const { outcomes, run } = await following('t1');
  const watches = ['t1', 't1', 't2'].map((id) => outcomes.watch(id));
  const waits = watches.map((watch) => waited(watch.settled(1_000)));
  await sleep(40);
  await run();
  assert.deepEqual(await Promise.all(waits), [
    [true, 40],
    [true, 40],
    [false, 1_000],
  ]);
});

timed('an outcome between the watch and the wait is not missed', async () => {
  const { outcomes, run } = await following('t1');
  const watch = outcomes.watch('t1');
  await run();
  assert.deepEqual(await waited(watch.settled(1_000)), [true, 0]);
});

timed('a watch that has ended leaves the others of its transaction', async () => {
  const { outcomes, run } = await following('t1');
  const [ended, other] = [outcomes.watch('t1'), outcomes.watch('t1')];
  ended.end();
  await run();
  assert.deepEqual([await ended.settled(10), await other.settled(10)], [false, true]);
  other.end();
  const again = outcomes.watch('t1');
  await run();
  assert.equal(await again.settled(10), true);
});

timed('follows outcomes from the end that the log had, and after a failure from where it was', async () => {
  const followed = await following('t1', 't2');
  const { run, from, filters } = followed;
  await run();
  await run();
  assert.deepEqual(from, ['end', '1']);
  assert.deepEqual(filters[0]?.types, ['PaymentCharged', 'PaymentDeclined', 'PaymentAuthenticationRequired']);
  assert.equal(followed.wells, 4);
  const { signal, onTrouble } = followed.context;
  assert.deepEqual(followed.options[0], { signal, onTrouble });
  await followed.outcomes.close();
  assert.equal(followed.closed, 1);
});

test.run();
