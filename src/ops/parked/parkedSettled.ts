import type { ParkedName } from '../../domain/parked.js';
import type { EventStore } from '../../ports/eventStore.js';
import { MANAGERS } from '../../processors/managers.js';
import type { ParkedEntity } from '../../processors/runner/index.js';

/**
 * Whether parked work has ended since, successfully or not. The streams of its entity show that: a successful retry
 * appends nothing to the stream of parked work.
 */
export async function isSettled(
  events: EventStore,
  { name, work }: { readonly name: ParkedName; readonly work: ParkedEntity },
): Promise<boolean> {
  const manager = MANAGERS.find(({ steps }) => steps.includes(work.step));
  if (manager === undefined) throw new Error(`parked by ${name} under an unknown step, ${work.step}`);
  return manager.isSettled(events, work);
}
