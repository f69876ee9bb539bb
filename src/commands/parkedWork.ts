/** RetryParked and DiscardParked: what support does about work that a process manager gave up. */
import {
  CHARGE_STEP,
  discardWork,
  evolveParked,
  PARKED_NAMES,
  parkedId,
  type ParkedEvent,
  type ParkedName,
  parkedStream,
  type ParkedWork,
  retryWork,
} from '../domain/parked.js';
import { giftStream } from '../domain/gift.js';
import { deriveGiftIds, giftIdOf } from '../domain/giftIds.js';
import { type GiftsPurchased, transactionStream } from '../domain/purchase.js';
import { Refusal } from '../domain/refusal.js';
import type { EventStore, RecordedEvent } from '../ports/eventStore.js';
import { UnavailableError } from '../ports/unavailable.js';
import type { ParkedDocument } from '../projections/parked.js';
import type { ReadModel } from '../runtime/readmodels/readModel.js';
import { type CommandContext, ownEvents } from './context.js';
import { giveUpCharge } from './giveUpCharge.js';
import { giveUpNotification } from './giveUpNotification.js';
import { type StreamState, transactOn } from './transact.js';

/** What the commands work with. */
export interface ParkedDeps {
  readonly events: EventStore;
  readonly parked: ReadModel<ParkedDocument>;
  /** Read only for a gift that is not issued yet. */
  readonly gifts: { get(giftId: string): Promise<{ readonly transaction_id: string } | undefined> };
}

/** Parked work with its events, in order. */
export interface FoundWork {
  readonly id: string;
  readonly name: ParkedName;
  readonly work: ParkedWork;
  readonly history: readonly RecordedEvent[];
}

/** What a command brought about. */
export interface ParkedOutcome extends FoundWork {
  /** The command's own event, appended now or (`replayed`) by an earlier run; absent: nothing was to be done. */
  readonly own?: RecordedEvent;
  readonly replayed: boolean;
}

/**
 * The work with this id. The id of a transaction, refund or dispute, and a gift's id or shortcode, find all work of
 * their purchase: charge, issue, refunds, disputes, notifications (of a gift: its own). Of several it is one that waits
 * for a person, the entity's own first. Work that the read model lacks is looked for in the log.
 * @throws Refusal `parked_work_not_found`, UnavailableError
 */
export async function findParked(deps: ParkedDeps, idOrEntity: string): Promise<FoundWork> {
  return (await lookFor(deps, idOrEntity)).found;
}

/**
 * Hands parked work back to its process manager. @throws Refusal `parked_work_not_found`, `parked_work_ambiguous`,
 * `work_discarded`; UnavailableError
 */
export async function retryParked(
  deps: ParkedDeps,
  idOrEntity: string,
  context: CommandContext,
  reason: string,
): Promise<ParkedOutcome> {
  return decided(deps, idOrEntity, context, ({ name, work }) => retryWork(name, work, reason));
}

/**
 * Takes parked work off the list for good. A notification is then recorded as failed and a charge as declined, so that
 * neither stays open for ever. Only then: a discard that loses against a retry must not end what the retry promised. A
 * crash in between is healed by discarding again.
 * @throws Refusal `parked_work_not_found`, `parked_work_ambiguous`, `work_retried`; UnavailableError
 */
export async function discardParked(
  deps: ParkedDeps,
  idOrEntity: string,
  context: CommandContext,
  reason: string,
): Promise<ParkedOutcome> {
  const outcome = await decided(deps, idOrEntity, context, ({ work }) => discardWork(work, reason));
  const discarded = outcome.own ?? outcome.history.findLast(({ type }) => type === 'WorkDiscarded');
  if (discarded === undefined) return outcome;
  const { entity, step } = outcome.work;
  if (outcome.name === 'notification') await giveUpNotification(deps.events, entity, context, discarded.position);
  if (outcome.name === 'purchase' && step === CHARGE_STEP) await giveUpCharge(deps.events, entity, context);
  return outcome;
}

interface Looked {
  readonly found: FoundWork;
  /** Revision of the stream's last event. */
  readonly last: number;
}

async function decided(
  deps: ParkedDeps,
  idOrEntity: string,
  context: CommandContext,
  decide: (found: FoundWork) => readonly ParkedEvent[],
): Promise<ParkedOutcome> {
  let wanted = idOrEntity;
  const read = async (): Promise<StreamState<FoundWork>> => {
    const { found, last } = await lookFor(deps, wanted, context);
    // After a lost race it is still this work that is meant, not another one of its entity.
    wanted = found.id;
    return { stream: parkedStream(found.name), state: found, history: found.history, revision: last };
  };
  const { state, history, own, replayed } = await transactOn(deps.events, { kind: 'parked', read }, context, decide);
  const [event] = own;
  if (event === undefined) return { ...state, replayed };
  // A repeated command is answered as it was, whatever has come since.
  const then = history.filter(({ revision }) => revision <= event.revision);
  return { ...looked(state.id, state.name, then, event.revision).found, own: event, replayed };
}

