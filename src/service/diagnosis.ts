/** Where a diagnosis looks, on engines that the service or the command line has opened. */
import type { DiagnosisSources } from '../ops/diagnosis/index.js';
import { outwardState } from '../ops/outward/outwardWork.js';
import { waitingGroups } from '../ops/parked/decideGroup.js';
import type { EventStore } from '../ports/eventStore.js';
import type { ReadStore } from '../ports/readStore.js';
import { maintenance, type Projection } from '../runtime/readmodels/index.js';
import type { Config } from './config.js';
import { isEmbedded } from './personal.js';

/** Engines as far as they could be opened: each function throws why it could not. */
export interface DiagnosedEngines {
  readonly events: () => EventStore;
  readonly store: () => ReadStore;
}

export interface DiagnosisOptions extends DiagnosedEngines {
  readonly config: Pick<Config, 'eventStoreUrl' | 'mongodbUrl' | 'natsUrl' | 'keysUrl'>;
  readonly projections: readonly Projection[];
}

/** Sources that are the same for a process of the service and the command line. */
export type EngineSources = Omit<DiagnosisSources, 'parts' | 'status' | 'onFault'>;

export function engineSources({ events, store, config, projections }: DiagnosisOptions): EngineSources {
  return {
    servers: serversOf(config),
    outward: async () => outwardState(events()),
    sealed: async () => events().sealed(),
    async rebuilds() {
      const { records } = store();
      const found = await Promise.all(
        projections.map(async ({ name }) => ({ name, record: await maintenance.rebuildOf({ records }, name) })),
      );
      return found.flatMap(({ name, record }) => (record === undefined ? [] : [{ name, rebuild: record.value }]));
    },
    parked: async () => waitingGroups(events()),
  };
}

function serversOf(config: DiagnosisOptions['config']): ReadonlySet<string> {
  const { eventStoreUrl, mongodbUrl, natsUrl } = config;
  return new Set([
    ...(eventStoreUrl === undefined ? [] : ['event store']),
    ...(mongodbUrl === undefined ? [] : ['read store']),
    ...(natsUrl === undefined ? [] : ['bus']),
    ...(isEmbedded(config) ? [] : ['key store']),
  ]);
}
