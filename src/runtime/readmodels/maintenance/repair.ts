/**
 * Folds single documents afresh; the leading process stores them. This also repairs quarantined documents that this
 * code can fold.
 */
import { pause } from '../../../lib/async/pause.js';
import { ticks } from '../../../lib/world.js';
import type { ReadStore } from '../../../ports/readStore.js';
import { checkpointName, collectionOf, type Projection } from '../projection.js';
import { asBuild, otherReleaseText, sameVersion } from '../buildNumbers.js';
import type { Pace } from '../../coordination/index.js';
import type { ProjectorProcess } from '../projectorProcess.js';
import { atMostBytes } from '../writer.js';
import { foldNow, foldOn } from './foldSome.js';
import { MaintenanceRefusedError, type RepairOutcome, type Work } from './orders.js';
import { placeOrder, type RepairOrder } from './repairOrders.js';

const POLL_MS = 50;
const ORDER = { documents: 200, bytes: 500_000 };
/** How long the projector may take to reach the documents' position. */
const STUCK_MS = 30_000;
/** Most documents of one repair; more documents need a rebuild. */
export const MAX_REPAIRS = 10_000;

/** Share of a repair's time that folding takes. */
const FOLDING = 0.9;

/**
 * Folds the named documents from the log, and has the leading process put them in place of those that are served.
 * @returns what became of each document; `undefined`: stopped by the signal, though the leader may still replace some
 * @throws MaintenanceRefusedError
 */
export async function repair(
  deps: ProjectorProcess,
  projection: Projection,
  ids: readonly string[],
  work: Work & { readonly pace: Pace },
): Promise<RepairOutcome[] | undefined> {
  const { store } = deps;
  const { signal, report } = work;
  const { name } = projection;
  const requested = [...new Set(ids)];
  if (requested.length > MAX_REPAIRS)
    throw new MaintenanceRefusedError(
      `${requested.length} documents are too many to repair one by one: rebuild ${name}`,
      {
        remedy: 'rebuild',
      },
    );
  const active = await store.active(name);
  if (active === undefined) throw new MaintenanceRefusedError(`${name} has never been built: the projector builds it`);
  if (!sameVersion(active, projection.version))
    throw new MaintenanceRefusedError(
      otherReleaseText(name, active, projection.version, 'wait until this one is in use: it is built from the log'),
    );
  const folded = await foldNow(deps, projection, requested, { ...work, part: FOLDING });
  if (signal.aborted) return undefined;
  // An erasure drops orders with data of the person (`dropRepairsOf`): those that come later must hold none.
  const { documents, through } =
    projection.personal === true ? await foldOn(deps, projection, requested, folded) : folded;
  const served = await servedIds(store, asBuild(projection, active), requested);
  const unknown = requested.filter((id) => !documents.has(id) && !served.has(id));
  if (unknown.length > 0)
    throw new MaintenanceRefusedError(`${name} has no document ${namedShortly(unknown)}, nor does the log know any`);

  const keys: string[] = [];
  for (const order of ordersOf({ name, build: active, through: through ?? null }, requested, documents))
    keys.push(await placeOrder(store, order));
  const start = ticks();
  const outcomes = new Map<string, RepairOutcome>();
  const done = async (): Promise<boolean> => {
    for (const key of keys.slice()) {
      const order = (await store.records.get<RepairOrder>(key))?.value;
      // A leading process of another release may not know this read model, and let an order expire.
      if (order === undefined)
        throw new MaintenanceRefusedError(
          `${name}: no process has put anything in place, and none will any more: repeat the repair`,
          { remedy: 'status' },
        );
      if (order.failure !== undefined)
        throw new MaintenanceRefusedError(`${name}: ${order.failure}: repeat the repair`);
      if (order.outcomes === undefined) continue;
      for (const outcome of order.outcomes) outcomes.set(outcome.id, outcome);
      keys.splice(keys.indexOf(key), 1);
      await store.records.delete(key);
    }
    if (keys.length > 0 && ticks() - start > STUCK_MS) {
      const reached = await store.checkpoint(checkpointName(asBuild(projection, active)));
      if (through !== undefined && (reached === undefined || reached < through)) {
        for (const key of keys) await store.records.delete(key);
        throw new MaintenanceRefusedError(
          `${name} is behind the log and does not catch up, so nothing can be put in place`,
          { remedy: 'status' },
        );
      }
    }
    return keys.length === 0;
  };
  report(null, { step: 'place' });
  while (!(await done())) {
    if (signal.aborted) return undefined;
    await pause(POLL_MS, signal);
  }
  return requested.map((id) => outcomes.get(id) ?? { id, outcome: 'same' });
}

/** Names ids in a message, shortened since text that is no id may be long. */
function namedShortly(ids: readonly string[]): string {
  const shown = ids.slice(0, 4).map((id) => (id.length > 40 ? `${id.slice(0, 40)}…` : id));
  return `${shown.join(', ')}${ids.length > shown.length ? ` and ${ids.length - shown.length} more` : ''}`;
}

async function servedIds(store: ReadStore, build: Projection, ids: readonly string[]): Promise<Set<string>> {
  const found = await store.getMany(collectionOf(build), ids);
  return new Set(found.flatMap((document) => (document === undefined ? [] : [document.id])));
}

function* ordersOf(
  what: Omit<RepairOrder, 'documents'>,
  ids: readonly string[],
  folded: ReadonlyMap<string, RepairOrder['documents'][number]['document']>,
): Generator<RepairOrder> {
  let documents: RepairOrder['documents'][number][] = [];
  let bytes = 0;
  for (const id of ids) {
    const document = folded.get(id) ?? null;
    const size = atMostBytes(document);
    if (documents.length === ORDER.documents || (documents.length > 0 && bytes + size > ORDER.bytes)) {
      yield { ...what, documents };
      documents = [];
      bytes = 0;
    }
    documents.push({ id, document });
    bytes += size;
  }
  if (documents.length > 0) yield { ...what, documents };
}
