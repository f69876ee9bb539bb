import { inParallel } from '../lib/async/inParallel.js';
import type { Position } from '../ports/eventStore.js';
import { OutOfServiceError } from '../ports/unavailable.js';
import type { ReadModel } from '../runtime/readmodels/index.js';

const PARALLEL_READS = 32;

/**
 * Documents in the order of `ids`, for a list, which leaves out those that are out of service: null in their places.
 * `since`: see `ReadModel.get`.
 * @throws UnavailableError
 */
export async function documentsListed<B extends object>(
  model: Pick<ReadModel<B>, 'get' | 'getMany'>,
  ids: readonly string[],
  since?: Position,
): Promise<(B | null | undefined)[]> {
  const orNull = (error: unknown): null => {
    if (error instanceof OutOfServiceError) return null;
    throw error;
  };
  const all = await model.getMany(ids, since).catch(orNull);
  if (all !== null) return all;
  const documents: (B | null | undefined)[] = [];
  await inParallel(ids.entries(), PARALLEL_READS, async ([index, id]) => {
    documents[index] = await model.get(id, since).catch(orNull);
  });
  return documents;
}
