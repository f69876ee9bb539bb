import type { EventStore, Position } from '../../ports/eventStore.js';
import { UnavailableError } from '../../ports/unavailable.js';

export interface AskedModel<T> {
  get(id: string): Promise<T | undefined>;
  reached(position: Position, timeoutMs: number): Promise<boolean>;
}

/** How long a command waits before it reports a missing document. */
export const MISSING_WAIT_MS = 1_000;

/**
 * `undefined`: the log had no such document at the call. `isEnough`: whether a document that may be outdated will do;
 * default any.
 * @throws UnavailableError, also if the read model does not reach the log's end in `waitMs`
 */
export async function getAtLogEnd<T>(
  events: Pick<EventStore, 'end'>,
  model: AskedModel<T>,
  id: string,
  waitMs: number,
  isEnough: (known: T) => boolean = () => true,
): Promise<T | undefined> {
  const known = await model.get(id);
  if (known !== undefined && isEnough(known)) return known;
  const end = await events.end();
  if (end !== undefined && !(await model.reached(end, waitMs)))
    throw new UnavailableError(`a read model is behind the log, and can't say yet what there is of ${id}`);
  return model.get(id);
}
