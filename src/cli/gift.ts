#!/usr/bin/env node
/** `gift`: the command line. */
import { setPriority } from 'node:os';
import { setFlagsFromString } from 'node:v8';
import { run } from './program.js';

/** Of all processes that want a processor, the requests' have it first. */
const NICE = 15;
/** Garbage is collected when the heap has grown by so many percent, not only when it has become several times as large: memory is the requests' first, too. */
const HEAP_GROWTH = 20;

function yieldProcessor(): void {
  setPriority(NICE);
  setFlagsFromString(`--heap-growing-percent=${HEAP_GROWTH}`);
}

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
