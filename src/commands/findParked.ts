import { giftStream } from '../domain/gift/events.js';
import { deriveGiftIds, isGiftId } from '../domain/giftIds.js';
import {
  evolveParked,
  PARKED_NAMES,
  type ParkedEvent,
  parkedId,
  type ParkedName,
  parkedStream,
  type ParkedWork,
} from '../domain/parked.js';
import { type GiftsPurchased, transactionStream } from '../domain/purchase/events.js';
import { Refusal } from '../domain/refusal.js';
import type { EventStore, Recorded, RecordedEvent } from '../ports/eventStore.js';
import { UnavailableError } from '../ports/unavailable.js';
import type { ParkedDocument } from '../projections/parked.js';
import type { ReadModel } from '../runtime/readmodels/index.js';
import { type CommandContext, ownEvents, type StreamState } from './transact.js';

export interface ParkedDeps {
  readonly events: EventStore;
  readonly parked: ReadModel<ParkedDocument>;
  /** Read only for a gift that is not issued yet. */
  readonly gifts: { get(giftId: string): Promise<{ readonly transaction_id: string } | undefined> };
}

export interface FoundWork {
  readonly id: string;
  readonly name: ParkedName;
  readonly work: ParkedWork;
  readonly history: readonly RecordedEvent[];
}

type Found = StreamState<FoundWork>;

/**
 * The work with this id, or about this transaction, refund, dispute or gift. The latter find all work of their
 * purchase: charge, issue, refunds, disputes, notifications (a gift only its own). Work that waits for a person comes
 * first, and the entity's own before that of others. Work that the read model lacks is searched for in the log.
 * @throws Refusal `parked_work_not_found`, UnavailableError
 */
export async function findParked(deps: ParkedDeps, idOrEntity: string): Promise<FoundWork> {
  return (await findWork(deps, idOrEntity)).state;
}

/**
 * The work of an earlier run of this command, else waiting work, else any; the entity's own first. A command takes no
 * other entity's work where the entity has some.
 * @throws Refusal `parked_work_ambiguous` where several wait and none is the entity's own
 */
function meant(all: readonly Found[], own: readonly string[], context: CommandContext | undefined): Found | undefined {
  const earlier = context === undefined ? undefined : all.find(({ history }) => ownEvents(history, context).length > 0);
  if (earlier !== undefined) return earlier;
  const isOwn = ({ state }: Found): boolean => own.includes(state.id);
  const owned = all.filter(isOwn);
  const some = context !== undefined && owned.length > 0 ? owned : all;
  const waiting = some.filter(({ state }) => state.work.state === 'parked');
  if (context !== undefined && waiting.length > 1 && !waiting.some(isOwn)) throw new Refusal('parked_work_ambiguous');
  return waiting.find(isOwn) ?? waiting[0] ?? owned[0] ?? all[0];
}

/** @param context that of a command; absent: the work is only read */
export async function findWork(deps: ParkedDeps, idOrEntity: string, context?: CommandContext): Promise<Found> {
  const own = [idOrEntity, ...PARKED_NAMES.map((name) => parkedId(name, idOrEntity))];
  const direct = await worksWith(deps, own);
  const exact = direct.find(({ state }) => state.id === idOrEntity);
  if (exact !== undefined) return exact;
  const related = (await relatedIds(deps, idOrEntity)).filter((id) => !own.includes(id));
  const found = meant([...direct, ...(related.length === 0 ? [] : await worksWith(deps, related))], own, context);
  if (found === undefined) throw new Refusal('parked_work_not_found');
  return found;
}

/** Work with these ids, in the order of `ids` where the read model knows any, otherwise in the order of the log. */
async function worksWith(deps: ParkedDeps, ids: readonly string[]): Promise<Found[]> {
  const documents = await deps.parked.getMany(ids).catch((error: unknown): undefined[] => {
    // The work is then searched for in the log.
    if (error instanceof UnavailableError) return [];
    throw error;
  });
  const known = documents.flatMap((document, index) =>
    document === undefined ? [] : [{ id: ids[index] ?? '', document }],
  );
  return known.length === 0
    ? searched(deps.events, new Set(ids))
    : Promise.all(known.map(async ({ id, document }) => readKnown(deps.events, id, document)));
}

