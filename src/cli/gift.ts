#!/usr/bin/env node
/** `gift`: the command line. */
import { yieldProcessor } from './priority.js';

// Loading the program takes a good part of a second of a processor, which requests would feel.
if (process.argv[2] === 'projections') yieldProcessor();
const { run } = await import('./program.js');

const interrupted = new AbortController();
// A second Ctrl-C ends the process at once: what was acknowledged is durable.
process.once('SIGINT', () => interrupted.abort());
process.once('SIGTERM', () => interrupted.abort());
// Nobody reads any more (`| head`): the rest is dropped quietly.
for (const out of [process.stdout, process.stderr]) {
  out.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error;
  });
}

process.exitCode = await run(
  { stdin: process.stdin, stdout: process.stdout, stderr: process.stderr, env: process.env, signal: interrupted.signal, yieldProcessor },
  process.argv.slice(2),
);
