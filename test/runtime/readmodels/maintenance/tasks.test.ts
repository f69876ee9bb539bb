import { setTimeout as sleep } from 'node:timers/promises';
import pino from 'pino';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { UnavailableError } from '../../../../src/ports/unavailable.js';
import {
  openTasks,
  type Task,
  type Tasks,
  TaskRunningError,
} from '../../../../src/runtime/readmodels/maintenance/tasks.js';
import { memoryRecords } from '../../../support/engines/memoryRecords.js';
import { until } from '../../../support/assertions/until.js';

const test = suite('tasks');
const ASKED = { kind: 'verification', projection: 'gifts', by: 'sue', reason: null } as const;
const OPTIONS = { waitMs: 20, explains: (error: unknown) => error instanceof RangeError };
const now = (): string => new Date().toISOString();

function opened(): {
  readonly tasks: Tasks;
  readonly another: Tasks;
  readonly lines: string[];
  readonly records: ReturnType<typeof memoryRecords>;
} {
  const lines: string[] = [];
  const logger = pino({ level: 'info' }, { write: (line: string) => void lines.push(line) });
  const records = memoryRecords(Date.now);
  return { tasks: openTasks({ records }, logger, now), another: openTasks({ records }, logger, now), lines, records };
}

/** Work that ends when it is told to. */
function held<R>(result: R): {
  readonly work: (signal: AbortSignal, tell: (share: number) => void) => Promise<R>;
  end(): void;
} {
  let end: () => void = () => undefined;
  const word = new Promise<void>((resolve) => (end = resolve));
  return {
    work: async (signal, tell) => {
      tell(0.25);
      await Promise.race([word, new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()))]);
      return result;
    },
    end: () => end(),
  };
}

test('a long task shows as running, then as done, in any process', async () => {
  const { tasks, another } = opened();
  const { work, end } = held({ documents: 3 });
  const started = await tasks.start(ASKED, work, OPTIONS);
  assert.equal([started.state, started.progress, started.result], ['running', 0.25, null]);
  assert.equal(
    [
      (await another.last('verification', 'gifts'))?.state,
      await another.last('repair', 'gifts'),
      await another.last('verification', 'accounts'),
    ],
    ['running', undefined, undefined],
  );
  const refused = await another.start(ASKED, work, OPTIONS).catch((error: unknown) => error);
  assert.instance(refused, TaskRunningError);
  assert.match((refused as Error).message, /a verification of gifts is under way since .*, asked for by sue/);
  await until(
    async () => ((await another.last('verification', 'gifts'))?.told_at ?? '') > started.told_at,
    'its word that it lives',
  );
  end();
  await until(async () => (await another.last('verification', 'gifts'))?.state !== 'running', 'its result');
  const done = await another.last<{ documents: number }>('verification', 'gifts');
  assert.equal([done?.id, done?.state, done?.result], [started.id, 'done', { documents: 3 }]);
  await tasks.close();
});

test('a quick task is answered at once', async () => {
  const { tasks } = opened();
  const done: Task<string> = await tasks.start(ASKED, async () => 'all of it', OPTIONS);
  assert.equal([done.state, done.result, done.progress, done.failure], ['done', 'all of it', 1, null]);
  assert.equal(await tasks.last('verification', 'gifts'), done);
});

test('an expected failure says why; any other is logged, and thrown to a caller that waits', async () => {
  const { tasks, lines } = opened();
  const foreseen = await tasks.start(ASKED, async () => Promise.reject(new RangeError('never built')), OPTIONS);
  assert.equal([foreseen.state, foreseen.failure, foreseen.result, lines.length], ['failed', 'never built', null, 0]);
  const lost = new UnavailableError('secret');
  assert.is(await tasks.start(ASKED, async () => Promise.reject(lost), OPTIONS).catch((error: unknown) => error), lost);
  const unforeseen = await tasks.last('verification', 'gifts');
  assert.equal(
    [unforeseen?.state, unforeseen?.failure, lines.length],
    ['failed', 'it failed: see the log of the service', 1],
  );
  assert.match(lines[0] ?? '', /secret/);
});

test('a task ends with its process, and can be asked for again', async () => {
  const { tasks, another, records } = opened();
  await tasks.start(ASKED, held('half of it').work, OPTIONS);
  await tasks.close();
  const left = await another.last('verification', 'gifts');
  assert.equal([left?.state, left?.result, left?.failure], ['interrupted', null, null]);
  assert.is((await another.start(ASKED, async () => 'whole', OPTIONS)).state, 'done');
  const dead = { ...(left as Task), state: 'running', told_at: new Date(Date.now() - 11_000).toISOString() };
  await records.put('task/verification/gifts', dead);
  assert.is(
    (await another.last('verification', 'gifts'))?.state,
    'interrupted',
    'one that says nothing any more is dead',
  );
  assert.is((await another.start(ASKED, async () => 'again', OPTIONS)).state, 'done');
});

