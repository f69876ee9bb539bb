import { setTimeout as sleep } from 'node:timers/promises';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import pino from 'pino';
import { openTasks, type Task, type Tasks, TaskRunningError } from '../../src/projections/tasks.js';
import { UnavailableError } from '../../src/ports/unavailable.js';
import { memoryRecords } from '../support/memoryRecords.js';

const test = suite('tasks');
const ASKED = { kind: 'verification', projection: 'gifts', by: 'sue', reason: null } as const;
const OPTIONS = { waitMs: 20, explains: (error: unknown) => error instanceof RangeError };
const now = (): string => new Date().toISOString();

function opened(): { readonly tasks: Tasks; readonly another: Tasks; readonly lines: string[]; readonly records: ReturnType<typeof memoryRecords> } {
  const lines: string[] = [];
  const logger = pino({ level: 'info' }, { write: (line: string) => void lines.push(line) });
  const records = memoryRecords(Date.now);
  return { tasks: openTasks({ records }, logger, now), another: openTasks({ records }, logger, now), lines, records };
}

/** Work that ends when it is told to. */
function held<R>(result: R): { readonly work: (signal: AbortSignal, tell: (share: number) => void) => Promise<R>; end(): void } {
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

test('what takes long is told as running, then as done, by any process', async () => {
  const { tasks, another } = opened();
  const { work, end } = held({ documents: 3 });
  const begun = await tasks.begin(ASKED, work, OPTIONS);
  assert.equal([begun.state, begun.progress, begun.result], ['running', 0.25, null]);
  assert.equal([(await another.last('verification', 'gifts'))?.state, await another.last('repair', 'gifts'), await another.last('verification', 'accounts')], ['running', undefined, undefined]);
  const refused = await another.begin(ASKED, work, OPTIONS).catch((error: unknown) => error);
  assert.instance(refused, TaskRunningError);
  assert.match((refused as Error).message, /a verification of gifts is under way since .*, asked for by sue/);
  await sleep(1_100);
  const told = await another.last('verification', 'gifts');
  assert.ok((told?.told_at ?? '') > begun.told_at, 'it says that it lives');
  end();
  await sleep(20);
  const done = await another.last<{ documents: number }>('verification', 'gifts');
  assert.equal([done?.id, done?.state, done?.result], [begun.id, 'done', { documents: 3 }]);
  await tasks.close();
});

test('what is quick is answered at once', async () => {
  const { tasks } = opened();
  const done: Task<string> = await tasks.begin(ASKED, async () => 'all of it', OPTIONS);
  assert.equal([done.state, done.result, done.progress, done.failure], ['done', 'all of it', 1, null]);
  assert.equal(await tasks.last('verification', 'gifts'), done);
});

test('a failure that was foreseen says why; any other is in the log', async () => {
  const { tasks, lines } = opened();
  const foreseen = await tasks.begin(ASKED, async () => Promise.reject(new RangeError('never built')), OPTIONS);
  assert.equal([foreseen.state, foreseen.failure, foreseen.result, lines.length], ['failed', 'never built', null, 0]);
  const unforeseen = await tasks.begin(ASKED, async () => Promise.reject(new Error('secret')), OPTIONS);
  assert.equal([unforeseen.state, unforeseen.failure, lines.length], ['failed', 'it failed: see the log of the service', 1]);
  assert.match(lines[0] ?? '', /secret/);
});

test('it ends with its process, and can then be asked for again', async () => {
  const { tasks, another, records } = opened();
  await tasks.begin(ASKED, held('half of it').work, OPTIONS);
  await tasks.close();
  const left = await another.last('verification', 'gifts');
  assert.equal([left?.state, left?.result, left?.failure], ['interrupted', null, null]);
  assert.is((await another.begin(ASKED, async () => 'whole', OPTIONS)).state, 'done');
  const dead = { ...(left as Task), state: 'running', told_at: new Date(Date.now() - 11_000).toISOString() };
  await records.put('task/verification/gifts', dead);
  assert.is((await another.last('verification', 'gifts'))?.state, 'interrupted', 'one that says nothing any more is dead');
  assert.is((await another.begin(ASKED, async () => 'again', OPTIONS)).state, 'done');
});

test('failing as its process ends is no failure', async () => {
  const { tasks, another, lines } = opened();
  await tasks.begin(ASKED, async (signal) => new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('cut off')))), OPTIONS);
  await tasks.close();
  assert.equal([(await another.last('verification', 'gifts'))?.state, lines.length], ['interrupted', 0]);
});

test('of two that begin in the same moment one is refused', async () => {
  const { records } = opened();
  const logger = pino({ level: 'silent' });
  const racing = openTasks({ records: { ...records, get: async () => undefined } }, logger, now);
  await records.put('task/verification/gifts', {});
  const refused = await racing.begin(ASKED, async () => 'x', OPTIONS).catch((error: unknown) => error);
  assert.match((refused as Error).message, /in this moment by somebody else/);
});

test('a store that does not answer is told in the log, and the work goes on', async () => {
  const lines: string[] = [];
  const logger = pino({ level: 'debug' }, { write: (line: string) => void lines.push(line) });
  const records = memoryRecords(Date.now);
  let down = false;
  const shaky: typeof records = { ...records, put: async (...args) => (down ? Promise.reject(new UnavailableError('down')) : records.put(...args)) };
  const tasks = openTasks({ records: shaky }, logger, now);
  const { work, end } = held('x');
  await tasks.begin(ASKED, work, OPTIONS);
  down = true;
  await sleep(1_100);
  end();
  await sleep(20);
  await tasks.close();
  assert.ok(lines.some((line) => line.includes('how far a task is')) && lines.some((line) => line.includes('could not be kept')), lines.join(''));
});

test.run();
