import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { type ThreadClient, threadClient, threadData } from '../../../src/adapters/embedded/thread.js';

const test = suite('Client of a thread');

const SERVING = `
  const { parentPort } = require('node:worker_threads');
  parentPort.on('message', (message) => (message === 'close' ? parentPort.close() : parentPort.postMessage(message)));`;

interface Client {
  readonly thread: ThreadClient<string>;
  readonly started: () => number;
}

function clientOf(atOnce: boolean | 'soon'): Client {
  let started = 0;
  const thread = threadClient<string, string>({
    spawn() {
      started++;
      return new Worker(SERVING, { eval: true });
    },
    atOnce,
    ended: () => 'the thread ended',
    onAnswer: () => undefined,
    onEnd: () => undefined,
  });
  return { thread, started: () => started };
}

test('starts a thread at once, or within seconds, or with its first message, and one alone', async () => {
  const clients = [clientOf(true), clientOf('soon'), clientOf(false)];
  const starts = (): number[] => clients.map(({ started }) => started());
  const closed = clientOf('soon');
  await closed.thread.close();
  assert.equal(starts(), [1, 0, 0]);
  await wait(5_500);
  assert.equal(starts(), [1, 1, 0]);
  for (const { thread } of clients) thread.send('work');
  assert.equal(starts(), [1, 1, 1]);
  assert.is(closed.started(), 0);
  for (const { thread } of clients) await thread.close();
});

test('starts a thread that has time with its first message, if that comes earlier', async () => {
  const { thread, started } = clientOf('soon');
  thread.send('work');
  assert.is(started(), 1);
  await thread.close();
});

test('runs for a process of its own release only: the release folder may have been replaced', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'gift-thread-'));
  const embedded = new URL('../../../src/adapters/embedded/', import.meta.url);
  for (const script of [
    'eventStore/eventStoreWorker.js',
    'keyStore/keyStoreWorker.js',
    'readStore/readStoreWorker.js',
    'readStore/readStoreLookupWorker.js',
    'backgroundWorker.js',
  ]) {
    const workerData = { ...threadData(join(dir, 'any.db')), version: '99.0.0' };
    const thread = new Worker(new URL(script, embedded), { workerData });
    const came = await Promise.race([once(thread, 'error'), once(thread, 'message')]);
    await thread.terminate();
    assert.match((came[0] as Error).message, 'its process is of release 99.0.0', script);
  }
  rmSync(dir, { recursive: true });
});

test.run();
