#!/usr/bin/env node
/** `gift`: the command line. */
import { refuseWithoutFolder } from '../service/startFolder.js';
import { yieldProcessor } from './priority.js';

// Loading the program takes processor time that requests would feel.
if (process.argv[2] === 'projections') yieldProcessor();
refuseWithoutFolder();
const { run } = await import('./program.js');
const { EXIT } = await import('./terminal.js');

const interrupted = new AbortController();
// A second Ctrl-C ends the process at once: everything acknowledged is durable.
process.once('SIGINT', () => interrupted.abort());
process.once('SIGTERM', () => interrupted.abort());
/** The result could not be written. */
let unwritten = false;
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  // The reader has left (`| head`): the rest is dropped.
  if (error.code === 'EPIPE' || unwritten) return;
  unwritten = true;
  process.exitCode = EXIT.failed;
  process.stderr.write(
    `gift: what was asked for could not be written to standard output (${error.message}): what stands there is not whole\n`,
  );
});
// There is nowhere left to report it.
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
process.exitCode = unwritten && code === EXIT.done ? EXIT.failed : code;
