/** How the process managers run as a follower: by a lease, from a stored checkpoint, until they are closed. */
import pino from 'pino';
import * as assert from 'uvu/assert';
import { idOf } from '../../../src/domain/streamName.js';
import type { EventStore } from '../../../src/ports/eventStore.js';
import type { Cause } from '../../../src/processors/runner/cause.js';
import type { Intent, ProcessManager } from '../../../src/processors/runner/processManager.js';
import { type Processors, runManagers, type RunnerDeps } from '../../../src/processors/runner/run.js';
import type { StepDeps } from '../../../src/processors/runner/stepDeps.js';
import type { DomainEvent } from '../../../src/domain/decider.js';
import type { FollowerRun } from '../../../src/runtime/supervision/followers.js';
import { rejects } from '../../support/assertions/rejects.js';
import { until } from '../../support/assertions/until.js';
import { memoryRecords } from '../../support/engines/memoryRecords.js';
import { logSuite, type TestLog } from '../../support/service/testLog.js';

const test = logSuite('the process managers as a follower');

type Rung = DomainEvent<'BellRung', object>;

/** Rings are answered by `run`. */
function bells(run: (deps: StepDeps, cause: Cause) => Promise<void>): ProcessManager<Cause, Rung, Intent, StepDeps> {
  const parkAs = { name: 'refund', entity: 'e', step: 'ring' } as const;
  return {
    name: 'refund',
    steps: ['ring'],
    events: { BellRung: true },
    instancesOf: ({ stream }) => [idOf(stream)],
    react: (_state, _event, instance, cause) => ({ state: cause, intents: [{ do: 'ring', instance }] }),
    resume: (_state, instance) => [{ do: 'ring', instance }],
    done: () => ({ state: undefined, intents: [] }),
    parkAs: () => parkAs,
    jobs({ instance }, open, deps) {
      const cause = (): Cause | undefined => open.state(this, instance);
      const job = { key: instance, pool: { atOnce: 1 }, transactionId: 't', parkAs, cause };
      return [{ ...job, run: async () => run(deps, cause() as Cause) }];
    },
    isSettled: async () => false,
  };
}

interface Following {
  readonly processors: Processors;
  readonly part: string;
  readonly records: ReturnType<typeof memoryRecords>;
  readonly ended: Promise<void>;
  end(): Promise<void>;
}

function follow(
  log: TestLog,
  run: Parameters<typeof bells>[0],
  more: Partial<RunnerDeps<StepDeps>> = {},
  records = memoryRecords(Date.now),
): Following {
  const ending = new AbortController();
  const started: { part: string; ended: Promise<void> }[] = [];
  const processors = runManagers<StepDeps>({
    events: log.events,
    bus: undefined as never,
    logger: pino({ level: 'silent' }),
    records,
    processes: { managers: [bells(run) as never], open: (deps) => deps },
    followers: {
      start(part, follower) {
        const context: FollowerRun = { signal: ending.signal, well: () => undefined, onTrouble: () => undefined };
        started.push({ part, ended: follower(context) });
        return { close: async () => ending.abort() };
      },
    },
    ...more,
  });
  const { part = '', ended = Promise.resolve() } = started[0] ?? {};
  return { processors, part, records, ended, end: async () => (await processors.close(), ended) };
}

const ring = (log: TestLog): Promise<void> => log.append('bell-a', 'BellRung', {});
const holder = async ({ records }: Following): Promise<unknown> =>
  (await records.get<{ holder: unknown }>('lease/process-managers'))?.value.holder;

test('work by the lease, and pass it on at their end', async ({ log }) => {
  const one = follow(log, async () => undefined, { holder: 'this process' });
  await until(() => one.processors.status().leading);
  assert.equal([one.part, await holder(one)], ['process managers', 'this process']);
  await one.end();
  assert.equal([one.processors.status().leading, await holder(one)], [false, null]);
  const [first, second] = [follow(log, async () => undefined), follow(log, async () => undefined)];
  await until(async () => first.processors.status().leading && second.processors.status().leading);
  assert.not.equal(await holder(first), await holder(second), 'each process has a name of its own');
  await Promise.all([first.end(), second.end()]);
});

