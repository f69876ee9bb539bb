#!/usr/bin/env node
/**
 * Entry point of the service. It handles signals before it loads the rest, which takes most of a second. The first
 * process of a container gets no signal without a handler
 * (https://man7.org/linux/man-pages/man7/pid_namespaces.7.html).
 */
import { setDefaultAutoSelectFamilyAttemptTimeout } from 'node:net';
import { constants } from 'node:os';
import { setFlagsFromString } from 'node:v8';
import { ADDRESS_WAIT_MS } from '../lib/addressWait.js';
import type { StopSignal } from './stopping.js';
import { refuseArguments } from './startArguments.js';
import { refuseWithoutFolder } from './startFolder.js';

let stop: ((signal: StopSignal) => void) | undefined;
for (const signal of ['SIGTERM', 'SIGINT'] as const) {
  process.on(signal, () => {
    // The next start finishes open work, as after any kill.
    if (stop === undefined) process.exit(128 + constants.signals[signal]);
    stop(signal);
  });
}
refuseArguments(
  'This starts the service. It takes no arguments: its settings are environment variables, see docs/settings.md. Commands: npx gift --help',
);
refuseWithoutFolder();
setDefaultAutoSelectFamilyAttemptTimeout(ADDRESS_WAIT_MS);
const { serve } = await import('./service.js');
await serve((running) => {
  stop = running;
  // Little in a young generation is alive, so the threads that collect it by default mostly wait for each other. Set
  // only now: V8 compiles Node's own modules again for a thread that starts under other flags.
  setFlagsFromString('--no-parallel-scavenge');
});
