/**
 * How every projection and process manager stands, from the engines alone: it is the same from any process, and what is
 * stuck or dead can't look healthy.
 */
import { parkedWork } from './parkedWork.js';
import { failingParts } from './failingParts.js';
import { glancing, type StandingsOptions } from './statusSampler.js';
import { processStandings } from './processManagerStatus.js';
import { projectionStanding } from './readModelStatus.js';
import type { Standing } from './status.js';

/** Looks at an installation. */
export interface Standings {
  /**
   * How everything stands now; takes two seconds unless somebody has looked within the last minute. @throws
   * UnavailableError
   */
  look(): Promise<Standing[]>;
  close(): Promise<void>;
}

/** Makes ready to look. */
export function standings(options: StandingsOptions): Standings {
  const { events, store, projections, own } = options;
  const glances = glancing(options);
  const parked = parkedWork(events);
  return {
    async look() {
      const two = await glances.two();
      const [models, processes, parts] = await Promise.all([
        Promise.all(projections.map((projection) => projectionStanding(events, store, projection, two))),
        processStandings(events, parked, two),
        failingParts(store.records, own),
      ]);
      return [...models, ...processes, ...parts];
    },
    close: () => glances.close(),
  };
}
