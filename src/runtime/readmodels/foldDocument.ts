/** A document as the log tells it, whatever the read model knows. */
import type { RecordedEvent } from '../../ports/eventStore.js';
import type { Body } from '../../ports/readStore.js';
import type { Projection } from './projection.js';

/**
 * One document of a projection, folded from events of which some may touch it, in the log's order; `undefined` where
 * none does.
 * @param before the document before the first of them; absent: there is none
 */
export function foldDocument<B extends Body>(
  projection: Projection<B>,
  events: readonly RecordedEvent[],
  id: string,
  before?: B,
): B | undefined {
  let document = before;
  for (const event of events) {
    if (!projection.types.includes(event.type)) continue;
    const index = projection.documentIds(event).indexOf(id);
    if (index >= 0) document = projection.evolve(document, event, id, index);
  }
  return document;
}
