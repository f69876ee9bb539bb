/** A process that puts another log in the place of a folder's, and can be killed meanwhile. */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { succeedEventLog } from '../../../src/adapters/embedded/eventStore/succeedLog.js';

/** Kept by it. */
export const RETAINED_TYPE = 'Kept';

/** @returns kills it so many ms after it was told to start */
export async function startSuccession(dir: string): Promise<(afterMs: number) => Promise<void>> {
  const child: ChildProcess = fork(fileURLToPath(import.meta.url), [dir]);
  await once(child, 'message');
  return async (afterMs) => {
    const closed = once(child, 'close');
    child.send('start');
    setTimeout(() => child.kill('SIGKILL'), afterMs);
    await closed;
  };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  process.on('message', () => {
    succeedEventLog(process.argv[2]!, { keeps: (_, type) => type === RETAINED_TYPE, now: new Date().toISOString() });
  });
  process.send!('ready');
}
