/** The process managers of this business, running. */
import { type Lookups, type ManagerDeps, processManagers } from './managers.js';
import { type Processors, runManagers, type RunnerDeps } from './runner/run.js';

/** What they work with. */
export interface ProcessorDeps extends Omit<RunnerDeps<ManagerDeps>, 'processes'>, Lookups {}

/** Starts. Failures are logged and tried again; it never throws later on. */
export function runProcessors({ paymentMethod, contact, launchUrl, ...deps }: ProcessorDeps): Processors {
  return runManagers({ ...deps, processes: processManagers({ paymentMethod, contact, launchUrl }) });
}
