/** What a session of the process managers does, from its start behind a checkpoint to its end. */
import { setTimeout as sleep } from 'node:timers/promises';
import pino from 'pino';
import * as assert from 'uvu/assert';
import type { DomainEvent } from '../../../src/domain/decider.js';
import type { ParkedWork } from '../../../src/domain/parked.js';
import { idOf } from '../../../src/domain/streamName.js';
import { enterWorld, REAL_WORLD } from '../../../src/lib/world.js';
import type { EventStore } from '../../../src/ports/eventStore.js';
import { UnavailableError } from '../../../src/ports/unavailable.js';
import type { Cause } from '../../../src/processors/runner/cause.js';
import type { Intent, ProcessManager } from '../../../src/processors/runner/processManager.js';
import { GiveUpError, RETRY_POLICY } from '../../../src/processors/runner/retry.js';
import { workThrough } from '../../../src/processors/runner/session.js';
import { type ProcessStatus, processTally } from '../../../src/processors/runner/status.js';
import type { StepDeps } from '../../../src/processors/runner/stepDeps.js';
import { until } from '../../support/assertions/until.js';
import { eventOf, logSuite, type TestLog } from '../../support/service/testLog.js';

const test = logSuite('a session of the process managers');
test.after.each(() => void enterWorld(REAL_WORLD));

type DoorEvent = DomainEvent<'BellRung' | 'DoorOpened' | 'WorkParked' | 'WorkRetried', object>;
/** The events that rang for a door. */
type Rung = readonly Cause[];
type Doors = ProcessManager<Rung, DoorEvent, Intent, StepDeps>;

const POOL = { atOnce: 4 };

/** Opens a door for each bell. `run`: what the job of a door does. */
function doors(run: (door: string, rung: Rung, step: string) => Promise<void>, more: Partial<Doors> = {}): Doors {
  const own: Doors = {
    name: 'refund',
    steps: ['open'],
    events: { BellRung: true, DoorOpened: true, WorkParked: true, WorkRetried: true },
    instancesOf: ({ stream, data }) => [(data as Partial<ParkedWork>).entity ?? idOf(stream)],
    react: (state, { type }, instance, cause) => {
      if (type === 'WorkRetried') return { state: undefined, intents: [], reopen: 'open again' };
      if (type !== 'BellRung') return { state: undefined, intents: [] };
      return { state: [...(state ?? []), cause], intents: [{ do: 'open', instance }] };
    },
    resume: (_state, instance) => [{ do: 'open', instance }],
    parkAs: ({ instance }) => ({ name: 'refund', entity: instance, step: 'open' }),
    jobs: ({ do: step, instance }, open) => {
      const rung = (): Rung => open.state(own, instance) ?? [];
      const parkAs = { name: 'refund', entity: instance, step: 'open' } as const;
      const key = `${step}/${instance}`;
      const cause = (): Cause | undefined => rung().at(-1);
      return [{ key, pool: POOL, transactionId: 't', parkAs, cause, run: async () => run(instance, rung(), step) }];
    },
    isSettled: async () => false,
    ends: ({ type }) => type === 'WorkParked',
    ...more,
  };
  return own;
}

const ring = (log: TestLog, door: string): Promise<void> => log.append(`door-${door}`, 'BellRung', {});
const openDoor = (log: TestLog, door: string): Promise<void> => log.append(`door-${door}`, 'DoorOpened', {});
const retry = (log: TestLog, entity: string, times = 1): Promise<void> =>
  log.append('parked-refund', 'WorkRetried', { entity, transaction_id: 't', step: 'open', times, reason: 'r' });
const at = (position: number): string => String(position).padStart(16, '0');

interface Session {
  status(): ProcessStatus;
  readonly lines: { readonly msg: string; readonly [field: string]: unknown }[];
  readonly checkpoints: string[];
  /** How often it said that it is well. */
  well(): number;
  /** Waits until it has folded the log up to its end. */
  folded(): Promise<void>;
  end(): Promise<void>;
}

interface Given {
  readonly from?: string;
  readonly events?: EventStore;
  readonly attempts?: number;
  readonly ending?: AbortController;
}

