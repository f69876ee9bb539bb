/**
 * A read store's witness of its log: one of the last events that were folded into it. A log that does not hold it was
 * put back to an earlier time, under its own id, and the read store was not: checkpoints stand beyond the log's end
 * then, so that purchases would be taken and neither charged, told nor shown, and everything would look caught up.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { EventStore, RecordedEvent } from '../../ports/eventStore.js';
import type { Records } from '../../ports/readStore.js';
import { LOOKS } from '../../ports/storedPosition.js';

/** The key of the witness among the records. */
export const WITNESS = 'log/witness';
/** Names one event for ever. */
export type Witness = Pick<RecordedEvent, 'stream' | 'revision' | 'id'>;

/** The event's name. */
export function witnessOf({ stream, revision, id }: RecordedEvent): Witness {
  return { stream, revision, id };
}

/** Keeps it in the place of an earlier one. @throws UnavailableError */
export async function putWitness(records: Records, witness: Witness): Promise<void> {
  await records.put(WITNESS, witness);
}

/**
 * The witness that the log does not hold; `undefined` where it does, or nobody has kept one yet. @throws
 * UnavailableError
 */
export async function lostWitness(
  records: Pick<Records, 'get'>,
  events: Pick<EventStore, 'read'>,
): Promise<Witness | undefined> {
  const witness = (await records.get<Witness>(WITNESS))?.value;
  if (witness === undefined) return undefined;
  for (let look = 1; ; look++) {
    const [found] = await events.read(witness.stream, { from: witness.revision, limit: 1 });
    if (found?.id === witness.id) return undefined;
    if (found !== undefined || look >= LOOKS.most) return witness;
    await sleep(LOOKS.everyMs);
  }
}
