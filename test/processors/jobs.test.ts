import { setTimeout as sleep } from 'node:timers/promises';
import pino from 'pino';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { RemoteError } from '../../src/ports/bus.js';
import { type Job, jobRunner } from '../../src/processors/jobs.js';
import { openPool } from '../../src/processors/pool.js';
import { GiveUpError, LaterError, NotOursError, PATIENCE } from '../../src/processors/retry.js';
import { processTally } from '../../src/processors/status.js';
import type { Writer } from '../../src/processors/writing.js';

const test = suite('jobs');

const HOUR = 3_600_000;
const SEEN = { id: 'e', at: '', revision: 0, correlationId: 'c' };

test('what a limit of our own has held back for a day is not given up at the next failure', async () => {
  let ticks = 0;
  const parked: unknown[] = [];
  const writer: Writer = { append: async (_stream, event) => (parked.push(event), SEEN) };
  const runner = jobRunner({
    writer, logger: pino({ level: 'silent' }), ticks: () => ticks, patience: { ...PATIENCE, retryMs: 1, retryAtMostMs: 1 }, tally: processTally(), mayAct: () => undefined,
    signal: new AbortController().signal, timesParked: () => 0,
  });
  const attempts: number[] = [];
  const done = new Promise<void>((resolve) => {
    const job: Job = {
      key: 'tell', pool: openPool(1), transactionId: 't', parkAs: { name: 'notification', entity: 'gift', step: 'notify' }, cause: () => SEEN, done: resolve,
      async run(attempt) {
        attempts.push(attempt);
        if (attempt <= 30) {
          ticks += HOUR;
          throw new LaterError({ outcome: 'later', after_ms: 0, held: true, cause: 'too many messages' });
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
  assert.equal(attempts, Array.from({ length: 33 }, (_, n) => n + 1), 'no attempt passes for the first again');
});

test('what could not be tried, since another process may have the work, is told and counted as no failure, and tried later', async () => {
  const lines: string[] = [];
  const tally = processTally();
  let ours = false;
  const runner = jobRunner({
    writer: { append: async () => SEEN }, logger: pino({ level: 'trace' }, { write: (line: string) => void lines.push(line) }), ticks: () => performance.now(),
    patience: { ...PATIENCE, retryMs: 1, retryAtMostMs: 5 }, tally, signal: new AbortController().signal, timesParked: () => 0,
    mayAct: () => {
      if (!ours) throw new NotOursError('the work may have passed to another process');
    },
  });
  const pool = openPool(4);
  let runs = 0;
  const done = Promise.all(Array.from({ length: 50 }, (_, n) => new Promise<void>((resolve) => {
    runner.takeOn({ key: `issue/${n}`, pool, transactionId: 't', parkAs: { name: 'purchase', entity: 't', step: 'issue' }, cause: () => SEEN, done: resolve, run: async () => void (runs += 1) });
  })));
  await sleep(50);
  const [tried, before] = [runs, structuredClone(tally.status().steps.get('issue'))];
  ours = true;
  await Promise.race([done, sleep(20_000, undefined, { ref: false })]);
  assert.equal([tried, before], [0, { inFlight: 50, failed: 0, parked: 0 }]);
  assert.equal([runs, lines, tally.status().steps.get('issue')], [50, [], { inFlight: 0, failed: 0, parked: 0 }]);
});

test('what can’t be done is parked only by a process that may still act: another one may have it in hand by then', async () => {
  const parked: unknown[] = [];
  let asleep = false;
  const runner = jobRunner({
    writer: { append: async (_stream, event) => (parked.push(event), SEEN) }, logger: pino({ level: 'silent' }), ticks: () => performance.now(),
    patience: { ...PATIENCE, retryMs: 1, retryAtMostMs: 1 }, tally: processTally(), signal: new AbortController().signal, timesParked: () => 0,
    mayAct: () => {
      if (!asleep) return;
      asleep = false;
      throw new NotOursError('the work may have passed to another process');
    },
  });
  let runs = 0;
  runner.takeOn({
    key: 'charge', pool: openPool(1), transactionId: 't', parkAs: { name: 'purchase', entity: 't', step: 'charge' }, cause: () => SEEN,
    async run() {
      asleep = ++runs < 3;
      throw new GiveUpError('the provider does not know');
    },
  });
  for (const deadline = performance.now() + 20_000; parked.length === 0 && performance.now() < deadline; ) await sleep(1);
  assert.equal([runs, parked.length], [3, 1]);
});

test.run();
