#!/usr/bin/env node
import { setDefaultAutoSelectFamilyAttemptTimeout } from 'node:net';
import { ADDRESS_WAIT_MS } from '../lib/addressWait.js';
import { refuseWithoutFolder } from '../service/startFolder.js';
import { yieldProcessor } from './priority.js';

// The priority is lowered before the program is loaded: loading takes processor time from requests.
if (process.argv[2] === 'projections') yieldProcessor();
refuseWithoutFolder();
setDefaultAutoSelectFamilyAttemptTimeout(ADDRESS_WAIT_MS);
const { run } = await import('./program.js');
const { EXIT } = await import('./terminal.js');

const interrupted = new AbortController();
// A second Ctrl-C ends the process at once, which loses nothing: everything acknowledged is durable.
process.once('SIGINT', () => interrupted.abort());
process.once('SIGTERM', () => interrupted.abort());
let outputFailed = false;
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  // EPIPE: the reader has left (`| head`).
  if (error.code === 'EPIPE' || outputFailed) return;
  outputFailed = true;
  process.exitCode = EXIT.failed;
  process.stderr.write(
    `gift: what was asked for could not be written to standard output (${error.message}): what stands there is not whole\n`,
  );
});
// There is nowhere left to report an error.
process.stderr.on('error', () => undefined);

const code = await run(
  {
    stdin: process.stdin,
    stdout: process.stdout,
    stderr: process.stderr,
    env: process.env,
    signal: interrupted.signal,
    yieldProcessor,
  },
  process.argv.slice(2),
);
process.exitCode = outputFailed && code === EXIT.done ? EXIT.failed : code;