/**
 * Which of several is meant: the one of an earlier run of this command; else one that waits, else any; among those the
 * entity's own. A command never means another entity's work where the entity has some.
 * @throws Refusal `parked_work_ambiguous` where a command could mean several that wait
 */
function meant(
  all: readonly Looked[],
  own: readonly string[],
  context: CommandContext | undefined,
): Looked | undefined {
  const earlier =
    context === undefined ? undefined : all.find(({ found }) => ownEvents(found.history, context).length > 0);
  if (earlier !== undefined) return earlier;
  const isOwn = ({ found }: Looked): boolean => own.includes(found.id);
  const owned = all.filter(isOwn);
  const some = context !== undefined && owned.length > 0 ? owned : all;
  const waiting = some.filter(({ found }) => found.work.state === 'parked');
  if (context !== undefined && waiting.length > 1 && !waiting.some(isOwn)) throw new Refusal('parked_work_ambiguous');
  return waiting.find(isOwn) ?? waiting[0] ?? owned[0] ?? all[0];
}

/** @param context of a command; absent: it is only read */
async function lookFor(deps: ParkedDeps, idOrEntity: string, context?: CommandContext): Promise<Looked> {
  const own = [idOrEntity, ...PARKED_NAMES.map((name) => parkedId(name, idOrEntity))];
  const direct = await worksWith(deps, own);
  const exact = direct.find(({ found }) => found.id === idOrEntity);
  if (exact !== undefined) return exact;
  const related = (await relatedIds(deps, idOrEntity)).filter((id) => !own.includes(id));
  const found = meant([...direct, ...(related.length === 0 ? [] : await worksWith(deps, related))], own, context);
  if (found === undefined) throw new Refusal('parked_work_not_found');
  return found;
}

/** The works with these ids: in their order where the read model knows any, else in that of the log. */
async function worksWith(deps: ParkedDeps, ids: readonly string[]): Promise<Looked[]> {
  const documents = await deps.parked.getMany(ids).catch((error: unknown): undefined[] => {
    // The log knows what the read model can't say.
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

/** The ids of all work that can be parked for a transaction, or for a gift (id or shortcode). */
async function relatedIds(deps: ParkedDeps, named: string): Promise<string[]> {
  const giftId = giftIdOf(named);
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
  // Not a refund of other gifts alone.
  const concernsGift = (data: object): boolean => {
    // A refund of money that bought nothing names no gifts.
    const { gift_ids: concerned = [] } = data as { readonly gift_ids?: readonly string[] };
    return giftId === undefined || concerned.length === 0 || concerned.includes(giftId);
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

/** No id is longer. */
const MAX_ID = 64;

async function transactionOf({ events, gifts }: ParkedDeps, giftId: string): Promise<string | undefined> {
  const [issued] = await events.read(giftStream(giftId), { limit: 1 });
  return (
    (issued?.data as { readonly transaction_id?: string } | undefined)?.transaction_id ??
    (await gifts.get(giftId))?.transaction_id
  );
}

/** Reads its events one by one, then all that the stream has gained since. */
async function readKnown(events: EventStore, id: string, { name, entity, revisions }: ParkedDocument): Promise<Looked> {
  const stream = parkedStream(name);
  const before = await Promise.all(revisions.slice(0, -1).map(async (from) => events.read(stream, { from, limit: 1 })));
  const since = await events.read(stream, { from: revisions.at(-1) ?? 0 });
  return looked(id, name, [...before.flat(), ...ofEntity(since, entity)], since.at(-1)?.revision ?? -1);
}

/** Reads the whole streams, for what the read model lacks. */
async function searched(events: EventStore, ids: ReadonlySet<string>): Promise<Looked[]> {
  const all: Looked[] = [];
  for (const name of PARKED_NAMES) {
    const stream = await events.read(parkedStream(name));
    for (const entity of new Set(stream.map(entityOf))) {
      const id = parkedId(name, entity);
      if (ids.has(id)) all.push(looked(id, name, ofEntity(stream, entity), stream.at(-1)?.revision ?? -1));
    }
  }
  return all;
}

function looked(id: string, name: ParkedName, history: readonly RecordedEvent[], last: number): Looked {
  const work = history.reduce<ParkedWork | undefined>(
    (before, event) => evolveParked(before, event as unknown as ParkedEvent),
    undefined,
  );
  if (work === undefined) throw new Error('parked work has no event');
  return { found: { id, name, work, history }, last };
}

const entityOf = (event: RecordedEvent): string => (event.data as ParkedEvent['data']).entity;

const ofEntity = (events: readonly RecordedEvent[], entity: string): RecordedEvent[] =>
  events.filter((event) => entityOf(event) === entity);