/** The ids of all work that a transaction, or a gift, may have. */
async function relatedIds(deps: ParkedDeps, named: string): Promise<string[]> {
  const giftId = isGiftId(named) ? named : undefined;
  const transactionId = giftId === undefined ? named : await transactionOf(deps, giftId);
  if (transactionId === undefined || transactionId === '' || transactionId.length > MAX_ID) return [];
  const purchase = await deps.events.read(transactionStream(transactionId));
  const [bought] = purchase;
  if (bought === undefined) return [];
  const of = (field: 'refund_id' | 'dispute_id', concerns: (data: object) => boolean = () => true): string[] =>
    purchase.flatMap(({ data }) =>
      concerns(data) ? ((data as Readonly<Record<string, string | undefined>>)[field] ?? []) : [],
    );
  const { seed, receivers } = bought.data as GiftsPurchased['data'];
  const gifts = giftId === undefined ? deriveGiftIds(seed, receivers.length).map((ids) => ids.gift_id) : [giftId];
  const concernsGift = (data: object): boolean => {
    // Only a refund's request and start name its gifts; none of them: it is of money that bought nothing.
    const { gift_ids: concerned } = data as { readonly gift_ids?: readonly string[] };
    return giftId === undefined || concerned?.length === 0 || concerned?.includes(giftId) === true;
  };
  return [
    ...new Set([
      parkedId('purchase', transactionId),
      ...gifts.map((id) => parkedId('notification', id)),
      ...[transactionId, ...of('refund_id', concernsGift)].map((id) => parkedId('refund', id)),
      ...of('dispute_id').map((id) => parkedId('dispute', id)),
    ]),
  ];
}

/** Maximum length of an id in characters. */
const MAX_ID = 64;

async function transactionOf({ events, gifts }: ParkedDeps, giftId: string): Promise<string | undefined> {
  const [issued] = await events.read(giftStream(giftId), { limit: 1 });
  return (
    (issued?.data as { readonly transaction_id?: string } | undefined)?.transaction_id ??
    (await gifts.get(giftId))?.transaction_id
  );
}

/** Reads the work's known events singly, and all events of the stream from the last known one on. */
async function readKnown(events: EventStore, id: string, { name, entity, revisions }: ParkedDocument): Promise<Found> {
  const stream = parkedStream(name);
  const before = await Promise.all(revisions.slice(0, -1).map(async (from) => events.read(stream, { from, limit: 1 })));
  const since = await events.read(stream, { from: revisions.at(-1) ?? 0 });
  return foundWork(id, name, [...before.flat(), ...ofEntity(since, entity)], since.at(-1)?.revision ?? -1);
}

/** Searches the log for work that the read model lacks. */
async function searched(events: EventStore, ids: ReadonlySet<string>): Promise<Found[]> {
  const all: Found[] = [];
  for (const name of PARKED_NAMES) {
    const stream = await events.read(parkedStream(name));
    for (const entity of new Set(stream.map(entityOf))) {
      const id = parkedId(name, entity);
      if (ids.has(id)) all.push(foundWork(id, name, ofEntity(stream, entity), stream.at(-1)?.revision ?? -1));
    }
  }
  return all;
}

export function foundWork(id: string, name: ParkedName, history: readonly RecordedEvent[], revision: number): Found {
  const work = history.reduce<ParkedWork | undefined>(
    (before, event) => evolveParked(before, event as Recorded<ParkedEvent>),
    undefined,
  );
  if (work === undefined) throw new Error('parked work has no event');
  return { stream: parkedStream(name), state: { id, name, work, history }, history, revision };
}

const entityOf = (event: RecordedEvent): string => (event.data as ParkedEvent['data']).entity;

const ofEntity = (events: readonly RecordedEvent[], entity: string): RecordedEvent[] =>
  events.filter((event) => entityOf(event) === entity);
