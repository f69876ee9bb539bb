/**
 * ErasePerson (docs/personal-data.md#erasure) destroys the keys of a person's data, records that in the log, then
 * removes everything that was derived from the data. The same call finishes an erasure that was killed at any point, or
 * failed.
 */
import type { CommandContext } from '../../../commands/transact.js';
import { type Person, personStream } from '../../../domain/erasure.js';
import type { Position, RecordedEvent } from '../../../ports/eventStore.js';
import type { ErasureDeps } from './derivedData.js';
import { endPerson } from './endPerson.js';
import { type Erasure, erasedIn, erasureOf, isRequest, newErasureId, storeErasure } from './erasureRecord.js';
import { asInLog, refuseUnlessErasable, startRequested } from './requestErasure.js';

export interface ErasureOutcome {
  readonly erasure: Erasure;
  /** Whether the erasure had been done before. */
  readonly already: boolean;
  /** Position of `PersonErased`; `undefined` where the log is from before the person. */
  readonly position: Position | undefined;
  /** Streams of names that were altered in the key store: records that hold these names were not found. */
  readonly unreadable: readonly string[];
}

/**
 * Erases a person. A pending request of an erasure is carried out, too.
 * @throws Refusal as `refuseUnlessErasable`; ErasureWaitsError; UnavailableError
 */
export async function erasePerson(
  deps: ErasureDeps,
  person: Person,
  context: CommandContext,
  reason: string,
): Promise<ErasureOutcome> {
  const { events, keys } = deps;
  const history = await events.read(personStream(person));
  const before = erasedIn(history);
  const earlier = withStart(await erasureOf(keys, person), history);
  if (before !== undefined && earlier?.done_at !== undefined)
    return { erasure: earlier, already: true, position: before, unreadable: [] };
  const request = earlier !== undefined && isRequest(earlier) ? earlier : undefined;
  // A started erasure is not checked, since its own fences and removals would fail the check.
  if (before === undefined && (earlier === undefined || request !== undefined))
    await refuseUnlessErasable(keys, person, history, context.by);
  const started = request === undefined ? earlier : await startRequested(deps, request, context);

  const { erasure, position, unreadable, endRest } = await endPerson(
    deps,
    started ?? newErasure(person, context, reason),
    context,
  );
  if (position !== undefined) await deps.removeDerived(position);
  await endRest();
  const finished: Erasure = { ...erasure, done_at: context.now };
  await storeErasure(keys, finished);
  return { erasure: finished, already: false, position, unreadable };
}

/** The erasure as stored, but started where the log has its start, which a late write to the key store has hidden. */
function withStart(stored: Erasure | undefined, history: readonly RecordedEvent[]): Erasure | undefined {
  if (stored === undefined || !isRequest(stored)) return stored;
  const inLog = asInLog(stored, history);
  return inLog.started_at === undefined ? stored : inLog;
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
