/**
 * Status of the service, only from the engines: the same from any process, and a stuck or dead one can't look healthy.
 */
import { parkedWork } from './parkedWork.js';
import { failingParts } from './failingParts.js';
import { processManagerStatus } from './processManagerStatus.js';
import { readModelStatus } from './readModelStatus.js';
import type { StatusEntry } from './status.js';
import { type StatusOptions, statusSampler } from './statusSampler.js';

export interface ServiceStatus {
  /** Present status. Takes two seconds, unless it was called within the last minute. @throws UnavailableError */
  look(): Promise<StatusEntry[]>;
  close(): Promise<void>;
}

export function openServiceStatus(options: StatusOptions): ServiceStatus {
  const { events, store, projections, own } = options;
  const sampler = statusSampler(options);
  const parked = parkedWork(events);
  return {
    async look() {
      const samples = await sampler.two();
      const [models, processes, parts] = await Promise.all([
        Promise.all(projections.map((projection) => readModelStatus(options, projection, samples))),
        processManagerStatus(events, parked, samples),
        failingParts(store.records, own),
      ]);
      return [...models, ...processes, ...parts];
    },
    close: () => sampler.close(),
  };
}
