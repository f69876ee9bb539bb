/**
 * Steps of an erasure in the key store and the log, up to `PersonErased`. Each step may be repeated: the same call
 * finishes an erasure that was killed at any point.
 */
import { type CommandContext, partOf, transact } from '../../../commands/transact.js';
import { readPurchase } from '../../../commands/readStreams.js';
import { erasedAggregate, type Person, type PersonErased, personStream } from '../../../domain/erasure.js';
import { Refusal } from '../../../domain/refusal.js';
import { inParallel } from '../../../lib/async/inParallel.js';
import type { EventStore, Position } from '../../../ports/eventStore.js';
import { UnavailableError } from '../../../ports/unavailable.js';
import { parkedInLog } from '../../parked/parkedView.js';
import type { ErasureDeps } from './derivedData.js';
import { type Erasure, erasedIn, storeErasure, unfinished } from './erasureRecord.js';
import { type RelatedSubjects, relatedSubjects } from './relatedSubjects.js';
import { reservedNames } from '../personTraces.js';
import { isTaken, type Stopped, stopPerson } from './stopPerson.js';

const PURCHASES_AT_ONCE = 64;

/**
 * Money of the person is not settled. The person can do nothing new, and others are not harmed. The same call continues
 * later.
 */
export class ErasureWaitsError extends Error {
  override readonly name = 'ErasureWaitsError';
  readonly waitsFor: readonly string[];
  constructor(waitsFor: readonly string[]) {
    const [first = '', ...others] = waitsFor;
    super(`the erasure has started and waits for ${first}${others.length === 0 ? '' : ` and ${others.length} more`}`);
    this.waitsFor = waitsFor;
  }
}

interface Ended {
  readonly erasure: Erasure;
  /** Position of `PersonErased`; `undefined` where the log is from before the person. */
  readonly position: Position | undefined;
  /** Streams of names that were altered in the key store. */
  readonly unreadable: readonly string[];
  /**
   * Repeats the steps for events that were decided before the fence and appended after it.
   * @throws UnavailableError, ConflictError
   */
  endRest(): Promise<void>;
}

/**
 * Erases a person in the key store and the log. The erasure is left unfinished, since read models have not followed.
 * @throws Refusal `number_of_user`: a user has taken the number since, and the erasure is withdrawn; ErasureWaitsError;
 * UnavailableError, ConflictError
 */
export async function endPerson(deps: ErasureDeps, started: Erasure, context: CommandContext): Promise<Ended> {
  const { events, keys } = deps;
  const { person } = started;
  await storeErasure(keys, started);
  const before = erasedIn(await events.read(personStream(person)));
  const reserved = reservedNames(events);
  const stopped = await stopPerson(deps, person, reserved, context);
  const related = relatedSubjects(deps, { ...stopped, phoneIds: new Set(stopped.phoneIds) });
  const run: Run = { deps, erasure: started, context, related };
  // Money of a person who was erased before was settled then, and no charge can use a removed key.
  const settled = before !== undefined || stopped.ownFieldRows.length === 0;
  await refuseUnlessFree(run, stopped, settled);
  await fence(run, stopped);
  await deps.settle();
  // A purchase, or a taken name, may have come just before the fence.
  await refuseUnlessFree(run, stopped, settled);
  const purchases = await destroy(run, stopped);
  const erasure = unfinished(started);
  if (started.done_at !== undefined) await storeErasure(keys, erasure);
  const { id, reason } = erasure;
  const position = await appendErased(events, person, partOf(context), { erasure_id: id, purchases, reason });
  return {
    erasure,
    position,
    unreadable: stopped.unreadable,
    async endRest() {
      const late = await stopPerson(deps, person, reserved, context);
      await fence(run, late);
      await refuseUnlessFree(run, late, true);
      await destroy(run, late);
    },
  };
}

interface Run {
  readonly deps: ErasureDeps;
  readonly erasure: Erasure;
  readonly context: CommandContext;
  readonly related: RelatedSubjects;
}

async function fence({ deps, related }: Run, { nameRows }: Stopped): Promise<void> {
  await deps.keys.fence(nameRows);
  await related.fence();
}

/**
 * Refuses where money is not settled or a name was taken. It then ends all fences but that of the user's own fields,
 * since others would meet them.
 */
async function refuseUnlessFree(run: Run, stopped: Stopped, settled: boolean): Promise<void> {
  const { deps, erasure, context, related } = run;
  await related.readOn();
  const taken = await isTaken(deps.events, stopped);
  const open = settled ? [] : await moneyInFlight(deps.events, related.bought);
  if (!taken && open.length === 0) return;
  await deps.keys.unfence(stopped.nameRows);
  await related.unfence();
  if (!taken) throw new ErasureWaitsError(open);
  if (erasure.person.kind === 'user')
    throw new UnavailableError('another user has taken a name of the person just now: repeat the erasure to finish it');
  await storeErasure(deps.keys, { ...erasure, withdrawn_at: context.now });
  throw new Refusal('number_of_user');
}

/**
 * Destroys records and keys of a person; records first, while the names are known.
 * @returns the number of purchases whose data key was removed
 */
async function destroy({ deps, erasure, context, related }: Run, stopped: Stopped): Promise<number> {
  await related.readOn();
  const { userId, names, phoneIds, nameRows, ownFieldRows } = stopped;
  const texts = related.texts();
  await deps.removeRecords({ ...(userId === undefined ? {} : { userId }), ...names, phoneIds, texts });
  const purchases = await related.remove(erasure.id, context);
  await deps.keys.remove([...nameRows, ...ownFieldRows]);
  return purchases;
}

/** Appends `PersonErased`. `undefined` where the log is from before the user, and has nothing to end. */
async function appendErased(
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

/**
 * Descriptions of the charges and refunds that are not settled, such as `the payment of transaction 6ec0…`. A refund
 * that a person has discarded is settled: they have seen to its money, and no event says so.
 * @throws UnavailableError
 */
async function moneyInFlight(events: Pick<EventStore, 'read'>, transactionIds: Iterable<string>): Promise<string[]> {
  const payments: string[] = [];
  const refunds = new Map<string, string>();
  await inParallel(transactionIds, PURCHASES_AT_ONCE, async (id) => {
    const purchase = await readPurchase(events, id);
    if (purchase.status === 'none') return;
    if (purchase.status === 'pending') payments.push(`the payment of transaction ${id}`);
    for (const [refundId, { status }] of purchase.refunds)
      if (status === 'requested' || status === 'started')
        refunds.set(refundId, `refund ${refundId} of transaction ${id}`);
  });
  if (refunds.size > 0)
    for (const { document } of await parkedInLog(events, ['refund']))
      if (document.state === 'discarded') refunds.delete(document.entity);
  return [...payments, ...refunds.values()].sort();
}
