/**
 * Erasures after a log, or a key store, was put back to an earlier time: each knows those that the other has lost
 * (docs/decisions.md#erasure).
 */
import { randomUUID } from 'node:crypto';
import type { CommandContext } from '../../../commands/context.js';
import { type Person, type PersonErased, personOfStream, personStream } from '../../../domain/erasure.js';
import { lookupOf, userSubject } from '../../../domain/personalFields.js';
import type { RecordedEvent } from '../../../ports/eventStore.js';
import type { ErasureDeps } from './erasureDeps.js';
import { appendErased, erasedIn, erasePerson } from './erasePerson.js';
import { type Erasure, storedErasures, storeErasure } from './erasureRecord.js';
import { partOf, retireUser } from './retire.js';

type LogDeps = Pick<ErasureDeps, 'events' | 'keys'>;

const contextOf = ({ by }: Erasure, now: string): CommandContext => {
  const commandId = randomUUID();
  return { commandId, correlationId: commandId, by, now };
};

/**
 * Repeats in the log what the key store says was erased: a log from before that shows these persons as active, though
 * their data can't be read. @returns how many
 * @throws UnavailableError
 */
export async function reapplyToLog({ events, keys }: LogDeps, now: string): Promise<number> {
  let repeated = 0;
  for await (const erasure of storedErasures(keys)) {
    const { id, person, reason, done_at } = erasure;
    if (done_at === undefined) continue;
    const history = await events.read(personStream(person));
    // A log from before the user; a number that was never a user's has no stream before its erasure.
    if (erasedIn(history) !== undefined || (person.kind === 'user' && history.length === 0)) continue;
    const context = contextOf(erasure, now);
    if (person.kind === 'user') await retireUser(events, person.userId, context);
    await appendErased(events, person, partOf(context), { erasure_id: id, purchases: 0, reason });
    repeated += 1;
  }
  return repeated;
}

/**
 * Erasures that a key store has undone which was put back to before them. They are stored as unfinished ones, so that
 * they are finished like these. Reads the log once.
 * @throws UnavailableError
 */
export async function storeUndone(
  { events, keys, hash }: Pick<ErasureDeps, 'events' | 'keys' | 'hash'>,
  signal?: AbortSignal,
): Promise<readonly Erasure[]> {
  const known = new Set<string>();
  for await (const { id } of storedErasures(keys)) known.add(id);
  const undone: Erasure[] = [];
  for await (const batch of events.readAll(undefined, { types: ['PersonErased'] }, { signal }))
    for (const event of batch.events) {
      const erasure = erasureIn(event);
      if (known.has(erasure.id) && !(await hasRow({ keys, hash }, erasure.person))) continue;
      await storeErasure(keys, erasure);
      undone.push(erasure);
    }
  return undone;
}

/** As `storeUndone`, and finishes them. For a key store that no service uses. @returns how many */
export async function reapplyToKeys(deps: ErasureDeps, now: string): Promise<number> {
  const undone = await storeUndone(deps);
  for (const erasure of undone) await erasePerson(deps, erasure.person, contextOf(erasure, now), erasure.reason);
  return undone.length;
}

function erasureIn({ stream, data, at, metadata }: RecordedEvent): Erasure {
  const { erasure_id: id, reason } = data as PersonErased['data'];
  return { id, person: personOfStream(stream), reason, by: metadata.by, at };
}

async function hasRow({ keys, hash }: Pick<ErasureDeps, 'keys' | 'hash'>, person: Person): Promise<boolean> {
  if (person.kind === 'number') return (await keys.byId([person.phoneId])).size > 0;
  return (await keys.byLookup([lookupOf(hash, userSubject(person.userId))])).size > 0;
}