test('start from the checkpoint that they stored', async ({ log }) => {
  const from: unknown[] = [];
  const events: EventStore = {
    ...log.events,
    follow(after, filter, options) {
      from.push(after);
      return log.events.follow(after, filter, options);
    },
  };
  await ring(log);
  const first = follow(log, async () => undefined, { events });
  await until(() => first.processors.status().position !== undefined && first.processors.status().open === 0);
  await first.end();
  const second = follow(log, async () => undefined, { events }, first.records);
  await until(() => from.length === 2);
  await second.end();
  assert.equal(from, [undefined, await log.events.end()]);
});

test('fail where the feed ends by itself, so that they are started again', async ({ log }) => {
  const ended: EventStore = { ...log.events, async *follow() {} };
  const one = follow(log, async () => undefined, { events: ended });
  await rejects(one.ended, Error, /the feed of the log ended/);
  assert.is(await holder(one), null);
});

test('start again where nothing else runs followers', async ({ log }) => {
  const lines: string[] = [];
  let feeds = 0;
  const events: EventStore = {
    ...log.events,
    async *follow(...args) {
      if (++feeds > 1) yield* log.events.follow(...args);
    },
  };
  await ring(log);
  const processors = runManagers<StepDeps>({
    events,
    bus: undefined as never,
    logger: pino({ level: 'warn' }, { write: (line: string) => void lines.push(line) }),
    records: memoryRecords(Date.now),
    processes: { managers: [bells(async () => undefined) as never], open: (deps) => deps },
  });
  await until(() => processors.status().steps.get('ring')?.inFlight === 0);
  await processors.close();
  assert.match(lines.join(), /the feed of the log ended.*process managers: failed, starting again/);
});

test('repeat what fails ten times, by the clock and the pauses that they are given', async ({ log }) => {
  let runs = 0;
  const retryPolicy = { retryMs: 1, retryAtMostMs: 1 };
  const now = (): number => Date.parse('2098-01-01T00:00:00.000Z');
  await ring(log);
  const failing = async (): Promise<void> => {
    runs++;
    throw new TypeError('odd');
  };
  const one = follow(log, failing, { retryPolicy, now });
  await until(async () => (await log.all('WorkParked')).length === 1);
  const [parked] = await log.all('WorkParked');
  assert.equal([runs, parked?.at], [10, '2098-01-01T00:00:00.000Z']);
  assert.equal(
    [parked?.metadata.by, parked?.metadata.commandId, one.processors.status().steps.get('ring')],
    [{ user: 'system:process-managers' }, 'park-ring-e', { inFlight: 0, failed: 10, parked: 1 }],
  );
  await one.end();
});

test('append with the cause of a step, its id where it has one, and the note that a provider is simulated', async ({
  log,
}) => {
  await ring(log);
  const [rung] = await log.events.read('bell-a');
  const told: unknown[] = [];
  const event = { type: 'Answered', data: {} };
  const one = follow(log, async ({ writer }, cause) => {
    const reason = { commandId: 'answer', cause };
    told.push(await writer.append('answer-a', [event, event], 'none', { ...reason, simulated: true }));
    told.push(await writer.append('answer-a', event, 'none', reason));
    await writer.append('answer-b', event, 'none', { ...reason, simulated: false, eventId: 'own-id' });
  });
  await until(async () => (await log.all('Answered')).length === 3 && one.processors.status().open === 0);
  const [, last] = await log.events.read('answer-a');
  assert.equal(told, [{ id: last?.id, at: last?.at, revision: 1, correlationId: log.correlationId }, undefined]);
  assert.match(last?.id ?? '', /^[0-9a-f-]{36}$/);
  const by = { user: 'system:process-managers' };
  const metadata = { commandId: 'answer', causationId: rung?.id, correlationId: log.correlationId, by };
  assert.equal(
    (await log.all('Answered')).map((answered) => answered.metadata),
    [{ ...metadata, simulated: true }, { ...metadata, simulated: true }, metadata],
  );
  assert.is((await log.events.read('answer-b'))[0]?.id, 'own-id');
  const broken: EventStore = { ...log.events, append: async () => Promise.reject(new TypeError('unwritable')) };
  await one.end();
  await ring(log);
  const errors: unknown[] = [];
  const failing = follow(
    log,
    async ({ writer }, cause) => {
      await writer.append('answer-c', event, 'none', { commandId: 'c', cause }).catch((error) => errors.push(error));
    },
    { events: broken },
  );
  await until(() => errors.length > 0);
  assert.match(String(errors[0]), /unwritable/);
  await failing.end();
});

test.run();
