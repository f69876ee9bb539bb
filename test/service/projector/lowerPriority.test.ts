import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { getPriority } from 'node:os';
import { Worker } from 'node:worker_threads';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';

const test = suite('Giving way');

const LOWER_PRIORITY = JSON.stringify(new URL('../../../src/service/projector/lowerPriority.js', import.meta.url).href);
/** The nice value of the thread that runs it: field 19 of proc_pid_stat(5). */
const NICE = `const nice = () => Number(require('node:fs').readFileSync('/proc/thread-self/stat', 'utf8').replace(/^.*\\) /s, '').split(' ')[16]);`;

const onLinux = existsSync('/proc/thread-self/stat') ? test : test.skip;

onLinux("lowers a thread's priority, down to the lowest, and leaves other threads alone", async () => {
  const before = getPriority();
  const thread = new Worker(
    `${NICE}
    import(${LOWER_PRIORITY}).then(({ lowerPriority }) => {
      const seen = [nice()];
      for (let n = 0; n < 6; n++) {
        lowerPriority();
        seen.push(nice());
      }
      require('node:worker_threads').parentPort.postMessage(seen);
    });`,
    { eval: true },
  );
  const [seen] = (await once(thread, 'message')) as [number[]];
  assert.equal(
    seen,
    Array.from({ length: 7 }, (_, n) => Math.min(before + 5 * n, 19)),
  );
  assert.is(getPriority(), before);
});

test.run();
