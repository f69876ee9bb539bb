import { setTimeout as sleep } from 'node:timers/promises';
import pino from 'pino';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { parkingId } from '../../../src/domain/parked.js';
import { RemoteError } from '../../../src/ports/bus.js';
import { RetryLaterError } from '../../../src/messages/workerFailure.js';
import type { Cause } from '../../../src/processors/runner/cause.js';
import { type Job, type JobRunner, jobRunner } from '../../../src/processors/runner/jobs.js';
import { GiveUpError, RETRY_POLICY } from '../../../src/processors/runner/retry.js';
import { NotOursError } from '../../../src/runtime/coordination/lease.js';
import { processTally } from '../../../src/processors/runner/status.js';
import type { Writer } from '../../../src/processors/runner/writing.js';
import { type SpanDescription, switchTracing } from '../../../src/tracing/spans.js';
import { until } from '../../support/assertions/until.js';

const test = suite('jobs');

const HOUR = 3_600_000;
const SEEN = { id: 'e', at: '', revision: 0, correlationId: 'c' };

/** A runner and one job of it. `run`: what its attempts do. */
function working(run: (attempt: number, name: string) => Promise<void>): {
  readonly runner: JobRunner;
  job(name: string): Job;
  readonly logged: string[];
  readonly lines: string[];
  readonly stopping: AbortController;
} {
  const logged: string[] = [];
  const lines: string[] = [];
  const stopping = new AbortController();
  const runner = jobRunner({
    writer: { append: async (_stream, event) => (logged.push((event as { type: string }).type), SEEN) },
    logger: pino({ level: 'warn' }, { write: (line: string) => void lines.push(line) }),
    ticks: () => performance.now(),
    retryPolicy: { ...RETRY_POLICY, retryMs: 60_000, retryAtMostMs: 60_000 },
    tally: processTally(),
    held: () => true,
    mayAct: () => undefined,
    signal: stopping.signal,
    timesParked: () => 0,
  });
  const pool = { atOnce: 4 };
  const job = (name: string): Job => ({
    key: 'refund/r',
    pool,
    transactionId: 't',
    parkAs: { name: 'refund', entity: 'r', step: 'refund' },
    cause: () => SEEN,
    done: () => void logged.push(`${name} done`),
    run: async (attempt) => {
      logged.push(`${name} ${attempt}`);
      await run(attempt, name);
    },
  });
  return { runner, job, logged, lines, stopping };
}

/** Lets everything that waits for nothing come to its end. */
const settled = (): Promise<void> => sleep(20);

test('says once that work failed, also where it is asked for again meanwhile', async () => {
  const { runner, job, logged, lines, stopping } = working(async (attempt, name) => {
    if (name === 'first') runner.takeOn(job('second'));
    throw new RemoteError(`attempt ${attempt}`);
  });
  runner.takeOn(job('first'));
  await settled();
  assert.equal(logged, ['first 1', 'second 1']);
  assert.equal(
    lines.map((line) => (JSON.parse(line) as { msg: string }).msg),
    ['not done at the first attempt'],
  );
  stopping.abort();
  await runner.stop();
});

test('gives nothing up at the first failure after a day under a limit of ours', async () => {
  let ticks = 0;
  const parked: unknown[] = [];
  const writer: Pick<Writer, 'append'> = { append: async (_stream, event) => (parked.push(event), SEEN) };
  const runner = jobRunner({
    writer,
    logger: pino({ level: 'silent' }),
    ticks: () => ticks,
    retryPolicy: { ...RETRY_POLICY, retryMs: 1, retryAtMostMs: 1 },
    tally: processTally(),
    held: () => true,
    mayAct: () => undefined,
    signal: new AbortController().signal,
    timesParked: () => 0,
  });
  const attempts: number[] = [];
  const done = new Promise<void>((resolve) => {
    const job: Job = {
      key: 'notify',
      pool: { atOnce: 1 },
      transactionId: 't',
      parkAs: { name: 'notification', entity: 'gift', step: 'notify' },
      cause: () => SEEN,
      done: resolve,
      async run(attempt) {
        attempts.push(attempt);
        if (attempt <= 30) {
          ticks += HOUR;
          throw new RetryLaterError('too many messages', 0, { limited: true });
        }
        if (attempt === 31) throw new RemoteError('trouble');
        // Of another kind than those that pass: tried ten times, of which those that were held are none.
        if (attempt === 32) throw new TypeError('odd');
      },
    };
    runner.takeOn(job);
  });
  await Promise.race([done, sleep(20_000, undefined, { ref: false })]);
  assert.equal(parked, []);
  assert.equal(
    attempts,
    Array.from({ length: 33 }, (_, n) => n + 1),
    'no attempt passes for the first again',
  );
});

