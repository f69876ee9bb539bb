/**
 * ErasePerson (docs/decisions.md#erasure): what opens the personal data of a person is destroyed, then the log says so,
 * then everything that was derived from it goes. An erasure that was killed anywhere, or failed, is finished by the same
 * call again.
 */
import type { CommandContext } from '../../../commands/context.js';
import { type Person, personStream } from '../../../domain/erasure.js';
import type { Position } from '../../../ports/eventStore.js';
import { endPerson, erasedIn } from './endPerson.js';
import { refuseUnlessErasable } from './erasable.js';
import type { ErasureDeps } from './erasureDeps.js';
import { type Erasure, erasureOf, isRequest, newErasureId, storeErasure } from './erasureRecord.js';
import { startRequested } from './requestErasure.js';

export interface ErasureOutcome {
  readonly erasure: Erasure;
  /** It had been done before. */
  readonly already: boolean;
  /** Of `PersonErased`; `undefined`: the log is from before the person. */
  readonly position: Position | undefined;
  /** Streams of names that were altered in the key store: records that hold these names were not found. */
  readonly unread: readonly string[];
}

/**
 * A request of the person is carried out, too.
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
  const earlier = await erasureOf(keys, person);
  if (before !== undefined && earlier?.done_at !== undefined)
    return { erasure: earlier, already: true, position: before, unread: [] };
  const request = earlier !== undefined && isRequest(earlier) ? earlier : undefined;
  // Once it has started, its own fences and removals would stand against it.
  if (before === undefined && (earlier === undefined || request !== undefined))
    await refuseUnlessErasable(keys, person, history, context.by);
  const started = request === undefined ? earlier : await startRequested(deps, request, context);

  const { erasure, position, unread, endRest } = await endPerson(
    deps,
    started ?? newErasure(person, context, reason),
    context,
  );
  if (position !== undefined) await deps.removeDerived(position);
  await endRest();
  const finished: Erasure = { ...erasure, done_at: context.now };
  await storeErasure(keys, finished);
  return { erasure: finished, already: false, position, unread };
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
