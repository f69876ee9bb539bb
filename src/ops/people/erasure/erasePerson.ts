/**
 * ErasePerson (docs/decisions.md#erasure): what opens the personal data of a person is destroyed, then the log says so,
 * then everything that was derived from it goes. Each step may be repeated: an erasure that was killed anywhere, or
 * failed, is finished by the same call again.
 */
import type { CommandContext } from '../../../commands/context.js';
import { transact } from '../../../commands/transact.js';
import { holderOf, reservationAggregate } from '../../../domain/account.js';
import { type Aggregate, type DomainEvent, fold } from '../../../domain/decider.js';
import { type Person, type PersonErased, personStream } from '../../../domain/erasure.js';
import { Refusal } from '../../../domain/refusal.js';
import type { EventStore, Position, RecordedEvent } from '../../../ports/eventStore.js';
import type { KeyStore } from '../../../ports/keyStore.js';
import { type Erasure, erasureOf, newErasureId, storeErasure } from './erasureRecord.js';
import type { ErasureDeps } from './erasureDeps.js';
import { fencePerson, type Fenced } from './fencePerson.js';
import { moneyInFlight } from './moneyInFlight.js';
import { removeSubjects, fenceThings } from './removeSubjects.js';
import { partOf } from './retire.js';
import { type Traces, tracesOf } from './traces.js';

export interface ErasureOutcome {
  readonly erasure: Erasure;
  /** It had been done before. */
  readonly already: boolean;
  /** Of `PersonErased`; `undefined`: the log is from before the person. */
  readonly position: Position | undefined;
}

/** Money of the person is not settled. They are fenced: nothing new begins. The same call again goes on. */
export class ErasureWaitsError extends Error {
  override readonly name = 'ErasureWaitsError';
  readonly waitsFor: readonly string[];
  constructor(waitsFor: readonly string[]) {
    const [first = '', ...others] = waitsFor;
    super(`the erasure has started and waits for ${first}${others.length === 0 ? '' : ` and ${others.length} more`}`);
    this.waitsFor = waitsFor;
  }
}

/** @throws Refusal `person_not_found`, `number_of_user`; ErasureWaitsError; UnavailableError */
export async function erasePerson(
  deps: ErasureDeps,
  person: Person,
  context: CommandContext,
  reason: string,
): Promise<ErasureOutcome> {
  const { events, keys } = deps;
  const history = await events.read(personStream(person));
  const before = erasedIn(history);
  const earlier = await erasureOf(keys, person);
  if (before !== undefined && earlier?.done_at !== undefined)
    return { erasure: earlier, already: true, position: before };
  // Once it has started, its own fences and removals would stand against it.
  if (before === undefined && earlier === undefined) await refuseUnlessErasable(keys, person, history);

  const started = earlier ?? newErasure(person, context, reason);
  await storeErasure(keys, started);
  const fenced = await fencePerson(deps, person, context);
  const phoneIds = new Set([...(started.phone_ids ?? []), ...fenced.phoneIds]);
  const erasure: Erasure = { ...started, phone_ids: [...phoneIds] };
  await storeErasure(keys, erasure);
  const traces = tracesOf(events, { ...fenced, phoneIds });
  await refuseWhileMoneyMoves(events, traces);
  await fenceThings(deps, traces);
  await deps.settle();
  // What was bought just before the fence.
  await refuseWhileMoneyMoves(events, traces);
  const purchases = await destroy(deps, fenced, traces, erasure.id, context);
  const position = await appendErased(events, person, partOf(context), {
    erasure_id: erasure.id,
    purchases,
    reason: erasure.reason,
  });
  if (position !== undefined) await deps.removeDerived(position);
  // What was decided before the fence may have been appended since.
  await destroy(deps, await fencePerson(deps, person, context), traces, erasure.id, context);
  const finished: Erasure = { ...erasure, done_at: context.now };
  await storeErasure(keys, finished);
  return { erasure: finished, already: false, position };
}

function newErasure(person: Person, { by, requestId, now }: CommandContext, reason: string): Erasure {
  return {
    id: newErasureId(),
    person,
    reason,
    by,
    ...(requestId === undefined ? {} : { request_id: requestId }),
    at: now,
  };
}

async function refuseUnlessErasable(
  keys: Pick<KeyStore, 'byId'>,
  person: Person,
  history: readonly RecordedEvent[],
): Promise<void> {
  if (person.kind === 'user') {
    if (history.length === 0) throw new Refusal('person_not_found');
    return;
  }
  if (holderOf(fold(reservationAggregate, history)) !== undefined) throw new Refusal('number_of_user');
  if (!(await keys.byId([person.phoneId])).has(person.phoneId)) throw new Refusal('person_not_found');
}

async function refuseWhileMoneyMoves(events: EventStore, traces: Traces): Promise<void> {
  await traces.readOn();
  const open = await moneyInFlight(events, traces.bought);
  if (open.length > 0) throw new ErasureWaitsError(open);
}

/**
 * Records go while the names are known, and the key of the user's own fields goes last: a repeat finds the others by
 * what it opens. @returns of how many purchases the data key went
 */
async function destroy(
  deps: ErasureDeps,
  fenced: Fenced,
  traces: Traces,
  erasureId: string,
  context: CommandContext,
): Promise<number> {
  await traces.readOn();
  const { userId, names, phoneIds } = fenced;
  await deps.removeRecords({ ...(userId === undefined ? {} : { userId }), ...names, phoneIds });
  const purchases = await removeSubjects(deps, fenced, traces, erasureId, context);
  await deps.keys.remove(fenced.last);
  return purchases;
}

const erasedAggregate: Aggregate<boolean, DomainEvent> = {
  initial: false,
  evolve: (erased, { type }) => type === 'PersonErased' || (erased && type !== 'UserAdded'),
};

/** `undefined`: the person is not erased, or has come back by an import that raced with the erasure. */
export function erasedIn(history: readonly RecordedEvent[]): Position | undefined {
  return fold(erasedAggregate, history) ? history.findLast(({ type }) => type === 'PersonErased')?.position : undefined;
}

/** `undefined`: the log is from before the user, and has nothing to end. */
export async function appendErased(
  events: EventStore,
  person: Person,
  context: CommandContext,
  data: PersonErased['data'],
): Promise<Position | undefined> {
  const { history } = await transact(events, erasedAggregate, personStream(person), context, (erased, before) =>
    erased || (person.kind === 'user' && before.length === 0) ? [] : [{ type: 'PersonErased', data }],
  );
  return history.findLast(({ type }) => type === 'PersonErased')?.position;
}