test('parks nothing at its first odd failure after an outage that passed', async () => {
  const parked: unknown[] = [];
  let attempts = 0;
  await new Promise<void>((resolve) => {
    const runner = jobRunner({
      writer: { append: async (_stream, event) => (parked.push(event), resolve(), SEEN) },
      logger: pino({ level: 'silent' }),
      ticks: () => 0,
      retryPolicy: { ...RETRY_POLICY, retryMs: 1, retryAtMostMs: 1 },
      tally: processTally(),
      held: () => true,
      mayAct: () => undefined,
      signal: new AbortController().signal,
      timesParked: () => 0,
    });
    runner.takeOn({
      key: 'notify',
      pool: { atOnce: 1 },
      transactionId: 't',
      parkAs: { name: 'notification', entity: 'gift', step: 'notify' },
      cause: () => SEEN,
      done: resolve,
      async run(attempt) {
        attempts = attempt;
        if (attempt <= 30) throw new RemoteError('the worker is in trouble');
        // Nine, in between which the worker is in trouble again.
        if (attempt <= 48) throw attempt % 2 === 0 ? new RemoteError('again') : new Error('nobody knows yet');
      },
    });
  });
  assert.equal([attempts, parked], [49, []]);
});

test('counts no failure where another process may have the work, and tries later', async () => {
  const lines: string[] = [];
  const tally = processTally();
  let ours = false;
  const runner = jobRunner({
    writer: { append: async () => SEEN },
    logger: pino({ level: 'trace' }, { write: (line: string) => void lines.push(line) }),
    ticks: () => performance.now(),
    retryPolicy: { ...RETRY_POLICY, retryMs: 1, retryAtMostMs: 5 },
    tally,
    signal: new AbortController().signal,
    timesParked: () => 0,
    held: () => ours,
    mayAct: () => undefined,
  });
  const pool = { atOnce: 4 };
  let runs = 0;
  let lapses = 10;
  const done = Promise.all(
    Array.from(
      { length: 50 },
      (_, n) =>
        new Promise<void>((resolve) => {
          runner.takeOn({
            key: `issue/${n}`,
            pool,
            transactionId: 't',
            parkAs: { name: 'purchase', entity: 't', step: 'issue' },
            cause: () => SEEN,
            done: resolve,
            run: async () => {
              if (lapses-- > 0) throw new NotOursError('the work may have passed to another process');
              runs += 1;
            },
          });
        }),
    ),
  );
  await sleep(50);
  const [tried, before] = [runs, structuredClone(tally.status().steps.get('issue'))];
  ours = true;
  await Promise.race([done, sleep(20_000, undefined, { ref: false })]);
  assert.equal([tried, before], [0, { inFlight: 50, failed: 0, parked: 0 }]);
  assert.equal([runs, lines, tally.status().steps.get('issue')], [50, [], { inFlight: 0, failed: 0, parked: 0 }]);
});

