export type StopSignal = 'SIGTERM' | 'SIGINT';

/** Milliseconds that a stop may take; then the process ends, without losing anything acknowledged. */
export const STOP_MS = 10_000;
