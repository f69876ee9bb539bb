import { existsSync, readFileSync } from 'node:fs';
import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';

const test = suite('Giving way');

const GIVE_WAY = JSON.stringify(new URL('../../src/projecting/giveWay.js', import.meta.url).href);
/** The nice value of the thread that runs it: field 19 of proc_pid_stat(5). */
const NICE = `const nice = () => Number(require('node:fs').readFileSync('/proc/thread-self/stat', 'utf8').replace(/^.*\\) /s, '').split(' ')[16]);`;
const CHILD = `${NICE} require('node:worker_threads').parentPort.postMessage(nice());`;

const onLinux = existsSync('/proc/thread-self/stat') ? test : test.skip;

onLinux('a thread and those that it starts get a lower priority; the others of its process keep theirs', async () => {
  const niceHere = (): number => Number(readFileSync('/proc/thread-self/stat', 'utf8').replace(/^.*\) /s, '').split(' ')[16]);
  const before = niceHere();
  const thread = new Worker(
    `${NICE}
    const { parentPort, Worker } = require('node:worker_threads');
    import(${GIVE_WAY}).then(({ giveWay }) => {
      const gave = giveWay();
      new Worker(${JSON.stringify(CHILD)}, { eval: true }).once('message', (child) => parentPort.postMessage({ gave, own: nice(), child }));
    });`,
    { eval: true },
  );
  const [told] = (await once(thread, 'message')) as [{ gave: boolean; own: number; child: number }];
  const lower = Math.min(before + 5, 19) === before ? before : 5;
  assert.equal(told, { gave: true, own: lower, child: lower });
  assert.is(niceHere(), before);
});

test.run();