test('parks only in a process that may still act', async () => {
  const parked: unknown[] = [];
  let asleep = false;
  const runner = jobRunner({
    writer: { append: async (_stream, event) => (parked.push(event), SEEN) },
    logger: pino({ level: 'silent' }),
    ticks: () => performance.now(),
    retryPolicy: { ...RETRY_POLICY, retryMs: 1, retryAtMostMs: 1 },
    tally: processTally(),
    signal: new AbortController().signal,
    timesParked: () => 0,
    held: () => true,
    mayAct: () => {
      if (!asleep) return;
      asleep = false;
      throw new NotOursError('the work may have passed to another process');
    },
  });
  let runs = 0;
  runner.takeOn({
    key: 'charge',
    pool: { atOnce: 1 },
    transactionId: 't',
    parkAs: { name: 'purchase', entity: 't', step: 'charge' },
    cause: () => SEEN,
    async run() {
      asleep = ++runs < 3;
      throw new GiveUpError('the provider does not know');
    },
  });
  await until(() => parked.length > 0, 'it to be parked');
  assert.equal([runs, parked.length], [3, 1]);
});

test('runs a job in hand once more when it is asked for again, and is done after that', async () => {
  let end: () => void = () => undefined;
  const running = new Promise<void>((resolve) => {
    end = resolve;
  });
  const { runner, job, logged } = working(() => running);
  runner.takeOn(job('first'));
  runner.takeOn({ ...job('second'), once: true });
  runner.takeOn(job('third'));
  runner.takeOn(job('fourth'));
  end();
  await settled();
  assert.equal(logged.splice(0), ['first 1', 'fourth 1', 'fourth done']);
  runner.takeOn(job('fifth'));
  await settled();
  assert.equal(logged, ['fifth 1', 'fifth done'], 'it is in hand no more');
});

test('runs a job again that is asked for while it gives up', async () => {
  const { runner, job, logged } = working(async (_attempt, name) => {
    if (name !== 'first') return;
    runner.takeOn(job('retried'));
    throw new GiveUpError('refused');
  });
  runner.takeOn(job('first'));
  await settled();
  assert.equal(logged, ['first 1', 'WorkParked', 'retried 1', 'retried done']);
});

test('starts the next attempt at once when it is woken or asked for again', async () => {
  const { runner, job, logged } = working(async (attempt, name) => {
    if (name === 'first' && attempt < 3) throw new RemoteError('trouble');
  });
  runner.takeOn(job('first'));
  await settled();
  runner.wake('refund/r');
  await settled();
  assert.equal(logged, ['first 1', 'first 2']);
  runner.takeOn(job('second'));
  await settled();
  assert.equal(logged, ['first 1', 'first 2', 'second 3', 'second done']);
});

test('starts the next attempt at once where it is woken while the present one runs', async () => {
  const { runner, job, logged, stopping } = working(async (attempt) => {
    if (attempt === 1) runner.wake('refund/r');
    if (attempt < 4) throw new RemoteError('what it waits for was not there');
  });
  runner.takeOn(job('first'));
  await settled();
  assert.equal(logged, ['first 1', 'first 2'], 'the second was not woken');
  stopping.abort();
  await runner.stop();
});

test('parks once until the feed shows it, and says once that it failed', async () => {
  const { runner, job, logged, lines } = working(async () => {
    throw new GiveUpError('refused');
  });
  for (const name of ['first', 'second', 'third']) {
    if (name === 'third') runner.parkingSeen('refund', 'r');
    runner.takeOn(job(name));
    await settled();
  }
  assert.equal(logged, ['first 1', 'WorkParked', 'second 1', 'third 1', 'WorkParked']);
  const told = ['not done at the first attempt', 'parked: it could not be done'];
  assert.equal(
    lines.map((line) => (JSON.parse(line) as { msg: string }).msg),
    [...told, ...told],
  );
});

test('takes nothing on that is not open any more, such as work that the same batch shows as parked', async () => {
  const { runner, job, logged, lines } = working(async () => Promise.reject(new GiveUpError('no')));
  runner.takeOn({ ...job('parked'), cause: () => undefined });
  await settled();
  assert.equal([logged, lines], [[], []]);
  await runner.stop();
});

