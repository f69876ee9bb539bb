/**
 * How every projection and process manager stands, from the engines alone: it is the same from any process, and what is
 * stuck or dead can't look healthy.
 */
import { parkedWork } from './parkedWork.js';
import { failingParts } from './failingParts.js';
import { statusSampler, type StatusOptions } from './statusSampler.js';
import { processManagerStatus } from './processManagerStatus.js';
import { readModelStatus } from './readModelStatus.js';
import type { StatusEntry } from './status.js';

/** Looks at an installation. */
export interface ServiceStatus {
  /**
   * How everything stands now; takes two seconds unless somebody has looked within the last minute. @throws
   * UnavailableError
   */
  look(): Promise<StatusEntry[]>;
  close(): Promise<void>;
}

/** Makes ready to look. */
export function openServiceStatus(options: StatusOptions): ServiceStatus {
  const { events, store, projections, own } = options;
  const samples = statusSampler(options);
  const parked = parkedWork(events);
  return {
    async look() {
      const two = await samples.two();
      const [models, processes, parts] = await Promise.all([
        Promise.all(projections.map((projection) => readModelStatus(events, store, projection, two))),
        processManagerStatus(events, parked, two),
        failingParts(store.records, own),
      ]);
      return [...models, ...processes, ...parts];
    },
    close: () => samples.close(),
  };
}
