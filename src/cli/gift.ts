#!/usr/bin/env node
/** `gift`: the command line. */
import { refuseWithoutFolder } from '../service/startFolder.js';
import { yieldProcessor } from './priority.js';

// Loading the program takes a good part of a second of a processor, which requests would feel.
if (process.argv[2] === 'projections') yieldProcessor();
refuseWithoutFolder();
const { run } = await import('./program.js');
const { EXIT } = await import('./terminal.js');

const interrupted = new AbortController();
// A second Ctrl-C ends the process at once: what was acknowledged is durable.
process.once('SIGINT', () => interrupted.abort());
process.once('SIGTERM', () => interrupted.abort());
/** The result could not be written. */
let unwritten = false;
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  // Nobody reads any more (`| head`): the rest is dropped quietly.
  if (error.code === 'EPIPE' || unwritten) return;
  unwritten = true;
  process.exitCode = EXIT.failed;
  process.stderr.write(
    `gift: what was asked for could not be written to standard output (${error.message}): what stands there is not whole\n`,
  );
});
// There is nowhere to say so.
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