test('takes nothing on once it is to end', async () => {
  const { runner, job, logged, stopping } = working(async () => undefined);
  stopping.abort();
  runner.takeOn(job('first'));
  runner.takeOn(job('second'));
  await settled();
  assert.equal(logged, []);
});

test('does not end, park or repeat what fails while the runner ends', async () => {
  const { runner, job, logged, lines, stopping } = working(async () => {
    stopping.abort();
    throw new GiveUpError('refused');
  });
  runner.takeOn(job('first'));
  await settled();
  await runner.stop();
  assert.equal([logged, lines], [['first 1'], []]);
});

test('parks later where it could not be parked, and names no whole id', async () => {
  const appended: unknown[] = [];
  const lines: { msg: string; entity?: string; err?: { message: string } }[] = [];
  let runs = 0;
  const tally = processTally();
  const runner = jobRunner({
    writer: {
      append: async (stream, event, expected, reason) => {
        if (runs === 1) throw new RemoteError('the disk is full');
        appended.push([stream, event, expected, reason.commandId, reason.cause, reason.eventId]);
        return SEEN;
      },
    },
    logger: pino({ level: 'warn' }, { write: (line: string) => void lines.push(JSON.parse(line) as never) }),
    ticks: () => 0,
    retryPolicy: { ...RETRY_POLICY, retryMs: 60_000, retryAtMostMs: 1 },
    tally,
    signal: new AbortController().signal,
    timesParked: (name, entity) => (name === 'refund' && entity === '0123456789' ? 2 : 0),
    held: () => true,
    mayAct: () => undefined,
  });
  runner.takeOn({
    key: 'refund',
    pool: { atOnce: 1 },
    transactionId: 't',
    parkAs: { name: 'refund', entity: '0123456789', step: 'refund' },
    cause: () => SEEN,
    async run() {
      runs++;
      throw new GiveUpError('refused');
    },
  });
  await until(() => tally.status().steps.get('refund')?.inFlight === 0);
  const data = { entity: '0123456789', transaction_id: 't', step: 'refund', cause: 'refused', event_id: 'e', times: 3 };
  assert.equal(appended, [
    ['parked-refund', { type: 'WorkParked', data }, 'any', 'park-refund-0123456789', SEEN, parkingId('refund', data)],
  ]);
  assert.equal(
    lines.map(({ msg, entity, err }) => [msg, entity, err?.message]),
    [
      ['not done at the first attempt', '012345', 'refused'],
      ['not parked yet', undefined, 'the disk is full'],
      ['parked: it could not be done', '012345', undefined],
    ],
  );
  assert.equal([runs, tally.status().steps.get('refund')], [2, { inFlight: 0, failed: 2, parked: 1 }]);
});

test('makes a span for each attempt, in the trace of the event that asked for it', async () => {
  const spans: SpanDescription[] = [];
  switchTracing({
    run: async (description, work) => {
      spans.push(description);
      return work({ rename: () => undefined, set: () => undefined, fail: () => undefined });
    },
    current: () => undefined,
  });
  try {
    const { runner, job, stopping } = working(async (attempt, name) => {
      if (name === 'traced' && attempt === 1) throw new RemoteError('trouble');
    });
    let cause: Cause | undefined = { ...SEEN, traceparent: '00-trace' };
    runner.takeOn({ ...job('traced'), cause: () => cause });
    await settled();
    cause = undefined;
    runner.wake('refund/r');
    await settled();
    runner.takeOn(job('untraced'));
    await settled();
    stopping.abort();
    assert.equal(
      spans,
      [
        ['00-trace', 1],
        ['', 2],
        ['', 1],
      ].map(([parent, attempt]) => ({
        name: 'step refund',
        kind: 'consumer',
        parent,
        attributes: { 'gift.step': 'refund', 'gift.attempt': attempt },
      })),
    );
  } finally {
    switchTracing(undefined);
  }
});

test.run();