function work(log: TestLog, managers: readonly Doors[], given: Given = {}): Session {
  const { from, events = log.events, attempts = 1, ending = new AbortController() } = given;
  const tally = processTally();
  const lines: Session['lines'] = [];
  const checkpoints: string[] = [];
  let well = 0;
  const running = workThrough<StepDeps>(
    {
      processes: { managers: managers as never, open: (deps) => deps },
      tally,
      health: { well: () => void well++, onTrouble: () => undefined },
      events,
      bus: undefined as never,
      logger: pino({ level: 'info' }, { write: (line: string) => void lines.push(JSON.parse(line) as never) }),
      now: Date.now,
      retryPolicy: { ...RETRY_POLICY, retryMs: 1, retryAtMostMs: 1, attempts },
    },
    { from, checkpoint: async (position) => void checkpoints.push(position), signal: ending.signal, held: () => true },
  );
  return {
    status: tally.status,
    lines,
    checkpoints,
    well: () => well,
    folded: () => until(async () => tally.status().position === (await log.events.end())),
    end: async () => (ending.abort(), running),
  };
}

test('does nothing until it has caught up, then what is open at that moment', async ({ log }) => {
  for (const door of ['left', 'right', 'back']) await ring(log, door);
  await openDoor(log, 'left');
  const ran: string[] = [];
  const seen: unknown[] = [];
  const events: EventStore = {
    ...log.events,
    async *follow(after, filter, options) {
      for await (const batch of log.events.follow(after, filter, { ...options, batchSize: 1 })) {
        yield batch;
        const { leading, caughtUp, position, open, oldestAt } = session.status();
        const [oldest] = await log.events.read(position === at(4) ? 'door-right' : 'door-left');
        if (seen.length < 4) seen.push([leading, caughtUp, position, open, oldestAt === oldest?.at, session.well()]);
      }
    },
  };
  const session = work(log, [doors(async (door) => (ran.push(door), openDoor(log, door)))], { events });
  await until(() => session.status().position === at(6));
  assert.equal(seen, [
    [true, false, at(1), 1, true, 0],
    [true, false, at(2), 2, true, 0],
    [true, false, at(3), 3, true, 0],
    [true, true, at(4), 2, true, 1],
  ]);
  assert.equal(ran, ['right', 'back'], 'the left one was open before');
  assert.equal(
    session.lines.map(({ msg, open }) => [msg, open]),
    [['process managers have caught up', 2]],
    'says so once',
  );
  await session.end();
  assert.equal(session.status(), {
    leading: false,
    caughtUp: false,
    position: undefined,
    open: 0,
    oldestAt: undefined,
    steps: new Map([['open', { inFlight: 0, failed: 0, parked: 0 }]]),
  });
});

test('carries nothing out of which the same batch shows the end', async ({ log }) => {
  await ring(log, 'first');
  const ran: string[] = [];
  const session = work(log, [doors(async (door) => (ran.push(door), openDoor(log, door)))]);
  await until(() => ran.length === 1);
  await log.events.append('door-both', [eventOf('BellRung', {}), eventOf('DoorOpened', {})], 'none');
  const parked = { entity: 'again', transaction_id: 't', step: 'open', times: 1 };
  await log.events.append('parked-refund', [eventOf('WorkRetried', parked), eventOf('WorkParked', parked)], 'none');
  await ring(log, 'last');
  await until(() => ran.length === 2);
  assert.equal(ran, ['first', 'last']);
  await session.end();
});

test('follows each type once, from its checkpoint on', async ({ log }) => {
  await ring(log, 'left');
  await ring(log, 'right');
  const followed: unknown[] = [];
  const events: EventStore = {
    ...log.events,
    follow(after, filter, options) {
      followed.push(after, filter?.types, options?.batchSize);
      return log.events.follow(after, filter, options);
    },
  };
  const both = [doors(async () => undefined), doors(async () => undefined, { events: { BellRung: true } as never })];
  const session = work(log, both, { events, from: at(1) });
  await session.folded();
  assert.equal(followed, [at(1), ['BellRung', 'DoorOpened', 'WorkParked', 'WorkRetried'], 500]);
  assert.is(session.status().open, 2, 'the right door, for each of the two managers');
  await session.end();
});

test('stores a checkpoint once a second at most, and the last one at its end', async ({ log }) => {
  let now = 0;
  enterWorld({ ...REAL_WORLD, ticks: () => now });
  const session = work(log, [doors(async () => undefined)]);
  const stored = async (): Promise<readonly string[]> => (await session.folded(), session.checkpoints);
  await openDoor(log, 'a');
  assert.equal(await stored(), [at(1)], 'the first at once');
  now = 999;
  await openDoor(log, 'a');
  assert.equal(await stored(), [at(1)]);
  now = 1_000;
  await openDoor(log, 'a');
  assert.equal(await stored(), [at(1), at(3)]);
  await ring(log, 'open');
  now = 9_000;
  await openDoor(log, 'a');
  assert.equal(await stored(), [at(1), at(3)], 'it is held back, and not stored again');
  await openDoor(log, 'open');
  await openDoor(log, 'a');
  await session.folded();
  await session.end();
  assert.equal(session.checkpoints, [at(1), at(3), at(6), at(7)]);
});

