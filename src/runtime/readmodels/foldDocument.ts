import type { RecordedEvent } from '../../ports/eventStore.js';
import type { Body } from '../../ports/readStore.js';
import type { Projection } from './projection.js';

/**
 * Folds one document from events; `undefined`: there is no `before`, and no event touches the document.
 * @param events in log order
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
