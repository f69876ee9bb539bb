#!/usr/bin/env node
/**
 * The service's process. It hears signals before it loads anything else: loading takes a good part of a second, and as
 * the first process of a container it would not hear of a signal that nothing handles
 * (https://man7.org/linux/man-pages/man7/pid_namespaces.7.html).
 */
import { constants } from 'node:os';
import type { StopSignal } from './service.js';
import { refuseWithoutFolder } from './startFolder.js';

let stop: ((signal: StopSignal) => void) | undefined;
for (const signal of ['SIGTERM', 'SIGINT'] as const) {
  process.on(signal, () => {
    // What it may have begun already is finished by its next start, as after any kill.
    if (stop === undefined) process.exit(128 + constants.signals[signal]);
    stop(signal);
  });
}
refuseWithoutFolder();
const { serve } = await import('./service.js');
await serve((running) => {
  stop = running;
});