test('stores no checkpoint where it has found nothing new', async ({ log }) => {
  const empty = work(log, [doors(async () => undefined)]);
  await empty.end();
  await openDoor(log, 'a');
  const behind = work(log, [doors(async () => undefined)], { from: at(1) });
  await behind.end();
  await ring(log, 'b');
  const open = work(log, [doors(async () => undefined)], { from: at(1) });
  await open.folded();
  await open.end();
  assert.equal([empty.checkpoints, behind.checkpoints, open.checkpoints], [[], [], []]);
});

test('parks again what is retried in vain, and counts it', async ({ log }) => {
  const failing = async (): Promise<void> => Promise.reject(new GiveUpError('the door is stuck'));
  const history: NonNullable<Doors['history']> = (events, door) => events.read(`door-${door}`);
  const session = work(log, [doors(failing, { history })]);
  await ring(log, 'a');
  for (const times of [1, 2]) {
    await until(async () => (await log.all('WorkParked')).length === times);
    assert.equal((await log.all('WorkParked')).at(-1)?.data, {
      entity: 'a',
      transaction_id: 't',
      step: 'open',
      cause: 'the door is stuck',
      event_id: (await log.events.read('door-a'))[0]?.id,
      times,
    });
    await session.folded();
    assert.is(session.status().open, 0);
    await retry(log, 'a', times);
  }
  await until(async () => (await log.all('WorkParked')).length === 3);
  await session.end();
});

test('reads the history of what is opened again in its order, up to where it began to read', async ({ log }) => {
  for (const _ of [1, 2]) await ring(log, 'a');
  await ring(log, 'b');
  await openDoor(log, 'b');
  const [one, two] = await log.events.read('door-a');
  const seen: unknown[] = [];
  const history: NonNullable<Doors['history']> = async (events, door) => {
    // A bell while it reads is known from the feed.
    await ring(log, door);
    await session.folded();
    return (await events.read(`door-${door}`)).toReversed();
  };
  const session = work(
    log,
    [
      doors(
        async (door, rung) => {
          seen.push([door, rung.map(({ id }) => id)]);
          await openDoor(log, door);
        },
        { history },
      ),
    ],
    { from: at(2) },
  );
  await retry(log, 'a');
  await until(() => seen.length > 0);
  const three = (await log.events.read('door-a'))[2];
  assert.equal(seen, [['a', [one?.id, two?.id, three?.id]]]);
  await session.folded();
  assert.is(session.status().open, 0);
  await session.end();
});

test('parks what was parked and is asked for by another event', async ({ log }) => {
  const session = work(log, [doors(async () => Promise.reject(new GiveUpError('the door is stuck')))]);
  for (const count of [1, 2]) {
    await ring(log, 'a');
    await until(async () => (await log.all('WorkParked')).length === count);
    await session.folded();
  }
  assert.equal(
    (await log.all('WorkParked')).map(({ data }) => (data as ParkedWork).times),
    [1, 1],
  );
  await session.end();
});

test('parks what can not be opened again under the step that it was parked in', async ({ log }) => {
  let reads = 0;
  const history: NonNullable<Doors['history']> = async () => {
    reads++;
    throw new TypeError('unreadable');
  };
  const session = work(log, [doors(async () => undefined, { history })], { attempts: 3 });
  await retry(log, 'a', 4);
  await until(async () => (await log.all('WorkParked')).length === 1);
  const [retried, parked] = await log.all('WorkRetried', 'WorkParked');
  assert.equal(
    [parked?.stream, parked?.data, parked?.metadata.causationId, reads],
    [
      'parked-refund',
      {
        entity: 'a',
        transaction_id: 'a',
        step: 'open again',
        cause: 'TypeError: unreadable',
        event_id: retried?.id,
        times: 5,
      },
      retried?.id,
      3,
    ],
  );
  await session.folded();
  assert.equal(
    [session.status().open, session.status().steps.get('open again')],
    [0, { inFlight: 0, failed: 3, parked: 1 }],
  );
  await session.end();
});

test('parks what a manager opens again that has no history to read', async ({ log }) => {
  const { ends, ...manager } = doors(async () => undefined);
  assert.ok(ends !== undefined);
  const session = work(log, [manager]);
  await retry(log, 'a');
  await until(async () => (await log.all('WorkParked')).length === 1);
  assert.match(JSON.stringify((await log.all('WorkParked'))[0]?.data), /opened again without a history/);
  await session.folded();
  assert.is(session.status().open, 1, 'without an end that it knows of');
  await session.end();
});

