import type { EventStore } from '../../ports/eventStore.js';

export interface UnknownFilter {
  readonly name: string;
  readonly words: string;
}

/** A filter by an id. `stream` has events where the log knows the id. */
interface IdFilter {
  readonly name: string;
  readonly id: string;
  readonly stream: string;
}

/**
 * The first filter whose id the log does not know: an empty answer for a mistyped id would look like a fact.
 * @throws UnavailableError
 */
export async function unknownFilter(
  events: Pick<EventStore, 'read'>,
  filters: readonly IdFilter[],
): Promise<UnknownFilter | undefined> {
  for (const { name, id, stream } of filters)
    if ((await events.read(stream, { limit: 1 })).length === 0)
      return { name, words: `the log knows no ${name} ${JSON.stringify(id)}` };
  return undefined;
}
