import type { EventStore, RecordedEvent } from '../../ports/eventStore.js';

/**
 * The last event of a stream of any length, in few reads: their number grows with the logarithm of the length.
 * @throws UnavailableError
 */
export async function lastEvent(events: Pick<EventStore, 'read'>, stream: string): Promise<RecordedEvent | undefined> {
  const at = async (revision: number): Promise<RecordedEvent | undefined> =>
    (await events.read(stream, { from: revision, limit: 1 }))[0];
  let last = await at(0);
  if (last === undefined) return undefined;
  let beyond = 1;
  for (let found = await at(beyond); found !== undefined; found = await at(beyond))
    [last, beyond] = [found, beyond * 2];
  // The last event is at `last` or after it, and before `beyond`.
  while (beyond - last.revision > 1) {
    const middle = last.revision + Math.floor((beyond - last.revision) / 2);
    const found = await at(middle);
    if (found === undefined) beyond = middle;
    else last = found;
  }
  return last;
}
