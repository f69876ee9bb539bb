/** The read models are those of a projector that folds the whole log without any fault. */
import { isDeepStrictEqual } from 'node:util';
import pino from 'pino';
import type { Documents } from '../engines/documents.js';
import { openSimulatedEvents } from '../engines/eventStore.js';
import { openSimulatedKeys } from '../engines/keyStore.js';
import { openSimulatedReadStore, readStoreDisk } from '../engines/readStore.js';
import { readable } from '../../../src/service/engines.js';
import { PROJECTIONS } from '../../../src/projections/index.js';
import { startProjector } from '../../../src/runtime/readmodels/index.js';
import { sleep } from '../../../src/lib/world.js';
import type { Finding } from '../model/finding.js';
import type { Cluster } from '../service/cluster.js';
import { IMMEDIATE } from '../world/link.js';
import { perform } from '../world/simulatedWorld.js';
import { startProcess } from '../world/simulatedProcess.js';

const POLL_MS = 100;
const MOST_SHOWN = 3;

export async function checkReadModels({ simulation, log, keys, readStore, config }: Cluster): Promise<Finding[]> {
  const fresh = readStoreDisk();
  const process = startProcess(simulation, { name: 'check' });
  const logger = pino({ level: 'silent' });
  await perform(simulation, process, 'fold the log again', async () => {
    const { events } = readable(
      openSimulatedEvents(log, IMMEDIATE),
      config('projector'),
      undefined,
      openSimulatedKeys(keys, IMMEDIATE),
    );
    const store = openSimulatedReadStore(fresh, IMMEDIATE);
    const projector = await startProjector({ events, store, projections: PROJECTIONS, logger, holder: 'check' });
    const folded = (): boolean => {
      const kept = projector.kept();
      return (
        PROJECTIONS.every(({ name }) => fresh.documents.active(name) !== undefined) &&
        kept.length > 0 &&
        kept.every(({ caughtUp }) => caughtUp)
      );
    };
    while (!folded()) await sleep(POLL_MS);
    await projector.close();
  });
  return PROJECTIONS.flatMap(({ name }) => differences(name, readStore.documents, fresh.documents));
}

function differences(name: string, served: Documents, folded: Documents): Finding[] {
  const [ours, theirs] = [documentsOf(name, served), documentsOf(name, folded)];
  const ids = new Set([...ours.keys(), ...theirs.keys()]);
  const other = [...ids].filter((id) => !isDeepStrictEqual(ours.get(id), theirs.get(id)));
  if (other.length === 0) return [];
  const shown = other
    .slice(0, MOST_SHOWN)
    .map((id) => `${id}\n  served: ${JSON.stringify(ours.get(id))}\n  folded: ${JSON.stringify(theirs.get(id))}`);
  return [{ rule: 'read models', text: `${name} has ${other.length} other documents:\n${shown.join('\n')}` }];
}

function documentsOf(name: string, documents: Documents): Map<string, object> {
  const version = documents.active(name);
  if (version === undefined) return new Map();
  const all = documents.find({ name, version, indexes: [] }, {});
  return new Map(all.map(({ id, position, body }) => [id, { position, body }]));
}
