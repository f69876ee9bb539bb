/** A document as a read model has it that knows all of the log: so that one that is missing is known not to be. */
import type { EventStore, Position } from '../../ports/eventStore.js';
import { UnavailableError } from '../../ports/unavailable.js';

/** A read model, as far as it is asked. */
export interface AskedModel<T> {
  get(id: string): Promise<T | undefined>;
  reached(position: Position, timeoutMs: number): Promise<boolean>;
}

/**
 * How long a command waits for the read model to reach the log's end before it says that there is no such document,
 * milliseconds.
 */
export const MISSING_WAIT_MS = 1_000;

/**
 * The document; `undefined` where the log, as it stood when it was looked for, tells of none. That a read model lacks
 * it is no fact while it is behind.
 * @param waitMs how long the read model may take to reach the log's end, milliseconds
 * @throws UnavailableError while it is behind, too
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
