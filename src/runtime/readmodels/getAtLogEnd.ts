/** A document as a read model has it that has reached the log's end, so that a missing document does not exist. */
import type { EventStore, Position } from '../../ports/eventStore.js';
import { UnavailableError } from '../../ports/unavailable.js';

export interface AskedModel<T> {
  get(id: string): Promise<T | undefined>;
  reached(position: Position, timeoutMs: number): Promise<boolean>;
}

/** How long a command waits for the read model before it says that there is no such document, ms. */
export const MISSING_WAIT_MS = 1_000;

/**
 * The document; `undefined` where the log, as it stood at the call, has none. @param waitMs how long the read model may
 * take to reach the log's end, ms @throws UnavailableError also while it is behind
 */
export async function getAtLogEnd<T>(
  events: Pick<EventStore, 'end'>,
  model: AskedModel<T>,
  id: string,
  waitMs: number,
): Promise<T | undefined> {
  const known = await model.get(id);
  if (known !== undefined) return known;
  const end = await events.end();
  if (end !== undefined && !(await model.reached(end, waitMs)))
    throw new UnavailableError(`a read model is behind the log, and can't say yet whether there is ${id}`);
  return model.get(id);
}
