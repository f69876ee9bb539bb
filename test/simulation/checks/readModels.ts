/** The read models are those of a projector that folds the whole log without any fault. */
import { isDeepStrictEqual } from 'node:util';
import pino from 'pino';
import type { Documents } from '../engines/documents.js';
import { openSimulatedEvents } from '../engines/eventStore.js';
import { openSimulatedKeys } from '../engines/keyStore.js';
import { type SubjectRows, subjectRows } from '../engines/subjectRows.js';
import type { SubjectRow } from '../../../src/ports/keyStore.js';
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

export async function checkReadModels(cluster: Cluster): Promise<Finding[]> {
  const { keys, lostRows, readStore } = cluster;
  const folds = [await folded(cluster, keys)];
  // What was folded before rows were lost shows what they opened, until it is built again.
  if (lostRows.length > 0) folds.push(await folded(cluster, together(keys, lostRows)));
  return PROJECTIONS.flatMap(({ name }) => differences(name, readStore.documents, folds));
}

/** The rows of a key store, and those that it has lost, save of persons who are erased. */
function together(keys: SubjectRows, lost: readonly SubjectRow[]): SubjectRows {
  const all = subjectRows();
  all.add([...keys.rows.values()]);
  const erased = keys.removed(lost.map(({ id }) => id));
  for (const row of lost) if (!erased.has(row.id)) all.rows.set(row.id, row);
  return all;
}

/** The documents of a projector that folds the whole log, with a key store that stays as it is. */
async function folded({ simulation, log, config }: Cluster, keys: SubjectRows): Promise<Documents> {
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
    const isFolded = (): boolean => {
      const kept = projector.kept();
      return (
        PROJECTIONS.every(({ name }) => fresh.documents.active(name) !== undefined) &&
        kept.length > 0 &&
        kept.every(({ caughtUp }) => caughtUp)
      );
    };
    while (!isFolded()) await sleep(POLL_MS);
    await projector.close();
  });
  return fresh.documents;
}

/** Documents that are of none of the folds. */
function differences(name: string, served: Documents, folds: readonly Documents[]): Finding[] {
  const ours = documentsOf(name, served);
  const all = folds.map((one) => documentsOf(name, one));
  const [theirs = ours] = all;
  const ids = new Set([...ours.keys(), ...theirs.keys()]);
  const other = [...ids].filter((id) => !all.some((one) => isDeepStrictEqual(ours.get(id), one.get(id))));
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