test('a task that fails as its process ends is interrupted', async () => {
  const { tasks, another, lines } = opened();
  await tasks.start(
    ASKED,
    async (signal) => new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('cut off')))),
    OPTIONS,
  );
  await tasks.close();
  assert.equal([(await another.last('verification', 'gifts'))?.state, lines.length], ['interrupted', 0]);
});

test('of two tasks started at the same moment one is refused', async () => {
  const { records } = opened();
  const logger = pino({ level: 'silent' });
  const racing = openTasks({ records: { ...records, get: async () => undefined } }, logger, now);
  await records.put('task/verification/gifts', {});
  const refused = await racing.start(ASKED, async () => 'x', OPTIONS).catch((error: unknown) => error);
  assert.match((refused as Error).message, /in this moment by somebody else/);
});

test('a task goes on while the store does not answer, and logs it', async () => {
  const lines: string[] = [];
  const logger = pino({ level: 'debug' }, { write: (line: string) => void lines.push(line) });
  const records = memoryRecords(Date.now);
  let down = false;
  const shaky: typeof records = {
    ...records,
    put: async (...args) => (down ? Promise.reject(new UnavailableError('down')) : records.put(...args)),
  };
  const tasks = openTasks({ records: shaky }, logger, now);
  const { work, end } = held('x');
  await tasks.start(ASKED, work, OPTIONS);
  down = true;
  await until(() => lines.some((line) => line.includes('how far a task is')), 'its word, which can not be kept');
  end();
  await sleep(20);
  await tasks.close();
  assert.ok(
    lines.some((line) => line.includes('how far a task is')) &&
      lines.some((line) => line.includes('could not be kept')),
    lines.join(''),
  );
});

test("a renewal still under way at a task's end does not come after its result", async () => {
  const { records } = opened();
  let words = 0;
  const slow: typeof records = {
    ...records,
    async put(key, value, options) {
      if ((value as Task).state === 'running' && ++words === 2) await sleep(300);
      return records.put(key, value, options);
    },
  };
  const tasks = openTasks({ records: slow }, pino({ level: 'silent' }), now);
  const { work, end } = held('the result');
  await tasks.start(ASKED, work, OPTIONS);
  for (let wait = 0; wait < 300 && words < 2; wait++) await sleep(10);
  end();
  await sleep(20);
  await tasks.close();
  await sleep(350);
  const done = await tasks.last('verification', 'gifts');
  assert.equal([words, done?.state, done?.result], [2, 'done', 'the result']);
});

test('a task that was frozen does not overwrite one started since', async () => {
  const { tasks, another, records, lines } = opened();
  const first = held('late');
  const frozen = await tasks.start(ASKED, first.work, OPTIONS);
  await records.put('task/verification/gifts', { ...frozen, told_at: new Date(Date.now() - 11_000).toISOString() });
  const second = held('in time');
  const successor = await another.start({ ...ASKED, by: 'aud' }, second.work, OPTIONS);
  await sleep(1_100);
  assert.is((await another.last('verification', 'gifts'))?.id, successor.id, 'its word that it lives');
  second.end();
  await sleep(20);
  await another.close();
  first.end();
  await sleep(20);
  await tasks.close();
  const last = await another.last('verification', 'gifts');
  assert.equal([last?.id, last?.state, last?.result], [successor.id, 'done', 'in time'], 'its result');
  assert.ok(
    lines.some((line) => line.includes('another verification of gifts has taken its place')),
    lines.join(''),
  );
});

test('a renewal stored without an answer does not stop the following ones', async () => {
  const { records } = opened();
  let lost = 0;
  const shaky: typeof records = {
    ...records,
    async put(key, value, options) {
      const version = await records.put(key, value, options);
      if ((value as Task).state === 'running' && version === 2 && ++lost === 1)
        throw new UnavailableError('cut off', { outcomeUnknown: true });
      return version;
    },
  };
  const tasks = openTasks({ records: shaky }, pino({ level: 'silent' }), now);
  const { work, end } = held('the result');
  await tasks.start(ASKED, work, OPTIONS);
  for (let wait = 0; wait < 300 && lost === 0; wait++) await sleep(10);
  end();
  await sleep(20);
  await tasks.close();
  const done = await tasks.last('verification', 'gifts');
  assert.equal([lost, done?.state, done?.result], [1, 'done', 'the result']);
});

test.run();
