/**
 * Erasures that support requests (docs/personal-data.md#requested-erasures). The log decides between a withdrawal and a
 * start. The key store holds the request too, so that restoring an earlier log does not lose it.
 */
import { type CommandContext, ownEvents, partOf, transact } from '../../../commands/transact.js';
import { holderOf, reservationAggregate, type User } from '../../../domain/account.js';
import { fold } from '../../../domain/decider.js';
import type { Entry } from '../../../domain/entry.js';
import {
  type ErasureRequested,
  type ErasureWithdrawn,
  erasureRequestAggregate,
  type Person,
  personOfStream,
  personStream,
} from '../../../domain/erasure.js';
import { Refusal } from '../../../domain/refusal.js';
import { RESTORED_STREAM } from '../../../domain/restored.js';
import type { Caller, RecordedEvent } from '../../../ports/eventStore.js';
import type { KeyStore } from '../../../ports/keyStore.js';
import {
  type Erasure,
  erasedIn,
  type ErasureLog,
  erasureOf,
  isFinished,
  isRequest,
  newErasureId,
  storeErasure,
} from './erasureRecord.js';
import { userAggregate } from './stopPerson.js';

type Deps = Pick<ErasureLog, 'events' | 'keys'>;

/**
 * @returns the person's latest erasure: the new request, or one that was requested, started or done before
 * @throws Refusal as `refuseUnlessErasable`; UnavailableError, ConflictError
 */
export async function requestErasure(
  { events, keys }: Deps,
  person: Person,
  context: CommandContext,
  { reason, delayMs }: { readonly reason: string; readonly delayMs: number },
): Promise<Erasure> {
  const earlier = await earlierErasure({ events, keys }, person);
  if (earlier !== undefined) return earlier;
  const due_at = later(context.now, delayMs);
  const { history } = await transact(
    events,
    erasureRequestAggregate,
    personStream(person),
    context,
    async ({ status }, before) => {
      await refuseUnlessErasable(keys, person, before, context.by);
      if (status === 'requested') return [];
      return [{ type: 'ErasureRequested', data: { erasure_id: newErasureId(), reason, due_at } }];
    },
  );
  // A repeat of a request that was withdrawn since appends nothing.
  const latest = history.findLast(({ type }) => type === 'ErasureRequested') as RecordedEvent;
  return storeRequest({ events, keys }, erasureRequestedIn(latest));
}

/** The person's latest erasure. A withdrawal may be in the log only, where the key store did not answer it. */
export async function earlierErasure({ events, keys }: Deps, person: Person): Promise<Erasure | undefined> {
  const stored = await erasureOf(keys, person);
  if (stored === undefined || !isRequest(stored)) return stored;
  const inLog = asInLog(stored, await events.read(personStream(person)));
  if (inLog.withdrawn_at === undefined) return inLog;
  await storeErasure(keys, inLog);
  return undefined;
}

/**
 * Stores a request, and then as the log has it: another process may have withdrawn or started it before it was stored,
 * and a late store must not bring it back.
 * @throws UnavailableError
 */
async function storeRequest({ events, keys }: Deps, requested: Erasure): Promise<Erasure> {
  await storeErasure(keys, requested);
  const inLog = asInLog(requested, await events.read(personStream(requested.person)));
  if (inLog !== requested) await storeErasure(keys, inLog);
  return inLog;
}

/** The request with its end or its start; the same object: it has neither. */
export function asInLog(requested: Erasure, history: readonly RecordedEvent[]): Erasure {
  for (const { type, data, at } of history.toReversed()) {
    const { erasure_id } = data as Partial<ErasureWithdrawn['data']>;
    if (erasure_id !== requested.id) continue;
    if (type === 'ErasureWithdrawn') return { ...requested, withdrawn_at: at };
    if (type === 'ErasureStarted') return { ...requested, started_at: at };
  }
  return requested;
}

/** The request in an event, as the key store holds it. */
export function erasureRequestedIn({ stream, data, at, metadata }: RecordedEvent): Erasure {
  const { erasure_id: id, reason, due_at } = data as ErasureRequested['data'];
  const { by, requestId } = metadata;
  return {
    id,
    person: personOfStream(stream),
    reason,
    by,
    ...(requestId === undefined ? {} : { request_id: requestId }),
    at,
    due_at,
  };
}

/** The person's erasure that is requested, or in progress. @throws Refusal `erasure_not_found`; UnavailableError */
export async function openErasure({ keys }: Pick<Deps, 'keys'>, person: Person): Promise<Erasure> {
  const erasure = await erasureOf(keys, person);
  if (erasure === undefined || isFinished(erasure)) throw new Refusal('erasure_not_found');
  return erasure;
}

/**
 * Withdraws a requested erasure. A repeat of the command answers as the first did, also where the person's erasure was
 * requested again since.
 * @throws Refusal `erasure_not_found`, `erasure_started`; UnavailableError, ConflictError
 */
export async function withdrawErasure(
  deps: Deps,
  person: Person,
  context: CommandContext,
  reason: string,
): Promise<Erasure> {
  const history = await deps.events.read(personStream(person));
  const own = ownEvents(history, context).find(({ type }) => type === 'ErasureWithdrawn');
  if (own !== undefined) {
    const { erasure_id } = own.data as ErasureWithdrawn['data'];
    const isIts = ({ type, data }: RecordedEvent): boolean =>
      type === 'ErasureRequested' && (data as ErasureRequested['data']).erasure_id === erasure_id;
    const withdrawn = { ...erasureRequestedIn(history.find(isIts) as RecordedEvent), withdrawn_at: own.at };
    // The first run may have ended before the key store had it.
    await storeErasure(deps.keys, withdrawn);
    return withdrawn;
  }
  const erasure = await earlierErasure(deps, person);
  if (erasure === undefined || isFinished(erasure)) throw new Refusal('erasure_not_found');
  if (!isRequest(erasure)) throw new Refusal('erasure_started');
  return endRequest(deps, erasure, context, reason);
}

