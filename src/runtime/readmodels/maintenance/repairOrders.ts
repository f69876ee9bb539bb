/**
 * Repairs by the leading process, between two turns, when everything folded is stored and nothing is written. So no
 * event is lost between a document's fresh fold and the next event. An order is a record.
 */
import { isDeepStrictEqual } from 'node:util';
import type { Logger } from 'pino';
import { randomUUID, systemMs } from '../../../lib/world.js';
import type { EventStore, Position } from '../../../ports/eventStore.js';
import type { Correction, ReadStore, StoredDocument, StoredRecord } from '../../../ports/readStore.js';
import { positionFault, type ReachedLog, shownPosition } from '../../../ports/storedPosition.js';
import { buildText, sameVersion } from '../buildNumbers.js';
import type { Lease } from '../../coordination/index.js';
import { raiseEdition } from '../edition.js';
import { forgetQuarantine, isQuarantined, recordQuarantine } from '../quarantine.js';
import type { RunningBuild } from '../runningBuild.js';
import { LeaseLostError } from '../writer.js';
import { foldSome } from './foldSome.js';
import type { RepairOutcome } from './orders.js';

export const REPAIRS = 'repair/';
const ORDER_MS = 3_600_000;

export interface RepairOrder {
  readonly name: string;
  /** Number of the build in use at the request; documents of another version have another shape. */
  readonly build: number;
  /** `document: null`: the log lacks it. */
  readonly documents: readonly { readonly id: string; readonly document: StoredDocument | null }[];
  /** The documents are as of this position. */
  readonly through: Position | null;
  /** Outcome of each document, set when the order was carried out. */
  readonly outcomes?: readonly RepairOutcome[];
  /** Reason of the refusal, set when the order was refused. */
  readonly failure?: string;
}

export async function placeOrder({ records }: Pick<ReadStore, 'records'>, order: RepairOrder): Promise<string> {
  const key = `${REPAIRS}${order.name}/${randomUUID()}`;
  await records.put(key, order, { expected: 0, expiresAt: systemMs() + ORDER_MS });
  return key;
}

export async function openOrders({ records }: Pick<ReadStore, 'records'>): Promise<StoredRecord<RepairOrder>[]> {
  return (await records.list<RepairOrder>(REPAIRS)).filter(
    ({ value }) => value.outcomes === undefined && value.failure === undefined,
  );
}

/** Deletes open orders that have one of these documents, which may hold personal data. */
export async function dropRepairsOf({ records }: Pick<ReadStore, 'records'>, ids: ReadonlySet<string>): Promise<void> {
  for (const { key, value } of await records.list<RepairOrder>(REPAIRS))
    if (value.documents.some(({ id }) => ids.has(id))) await records.delete(key);
}

interface RefuseDeps {
  readonly store: Pick<ReadStore, 'records'>;
  readonly events: ReachedLog;
  readonly logger: Pick<Logger, 'warn'>;
}

interface CarryOutDeps {
  readonly store: ReadStore;
  readonly events: EventStore;
  readonly lease: Pick<Lease, 'held'>;
}

/** Refuses an order whose position is not in the log: no build will ever reach it. */
export async function refuseInvalid(
  deps: RefuseDeps,
  { key, value, version }: StoredRecord<RepairOrder>,
): Promise<void> {
  const { store, events, logger } = deps;
  const fault = value.through === null ? undefined : await positionFault(events, value.through);
  if (fault === undefined) return;
  logger.warn(
    { projection: value.name, position: shownPosition(value.through) },
    `projector: the stored position of a repair ${fault}: the repair is refused`,
  );
  const failure = `its stored position ${fault}`;
  await store.records.put(key, { ...value, documents: [], failure } satisfies RepairOrder, {
    expected: version,
    expiresAt: systemMs() + ORDER_MS,
  });
}

/**
 * Carries an order out on the serving build, which has reached the order's position. Records a refusal in the order.
 * @throws LeaseLostError, UnavailableError: it may be done in part, and the order stays open
 */
export async function carryOut(
  build: RunningBuild,
  { key, value: order, version }: StoredRecord<RepairOrder>,
  { store, events, lease }: CarryOutDeps,
): Promise<void> {
  const end = async (result: Pick<RepairOrder, 'outcomes' | 'failure'>): Promise<void> => {
    await store.records.put(key, { ...order, documents: [], ...result } satisfies RepairOrder, {
      expected: version,
      expiresAt: systemMs() + ORDER_MS,
    });
  };
  const otherWriter = async (missed: readonly string[]): Promise<void> =>
    end({ failure: `somebody else wrote ${missed.join(', ')} meanwhile` });

  if (!sameVersion(order.build, build.projection.version))
    return end({
      failure: `${buildText(build.projection.version)} is in use by now, and the documents were folded by another version`,
    });
  const ids = order.documents.map(({ id }) => id);
  const known = new Map(
    order.documents.flatMap(({ id, document }) => (document === null ? [] : [[id, document] as const])),
  );
  const wanted = await foldSome({
    events,
    projection: build.projection,
    ids: new Set(ids),
    documents: known,
    after: order.through ?? undefined,
    through: build.stored,
  });
  const documents = await store.getMany(build.collection, ids);
  const misindexed = new Set(await store.misindexed(build.collection, ids));
  const ahead = await aheadOf(build, documents, events);
  if (ahead.length > 0) return otherWriter(ahead);
  const corrections = ids.flatMap((id, index): Correction[] => {
    const [before, after] = [documents[index], wanted.get(id)];
    return isDeepStrictEqual(before, after) && !misindexed.has(id)
      ? []
      : [{ id, expected: before?.position, document: after }];
  });
  if (!lease.held) throw new LeaseLostError();
  const made = await store.correct(build.collection, corrections);
  build.cache.clear();
  // Readers drop the documents in their memory, since some changed without an event. An earlier attempt may have
  // changed them and got no answer.
  await raiseEdition(store, order.name);
  const missed = corrections.filter((_, index) => made[index] !== true).map(({ id }) => id);
  if (missed.length > 0) return otherWriter(missed);
  const changed = new Set(corrections.map(({ id }) => id));
  const outcomes: RepairOutcome[] = [];
  for (const id of ids) {
    const after = wanted.get(id);
    if (after !== undefined && isQuarantined(after.body)) {
      await recordQuarantine(store.records, build.projection, after.body.$quarantined);
      outcomes.push({ id, outcome: 'quarantined', cause: after.body.$quarantined.cause });
      continue;
    }
    await forgetQuarantine(store.records, build.projection, id);
    build.quarantined = build.quarantined.filter(({ documentId }) => documentId !== id);
    outcomes.push({ id, outcome: !changed.has(id) ? 'same' : after === undefined ? 'removed' : 'repaired' });
  }
  return end({ outcomes });
}

/**
 * Ids of documents beyond the build's checkpoint, from the next leader or a write without a checkpoint: this fold would
 * undo them. A document beyond the log's end was falsified, and is not among them.
 */
async function aheadOf(
  { stored }: RunningBuild,
  documents: readonly (StoredDocument | undefined)[],
  events: EventStore,
): Promise<string[]> {
  const ahead = documents.flatMap((document) =>
    document !== undefined && (stored === undefined || document.position > stored) ? [document] : [],
  );
  if (ahead.length === 0) return [];
  const end = await events.end();
  return ahead.filter(({ position }) => end !== undefined && position <= end).map(({ id }) => id);
}