test('reads no history of what has ended meanwhile', async ({ log }) => {
  let reads = 0;
  const history: NonNullable<Doors['history']> = async () => {
    if (++reads > 1) return [];
    await openDoor(log, 'a');
    await session.folded();
    throw new UnavailableError('down');
  };
  const ends: NonNullable<Doors['ends']> = ({ type }) => type === 'DoorOpened';
  const session = work(log, [doors(async () => undefined, { history, ends })]);
  await retry(log, 'a');
  await until(() => session.status().steps.get('open again')?.failed === 1);
  await until(() => session.status().steps.get('open again')?.inFlight === 0);
  assert.equal([reads, session.status().open], [1, 0]);
  await session.end();
});

test('does what follows from a job that has ended', async ({ log }) => {
  const ran: string[] = [];
  const done: NonNullable<Doors['done']> = (state, { do: step, instance }) =>
    step === 'close' ? { state: undefined, intents: [] } : { state: [...state], intents: [{ do: 'close', instance }] };
  const session = work(log, [doors(async (door, _rung, step) => void ran.push(`${step} ${door}`), { done })]);
  await ring(log, 'a');
  await until(() => ran.length === 2 && session.status().open === 0);
  assert.equal(ran, ['open a', 'close a']);
  await session.end();
});

test('goes on counting the parkings of what a job has not ended', async ({ log }) => {
  let stuck = false;
  let ran = 0;
  const history: NonNullable<Doors['history']> = (events, door) => events.read(`door-${door}`);
  const run = async (): Promise<void> => {
    ran++;
    if (stuck) throw new GiveUpError('the door is stuck');
  };
  await ring(log, 'a');
  const session = work(log, [doors(run, { history })], { from: at(1) });
  await retry(log, 'a', 3);
  await until(() => ran === 1 && session.status().steps.get('open')?.inFlight === 0);
  stuck = true;
  await ring(log, 'a');
  await until(async () => (await log.all('WorkParked')).length === 1);
  assert.is(((await log.all('WorkParked'))[0]?.data as Partial<ParkedWork> | undefined)?.times, 4);
  await session.end();
});

test('waits for running jobs at its end, and starts no other', async ({ log }) => {
  const ran: string[] = [];
  let finish: () => void = () => undefined;
  const running = new Promise<void>((resolve) => (finish = resolve));
  const session = work(log, [doors(async (door) => (ran.push(door), running))]);
  for (const door of ['a', 'b', 'c', 'd', 'e']) await ring(log, door);
  await until(() => ran.length === POOL.atOnce);
  let over = false;
  const ending = session.end().then(() => (over = true));
  await sleep(20);
  assert.is(over, false);
  finish();
  await ending;
  assert.equal(ran, ['a', 'b', 'c', 'd']);
});

test('does not wait for ever for a job that hangs', async ({ log }) => {
  enterWorld({ ...REAL_WORLD, after: (ms, run) => REAL_WORLD.after(Math.min(ms, 5), run) });
  let hangs = false;
  const hanging = new Promise<void>(() => undefined);
  const session = work(log, [doors(async () => ((hangs = true), hanging))]);
  await ring(log, 'a');
  await until(() => hangs);
  await session.end();
  assert.is(session.status().leading, false);
});

test('lets others have their turn while it takes thousands of jobs on, and stops in between', async ({ log }) => {
  const ending = new AbortController();
  let [now, turns, taken] = [0, 0, 0];
  enterWorld({
    ...REAL_WORLD,
    ticks: () => (now += 0.25),
    soon: (run) => {
      turns++;
      REAL_WORLD.soon(run);
    },
  });
  const manager: Doors = doors(async () => undefined, {
    *jobs({ instance }, open) {
      for (; taken < 3_000; taken++) {
        if (taken === 2_000) ending.abort();
        yield {
          key: `open/${taken}`,
          pool: POOL,
          transactionId: 't',
          parkAs: { name: 'refund', entity: instance, step: 'open' },
          cause: () => open.state(manager, instance)?.at(-1),
          run: async () => undefined,
        };
      }
    },
  });
  const session = work(log, [manager], { ending });
  await ring(log, 'a');
  await until(() => ending.signal.aborted);
  await session.end();
  assert.ok(taken < 2_100, `${taken} were taken on`);
  assert.ok(turns > 100 && turns < 1_000, `${turns} turns`);
});

test.run();
