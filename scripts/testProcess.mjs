/**
 * Runs compiled test files one after the other in this process: `node testProcess.mjs FILE…`. Loading the service, and
 * its first start, take longer than most files' tests. After each file it writes a line of `fileEnd.mjs`.
 */
import { pathToFileURL } from 'node:url';
import { fileEnd } from './fileEnd.mjs';

// uvu then waits for `exec`.
globalThis.UVU_DEFER = 1;
const { exec } = await import('uvu');

for (const file of process.argv.slice(2)) {
  const started = Date.now();
  globalThis.UVU_QUEUE.splice(0, Infinity, [null]);
  await import(pathToFileURL(file).href);
  await exec();
  process.stdout.write(fileEnd({ code: process.exitCode ?? 0, ms: Date.now() - started }));
  process.exitCode = 0;
}