/**
 * Records a withdrawal, also in a log that was restored to before it.
 * @throws Refusal `erasure_started`; UnavailableError
 */
export async function endRequest(
  { events, keys }: Deps,
  erasure: Erasure,
  context: CommandContext,
  reason: string,
): Promise<Erasure> {
  const { id, person } = erasure;
  await transact(events, erasureRequestAggregate, personStream(person), context, (state) => {
    if (state.status === 'none' || state.id !== id) return [];
    if (state.status === 'started') throw new Refusal('erasure_started');
    return state.status === 'requested' ? [{ type: 'ErasureWithdrawn', data: { erasure_id: id, reason } }] : [];
  });
  const withdrawn: Erasure = { ...erasure, withdrawn_at: erasure.withdrawn_at ?? context.now };
  await storeErasure(keys, withdrawn);
  return withdrawn;
}

/**
 * Starts a requested erasure: from now on it can't be withdrawn.
 * @throws Refusal `erasure_not_found`; UnavailableError, ConflictError
 */
export async function startRequested(
  { events, keys }: Deps,
  erasure: Erasure,
  context: CommandContext,
): Promise<Erasure> {
  const { id, person } = erasure;
  const { state } = await transact(
    events,
    erasureRequestAggregate,
    personStream(person),
    partOf(context),
    (request) => {
      const isEnded = request.status !== 'none' && request.id === id && request.status !== 'requested';
      return isEnded ? [] : [{ type: 'ErasureStarted', data: { erasure_id: id } }];
    },
  );
  if (state.status === 'withdrawn' && state.id === id) {
    await storeErasure(keys, { ...erasure, withdrawn_at: context.now });
    throw new Refusal('erasure_not_found');
  }
  return { ...erasure, started_at: context.now };
}

/**
 * Milliseconds after which an erasure counts as interrupted: a younger one is still in progress where it was requested.
 */
const LEFT_ALONE_MS = 60_000;

/** Whether an erasure that started at this time counts as interrupted. */
export const isLeft = (startedAt: string, now: string): boolean =>
  Date.parse(now) - Date.parse(startedAt) >= LEFT_ALONE_MS;

/**
 * Whether a request must be carried out now, or was started and interrupted. After a restore it waits as long again,
 * since a withdrawal may have been lost. A log that was restored to before the request gets it again.
 * @throws UnavailableError, ConflictError
 */
export async function isDue(
  { events, keys }: Deps,
  erasure: Erasure & { readonly due_at: string },
  context: CommandContext,
): Promise<boolean> {
  const { id, person, reason, at, due_at } = erasure;
  const { now } = context;
  const history = await events.read(personStream(person));
  // A write to the key store may have failed, or have taken effect after later ones.
  const inLog = asInLog(erasure, history);
  if (inLog.withdrawn_at !== undefined) {
    await storeErasure(keys, inLog);
    return false;
  }
  if (inLog.started_at !== undefined && isLeft(inLog.started_at, now)) return true;
  if (due_at > now) return false;
  if (erasedIn(history) !== undefined) return true;
  // A log that was restored to before the user has nothing to erase.
  if (person.kind === 'user' && history.length === 0) return false;
  const request = fold(erasureRequestAggregate, history);
  if (request.status === 'none' || request.id !== id) {
    const again = { erasure_id: id, reason, due_at: later(now, Date.parse(due_at) - Date.parse(at)) };
    const { state } = await transact(events, erasureRequestAggregate, personStream(person), context, ({ status }) =>
      status === 'requested' ? [] : [{ type: 'ErasureRequested', data: again }],
    );
    // Another process may have appended this one at the same time.
    const isReplaced = state.status === 'requested' && state.id !== id;
    if (isReplaced) await storeErasure(keys, { ...erasure, withdrawn_at: now });
    else await storeRequest({ events, keys }, { ...erasure, due_at: again.due_at });
    return false;
  }
  const restored = (await events.read(RESTORED_STREAM)).at(-1);
  const dueAgain = restored && later(restored.at, Date.parse(request.due_at) - Date.parse(request.at));
  if (dueAgain === undefined || dueAgain <= now) return true;
  await storeRequest({ events, keys }, { ...erasure, due_at: dueAgain });
  return false;
}

const later = (time: string, ms: number): string => new Date(Date.parse(time) + ms).toISOString();

/**
 * Checks who may be erased by whom (docs/personal-data.md#who-may-be-erased). `history` is the person's stream.
 * @throws Refusal `person_not_found`, `another_user_required`, `erasure_of_staff`, `number_of_user`; UnavailableError
 */
export async function refuseUnlessErasable(
  keys: Pick<KeyStore, 'byId'>,
  person: Person,
  history: readonly RecordedEvent[],
  by: Caller,
): Promise<void> {
  if (person.kind === 'user') {
    const user = fold(userAggregate, history);
    if (user.status === 'none') throw new Refusal('person_not_found');
    if (by.user === person.userId) throw new Refusal('another_user_required');
    if (actsForOthers(user)) throw new Refusal('erasure_of_staff');
    return;
  }
  if (holderOf(fold(reservationAggregate, history)) !== undefined) throw new Refusal('number_of_user');
  if (!(await keys.byId([person.phoneId])).has(person.phoneId)) throw new Refusal('person_not_found');
}

/** Whether the user is staff, or a user of a merchant, and no import has retired them. */
function actsForOthers(user: Entry<User>): boolean {
  return (
    user.status === 'live' && user.value.active && (user.value.roles.length > 0 || user.value.merchant_id !== null)
  );
}
