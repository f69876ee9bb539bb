/** What process managers and their status need of the runner. */
export { askWorker } from './askWorker.js';
export { type Cause, causeOf } from './cause.js';
export { storedProcessPosition } from './checkpoint.js';
export type { Job, ParkAs, PoolSize } from './jobs.js';
export type { ProcessManager, Reaction } from './processManager.js';
export { GiveUpError, neverStarted, NotYetError } from './retry.js';
export { PROCESS_LEASE, type Processors, runManagers, type RunnerDeps } from './run.js';
export { feedTypes, type ProcessManagers } from './session.js';
export type { ProcessStatus, StepStatus } from './status.js';
export type { StepDeps } from './stepDeps.js';
export { openWriter, RACES, type Reason } from './writing.js';
export { workInLog } from './workInLog.js';
