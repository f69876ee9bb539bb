import { type Lookups, type ManagerDeps, processManagers } from './managers.js';
import { type Processors, runManagers, type RunnerDeps } from './runner/index.js';

export interface ProcessorDeps extends Omit<RunnerDeps<ManagerDeps>, 'processes'>, Lookups {}

export function runProcessors({
  paymentMethod,
  contact,
  numberOf,
  openText,
  launchUrl,
  ...deps
}: ProcessorDeps): Processors {
  return runManagers({
    ...deps,
    processes: processManagers({ paymentMethod, contact, numberOf, openText, launchUrl }),
  });
}
