import { setTimeout as wait } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { type ThreadClient, threadClient } from '../../../src/adapters/embedded/thread.js';

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

test.run();
